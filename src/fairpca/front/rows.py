"""pareto_front: the front of rows."""

from typing import Any

from numpy.typing import ArrayLike

from fairpca._rows.checks import (
    Progress,
    check_choice,
    check_flag,
    check_progress,
    check_seed,
    check_whole_number,
)
from fairpca._rows.choices import CENTERINGS, LOSSES
from fairpca._rows.labels import GROUPINGS
from fairpca.estimators.gather import Gathered, gather, warn_of_groups
from fairpca.front.pareto import ParetoFront, check_n_points


def pareto_front(
    X: Any,
    *,
    sensitive_features: Any,
    n_components: int,
    n_points: int = 50,
    loss: str = "mean",
    centering: str = "global",
    sample_weight: ArrayLike | None = None,
    groups: str = "intersections",
    keep_sensitive: bool = False,
    missing_labels: str = "error",
    random_state: int | None = None,
    progress: Progress | None = None,
) -> ParetoFront:
    """The exact trade-off between total loss and equality.

    Parameters
    ----------
    X, sensitive_features, sample_weight, loss, centering, groups, keep_sensitive, missing_labels
        As for `FairPCA` and its `fit`, with rows in memory.
    n_components : int
        Dimension of the subspaces, from 1 to the number of columns.
    n_points : int, default=50
        How many points, evenly spaced in spread (the largest difference between the disparities of
        two groups), from the least total loss to the smallest spread; at least 2.
    random_state, progress
        As for `ParetoFront.from_problem`.

    Returns
    -------
    ParetoFront
        Print it, choose a point, and take its `FairPCA`.

    Examples
    --------
    >>> from fairpca.datasets import load_adult
    >>> from fairpca.front import pareto_front
    >>> from sklearn.preprocessing import StandardScaler
    >>> adult = load_adult(sensitive="race")
    >>> X = StandardScaler().set_output(transform="pandas").fit_transform(adult.data)
    >>> front = pareto_front(X, sensitive_features=adult.sensitive_features, n_components=5)
    >>> print(front)
    point   spread  total loss  extra loss  least disparity  largest disparity   status
    -----------------------------------------------------------------------------------
    0      11.7952      7.0129      0.00 %           0.5036            12.2988  optimal
    7      10.1102      7.0149      0.03 %           0.5686            10.6788  optimal
    14      8.4251      7.0207      0.11 %           0.6313             9.0564  optimal
    21      6.7401      7.0304      0.25 %           0.6921             7.4322  optimal
    28      5.0551      7.0445      0.45 %           0.7512             5.8063  optimal
    35      3.3701      7.0640      0.73 %           0.8088             4.1789  optimal
    42      1.6850      7.1172      1.49 %           0.9049             2.5899  optimal
    49      0.0000      7.2947      4.02 %           1.1453             1.1453  optimal
    -----------------------------------------------------------------------------------
    50 of 50 points proven optimal. The fairest:
    Proven optimal: all groups have equal disparities at a total loss of 7.29472, and no subspace
    of this dimension that does the same loses less.
    Equality levels down here: with criterion='minmax' no group is worse off, and disparities are
    lower by 0.00381 to 0.0824, though not equal.
    >>> fair = front.estimator(max_extra_loss=0.01)
    >>> fair.group_table_.disparity.round(2).tolist()
    [3.24, 2.39, 0.84, 3.24, 0.84]
    """
    front, _ = gathered_front(
        X,
        sensitive_features,
        sample_weight,
        progress,
        n_components=n_components,
        n_points=n_points,
        loss=loss,
        centering=centering,
        groups=groups,
        keep_sensitive=keep_sensitive,
        missing_labels=missing_labels,
        random_state=random_state,
    )
    return front


def gathered_front(
    X: Any,
    sensitive_features: Any,
    sample_weight: ArrayLike | None,
    progress: Progress | None,
    *,
    n_components: int,
    n_points: int,
    loss: str,
    centering: str,
    groups: str,
    keep_sensitive: bool,
    missing_labels: str,
    random_state: int | None,
) -> tuple[ParetoFront, Gathered]:
    """The same, and the rows as they were gathered; wrong options are refused before any work."""
    check_whole_number("n_components", n_components)
    check_n_points(n_points)
    check_choice("loss", loss, LOSSES)
    check_choice("centering", centering, CENTERINGS)
    check_flag("keep_sensitive", keep_sensitive)
    check_choice("groups", groups, GROUPINGS[:-1])  # a front of one group is a point
    check_seed(random_state)
    check_progress(progress)
    if sensitive_features is None:
        raise ValueError("sensitive_features must name the group of each row, got None.")
    gathered = gather(
        X,
        sensitive_features,
        sample_weight,
        missing_labels,
        groups=groups,
        keep_sensitive=keep_sensitive,
        n_components=n_components,
    )
    front = front_of(
        gathered,
        int(n_components),
        n_points,
        progress,
        missing_labels=missing_labels,
        random_state=random_state,
        loss=loss,
        centering=centering,
    )
    return front, gathered


def front_of(
    gathered: Gathered,
    n_components: int,
    n_points: int,
    progress: Progress | None = None,
    *,
    missing_labels: str = "error",
    random_state: int | None = None,
    **choices: Any,
) -> ParetoFront:
    """The front of gathered rows, whose groups are warned of; choices are as for `Problem`."""
    warn_of_groups(gathered.moments)
    problem = gathered.problem(n_components, **choices)
    return ParetoFront.from_problem(
        problem, n_points, random_state, missing_labels=missing_labels, progress=progress
    )
