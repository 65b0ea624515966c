"""Every real case with three to ten groups, and the committed table of them."""

import pytest

import exact_cases

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


# On one worker, because solving all cases takes a minute.
@pytest.fixture(scope="module")
def solved():
    return {grouping: list(exact_cases.solve_all(grouping)) for grouping in exact_cases.GROUPINGS}


@pytest.mark.parametrize("grouping", PROTOTYPES)
def test_endings_spreads_and_gaps(solved, grouping):
    for case in solved[grouping]:
        certificate = case.solution.certificate
        if case.r in INFEASIBLE[grouping]:
            assert certificate.status == "infeasible"
            assert certificate.spread >= certificate.miss_bound > 1e-3
            continue
        assert certificate.status in ("optimal", "bounded")
        assert certificate.spread <= 1e-8 * case.scale
        # Two digits of the prototypes' gaps are known.
        allowed = 1.03 * PROTOTYPES[grouping].get(case.r, 0.0) + 1e-7
        assert certificate.relative_gap <= min(allowed, 3e-2)


def test_at_least_three_quarters_have_no_gap(solved):
    gaps = [
        case.relative_gap
        for cases in solved.values()
        for case in cases
        if case.solution.certificate.status in ("optimal", "bounded")
    ]
    assert len(gaps) == 73
    assert sum(gap <= 1e-7 for gap in gaps) >= 0.75 * len(gaps)


@pytest.mark.parametrize("grouping", PROTOTYPES)
def test_the_committed_table_is_what_the_script_makes(solved, grouping):
    page = exact_cases.TARGET.read_text(encoding="utf-8")
    section = page.split(f"## {grouping} ")[1].split("## ")[0]
    rows = [line.split("|")[1:4] for line in section.splitlines() if line.startswith("|")][2:]
    for case, (r, status, total_loss) in zip(solved[grouping], rows, strict=True):
        assert int(r) == case.r
        assert status.strip() == case.solution.certificate.status
        tolerance = 1e-5 if status.strip() in ("optimal", "bounded") else 1e-2
        assert float(total_loss) == pytest.approx(
            case.solution.total_loss, rel=tolerance, abs=5.1e-7
        )
