"""Run every experiment and write figures, tables and claims: ``python -m studies.reproduction``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd

from studies.reproduction import (
    claims,
    complexity,
    downstream,
    groupings,
    heldout,
    printed,
    remedy,
    starts,
    sweep,
)
from studies.reproduction.plots import (
    averages,
    classifier,
    frontier,
    groups,
    preprocessings,
    scaling,
)
from studies.reproduction.plots.style import save
from studies.reproduction.runner import run_all

TARGET = Path(__file__).parent


def reproduce(
    target: Path = TARGET, *, small: bool = False, n_jobs: int = 2, quiet: bool = False
) -> None:
    """Compute what is not remembered, draw every figure, write every table and the claims."""
    tables = compute(small=small, n_jobs=n_jobs, quiet=quiet)
    folder = target / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in tables.items():
        frame.to_csv(folder / f"{name}.csv", index=False, float_format="%.8g")
    draw(tables, target / "figures")
    page = claims.page(claims.Evidence.read(folder))
    (target / "claims.md").write_text(page, encoding="utf-8")


def compute(*, small: bool, n_jobs: int, quiet: bool) -> dict[str, pd.DataFrame]:
    """Every table, by the name of its file."""
    options: dict[str, Any] = {"n_jobs": n_jobs, "quiet": quiet}
    reference = run_all(sweep.reference_tasks(small), "every method, every dimension", **options)
    prepared = run_all(sweep.preprocessing_tasks(small), "other preprocessings", **options)
    classified = run_all(downstream.tasks(small), "classifiers", **options)
    varied = run_all(printed.tasks(small), "printed, in every way", **options)
    unseen = run_all(heldout.tasks(small), "rows held out", **options)
    remedied = run_all(remedy.tasks(small), "fewer dimensions", **options)
    ended = run_all(starts.tasks(small), "many starts", **options)
    grouped = run_all(groupings.tasks(small), "many groups", **options)
    # Times are only worth something when nothing else runs.
    timed = run_all(complexity.tasks(small), "times", n_jobs=1, quiet=quiet)
    stepped = run_all(complexity.step_tasks(small), "steps", n_jobs=1, quiet=quiet)
    relaxed = run_all(complexity.sdp_tasks(small), "SDP", n_jobs=1, quiet=quiet)
    times = sweep.frame_of([record] for record in timed)
    return {
        "methods": sweep.frame_of(reference),
        "preprocessings": sweep.frame_of(prepared),
        "classifiers": downstream.intervals(sweep.frame_of(classified)),
        "printed": sweep.frame_of(varied),
        "heldout": sweep.frame_of(unseen),
        "remedy": sweep.frame_of(remedied),
        "starts": sweep.frame_of(ended),
        "groupings": pd.DataFrame(grouped),
        "steps": pd.DataFrame(stepped),
        "sdp": sweep.frame_of(relaxed),
        "times": times,
        "exponents": complexity.exponents(times),
    }


def draw(tables: dict[str, pd.DataFrame], figures: Path) -> None:
    """Every figure, as a picture and as a vector graphic."""
    mpl.use("Agg")
    reference, judged = tables["methods"], tables["classifiers"]
    for name, sensitive in sweep.TASKS:
        for quantity in ("group loss", "disparity"):
            figure = groups.draw(reference, name, sensitive, quantity)
            save(figure, figures, f"{name}_{sensitive}_{quantity.split()[-1]}".lower())
    save(averages.draw_disparity(reference), figures, "average_disparity")
    save(averages.draw_total(reference), figures, "total_loss")
    for r in sorted(set(reference["r"]) & {2, 5, 10}):
        save(averages.draw_every_method(reference, r), figures, f"every_method_{r}")
    save(preprocessings.draw(tables["preprocessings"]), figures, "preprocessings")
    save(classifier.draw(judged), figures, "classifier")
    save(classifier.draw_preprocessings(judged), figures, "classifier_preprocessings")
    save(frontier.draw(tables["starts"]), figures, "frontier")
    save(scaling.draw(tables["times"]), figures, "times")


def main(arguments: list[str]) -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m studies.reproduction", description=__doc__)
    parser.add_argument("--target", type=Path, default=TARGET, help="folder to write to")
    parser.add_argument("--small", action="store_true", help="few rows, few dimensions")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    chosen = parser.parse_args(arguments)
    start = time.perf_counter()
    reproduce(chosen.target, small=chosen.small, n_jobs=chosen.jobs)
    minutes = (time.perf_counter() - start) / 60
    print(f"{chosen.target / 'claims.md'} and its figures written in {minutes:.1f} minutes")


if __name__ == "__main__":
    main(sys.argv[1:])
