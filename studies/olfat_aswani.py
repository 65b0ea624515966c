"""Olfat and Aswani's convex relaxation of parity, to be compared with in `studies.rivals`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairpca import GroupMoments
from fairpca._linalg.dense import leading_eigenpairs
from fairpca._linalg.types import Array
from fairpca.comparators.parity import equal_mean_space, parity_gaps, projected_covariances
from fairpca.solvers.relaxation import import_cvxpy, run_program

MOST_COLUMNS = 30
"""Up to this many columns the interior-point solver is used."""

OPTIONS: dict[str, dict[str, Any]] = {
    # The program is scaled already: with their own scaling on top, Clarabel breaks down on the
    # larger ones, and SCS hardly converges.
    "clarabel": {"equilibrate_enable": False},
    "scs": {"normalize": False, "eps_abs": 1e-7, "eps_rel": 1e-7, "max_iters": 10_000},
}


@dataclass
class OlfatAswani:
    """PCA with equal projected means of the groups, and a price on differences of covariances.

    With C the covariance of all rows, the relaxed projector P, with eigenvalues from 0 to 1 that
    sum to r, maximises ``<C, P> - penalty * t``. No eigenvalue of ``P (Q + phi I) P`` or of
    ``P (phi I - Q) P`` is above t, where Q is the difference of two groups' covariances and phi the
    largest spectral norm of such a Q. The subspace is that of P's r leading eigenvectors (Olfat and
    Aswani, "Convex formulations for fair principal component analysis", AAAI 2019).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> groups = np.repeat(["a", "b"], 50)
    >>> X = rng.normal(size=(100, 4)) * np.where(groups == "a", 1.0, 2.0)[:, None]
    >>> OlfatAswani(1, penalty=1.0).fit(X, sensitive_features=groups).components_.shape
    (1, 4)
    """

    n_components: int
    penalty: float
    components_: Array = field(init=False, repr=False)

    @property
    def n_components_(self) -> int:
        """Dimension of the subspace."""
        return self.n_components

    def fit(self, X: Array, *, sensitive_features: Any) -> OlfatAswani:
        """Find the subspace."""
        moments = GroupMoments.from_rows(X, sensitive_features)
        space, r = equal_mean_space(moments), self.n_components
        inside = space.T @ moments.total_covariance() @ space
        projector = inside
        if r < len(inside):  # else there is but one P
            projector = self._relaxed(moments, space, inside)
        self.components_ = (space @ leading_eigenpairs(projector, r)[1]).T
        return self

    def _relaxed(self, moments: GroupMoments, space: Array, covariance: Array) -> Array:
        cvxpy, m = import_cvxpy(), len(covariance)
        # In units of the longest difference.
        longest = parity_gaps(moments, np.eye(len(space)))[1]
        covariances = projected_covariances(moments, space) / longest
        first, second = np.triu_indices(len(covariances), 1)
        factors = [
            vectors * np.sqrt(np.maximum(1.0 + sign * values, 0.0))
            for values, vectors in map(np.linalg.eigh, covariances[first] - covariances[second])
            for sign in (1.0, -1.0)
        ]
        price = self.penalty * longest
        identity = np.eye(m)
        P, t = cvxpy.Variable((m, m), PSD=True), cvxpy.Variable()
        conditions = [identity - P >> 0, cvxpy.trace(P) == self.n_components]
        for factor in factors:
            block = cvxpy.bmat([[t * identity, P @ factor], [factor.T @ P, identity]])
            conditions.append(block >> 0)
        size = (float(np.trace(covariance)) + price) / m
        gain = cvxpy.sum(cvxpy.multiply(covariance / size, P)) - price / size * t
        program = cvxpy.Problem(cvxpy.Maximize(gain), conditions)
        backend = "clarabel" if m <= MOST_COLUMNS else "scs"
        run_program(program, backend, **OPTIONS[backend])
        if P.value is None:
            raise RuntimeError(f"The program ended as {program.status!r}.")
        return np.asarray((P.value + P.value.T) / 2)
