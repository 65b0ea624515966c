"""The map of the paper: every place and every test that it names exists."""

import re
from pathlib import Path

import pytest

import fairpca
import fairpca.comparators
import fairpca.datasets
import fairpca.objectives
import fairpca.solvers
import fairpca.solvers.pareto

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "paper_map.md").read_text(encoding="utf-8")
QUOTED = sorted(set(re.findall(r"`([^`]+)`", PAGE)))


@pytest.mark.parametrize("quoted", [text for text in QUOTED if "/" in text])
def test_files_and_tests_are_there(quoted):
    file, _, test = quoted.partition("::")
    path = ROOT / file
    assert path.exists()
    assert f"def {test}(" in path.read_text(encoding="utf-8") or not test


@pytest.mark.parametrize("quoted", [text for text in QUOTED if "/" not in text])
def test_names_are_there(quoted):
    name = re.sub(r"\(.*\)|=.*", "", quoted)
    if name == "alpha":  # a parameter
        return
    found = fairpca
    if name.startswith("Descent."):
        found = fairpca.solvers.pareto
    for part in name.removeprefix("fairpca.").split("."):
        if hasattr(found, part):
            found = getattr(found, part)
        else:  # a field of a dataclass
            assert part in found.__dataclass_fields__


def test_every_equation_theorem_figure_and_table_is_on_the_map():
    rows = PAGE[PAGE.index("|---") :]
    named = set()
    for kind, numbers in re.findall(
        r"(equation|theorem|figure|definition|remark)s? (\d+(?:(?:, | and | to )\d+)*)", rows
    ):
        ends = [int(number) for number in re.findall(r"\d+", numbers)]
        named |= {(kind, n) for n in (range(ends[0], ends[-1] + 1) if " to " in numbers else ends)}
    for kind, most in (
        ("equation", 21),
        ("definition", 6),
        ("theorem", 3),
        ("figure", 9),
        ("remark", 2),
    ):
        missing = [n for n in range(1, most + 1) if (kind, n) not in named]
        assert not missing, f"{kind} {missing}"
    assert "table 1" in rows
    assert "lemma 1" in rows
    assert "corollary 1" in rows
    for appendix in "ABCD":
        assert f"appendix {appendix}" in rows


@pytest.mark.parametrize(
    "said",
    [
        "exactly r dimensions",
        "slightly compromising the reconstruction loss",
        "optimal trade-off",
        "provable convergence",
        "superior performance",
        "multiple group sensitive features",
        "downstream tasks",
    ],
)
def test_every_claim_of_the_abstract_has_a_row_with_a_test_and_a_finding(said):
    (row,) = [line for line in PAGE.splitlines() if line.startswith("| abstract") and said in line]
    _, _, here, test, found, _ = row.split("|")
    assert "`" in here
    assert "::" in test
    assert re.search(r"claims? \d|points? \d", found)
