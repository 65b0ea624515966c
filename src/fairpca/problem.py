"""Problem: moments, a dimension and choices, with the losses and disparities that follow."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairpca._linalg.dense import is_large, leading_eigenpairs, leading_sum_bound, polar_factor
from fairpca._linalg.krylov import Pairs, found_pairs, proven_pairs
from fairpca._linalg.operators import Combination
from fairpca._linalg.types import Array
from fairpca._rows.checks import check_choice
from fairpca.moments import GroupMoments

CRITERIA = ("equal", "minmax")
LOSSES = ("mean", "sum")
CENTERINGS = ("global", "group")

_NO_SPREAD, _NO_GROUP_SPREAD = 1e-10, 1e-13
"""Spread, relative to tr(A) and to the largest trace of a group, that counts as none."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Find a subspace of r dimensions in which every group gives up the same.

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
        "group", losses are those of the rows less their group's mean, which is not what a
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
        if not (isinstance(self.tolerance, Real) and 0.0 <= float(self.tolerance) < np.inf):
            raise ValueError(f"tolerance must be a number of at least 0, got {self.tolerance!r}.")
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

    @cached_property
    def matrices(self) -> Array:
        """Second moment of each group, times its weight when losses are sums; (k, d, d).

        This is a copy of all scatters: what is solved with many columns does without it.
        """
        matrices = self.moments.second_moments(self.centering)
        if self.loss == "sum":
            matrices *= self.moments.weight[:, None, None]
        return matrices

    @property
    def is_large(self) -> bool:
        """Whether there are so many columns that the matrices are used as `operators`."""
        return is_large(self.moments.n_features, self.n_components)

    @cached_property
    def operators(self) -> Any:
        """The same matrices, by what they do: nothing is copied."""
        return self.moments.operators(self.loss, self.centering)

    @cached_property
    def weights(self) -> Array:
        """What the groups' losses are multiplied with in the total loss; (k,)."""
        if self.loss == "sum":
            return np.ones(self.n_groups)
        weights: Array = self.moments.weight / self.moments.weight.sum()
        return weights

    @cached_property
    def total_matrix(self) -> Array:
        """The matrix A with total loss ``tr(A) - tr(A P)``; (d, d)."""
        return self.combine(self.weights)

    @cached_property
    def traces(self) -> Array:
        """Trace of each group's matrix: its loss when nothing is kept; (k,)."""
        if self.is_large:
            sums: Array = self.operators.traces()
            return sums
        traces: Array = np.trace(self.matrices, axis1=1, axis2=2)
        return traces

    @property
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
        return tuple(vectors for _, vectors in self._own_eigenpairs)

    @cached_property
    def own_gains(self) -> Array:
        """Sum of the r largest eigenvalues of each group's matrix, c_i; (k,).

        With `own_bases`, what each group keeps in its basis.
        """
        if self.own_bases is not None:
            bases = enumerate(self.own_bases)
            return np.array([self._kept_by(i, basis) for i, basis in bases])
        return np.array([values.sum() for values, _ in self._own_eigenpairs])

    @cached_property
    def own_errors(self) -> Array:
        """How much more each group could keep than `own_gains`, at the most; (k,)."""
        if self.own_bases is None:
            return np.zeros(self.n_groups)
        if self.is_large:
            most = [
                proven_pairs(self._group(i), self.n_components, basis).bound
                for i, basis in enumerate(self.own_bases)
            ]
        else:
            pairs = zip(self.matrices, self.own_bases, strict=True)
            most = [leading_sum_bound(A, self.n_components, basis) for A, basis in pairs]
        return np.maximum(np.array(most) - self.own_gains, 0.0)

    @cached_property
    def _own_eigenpairs(self) -> list[tuple[Array, Array]]:
        if not self.is_large:
            return [leading_eigenpairs(matrix, self.n_components) for matrix in self.matrices]
        # Disparities are measured from these, so that they are the best has to be certain.
        start = self.operators.tall(self.total_eigenpairs[1])
        proven = [
            proven_pairs(self._group(i), self.n_components, start) for i in range(self.n_groups)
        ]
        return [(pairs.values, self.operators.host(pairs.vectors)) for pairs in proven]

    def _group(self, i: int) -> Combination:
        return self.combination(np.eye(self.n_groups)[i])

    @cached_property
    def least_loss_basis(self) -> Array:
        """Basis with the least total loss of all; (d, r)."""
        return self.total_eigenpairs[1][:, : self.n_components]

    @cached_property
    def total_eigenpairs(self) -> tuple[Array, Array]:
        """Leading eigenpairs of the total matrix: all where that is as quick as only r of them."""
        if self.is_large:
            pairs = found_pairs(self.combination(self.weights), self.n_components)
            return pairs.values, self.operators.host(pairs.vectors)
        return leading_eigenpairs(self.total_matrix, self.n_components, rest=True)

    @cached_property
    def pca_basis(self) -> Array:
        """Basis of ordinary PCA on all rows; with global centring it has the least total loss."""
        if self.centering == "global":
            return self.least_loss_basis
        if self.is_large:
            return replace(self, centering="global", own_bases=None).least_loss_basis
        return leading_eigenpairs(self.moments.total_covariance(), self.n_components)[1]

    @property
    def own_losses(self) -> Array:
        """Loss of each group in its own best subspace; (k,)."""
        return np.maximum(self.traces - self.own_gains, 0.0)

    def with_tolerance(self, tolerance: float) -> Problem:
        """The same problem with another tolerance; what has been computed is shared."""
        other = replace(self, tolerance=tolerance)
        names = {field.name for field in fields(self)}
        other.__dict__.update({k: v for k, v in self.__dict__.items() if k not in names})
        return other

    def combine(self, weights: Array) -> Array:
        """Return ``sum_i weights_i * A_i``."""
        if self.is_large:
            dense: Array = self.operators.dense(weights)
            return dense
        k, d, _ = self.matrices.shape
        matrix: Array = (weights @ self.matrices.reshape(k, d * d)).reshape(d, d)
        return matrix

    def combination(self, weights: Array) -> Combination:
        """The same, by what it does."""
        return Combination(self.operators, weights, self.traces)

    def kept(self, basis: Array, shares: Array | None = None) -> Array:
        """What each group keeps in a subspace, ``tr(A_i P)``; (k,).

        With `shares`, P is the relaxed projector ``basis @ diag(shares) @ basis.T``.
        """
        weighted = basis if shares is None else basis * shares
        if self.is_large:
            by_group: Array = self.operators.kept(basis, weighted)
            return by_group
        kept: Array = np.einsum("kia,ia->k", self.matrices @ basis, weighted)
        return kept

    def _kept_by(self, i: int, basis: Array) -> float:
        if self.is_large:
            image: Array = self.operators.host(self._group(i).image(self.operators.tall(basis)))
        else:
            image = self.matrices[i] @ basis
        return float(np.einsum("ia,ia->", image, basis))

    def group_losses(self, basis: Array, shares: Array | None = None) -> Array:
        """Reconstruction loss of each group; (k,)."""
        return np.maximum(self.traces - self.kept(basis, shares), 0.0)

    def total_loss(self, basis: Array, shares: Array | None = None) -> float:
        """Weighted sum of the groups' losses."""
        return float(self.weights @ (self.traces - self.kept(basis, shares)))

    def disparities(self, basis: Array, shares: Array | None = None) -> Array:
        """What each group loses beyond its own best subspace, E_i; (k,)."""
        disparities: Array = self.own_gains - self.kept(basis, shares)
        return disparities

    def pairwise_disparities(self, basis: Array) -> Array:
        """Differences ``E_i - E_j`` (equation 11 of the paper); (k, k)."""
        disparities = self.disparities(basis)
        return disparities[:, None] - disparities[None, :]

    def spread(self, basis: Array, shares: Array | None = None) -> float:
        """Largest difference between the disparities of two groups."""
        return float(np.ptp(self.disparities(basis, shares)))

    def dual_bound(self, multipliers: ArrayLike, tolerance: float | None = None) -> float:
        """Lower bound that the multipliers prove, whoever found them.

        For "equal", multipliers prove that no subspace whose disparities differ by at most
        `tolerance` (the problem's own when None) has a smaller total loss; their mean is taken
        out first. For "minmax", non-negative multipliers prove that in no subspace all
        disparities are smaller; they are scaled to sum to one.
        """
        return self._dual_bound(self._multipliers(multipliers), tolerance, None)

    def spread_bound(self, multipliers: ArrayLike) -> float:
        """Lower bound on the spread of any subspace that the multipliers prove.

        Their mean is taken out first, and they are scaled to positive parts that sum to one.
        """
        values = self._multipliers(multipliers)
        values = values - values.mean()
        size = float(np.maximum(values, 0.0).sum())
        if size == 0.0:
            return 0.0
        return (self._lagrangian_minimum(values, None) - self._own_doubt(values)) / size

    def _multipliers(self, multipliers: ArrayLike) -> Array:
        values = np.asarray(multipliers, dtype=np.float64)
        if values.shape != (self.n_groups,) or not np.isfinite(values).all():
            raise ValueError(
                f"multipliers must be one finite number for each of the {self.n_groups} groups, "
                f"got {multipliers!r}."
            )
        return values

    def _dual_bound(
        self, multipliers: Array, tolerance: float | None, start: Array | None
    ) -> float:
        """The bound; a basis near the minimiser of the Lagrangian, as `start`, saves time."""
        if self.criterion == "minmax":
            positive = np.maximum(multipliers, 0.0)
            if not positive.any():
                return 0.0  # no disparity is negative
            return max(self._lagrangian_minimum(positive / positive.sum(), start), 0.0)
        multipliers = multipliers - multipliers.mean()
        slack = self.tolerance if tolerance is None else tolerance
        floor = float(self.weights @ (self.traces - self.own_gains))
        bound = self._lagrangian_minimum(self.weights + multipliers, start)
        cost = slack * float(np.maximum(multipliers, 0.0).sum())
        return floor + bound - cost - self._own_doubt(multipliers)

    def _own_doubt(self, coefficients: Array) -> float:
        """How far ``coefficients . c`` can be below what it is with `own_gains`."""
        return float(np.maximum(-coefficients, 0.0) @ self.own_errors)

    def _lagrangian_minimum(self, weights: Array, start: Array | None) -> float:
        """Least value of ``sum_i weights_i * E_i`` over all subspaces, rounded downwards."""
        kept = self._most_kept(weights, start)
        # Rounding in the sums and the eigenvalues, so that the bound holds as printed.
        sizes = 16 * float(np.abs(weights) @ self.traces) + 4 * self.scale
        return float(weights @ self.own_gains) - kept - float(np.finfo(float).eps) * sizes

    def _most_kept(self, weights: Array, start: Array | None) -> float:
        """The most that ``sum_i weights_i * tr(A_i P)`` can be, or a little more."""
        if not self.is_large:
            return leading_sum_bound(self.combine(weights), self.n_components, start)
        for proven, bound in self._proofs:
            # No group keeps more than its trace, so that nearby weights share a proof.
            apart = float(np.abs(weights - proven) @ self.traces)
            if apart <= 1e-14 * float(np.abs(weights) @ self.traces):
                return bound + apart
        return self.prove(weights, start).bound or 0.0

    def prove(
        self, weights: Array, start: Array | None = None, found: Pairs | None = None
    ) -> Pairs:
        """The leading eigenpairs of a weighted sum, proven; the proof is kept for `dual_bound`."""
        begin = None if start is None else self.operators.tall(start)
        pairs = proven_pairs(self.combination(weights), self.n_components, begin, found)
        assert pairs.bound is not None
        self._proofs.append((weights.copy(), pairs.bound))
        return pairs

    @cached_property
    def _proofs(self) -> list[tuple[Array, float]]:
        """Weights, and the bound on what is kept that was proven for them."""
        return []
