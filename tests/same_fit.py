"""What it means that a fit found the same as another."""

import numpy as np


def assert_same_fit(fitted, reference):
    """The same losses, and where the optimum is unique the same subspace to 1e-7."""
    table, other = fitted.group_table_, reference.group_table_
    assert table.labels == other.labels
    np.testing.assert_array_equal(table.count, other.count)
    scale = reference.explained_variance_.sum() / reference.explained_variance_ratio_.sum()
    assert np.abs(table.disparity - other.disparity).max() <= 1e-9 * scale
    assert abs(fitted.solution_.total_loss - reference.solution_.total_loss) <= 1e-9 * scale
    width = np.sqrt(scale) + np.abs(reference.mean_).max()
    assert np.abs(fitted.mean_ - reference.mean_).max() <= 1e-12 * width
    assert fitted.certificate_.status == reference.certificate_.status
    if reference.certificate_.status == "optimal" or reference.solver == "lagrangian":
        apart = fitted.components_.T @ fitted.components_
        apart = apart - reference.components_.T @ reference.components_
        assert np.linalg.norm(apart, 2) <= 1e-7  # sine of the largest angle
        np.testing.assert_allclose(
            fitted.explained_variance_, reference.explained_variance_, rtol=0, atol=1e-9 * scale
        )


def assert_same_choice(fitted, reference):
    """The same losses on held-out rows, the same weights of the groups, and the same subspace."""
    held_out, expected = fitted.group_table_.held_out, reference.group_table_.held_out
    for name in ("own_loss", "pca_loss", "loss"):
        np.testing.assert_allclose(getattr(held_out, name), getattr(expected, name), rtol=1e-10)
    found, other = fitted.certificate_, reference.certificate_
    np.testing.assert_allclose(found.value, other.value, rtol=1e-10)
    np.testing.assert_allclose(found.multipliers, other.multipliers, rtol=0, atol=1e-10)
    assert_same_fit(fitted, reference)
    apart = fitted.components_.T @ fitted.components_
    apart = apart - reference.components_.T @ reference.components_
    assert np.linalg.norm(apart, 2) <= 1e-10
