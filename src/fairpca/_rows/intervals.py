"""GroupIntervals: how surely the rows at hand tell what groups lose."""

from dataclasses import dataclass

from fairpca._linalg.types import Array


@dataclass(frozen=True, eq=False)
class GroupIntervals:
    """Where losses and disparities lie with about 95 % confidence; made by `audit`.

    The rows of each group are drawn anew (bootstrap) with the reduction held as it is. Each array
    has a low and a high end for each group, nan for groups that have too few rows. A disparity can
    lie off the middle of its interval, which allows for the own PCA of a small group fitting it too
    well. studies/interval_coverage.md says how often intervals hold the truth.

    Attributes
    ----------
    loss : array of shape (k, 2)
        Of the loss with the reduction.
    disparity : array of shape (k, 2)
        Of the disparity with the reduction.
    change : array of shape (k, 2)
        Of what each group loses more than with ordinary PCA.
    extremes : pair of int, or None
        The groups with the largest and the smallest disparity, of those with an interval.
    difference : pair of float, or None
        Of the difference between these two disparities. It allows for the two having been picked:
        it is one of a family that holds for all pairs of groups together.
    n_resamples : int
        How often rows were drawn.
    least_rows : int
        Groups of fewer rows have no intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import audit
    >>> from sklearn.decomposition import PCA
    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> table = audit(PCA(2).fit(X), X, sensitive_features=["a"] * 100 + ["b"] * 200)
    >>> low, high = table.intervals.loss[0]
    >>> bool(low < table.loss[0] < high)
    True
    """

    loss: Array
    disparity: Array
    change: Array
    extremes: tuple[int, int] | None
    difference: tuple[float, float] | None
    n_resamples: int
    least_rows: int
