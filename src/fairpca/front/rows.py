"""pareto_front: the front of rows."""

import warnings
from functools import partial
from numbers import Integral, Real
from typing import Any

from numpy.typing import ArrayLike

from fairpca._rows.checks import (
    Progress,
    check_choice,
    check_flag,
    check_progress,
    check_seed,
)
from fairpca._rows.choices import CENTERINGS, LOSSES, check_fairness
from fairpca._rows.labels import GROUPINGS
from fairpca.estimators.callbacks import listening
from fairpca.estimators.cautions import warn_of_cautions, warn_of_one_group
from fairpca.estimators.fair_pca import FairPCA
from fairpca.estimators.gather import Gathered, gather
from fairpca.exceptions import FairnessWarning
from fairpca.front.pareto import ParetoFront
from fairpca.group_table import GroupTable
from fairpca.solvers import UNFAIRNESS, ExactSolver, check_sweep


def pareto_front(
    X: Any,
    *,
    sensitive_features: Any,
    n_components: int | float,
    n_points: int = 50,
    over: str = "largest",
    measure: str = "disparity",
    relative: bool = False,
    loss: str = "mean",
    centering: str = "global",
    sample_weight: ArrayLike | None = None,
    groups: str = "intersections",
    keep_sensitive: bool = False,
    missing_labels: str = "error",
    random_state: int | None = None,
    gap: float | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> ParetoFront:
    """The exact trade-off between total loss and fairness.

    Parameters
    ----------
    X, sensitive_features : as for `FairPCA.fit`
        Rows in memory, and their groups.
    n_components : int or float
        Dimension of the subspaces: a number from 1 to the number of columns, or a share in (0, 1),
        meaning the smallest dimension at which every group keeps that share of its variance at the
        fairest point (the dimension of `FairPCA` with the same choices).
    n_points : int, default=50
        How many points, evenly spaced in unfairness, from the least total loss to the fairest; at
        least 2.
    over : {"largest", "spread"}, default="largest"
        What unfairness is: the largest disparity of a group, so that no group is made worse off
        for the sake of equality alone, or the largest difference between the disparities of two
        groups, as in the paper.
    measure, relative, loss, centering, sample_weight : as for `FairPCA` and its `fit`
        What fairness is judged by, and the weights of the rows.
    groups, keep_sensitive, missing_labels : as for `FairPCA`
        What the sensitive columns make groups of.
    random_state : int or None, default=None
        Seed of the starts of the search, for more than two groups; None is a fixed seed too.
    gap : float or None, default=None
        The gap that is small enough for a point, relative to its value: see `ExactSolver`.
    time_limit : float or None, default=None
        Seconds after which the search for points ends. Those that are not ready then have the
        subspace of the next fairer one that is, and a certificate of their own. With a share as
        `n_components` each search for its dimension has so many seconds, too.
    progress : callable, default=None
        Called with what is being done, how many parts of it are, and how many there are, from
        before the first search to the last point.

    Returns
    -------
    ParetoFront
        Print it, choose a point, and take its `FairPCA`.

    See Also
    --------
    fairpca.FairPCA : One point, with `max_extra_loss` or `bounds`.
    fairpca.plotting.FrontDisplay : Draws it.

    Examples
    --------
    >>> from fairpca.datasets import load_adult
    >>> from fairpca.front import pareto_front
    >>> from sklearn.preprocessing import StandardScaler
    >>> adult = load_adult(sensitive="race")
    >>> X = StandardScaler().set_output(transform="pandas").fit_transform(adult.data)
    >>> front = pareto_front(X, sensitive_features=adult.sensitive_features, n_components=5)
    >>> print(front)
             largest   total   extra      least
    point  disparity    loss    loss  disparity   spread   status
    -------------------------------------------------------------
    0        12.2988  7.0129  0.00 %     0.5036  11.7952  optimal
    7        10.7049  7.0148  0.03 %     0.5674  10.1375  optimal
    14        9.1110  7.0205  0.11 %     0.6289   8.4821  optimal
    21        7.5171  7.0298  0.24 %     0.6886   6.8285  optimal
    28        5.9232  7.0433  0.43 %     0.7466   5.1766  optimal
    35        4.3293  7.0619  0.70 %     0.8031   3.5262  optimal
    42        2.7354  7.1070  1.34 %     0.8865   1.8489  optimal
    49        1.1415  7.2834  3.86 %     1.0629   0.0786  optimal
    -------------------------------------------------------------
    The table has 8 of 50 points. 50 of 50 points proven optimal. The fairest:
    Proven optimal: in every subspace of this dimension some group has a disparity
    of at least 1.14148, and here none has more than 1.14148.
    Compared with ordinary PCA, 4 groups are better off, by up to 11.2, and one
    worse off, by 0.638: some group always is, because ordinary PCA has the least
    total loss.
    For every mixture of the criterion's groups, measured from the fitted mean and
    with mean losses, the disparity from the mixture's own best subspace is at most
    1.14148, and no subspace has a smaller worst case.
    >>> fair = front.estimator(max_extra_loss=0.01)
    >>> fair.group_table_.disparity.round(2).tolist()
    [3.19, 2.38, 0.81, 3.19, 0.84]
    """
    front, _ = gathered_front(
        X,
        sensitive_features,
        sample_weight,
        progress,
        n_components=n_components,
        n_points=n_points,
        over=over,
        measure=measure,
        relative=relative,
        loss=loss,
        centering=centering,
        groups=groups,
        keep_sensitive=keep_sensitive,
        missing_labels=missing_labels,
        random_state=random_state,
        gap=gap,
        time_limit=time_limit,
    )
    return front


def gathered_front(
    X: Any,
    sensitive_features: Any,
    sample_weight: ArrayLike | None,
    progress: Progress | None,
    *,
    n_components: int | float,
    n_points: int,
    groups: str,
    keep_sensitive: bool,
    missing_labels: str,
    random_state: int | None,
    over: str,
    gap: float | None,
    time_limit: float | None,
    **choices: Any,
) -> tuple[ParetoFront, Gathered]:
    """The same, and the rows as they were gathered; wrong options are refused before any work."""
    _check_dimension(n_components)
    check_sweep(n_points, gap, time_limit)
    check_choice("over", over, UNFAIRNESS)
    check_fairness("minmax", 0.0, choices["measure"], choices["relative"], None, None)
    check_choice("loss", choices["loss"], LOSSES)
    check_choice("centering", choices["centering"], CENTERINGS)
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
        n_components,
        n_points,
        progress,
        over=over,
        missing_labels=missing_labels,
        random_state=random_state,
        gap=gap,
        time_limit=time_limit,
        **choices,
    )
    return front, gathered


def front_of(
    gathered: Gathered,
    n_components: int | float,
    n_points: int,
    progress: Progress | None = None,
    *,
    over: str = "largest",
    missing_labels: str = "error",
    random_state: int | None = None,
    gap: float | None = None,
    time_limit: float | None = None,
    **choices: Any,
) -> ParetoFront:
    """The front of gathered rows, whose groups are warned of; choices are as for `Problem`."""
    warn_of_one_group(gathered.moments)
    limits: dict[str, Any] = {"gap": gap, "time_limit": time_limit}
    if not isinstance(n_components, Integral):
        criterion = "minmax" if over == "largest" else "equal"
        solver = ExactSolver(random_state=random_state, **limits)
        fair = FairPCA(n_components, criterion=criterion, solver=solver, **choices)
        tell: Progress = (lambda *what: None) if progress is None else progress
        with listening(partial(_tell_step, tell)), warnings.catch_warnings():
            # The front says it all again.
            warnings.simplefilter("ignore", FairnessWarning)
            n_components = fair.fit_gathered(gathered).n_components_
    problem = gathered.problem(int(n_components), **choices)
    front = ParetoFront.from_problem(
        problem,
        n_points,
        random_state,
        over=over,
        missing_labels=missing_labels,
        progress=progress,
        **limits,
    )
    table = GroupTable.from_problem(problem, front[-1].group_losses, "fair")
    warn_of_cautions(problem, table, gathered)
    return front


def _tell_step(progress: Progress, done: int, total: int, **found: float) -> None:
    progress("finding the dimension: search", done, total)


def _check_dimension(n_components: object) -> None:
    """Raise ValueError unless this is an integer of at least 1, or a share in (0, 1)."""
    whole = isinstance(n_components, Integral) and not isinstance(n_components, bool)
    if whole and n_components >= 1:  # type: ignore[operator]
        return
    share = isinstance(n_components, Real) and not isinstance(n_components, Integral)
    if not (share and 0.0 < n_components < 1.0):  # type: ignore[operator]
        raise ValueError(
            "n_components must be an integer of at least 1, or a share strictly between 0 and 1, "
            f"got {n_components!r}."
        )
