"""Facts: what the words of a report are made from."""

import numpy as np
from numpy.typing import NDArray

from fairpca.estimators.resampling import NO_VARIANCE, Intervals
from fairpca.front import ParetoFront
from fairpca.report._measures import MeasureWords


class Facts:
    """What the words are made from.

    Parameters
    ----------
    front : ParetoFront
        What was found.
    groups, features : list of str
        Names as they are shown.
    intervals : Intervals or None
        Of the measures with ordinary PCA and at each point.
    indistinct : boolean array of shape (k,)
        Groups that the rows cannot tell from chance.

    Attributes
    ----------
    measured : MeasureWords
        The measure in words.
    pca_measures : array of shape (k,)
        Measures with ordinary PCA; `pca_spread` is the largest difference between them, and
        `pca_is_fair` says that there is none, up to rounding.
    worst, best : int
        The groups that are worst and best off with ordinary PCA, of those that have any variance.
    difference : pair of float, or None
        Interval of the difference between these two, if one is known.
    equality : {"found", "impossible", "unknown"}
        Whether equal measures were found, or are proven impossible: of a front over the spread.
    fairest : str
        What the last point is: "fairest", or over the spread "most equal".
    levels_down : bool
        Whether every group is worse off at the fairest point than with ordinary PCA.
    baseline : str
        What the first point is: losses from the groups' own means are another matter.
    """

    def __init__(
        self,
        front: ParetoFront,
        groups: list[str],
        features: list[str],
        intervals: Intervals | None,
        indistinct: NDArray[np.bool_],
    ) -> None:
        self.front, self.groups, self.features = front, groups, features
        self.indistinct = indistinct
        self.measured = MeasureWords(front)
        self.problem = problem = front.problem
        self.pca_measures = problem.measures(problem.pca_basis)
        # A group without variance has nothing to lose, and is not the one to compare with.
        some = problem.traces > NO_VARIANCE * problem.traces.max()
        self.worst = int(self.pca_measures.argmax())
        self.best = int(np.where(some, self.pca_measures, np.inf).argmin())
        self.pca_spread = float(np.ptp(self.pca_measures))
        self.pca_is_fair = self.pca_spread <= problem.negligible_spread
        self.difference = None
        if intervals is not None and self.worst != self.best:
            found = intervals.of_difference(self.pca_measures, 0, self.worst, self.best)
            self.difference = found if np.isfinite(found).all() else None
        self.equality = "unknown"
        if front.spread[-1] <= problem.negligible_spread:
            self.equality = "found"
        elif front.over == "spread" and front.unfairness_bound > problem.negligible_spread:
            self.equality = "impossible"
        self.fairest = "fairest" if front.over == "largest" else "most equal"
        self.levels_down = len(groups) > 1 and front[-1].certificate.all_worse_off
        self.baseline = "ordinary PCA" if problem.centering == "global" else "the least total loss"
