"""Problem: moments, a dimension and choices, with the losses and disparities that follow."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from fairpca._linalg import krylov
from fairpca._linalg.dense import DenseMatrices, polar_factor
from fairpca._linalg.device import scatter_matrices
from fairpca._linalg.types import Array, GroupMatrices
from fairpca._rows.checks import check_choice, check_number
from fairpca.moments import GroupMoments

CRITERIA = ("equal", "minmax")
LOSSES = ("mean", "sum")
CENTERINGS = ("global", "group")

_NO_SPREAD, _NO_GROUP_SPREAD = 1e-10, 1e-13
"""Spread, relative to tr(A) and to the largest trace of a group, that counts as none."""

_SAME_WEIGHTS = 1e-14
"""Difference between weights, relative to what they weigh, at which they share a proof."""


@dataclass(frozen=True, eq=False)
class KeptBounds:
    """The most that weighted sums of the matrices can keep, as far as it has been proven.

    With many columns a proof is expensive. A solver that needs the bounds of several subspaces, or
    of the same multipliers at several tolerances, passes one of these to `Problem.dual_bound`,
    which looks there first and adds what it proves.
    """

    _known: list[tuple[Array, float]] = field(default_factory=list)

    def add(self, weights: Array, bound: float) -> None:
        """Remember a bound."""
        self._known.append((weights.copy(), bound))

    def find(self, weights: Array, traces: Array) -> float | None:
        """The bound for these weights, or for others that differ by rounding only."""
        for proven, bound in self._known:
            # No group keeps more than its trace, so that nearby weights share a proof.
            apart = float(np.abs(weights - proven) @ traces)
            if apart <= _SAME_WEIGHTS * float(np.abs(weights) @ traces):
                return bound + apart
        return None


@dataclass(frozen=True, eq=False)
class Problem:
    """Find a subspace of r dimensions in which every group has the same disparity.

    With ``P = U U^T`` the projector on a subspace, group i has the reconstruction loss
    ``tr(A_i) - tr(A_i P)``, where ``A_i`` is its second moment, and the disparity
    ``E_i = c_i - tr(A_i P)``, where ``c_i`` is the sum of the r largest eigenvalues of ``A_i``
    (equation 4 of Kamani et al., "Efficient Fair Principal Component Analysis"). The total loss is
    ``sum_i weight_i * loss_i``.

    Parameters
    ----------
    moments : GroupMoments
        What is known of the data.
    n_components : int
        The dimension r of the subspace, from 1 to the number of columns.
    criterion : {"equal", "minmax"}, default="equal"
        "equal" asks for the least total loss among subspaces whose disparities differ by at most
        `tolerance`; "minmax" for the least largest disparity.
    tolerance : float, default=0.0
        How far apart the disparities of two groups may lie; only used by "equal".
    loss : {"mean", "sum"}, default="mean"
        Whether a group's loss is the mean over its rows or the sum (the paper's formula).
    centering : {"global", "group"}, default="global"
        Whether rows are measured from the mean of all rows or from that of their group. With
        "group", losses are those of the rows minus their group's mean, which is not what a
        projection from the mean of all rows loses.
    own_bases : tuple of k arrays of shape (d, r), default=None
        Each group's own subspace, found in some other way than by eigenvalues; disparities are
        measured from these. `own_errors` bounds what they miss, and the bounds of certificates
        allow for it.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import GroupMoments, Problem
    >>> X = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> problem = Problem(GroupMoments.from_rows(X, ["a", "a", "b", "b"]), n_components=1)
    >>> first_axis = np.array([[1.0], [0.0]])
    >>> problem.disparities(first_axis).tolist()
    [0.0, 1.0]
    """

    moments: GroupMoments
    n_components: int
    criterion: str = "equal"
    tolerance: float = 0.0
    loss: str = "mean"
    centering: str = "global"
    own_bases: tuple[Array, ...] | None = None

    def __post_init__(self) -> None:
        check_choice("criterion", self.criterion, CRITERIA)
        check_choice("loss", self.loss, LOSSES)
        check_choice("centering", self.centering, CENTERINGS)
        whole = isinstance(self.n_components, Integral)
        if not (whole and 1 <= self.n_components <= self.moments.n_features):
            raise ValueError(
                f"n_components must be from 1 to the number of columns, "
                f"{self.moments.n_features}, got {self.n_components}."
            )
        check_number("tolerance", self.tolerance, least=0.0)
        if self.own_bases is not None:
            object.__setattr__(self, "own_bases", self._checked_own_bases(self.own_bases))

    def _checked_own_bases(self, given: tuple[Array, ...]) -> tuple[Array, ...]:
        shape = (self.moments.n_features, self.n_components)
        bases = [np.asarray(basis, dtype=np.float64) for basis in given]
        if len(bases) != self.n_groups or any(basis.shape != shape for basis in bases):
            raise ValueError(
                f"own_bases must be {self.n_groups} arrays of shape {shape}, one for each group."
            )
        identity = np.eye(self.n_components)
        if any(np.abs(basis.T @ basis - identity).max() > 1e-6 for basis in bases):
            raise ValueError("own_bases must have orthonormal columns.")
        # Columns a little too long would make groups keep more than they can, and bounds false.
        return tuple(polar_factor(basis) for basis in bases)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.moments.labels)

    @property
    def is_large(self) -> bool:
        """Whether there are so many columns that eigenpairs come from an iteration and a proof."""
        d = self.moments.n_features
        return d > krylov.FEW_COLUMNS and krylov.is_large(d, self.n_components)

    @cached_property
    def _matrices(self) -> GroupMatrices:
        """The one object that is asked for the matrices."""
        moments = self.moments
        if self.is_large:
            return scatter_matrices(
                moments.scatter, moments.offsets, moments.weight, self.loss, self.centering
            )
        stack = moments.second_moments(self.centering)
        if self.loss == "sum":
            stack *= moments.weight[:, None, None]
        return DenseMatrices(stack)

    @property
    def matrices(self) -> Array:
        """Second moment of each group, times its weight when losses are sums; (k, d, d).

        With many columns this makes a copy of all scatters, which solving does without.
        """
        return self._matrices.stack

    @cached_property
    def weights(self) -> Array:
        """What the groups' losses are multiplied with in the total loss; (k,)."""
        weight = self.moments.weight
        return np.ones(self.n_groups) if self.loss == "sum" else np.asarray(weight / weight.sum())

    @cached_property
    def total_matrix(self) -> Array:
        """The matrix A with total loss ``tr(A) - tr(A P)``; (d, d)."""
        return self.weighted_sum(self.weights)

    @cached_property
    def traces(self) -> Array:
        """Trace of each group's matrix: its loss when nothing is kept; (k,)."""
        return self._matrices.traces

    @cached_property
    def scale(self) -> float:
        """The total loss when nothing is kept, tr(A): tolerances are relative to it."""
        return float(self.weights @ self.traces)

    @cached_property
    def negligible_spread(self) -> float:
        """The difference between disparities that counts as none."""
        return max(_NO_SPREAD * self.scale, _NO_GROUP_SPREAD * float(self.traces.max()))

    @cached_property
    def pair_differences(self) -> Array:
        """Matrix that takes the disparities to the differences of all pairs i < j; (pairs, k)."""
        first, second = np.triu_indices(self.n_groups, 1)
        matrix = np.zeros((len(first), self.n_groups))
        matrix[np.arange(len(first)), first] = 1.0
        matrix[np.arange(len(first)), second] = -1.0
        return matrix

    @cached_property
    def own_subspaces(self) -> tuple[Array, ...]:
        """Each group's own best basis, (d, r)."""
        if self.own_bases is not None:
            return self.own_bases
        return tuple(vectors for _, vectors in self._own_pairs)

    @cached_property
    def own_gains(self) -> Array:
        """Sum of the r largest eigenvalues of each group's matrix, c_i; (k,).

        With `own_bases`, what each group keeps in its basis.
        """
        if self.own_bases is None:
            return np.array([values.sum() for values, _ in self._own_pairs])
        return np.array([self.kept(basis)[i] for i, basis in enumerate(self.own_bases)])

    @cached_property
    def own_errors(self) -> Array:
        """How much more each group could keep than `own_gains`, at the most; (k,)."""
        if self.own_bases is None:
            return np.zeros(self.n_groups)
        most, units = self._matrices.leading_sum_bound, np.eye(self.n_groups)
        pairs = zip(units, self.own_bases, strict=True)
        bounds = np.array([most(unit, self.n_components, basis) for unit, basis in pairs])
        return np.maximum(bounds - self.own_gains, 0.0)

    @cached_property
    def _own_pairs(self) -> list[tuple[Array, Array]]:
        return self._matrices.own_pairs(self.n_components, self.least_loss_basis)

    @cached_property
    def total_eigenpairs(self) -> tuple[Array, Array]:
        """Leading eigenpairs of the total matrix: all where that is as quick as only r of them."""
        return self._matrices.leading(self.weights, self.n_components)

    @property
    def least_loss_basis(self) -> Array:
        """Basis with the least total loss of all; (d, r)."""
        return self.total_eigenpairs[1][:, : self.n_components]

    @cached_property
    def pca_basis(self) -> Array:
        """Basis of ordinary PCA on all rows; (d, r).

        With global centring it has the least total loss. With group centring it has not: PCA
        measures rows from the mean of all of them, and the losses are measured from other means.
        """
        if self.centering == "global":
            return self.least_loss_basis
        return replace(self, centering="global", own_bases=None).least_loss_basis

    @property
    def own_losses(self) -> Array:
        """Loss of each group in its own best subspace; (k,)."""
        return np.maximum(self.traces - self.own_gains, 0.0)

    def with_tolerance(self, tolerance: float) -> Problem:
        """The same problem with another tolerance; what has been computed is shared."""
        check_number("tolerance", tolerance, least=0.0)
        other = copy(self)
        object.__setattr__(other, "tolerance", tolerance)
        return other

    def weighted_sum(self, weights: Array) -> Array:
        """Return ``sum_i weights_i * A_i``."""
        return self._matrices.dense(weights)

    def kept(self, basis: Array, retention: Array | None = None) -> Array:
        """What each group keeps in a subspace, ``tr(A_i P)``; (k,).

        With `retention`, P is the relaxed projector ``basis @ diag(retention) @ basis.T``.
        """
        return self._matrices.kept(basis, basis if retention is None else basis * retention)

    def group_losses(self, basis: Array, retention: Array | None = None) -> Array:
        """Reconstruction loss of each group; (k,)."""
        return np.maximum(self.traces - self.kept(basis, retention), 0.0)

    def total_loss(self, basis: Array, retention: Array | None = None) -> float:
        """Weighted sum of the groups' losses."""
        return float(self.weights @ (self.traces - self.kept(basis, retention)))

    def disparities(self, basis: Array, retention: Array | None = None) -> Array:
        """What each group loses beyond its own best subspace, E_i; (k,)."""
        disparities: Array = self.own_gains - self.kept(basis, retention)
        return disparities

    def pairwise_disparities(self, basis: Array) -> Array:
        """Differences ``E_i - E_j`` (equation 11 of the paper); (k, k)."""
        disparities = self.disparities(basis)
        return disparities[:, None] - disparities[None, :]

    def spread(self, basis: Array, retention: Array | None = None) -> float:
        """Largest difference between the disparities of two groups."""
        return float(np.ptp(self.disparities(basis, retention)))

    def dual_bound(
        self,
        multipliers: ArrayLike,
        tolerance: float | None = None,
        *,
        start: Array | None = None,
        known: KeptBounds | None = None,
    ) -> float:
        """Lower bound that the multipliers prove, whoever found them.

        For "equal", multipliers prove that no subspace whose disparities differ by at most
        `tolerance` (the problem's own when None) has a smaller total loss; their mean is taken
        out first. For "minmax", non-negative multipliers prove that in no subspace all
        disparities are smaller; they are scaled to sum to one: docs/exact_solver.md, section 16.

        With many columns, `start`, a basis near the minimiser of the Lagrangian, saves time, and so
        do bounds that are `known`.
        """
        values = self._multipliers(multipliers)
        if self.criterion == "minmax":
            positive = np.maximum(values, 0.0)
            if not positive.any():
                return 0.0  # no disparity is negative
            return max(self._lagrangian_minimum(positive / positive.sum(), start, known), 0.0)
        values = values - values.mean()
        slack = self.tolerance if tolerance is None else tolerance
        floor = float(self.weights @ (self.traces - self.own_gains))
        bound = self._lagrangian_minimum(self.weights + values, start, known)
        cost = slack * float(np.maximum(values, 0.0).sum())
        return floor + bound - cost - self._own_doubt(values)

    def spread_bound(self, multipliers: ArrayLike, *, known: KeptBounds | None = None) -> float:
        """Lower bound on the spread of any subspace that the multipliers prove.

        Their mean is taken out first, and they are scaled to positive parts that sum to one.
        """
        values = self._multipliers(multipliers)
        values = values - values.mean()
        size = float(np.maximum(values, 0.0).sum())
        if size == 0.0:
            return 0.0
        least = self._lagrangian_minimum(values, None, known)
        return (least - self._own_doubt(values)) / size

    def _multipliers(self, multipliers: ArrayLike) -> Array:
        values = np.asarray(multipliers, dtype=np.float64)
        if values.shape != (self.n_groups,) or not np.isfinite(values).all():
            raise ValueError(
                f"multipliers must be one finite number for each of the {self.n_groups} groups, "
                f"got {multipliers!r}."
            )
        return values

    def _own_doubt(self, coefficients: Array) -> float:
        """How far ``coefficients . c`` can be below what it is with `own_gains`."""
        return float(np.maximum(-coefficients, 0.0) @ self.own_errors)

    def _lagrangian_minimum(
        self, weights: Array, start: Array | None, known: KeptBounds | None
    ) -> float:
        """Least value of ``sum_i weights_i * E_i`` over all subspaces, rounded downwards."""
        known = known if self.is_large else None  # few columns are as quick as a look-up
        kept = None if known is None else known.find(weights, self.traces)
        if kept is None:
            kept = self._matrices.leading_sum_bound(weights, self.n_components, start)
            if known is not None:
                known.add(weights, kept)
        # Rounding in the sums and the eigenvalues, so that the bound holds as printed.
        sizes = 16 * float(np.abs(weights) @ self.traces) + 4 * self.scale
        return float(weights @ self.own_gains) - kept - float(np.finfo(float).eps) * sizes


def group_matrices(problem: Problem) -> GroupMatrices:
    """The object that a problem asks for its matrices: for solvers, which ask it for more."""
    return problem._matrices
