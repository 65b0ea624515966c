"""Every real case with three to ten groups, and the committed table of them."""

import numpy as np
import pytest

from studies import exact_cases, second_search

pytestmark = pytest.mark.untraced

# Relative gaps that rough prototypes left; in every other feasible case they left none.
PROTOTYPES = {
    "Adult, race": {3: 3.3e-4, 7: 3.2e-4, 12: 5.0e-3, 13: 1.8e-2},
    "Adult, sex × race": {9: 2.1e-4, 10: 3.2e-5, 12: 2.1e-2, 13: 2.8e-2},  # noqa: RUF001
    "Credit, marriage": {12: 1.6e-5, 13: 6.4e-4, 22: 9.1e-6},
    "Credit, education": {13: 3.2e-6},
    "Credit, sex × marriage": {11: 8.2e-4, 12: 1.3e-3, 19: 1.3e-2},  # noqa: RUF001
}
INFEASIBLE = {
    "Adult, race": {1},
    "Adult, sex × race": {1, 2, 3, 4, 5, 6},  # noqa: RUF001
    "Credit, marriage": {1, 2},
    "Credit, education": {1, 2},
    "Credit, sex × marriage": {1, 2, 3, 4, 5, 6, 7, 9},  # noqa: RUF001
}


# Of the dimensions of each grouping, a third is solved again: these and every third after them.
FIRST = dict(zip(PROTOTYPES, (2, 3, 1, 2, 3), strict=True))


def committed(grouping):
    """Rows of the committed table: dimension, status, figures."""
    page = exact_cases.TARGET.read_text(encoding="utf-8")
    section = page.split(f"## {grouping} ")[1].split("## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    cells = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
    return [(int(r), status, *(float(x or "nan") for x in rest)) for r, status, *rest in cells]


@pytest.mark.parametrize("grouping", PROTOTYPES)
def test_the_committed_table_beats_the_prototypes(grouping):
    for r, status, _, _, spread, proven, gap, _ in committed(grouping):
        if r in INFEASIBLE[grouping]:
            assert status == "infeasible"
            assert spread >= proven > 1e-3
            continue
        assert status in ("optimal", "bounded")
        # Two digits of the prototypes' gaps are known.
        assert gap <= min(1.03 * PROTOTYPES[grouping].get(r, 0.0) + 1e-7, 3e-2)


def test_at_least_three_quarters_have_no_gap():
    rows = [row for grouping in PROTOTYPES for row in committed(grouping)]
    gaps = [row[6] for row in rows if row[1] != "infeasible"]
    assert len(gaps) == 73
    assert sum(gap <= 1e-7 for gap in gaps) >= 0.75 * len(gaps)


@pytest.mark.parametrize("grouping", PROTOTYPES)
def test_a_third_of_the_committed_table_is_what_the_solver_finds(grouping):
    rows = committed(grouping)
    found = list(exact_cases.solve(grouping, FIRST[grouping], step=3))
    assert len(rows) == found[0].solution.basis.shape[0] - 1
    for case in found:
        r, status, total_loss, _, _, proven, gap, _ = rows[case.r - 1]
        certificate = case.solution.certificate
        assert (r, status) == (case.r, certificate.status)
        if status == "infeasible":
            assert certificate.spread >= certificate.violation_bound
            assert certificate.violation_bound == pytest.approx(proven, rel=1e-2)
            assert case.solution.total_loss == pytest.approx(total_loss, rel=1e-2)
            continue
        assert certificate.spread <= 1e-8 * case.scale
        assert certificate.relative_gap <= 1.03 * gap + 1e-7
        assert case.solution.total_loss == pytest.approx(total_loss, rel=1e-5, abs=5.1e-7)


# --- The cases with a gap, by another program ---------------------------------


def test_another_program_finds_nothing_better():
    page = second_search.TARGET.read_text(encoding="utf-8")
    cells = [line.split("|")[1:-1] for line in page.splitlines() if "| " in line][1:]
    assert [(one[0].strip(), int(one[1])) for one in cells] == second_search.cases()
    for _, _, _, ours, least, equal, same in cells:
        assert int(equal) >= 1
        assert int(same) >= 1
        assert float(least) >= (1.0 - second_search.SAME) * float(ours)


@pytest.mark.parametrize(("grouping", "r"), [("Adult, race", 3), ("Adult, race", 13)])
def test_some_of_its_searches_are_found_again(grouping, r):
    found = second_search.searched(grouping, r, 4, jobs=1)
    assert np.isfinite(found.losses).any()
    assert found.losses.min() == pytest.approx(found.ours, rel=second_search.SAME)
