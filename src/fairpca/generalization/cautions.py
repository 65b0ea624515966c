"""Groups that cannot be judged, disparities that may be chance, and a dominant column."""

from collections.abc import Callable, Sequence

import numpy as np

from fairpca._linalg.device import diagonals
from fairpca._linalg.types import Array
from fairpca.exceptions import warn_user
from fairpca.moments import GroupMoments
from fairpca.problem import Problem
from fairpca.text import MOST_NAMES, in_rows, joined, listed, quote, short_text

DOMINANT = 0.5
"""Share of the total variance above which one column decides nearly everything."""

_DEVIATIONS = 2.0
"""Standard deviations that a disparity is above its mean by chance; by more it is significant."""


def warn_of_few_rows(problem: Problem) -> None:
    """Warn of groups with too few rows to say anything about them.

    Any r rows lie in a subspace of r dimensions. The own PCA of such a group loses nothing,
    whatever population the rows are from, so its disparity is its whole loss. With sample weights
    the effective number of rows counts.
    """
    count, r = problem.moments.count, problem.n_components
    if problem.n_groups == 1 or r == problem.n_features:
        return
    rows = np.minimum(problem.moments.effective_count, count)
    few = [int(i) for i in np.argsort(count, kind="stable") if rows[i] <= r]
    if few:
        texts = problem.moments.group_texts
        names = []
        for i in few:
            weigh = f", which weigh as {rows[i]:.2g}" if count[i] > r else ""
            names.append(f"{quote(short_text(texts[i]))} ({in_rows(int(count[i]))}{weigh})")
        warn_user(
            f"Too few rows to be judged: {joined(names)}. A group needs more rows than "
            f"dimensions ({r} here); with fewer, its own PCA loses nothing, and its disparity "
            "says nothing about other people. Merge small groups, or leave them out."
        )


def filled_notes(problem: Problem, shares: Array | None) -> tuple[str, ...]:
    """A sentence on how many of the groups' values are column means, if any are."""
    if shares is None or not shares.any():
        return ()
    weight, most = problem.moments.weight, int(shares.argmax())
    group = quote(short_text(problem.moments.group_texts[most]))
    whole = 100 * float(shares @ weight / weight.sum())
    some = f" (in {group} {100 * shares[most]:.2g} %)" if len(shares) > 1 else ""
    return (f"Of the values, {whole:.2g} %{some} were missing and are column means.",)


def chance_notes(problem: Problem) -> tuple[str, ...]:
    """A sentence where a criterion acts on disparities with ordinary PCA that chance explains.

    No subspace gives a group more than its disparity, whatever is measured. If all groups have the
    covariance of all rows, with eigenvalues l, and rows are normal, the own PCA of n_i of n rows is
    off by random angles, and the disparity is about a sum of squares of normal numbers, with the
    means ``l_j l_m (1 / n_i - 1 / n) / (l_j - l_m)``, j <= r < m. Nothing is said if some disparity
    is above the mean of that sum by more than two standard deviations.
    """
    criterion, r, n = problem.criterion, problem.n_components, problem.moments.effective_count
    if not criterion.adapts_to_chance or problem.n_groups == 1 or r == problem.n_features:
        return ()
    unit = problem.scale or 1.0  # products of variances as they are could overflow
    values = np.maximum(problem.total_eigenpairs[0], 0.0) / unit
    products = (
        np.outer(values[:r], values[r:]) * np.maximum(1 / n - 1 / n.sum(), 0.0)[:, None, None]
    )
    # Where eigenvalues are nearer than their standard errors, angles are as large as can be.
    gaps = np.maximum(values[:r, None] - values[r:], np.sqrt(products))
    means = np.divide(products, gaps, out=np.zeros_like(gaps), where=gaps > 0.0)
    limits = means.sum(axis=(1, 2)) + _DEVIATIONS * np.sqrt(2 * np.square(means).sum(axis=(1, 2)))
    if (problem.disparities(problem.pca_basis) / unit > limits).any():
        return ()
    return (
        f"No group has a significant disparity with ordinary PCA, so criterion={criterion.name!r} "
        "adapts to chance: use the default criterion, or PCA.",
    )


def warn_of_one_group(moments: GroupMoments) -> None:
    """Warn of a single group, to which nobody can be compared."""
    if len(moments.labels) == 1:
        warn_user(
            f"sensitive_features has one group only, {moments.group_texts[0]!r}: the result is "
            "that of ordinary PCA."
        )


def warn_of_groups(moments: GroupMoments) -> None:
    """Warn of a single group, and of groups of one row, where there is no dimension to compare."""
    warn_of_one_group(moments)
    if (moments.count == 1).any():
        single = [moments.group_texts[i] for i in np.flatnonzero(moments.count == 1)]
        warn_user(
            f"Groups with a single row: {listed(single, MOST_NAMES)}. What is found of such a "
            "group says little; consider merging it with another."
        )


def dominant_column(
    moments: GroupMoments,
    features: Sequence[str] | None = None,
    quoted: Callable[[str], str] = quote,
) -> str | None:
    """A sentence about the column with more than half of all variance; None if there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import GroupMoments
    >>> from fairpca.generalization.cautions import dominant_column
    >>> X = np.random.default_rng(0).normal(size=(300, 3)) * [3, 1, 1]
    >>> dominant_column(GroupMoments.from_rows(X)).split(", ")[0]
    'Column 0 has 82 % of the variance of all columns together'
    """
    # As many columns as rows may be coordinates in the space that wide rows span.
    if not 3 <= moments.n_features < moments.n_rows:
        return None
    features = features or moments.feature_names
    variances = diagonals(moments.scatter).sum(axis=0) + moments.weight @ moments.offsets**2
    total, column = float(variances.sum()), int(variances.argmax())
    if not variances[column] > DOMINANT * total:
        return None
    name = f"Column {column}"
    if features is not None:
        name = f"The column {quoted(short_text(str(features[column])))}"
    return (
        f"{name} has {100.0 * float(variances[column]) / total:.3g} % of the variance of all "
        "columns together, so the result is mostly about it. Standardise the columns first, "
        "unless they are all in the same units."
    )
