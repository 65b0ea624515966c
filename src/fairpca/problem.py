"""Problem: moments, a dimension and a criterion, with the losses and measures that follow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fairpca._linalg import krylov
from fairpca._linalg.backends import NUMPY
from fairpca._linalg.dense import DenseMatrices, completed
from fairpca._linalg.device import ScatterMatrices, scatter_matrices
from fairpca._linalg.graded import GRADED, GradedLosses
from fairpca._linalg.types import ACCURACY, ROUNDING, Array
from fairpca.criteria import Criterion, as_criterion
from fairpca.measures import EPS, SUM_ROUNDING, AffineMeasure
from fairpca.moments import GroupMoments
from fairpca.validation import check_choice

AGGREGATIONS = ("mean", "sum")
CENTERINGS = ("global", "group")

_NO_SPREAD = 1e-10
"""Spread, relative to tr(A), that counts as none."""

NO_VARIANCE = 1e-13
"""Share of a group's trace that an eigenvalue may have by rounding alone."""

EXPENSIVE = 120
"""Columns beyond which eigenproblems, and so every start of a search, are expensive."""

_MOST_VARIANCE = 1e60
"""Variances from its inverse up to this have squares, and squares of those, that are numbers."""

GroupMatrices = DenseMatrices | ScatterMatrices
"""The matrices of all groups, as one array or with many columns: `DenseMatrices` has the words."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Find a subspace of r dimensions that treats groups fairly.

    With ``P = U U^T`` the projector on a subspace, group i has the reconstruction loss
    ``tr(A_i) - tr(A_i P)``, where ``A_i`` is its second moment, and the disparity
    ``E_i = c_i - tr(A_i P)``, where ``c_i`` is the sum of the r largest eigenvalues of ``A_i``
    (equation 4 of Kamani et al.). The total loss is ``sum_i weight_i * loss_i``. Fairness is judged
    by a measure ``e_i = (c_i - tr(A_i P)) / s_i``, of which the disparity is one.

    Parameters
    ----------
    moments : GroupMoments
        What is known of the data.
    n_components : int
        The dimension r of the subspace, from 1 to the number of columns.
    criterion : str or Criterion, default="minmax"
        The notion of fairness, as in `FairPCA`.
    aggregation : {"mean", "sum"}, default="mean"
        Whether a group's loss is the mean over its rows or the sum: the formula of Kamani et al.,
        which lets a small group bear a large loss per row.
    centering : {"global", "group"}, default="global"
        Whether losses are measured from the mean of all rows or of each group.
    measured_by : pair of arrays of shape (k,), default=None
        The constants c_i and the units s_i > 0 themselves, in place of those of the measure.

    See Also
    --------
    fairpca.ExactSolver : Solves it.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import GroupMoments, Problem
    >>> X = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> problem = Problem(GroupMoments.from_rows(X, ["a", "a", "b", "b"]), n_components=1)
    >>> problem.disparities(np.array([[1.0], [0.0]])).tolist()
    [0.0, 1.0]
    """

    moments: GroupMoments
    n_components: int
    criterion: Any = "minmax"
    aggregation: str = "mean"
    centering: str = "global"
    measured_by: tuple[Array, Array] | None = None

    n_groups: int = field(init=False, repr=False)
    n_features: int = field(init=False, repr=False)
    is_expensive: bool = field(init=False, repr=False)
    is_large: bool = field(init=False, repr=False)
    weights: Array = field(init=False, repr=False)
    traces: Array = field(init=False, repr=False)
    scale: float = field(init=False, repr=False)
    total_eigenpairs: tuple[Array, Array] = field(init=False, repr=False)
    least_loss_basis: Array = field(init=False, repr=False)
    pca_basis: Array = field(init=False, repr=False)
    own_subspaces: tuple[Array, ...] = field(init=False, repr=False)
    own_gains: Array = field(init=False, repr=False)
    own_losses: Array = field(init=False, repr=False)
    group_matrices: GroupMatrices = field(init=False, repr=False)
    graded_losses: GradedLosses | None = field(init=False, repr=False)
    _proven: list[tuple[Array, float]] = field(default_factory=list, init=False, repr=False)
    """Weights of sums of matrices, and the most that these keep, as far as it has been proven."""

    def __post_init__(self) -> None:
        moments = self.moments.without_folds()
        criterion = as_criterion(self.criterion, moments)
        check_choice("aggregation", self.aggregation, AGGREGATIONS)
        check_choice("centering", self.centering, CENTERINGS)
        r, d, n_groups = self.n_components, moments.n_features, len(moments.labels)
        if not (isinstance(r, Integral) and 1 <= r <= d):
            raise ValueError(f"n_components must be from 1 to the number of columns, {d}, got {r}.")
        if self.centering == "group" and moments.n_partitions > 1:
            raise ValueError(
                "Groups that overlap have no total loss with centering='group', as a row has no "
                "mean of its own to be measured from: use centering='global'."
            )
        weights = moments.weight / moments.weight.sum()
        if self.aggregation == "sum":
            # Of rows that are in several groups each loss is there as often.
            weights = np.full(n_groups, 1.0 / moments.n_partitions)
        is_large = d > krylov.FEW_COLUMNS and krylov.is_large(d, r)
        offsets = moments.offsets * (self.centering == "global")
        sums = moments.scatter, offsets, moments.weight
        matrices = group_matrices(*sums, self.aggregation, is_large=is_large)
        traces = matrices.traces
        largest = float(traces.max())
        if not (largest == 0.0 or 1.0 / _MOST_VARIANCE <= largest <= _MOST_VARIANCE):
            raise ValueError(
                f"The largest variance of a group is {largest:.1g}, and its powers are not numbers "
                "that can be computed with: multiply all columns by the same factor, so that it is "
                f"from {1.0 / _MOST_VARIANCE:g} to {_MOST_VARIANCE:g}."
            )
        self.__dict__.update(
            moments=moments,
            criterion=criterion,
            n_groups=n_groups,
            n_features=d,
            is_expensive=d > EXPENSIVE,
            is_large=is_large,
            weights=weights,
            group_matrices=matrices,
            traces=traces,
            scale=float(weights @ traces),
        )
        if d <= krylov.FEW_COLUMNS:
            self._solve_total()
            self._solve_groups()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """With many columns, solve the eigenproblems that give it when it is first needed."""
            if name not in type(self).__dataclass_fields__ or "weights" not in self.__dict__:
                raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
            if name.startswith("own_"):
                self._solve_groups()
            else:
                self._solve_total()
            return self.__dict__[name]

    def _solve_total(self) -> None:
        """Set what all rows keep: ordinary PCA, unless losses are from the groups' own means."""
        moments, r, found = self.moments, self.n_components, self.__dict__
        values, vectors = self.group_matrices.leading(self.weights, r)
        graded = None
        lost, all_of_it = float(values[r:].sum()), float(values.sum())
        is_graded = r < len(vectors) <= EXPENSIVE and lost < GRADED * all_of_it
        if is_graded and self.measured_by is None:
            sums = np.asarray(moments.scatter), moments.offsets, moments.weight
            graded = GradedLosses.of_scatters(*sums, r, self.aggregation, self.centering)
            values, vectors = graded.eigenpairs(self.weights, vectors)
        basis = pca = vectors[:, :r]
        if self.centering != "global":
            pca = replace(self, centering="global").least_loss_basis
        found.update(total_eigenpairs=(values, vectors), least_loss_basis=basis, pca_basis=pca)
        found["graded_losses"] = graded

    def _solve_groups(self) -> None:
        """Set what each group keeps and loses in its own subspace."""
        r, traces, graded = self.n_components, self.traces, self.graded_losses
        basis, values = self.least_loss_basis, self.total_eigenpairs[0]
        leading = self.group_matrices.own_pairs(r, basis)
        gains = np.array([sums.sum() for sums, _ in leading])
        losses, own = np.maximum(traces - gains, 0.0), tuple(vectors for _, vectors in leading)
        ranks = np.minimum(self.moments.count, r)
        if graded is None:
            some = zip(leading, NO_VARIANCE * traces, strict=True)
            ranks = np.minimum(ranks, [int((sums > low).sum()) for (sums, _), low in some])
        else:
            losses, own = graded.own
        if ranks.min() < r:
            own = filled(own, ranks, basis, values[:r])
        self.__dict__.update(own_subspaces=own, own_gains=gains, own_losses=losses)

    @cached_property
    def goal(self) -> Criterion:
        """The criterion, applied to this problem: what solvers and certificates ask."""
        criterion: Criterion = self.criterion
        return criterion.applied_to(self, self.affine)

    @property
    def matrices(self) -> Array:
        """Second moment of each group, times its weight when losses are sums; (k, d, d).

        With many columns this makes a copy of all scatters, which solving does without.
        """
        return self.group_matrices.stack

    @property
    def total_matrix(self) -> Array:
        """The matrix A with total loss ``tr(A) - tr(A P)``; (d, d)."""
        return self.group_matrices.dense(self.weights)

    @cached_property
    def loss_scale(self) -> float:
        """What tolerances of the total loss are relative to: tr(A), or what PCA loses if tiny.

        Groups that keep the same may lose far more than with PCA.
        """
        if self.graded_losses is None or self.criterion.measured.is_kept:
            return self.scale
        return float(self.weights @ self.least_losses)

    def group_losses(self, basis: Array, retention: Array | None = None) -> Array:
        """Reconstruction loss of each group, with the digits that it has; (k,)."""
        if self.graded_losses is None or retention is not None:
            return np.maximum(self.traces - self.kept(basis, retention), 0.0)
        return self.graded_losses.losses(NUMPY.complement(basis)[1])

    def with_criterion(self, criterion: str | Criterion) -> Problem:
        """The same problem with another criterion; what was computed is shared."""
        wanted = as_criterion(criterion, self.moments)
        other = self._changed("criterion", wanted)
        if wanted.measured == self.criterion.measured and "affine" in self.__dict__:
            other.__dict__["affine"] = self.affine
        return other

    def measured_from(self, constants: Array, units: Array) -> Problem:
        """The same problem with other constants c_i and units s_i of the measure."""
        if self.graded_losses is not None:  # which are not computed for given ones
            return replace(self, measured_by=(constants, units))
        return self._changed("measured_by", (constants, units))

    def _changed(self, name: str, value: Any) -> Problem:
        """The same with another criterion or measure, to which the matrices are nothing."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, **{name: value})
        for found in ("goal", "affine", "rounding", "loss_scale"):
            other.__dict__.pop(found, None)
        return other

    def weighted_basis(self, weights: Array) -> Array:
        """The r leading eigenvectors of ``sum_i weights_i * A_i``; (d, r)."""
        r, graded = self.n_components, self.graded_losses
        if graded is not None:
            return graded.eigenpairs(weights, self.total_eigenpairs[1])[1][:, :r]
        return self.group_matrices.leading(weights, r)[1][:, :r]

    def weighted_sum(self, weights: Array) -> Array:
        """Return ``sum_i weights_i * A_i``."""
        return self.group_matrices.dense(weights)

    def kept(self, basis: Array, retention: Array | None = None) -> Array:
        """What each group keeps in a subspace, ``tr(A_i P)``; (k,).

        With `retention`, P is the relaxed projector ``basis @ diag(retention) @ basis.T``.
        """
        # In one order in memory, so that the same numbers keep the same to the last digit.
        basis = np.ascontiguousarray(basis)
        weighted = basis if retention is None else basis * retention
        return self.group_matrices.kept(basis, weighted)

    def total_loss(self, basis: Array, retention: Array | None = None) -> float:
        """Weighted sum of the groups' losses."""
        return float(self.weights @ self.group_losses(basis, retention))

    def disparities(self, basis: Array, retention: Array | None = None) -> Array:
        """What each group loses beyond its own best subspace, E_i; (k,)."""
        return np.asarray(self.group_losses(basis, retention) - self.own_losses)

    @cached_property
    def affine(self) -> AffineMeasure:
        """The measure that fairness is judged on, with the numbers of the groups."""
        lost = None
        if self.graded_losses is not None:
            lost = (self.own_losses, self.least_losses)
        measure, given = self.criterion.measured, self.measured_by
        return AffineMeasure.of(measure, self.traces, self.own_gains, self.weights, given, lost)

    def measures(self, basis: Array, retention: Array | None = None) -> Array:
        """The measure of each group, e_i; (k,)."""
        return self.affine.of_losses(self.group_losses(basis, retention))

    @cached_property
    def pca_losses(self) -> Array:
        """What each group loses with ordinary PCA; (k,)."""
        is_least = self.pca_basis is self.least_loss_basis
        return self.least_losses if is_least else self.group_losses(self.pca_basis)

    @cached_property
    def least_losses(self) -> Array:
        """What each group loses where the total loss is the least of all; (k,)."""
        return self.group_losses(self.least_loss_basis)

    def spread(self, basis: Array, retention: Array | None = None) -> float:
        """Largest difference between the measures of two groups."""
        return float(np.ptp(self.measures(basis, retention)))

    @property
    def negligible_spread(self) -> float:
        """The difference between measures that counts as none."""
        affine = self.affine
        group = ACCURACY * float(affine.traces.max())
        return max(_NO_SPREAD * affine.scale, self.rounding if self.graded_losses else group)

    @cached_property
    def rounding(self) -> float:
        """How far rounding can move the measures."""
        if self.graded_losses is None:
            return SUM_ROUNDING * float(self.affine.sizes.max())
        errors = self.graded_losses.rounding(NUMPY.complement(self.least_loss_basis)[1])
        return float((errors / self.affine.units).max())

    def least_weighted(self, weights: Array, start: Array | None = None) -> float:
        """Least value of ``sum_i weights_i * e_i`` over all subspaces, rounded downwards.

        With many columns, `start`, a basis near the minimiser, saves time.
        """
        affine = self.affine
        if self.graded_losses is not None:
            turn, offsets = self.total_eigenpairs[1], affine.offsets
            least = self.graded_losses.least(weights / affine.units, turn)
            return least - float(weights @ offsets + 4 * EPS * np.abs(weights) @ np.abs(offsets))
        inner = weights / affine.units
        for proven, bound in self._proven:
            # No group keeps more than its trace, so that nearby weights share a proof.
            apart = float(np.abs(inner - proven) @ self.traces)
            if apart <= ROUNDING * float(np.abs(inner) @ self.traces):
                kept = bound + apart
                break
        else:
            kept = self.group_matrices.leading_sum_bound(inner, self.n_components, start)
            if self.is_large:  # few columns are proven as quickly as they are looked up
                self.remember_bound(inner, kept)
        # Less the rounding of sums and eigenvalues, so that the bound holds as printed.
        most = weights @ affine.constants - SUM_ROUNDING * np.abs(weights) @ affine.sizes
        return float(most) - kept

    def remember_bound(self, inner: Array, bound: float) -> None:
        """Remember the most that ``sum_i inner_i * A_i`` keeps, where a proof is dear."""
        self._proven.append((inner.copy(), bound))

    def dual_bound(
        self,
        multipliers: ArrayLike,
        slack: float = 0.0,
        *,
        start: Array | None = None,
    ) -> float:
        """Lower bound that the multipliers prove, whoever found them.

        No subspace has a smaller value (see `Certificate`), or none that violates the condition by
        no more than `slack`: docs/exact_solver.md, section 16. `start` is as for `least_weighted`.
        With many columns what was proven once is remembered; another `Problem` proves it anew.
        """
        return self.goal.bound(self._checked(multipliers), slack, start)

    def violation_bound(self, multipliers: ArrayLike) -> float:
        """Lower bound on how far any subspace is from the condition of the criterion.

        For `Equal` on the spread: the mean of the multipliers is taken out first, and they are
        scaled to positive parts that sum to one. For `AtMost` on the largest excess over a bound:
        the positive parts are scaled to sum to one. 0 for criteria without a condition.
        """
        return self.goal.violation_bound(self._checked(multipliers))

    def _checked(self, multipliers: ArrayLike) -> Array:
        values = np.asarray(multipliers, dtype=np.float64)
        if values.shape != (self.n_groups,) or not np.isfinite(values).all():
            raise ValueError(
                f"multipliers must be one finite number for each of the {self.n_groups} groups, "
                f"got {multipliers!r}."
            )
        return values


def filled(
    own: Sequence[Array], ranks: Iterable[int], basis: Array, values: Array
) -> tuple[Array, ...]:
    """Own subspaces of groups that may vary in fewer dimensions, filled up to all of them.

    A group that does keeps everything in many subspaces: its own is the one that has most of the
    total matrix, of which these are the leading eigenvectors and eigenvalues.
    """
    total = basis * np.sqrt(np.maximum(values, 0.0))
    return tuple(
        vectors if rank == len(values) else completed(vectors[:, :rank], total)
        for vectors, rank in zip(own, ranks, strict=True)
    )


def group_matrices(
    scatter: Any, offsets: Array, weight: Array, aggregation: str, *, is_large: bool
) -> GroupMatrices:
    """Second moments of groups about a point, from which their means are these offsets."""
    if is_large:
        return scatter_matrices(scatter, offsets, weight, aggregation)
    stack, per = np.array(scatter), np.ones(len(weight)) if aggregation == "sum" else weight
    # One at a time, so that no second stack is needed.
    for matrix, offset, size, divisor in zip(stack, offsets, weight, per, strict=True):
        matrix /= divisor
        matrix += np.outer(offset, offset) * (size / divisor)
    return DenseMatrices(stack)
