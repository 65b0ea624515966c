"""Facts: what the words of a report are made from."""

import numpy as np
from numpy.typing import NDArray

from fairpca.generalization.bootstrap import NO_VARIANCE, Intervals, few_rows
from fairpca.inspection.front import ParetoFront
from fairpca.report._data import DataFacts
from fairpca.report._measures import MeasureWords


class Facts:
    """What the words are made from.

    Parameters
    ----------
    front : ParetoFront
        What was found.
    groups : list of str
        Names as they are shown.
    data : DataFacts
        The data, with the names of its columns.
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
    enough : boolean array of shape (k,)
        Groups that have the rows for a comparison, and any variance.
    worst, best : int
        The groups that are worst and best off with ordinary PCA, of those that have enough rows;
        what the worst one loses is not chance, if there is such a group.
    difference : pair of float, or None
        Interval of the difference between these two, if one is known.
    evidence : {"sure", "unsure", "few", "alike"}
        Whether the rows can tell who is worst off; "few" where there are not two groups of enough
        rows, and "alike" where all have the same.
    ratios : pair of float, or None
        Between which the ratio of these two lies, where that is known.
    equality : {"found", "impossible", "unknown"}
        Whether equal measures were found, or are proven impossible: of a front over the spread.
    fairest : str
        What the last point is: "fairest", or over the spread "most equal".
    levels_down : bool
        Whether every group is worse off at the fairest point than with ordinary PCA.
    """

    def __init__(
        self,
        front: ParetoFront,
        groups: list[str],
        data: DataFacts,
        intervals: Intervals | None,
        indistinct: NDArray[np.bool_],
    ) -> None:
        self.front, self.groups, self.data = front, groups, data
        self.indistinct = indistinct
        self.measured = MeasureWords(front)
        self.problem = problem = front.problem
        self.pca_measures = problem.measures(problem.pca_basis)
        self.pca_spread = float(np.ptp(self.pca_measures))
        self.pca_is_fair = self.pca_spread <= problem.negligible_spread
        # A group without variance has nothing to lose, and is not the one to compare with.
        some = problem.traces > NO_VARIANCE * problem.traces.max()
        self.enough = some & (problem.moments.count >= few_rows(problem.n_components))
        # Who is said to lose more must not do so by chance; who loses less may.
        telling = self.enough & ~indistinct
        worst = next((x for x in (telling, self.enough, some) if x.any()), some | True)
        best = next((x for x in (self.enough, some) if x.any()), some | True)
        self.worst = int(np.where(worst, self.pca_measures, -np.inf).argmax())
        self.best = int(np.where(best, self.pca_measures, np.inf).argmin())
        self.difference = self.ratios = None
        if intervals is not None and self.worst != self.best:
            found = intervals.of_difference(self.pca_measures, 0, self.worst, self.best)
            self.difference = found if np.isfinite(found).all() else None
            low, high = intervals.low[0], intervals.high[0]
            if low[self.best] > 0.0 and not indistinct[self.best]:
                ends = low[self.worst] / high[self.best], high[self.worst] / low[self.best]
                self.ratios = float(ends[0]), float(ends[1])
        self.evidence = "sure"
        if self.pca_is_fair:
            self.evidence = "alike"
        elif self.enough.sum() < 2:
            self.evidence = "few"
        elif (
            not telling[self.worst]
            or self.worst == self.best
            or (self.difference is not None and self.difference[0] <= 0.0)
        ):
            self.evidence = "unsure"
        self.equality = "unknown"
        if front.spread[-1] <= problem.negligible_spread:
            self.equality = "found"
        elif front.over == "spread" and front.unfairness_bound > problem.negligible_spread:
            self.equality = "impossible"
        self.fairest = "fairest" if front.over == "largest" else "most equal"
        self.levels_down = len(groups) > 1 and front[-1].certificate.all_worse_off
