"""Certificate: how good a subspace is, and what proves it."""

from dataclasses import dataclass

from fairpca._linalg.types import Array
from fairpca.certificate.spoken import Spoken
from fairpca.certificate.words import sentences_of


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Spoken):
    """How good a subspace is, and the proof. Print it to read it in words.

    Attributes
    ----------
    status : {"optimal", "bounded", "infeasible", "unresolved", "relaxed"}
        "optimal": the criterion is met, and no subspace of this dimension does better by more
        than 1e-7 of `value` (or than rounding, where that leaves nothing of it).
        "bounded": the criterion is met, and no subspace does better by more than `gap`.
        "infeasible": no subspace has measures within the tolerance or the bounds, which is
        proven; the one returned misses them by the least that was found, and has the least total
        loss that was found as near to them.
        "unresolved": the proof of impossibility fails, yet no subspace with measures within the
        tolerance or the bounds was found; what is returned is as for "infeasible".
        "relaxed": more dimensions are used than were asked for, as the published methods that
        round a semidefinite relaxation do; the bounds are those of the dimension asked for.
        Measures count as within the tolerance or the bounds up to 1e-10 of tr(A), or of what is
        lost with ordinary PCA where that is less than a thousandth of tr(A).
    goal : {"minmax", "equal", "bounds", "max_extra_loss"}
        What was asked for: see `Problem.goal`. "minmax" and "max_extra_loss" are always met, so
        they never end as "infeasible" or "unresolved".
    value : float
        What was achieved: the total loss ("equal", "bounds") or the largest measure of a group
        ("minmax", "max_extra_loss").
    lower_bound : float
        No subspace has a smaller value, among those that miss what is asked for by no more than
        this one.
    gap : float
        ``value - lower_bound``, not below zero.
    relative_gap : float
        The gap divided by the value.
    rounding : float
        How far rounding can move the value: with columns of very different variance, not little.
    said_spread : float
        The spread, where measures are within what was asked for and may yet not be called equal:
        they differ by more than 1e-7 of the largest, as far as rounding allows to tell. Else 0.
    spread : float
        Largest difference between the measures of two groups that was achieved.
    miss : float
        How far the subspace is from what was asked for, in the units of the measure: its spread
        ("equal"), or the largest excess of a group over its bound ("bounds"), not below zero.
    miss_bound : float
        No subspace has a smaller one. Zero unless what was asked for is impossible.
    tolerance : float
        The spread that was asked for. A solver that only approaches it, as `ParetoDescent` does,
        has the spread that it reached here, so that its certificate measures the rest: how far
        the total loss is from the smallest possible at that spread.
    multipliers : array of shape (k,)
        The proof of the bound: `Problem.dual_bound` recomputes it from them.
    measures : array of shape (k,)
        What each group has of the measure, in the subspace returned.
    change_from_pca : array of shape (k,)
        How much larger the measures are than with ordinary PCA: positive numbers are groups that
        are worse off, and changes that count as none are zero.
    n_components : int
        The dimension that was asked for, of which the bounds speak.
    n_dimensions : int
        The dimension that is used.
    own_error : float
        By how much disparities can be larger than stated, because the groups' own subspaces are
        only known nearly (`Problem(own_bases=...)`). `value`, `gap` and `spread` allow for it.
    requested_tolerance : float or None
        The spread that was asked for, where `tolerance` is that which was reached.
    miss_multipliers : array of shape (k,) or None
        The proof of `miss_bound`: see `Problem.miss_bound`.
    minmax_measures : array of shape (k,) or None
        Measures of a subspace that was found by minimising the largest one, when in it no group is
        worse off than in the subspace returned, and some are better off; else None. With more than
        two groups, equality can level down in this way.
    measure : str
        What was measured, in words: "disparity", "loss", "kept variance", "relative disparity",
        "share lost" or "share kept". What is kept has a minus sign in all numbers above.
    covers_mixtures : bool
        Whether what is said of the groups holds for their mixtures too: see `sentences`.
    pca_is_least : bool
        Whether ordinary PCA has the least total loss, as it has unless groups are centred each on
        their own mean.
    is_nested : bool
        Whether the components were found one after another, each the best given those before it.
    extra_loss : float or None
        The share of the least total loss that may be lost in addition, where it was limited.
    shrinkage : float
        Rows by which the groups' covariances were shrunk towards that of all rows. All of this is
        then about the shrunk covariances.
    stopped_by : {"", "gap", "time limit", "callback"}
        What ended the search where it could have gone on: the gap is as small as was asked for, or
        time was up, or a callback asked for it.

    See Also
    --------
    fairpca.ExactSolver : Its subspaces come with the tightest ones.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import ExactSolver, GroupMoments, Problem
    >>> X = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> problem = Problem(GroupMoments.from_rows(X, ["a", "a", "b", "b"]), n_components=1)
    >>> certificate = ExactSolver().solve(problem).certificate
    >>> certificate
    Proven optimal: in every subspace of this dimension some group has a disparity of at least
    0.9, and here none has more than 0.9. Compared with ordinary PCA, one group is better off, by
    0.1, and one worse off, by 0.9: some group always is, because ordinary PCA has the least total
    loss. For every mixture of the criterion's groups, measured from the fitted mean and with mean
    losses, the disparity from the mixture's own best subspace is at most 0.9, and no subspace has
    a smaller worst case.
    >>> round(problem.dual_bound(certificate.multipliers), 9)
    0.9
    """

    status: str
    goal: str
    value: float
    lower_bound: float
    gap: float
    relative_gap: float
    rounding: float
    said_spread: float
    spread: float
    miss: float
    miss_bound: float
    tolerance: float
    multipliers: Array
    measures: Array
    change_from_pca: Array
    n_components: int
    n_dimensions: int
    measure: str = "disparity"
    own_error: float = 0.0
    covers_mixtures: bool = False
    pca_is_least: bool = True
    is_nested: bool = False
    extra_loss: float | None = None
    requested_tolerance: float | None = None
    miss_multipliers: Array | None = None
    minmax_measures: Array | None = None
    shrinkage: float = 0.0
    stopped_by: str = ""

    @property
    def least_gain(self) -> float:
        """How much every group would gain, at the least, in the subspace found for "minmax"."""
        if self.minmax_measures is None:
            return 0.0
        return max(float((self.measures - self.minmax_measures).min()), 0.0)

    @property
    def all_worse_off(self) -> bool:
        """Whether every group is worse off than with ordinary PCA."""
        return bool((self.change_from_pca > 0.0).all())

    def sentences(self) -> list[str]:
        """The certificate in plain words; bounds are rounded to the safe side."""
        return sentences_of(self)
