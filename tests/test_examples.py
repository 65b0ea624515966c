"""The gallery: its scripts run, and show what they say."""

import re
import runpy
import sys
from pathlib import Path

from matplotlib import pyplot as plt

from devices import import_torch

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_the_fair_autoencoder_runs_and_draws(tmp_path, monkeypatch, capsys):
    torch = import_torch()
    threads = torch.get_num_threads()
    figure = tmp_path / "figure.png"
    monkeypatch.setattr(sys, "argv", ["fair_autoencoder.py", "--quick", "--figure", str(figure)])
    monkeypatch.chdir(tmp_path)
    try:
        scope = runpy.run_path(str(EXAMPLES / "fair_autoencoder.py"), run_name="__main__")
    finally:
        torch.set_num_threads(threads)
        plt.close("all")
    out = capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["figure.png"]
    for title in ("Linear autoencoder", "Adult by sex", "Digits"):
        assert title in out
    for name in scope["RUNS"]:
        assert len(re.findall(rf"^{re.escape(name)} +[\d.]+ ", out, re.MULTILINE)) == 4
    page = (EXAMPLES.parent / "docs" / "fair_autoencoder.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \**(.+?)\** \| .+ ± ", page, re.MULTILINE)
    assert rows == [*scope["RUNS"]]
    # No rank of five beats the exact frontier, up to the digits of float32.
    above = [float(line.split()[-1]) for line in out.splitlines() if ", seed 0" in line]
    assert len(above) == 3
    assert min(above) > -1e-5
    # The objectives' gradients are those of PyTorch.
    check_gradients(torch, scope["objectives"])


def check_gradients(torch, objectives):
    losses = torch.tensor([1.0, 2.5, 0.5], dtype=torch.float64, requires_grad=True)
    own = torch.tensor([0.2, 0.9, 0.4], dtype=torch.float64)
    shares = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    gaps = losses - own
    wanted = [shares @ losses]
    wanted += [0.5 * (gaps[i] - gaps[j]) ** 2 for i, j in ((0, 1), (0, 2), (1, 2))]
    rows = objectives((losses - own).detach().float(), shares.float())
    for row, value in zip(rows, wanted, strict=True):
        (slope,) = torch.autograd.grad(value, losses, retain_graph=True)
        assert torch.allclose(row.double(), slope, atol=1e-6)
