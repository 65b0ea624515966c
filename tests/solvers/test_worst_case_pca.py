"""wcPCA's generator, and the committed table on it."""

import numpy as np
import pytest

from studies import worst_case_pca

pytestmark = pytest.mark.untraced

PAGE = worst_case_pca.TARGET.read_text(encoding="utf-8")


def committed():
    """(p, k, r, objective) -> the other cells."""
    lines = [line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line] for line in lines[1:]]
    return {(*map(int, row[:3]), row[3]): row[4:] for row in rows}


@pytest.mark.parametrize(("p", "k"), worst_case_pca.SIZES)
def test_domains_share_five_directions_and_all_eigenvalues(p, k):
    matrices = worst_case_pca.covariances(p, k, seed=3)
    assert matrices.shape == (k, p, p)
    values = np.linalg.eigvalsh(matrices)
    np.testing.assert_allclose(values - values[0], 0.0, atol=1e-14)
    np.testing.assert_allclose(values.sum(axis=1), 1.0)
    assert (values[:, -10:] > 0.009).all()
    np.testing.assert_allclose(values[:, :-10], 0.0, atol=1e-14)
    # They differ in no shared direction, and in every one that some domain has for its own.
    differences = (matrices[1:] - matrices[:1]).reshape(-1, p)
    assert np.linalg.matrix_rank(differences, tol=1e-10) == min(p - 5, 5 * k)


def test_the_table_is_complete():
    sizes = {(p, k, r) for p, k in worst_case_pca.SIZES for r in worst_case_pca.DIMENSIONS}
    names = worst_case_pca.NAMES.values()
    assert set(committed()) == {(*size, name) for size in sizes for name in names}


def test_a_row_comes_out_as_committed_and_descent_is_never_better():
    cases = [case for seed in worst_case_pca.SEEDS for case in worst_case_pca.solve(10, 5, 2, seed)]
    for measure, name in worst_case_pca.NAMES.items():
        chosen = [case for case in cases if case.measure == measure]
        value, optimal, *_ = committed()[10, 5, 2, name]
        assert np.mean([abs(c.certificate.value) for c in chosen]) == pytest.approx(
            float(value), abs=1e-6
        )
        found = sum(case.certificate.status == "optimal" for case in chosen)
        assert optimal == f"{found} of 10"
        assert min(case.excess for case in chosen) >= -1e-9


def test_with_equal_traces_loss_and_kept_variance_are_one_problem():
    _, loss, kept = worst_case_pca.solve(50, 5, 5, seed=1, n_steps=5)
    assert loss.certificate.value == pytest.approx(1.0 + kept.certificate.value, abs=1e-9)
    assert loss.certificate.lower_bound == pytest.approx(1 + kept.certificate.lower_bound, abs=1e-7)
