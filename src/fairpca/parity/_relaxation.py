"""The semidefinite program of Olfat and Aswani, scaled for the solvers; their results checked."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._linalg.dense import leading_eigenpairs
from fairpca._linalg.sdp import choose_backend, failure, import_cvxpy, run_program
from fairpca._linalg.types import Array

_ACCURACY = 1e-5
"""How far a solver's result may violate the conditions, each scaled to a size of about one."""

_OPTIONS: dict[str, dict[str, Any]] = {
    # The program is scaled already: with their own scaling on top, Clarabel breaks down on the
    # larger ones, and SCS hardly converges.
    "clarabel": {"equilibrate_enable": False},
    "scs": {"normalize": False, "eps_abs": 1e-7, "eps_rel": 1e-7, "max_iters": 10_000},
}


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Maximise ``<covariance, P> - penalty * t`` over ``0 <= P <= I`` with trace r.

    For every difference f of means, ``f^T P f <= mean_tolerance**2``. For every difference Q of
    covariances, ``P (shift I + Q) P <= t I`` and ``P (shift I - Q) P <= t I``, where the shift is
    at least the spectral norm of every Q.

    Attributes
    ----------
    covariance : array of shape (m, m)
    r : int
    mean_differences : array of shape (p, m)
        Only those longer than `mean_tolerance`: P shortens vectors, so it cannot violate others.
    mean_tolerance : float
    covariance_differences : array of shape (q, m, m)
    shift : float
    penalty : float
    """

    covariance: Array
    r: int
    mean_differences: Array
    mean_tolerance: float
    covariance_differences: Array
    shift: float
    penalty: float

    def pca_basis(self) -> Array | None:
        """The leading eigenvectors of the covariance where they solve it, else None."""
        fixed = self.r == len(self.covariance)  # then P = I, whatever it costs
        if self._has_penalty and not fixed:
            return None
        basis = leading_eigenpairs(self.covariance, self.r)[1]
        lengths = np.linalg.norm(self.mean_differences @ basis, axis=1)
        return basis if (lengths <= self.mean_tolerance).all() else None

    def solve(self, backend: str) -> tuple[Array, float]:
        """Return P and t; t is zero when it has no price."""
        cvxpy = import_cvxpy()
        backend = choose_backend(backend, len(self.covariance) * (2 if self._has_penalty else 1))
        program, P, t = self._program(cvxpy)
        run_program(program, backend, **_OPTIONS[backend])
        if len(self.mean_differences) and program.status.startswith("infeasible"):
            raise self.too_tight()
        if P.value is None:
            raise failure(backend, f"it ended as {program.status!r}")
        projector, bound = (P.value + P.value.T) / 2, float(t.value if self._has_penalty else 0.0)
        violation = self._violation(projector, bound)
        if not violation <= _ACCURACY:
            raise failure(backend, f"its result violates a condition by {violation:.1g}")
        return projector, bound * self.shift

    def too_tight(self) -> ValueError:
        """The error for conditions on the means that no P satisfies."""
        return ValueError(
            f"No subspace of n_components={self.r} dimensions, relaxed or not, keeps the groups' "
            f"means within mean_tolerance={self.mean_tolerance:g}: take fewer dimensions or a "
            "larger tolerance."
        )

    @property
    def _has_penalty(self) -> bool:
        """Whether t has a price, and covariances differ by more than rounding."""
        negligible = 1e-12 * float(np.trace(self.covariance))
        return self.penalty > 0 and self.shift > negligible

    def _program(self, cvxpy: Any) -> tuple[Any, Any, Any]:
        """The program with means of unit length, and covariances and t in units of the shift."""
        m = len(self.covariance)
        identity = np.eye(m)
        P, t = cvxpy.Variable((m, m), PSD=True), cvxpy.Variable()
        conditions = [identity - P >> 0, cvxpy.trace(P) == self.r]
        directions, limits = self._unit_means()
        conditions += [u @ P @ u <= limit for u, limit in zip(directions, limits, strict=True)]
        price = self.penalty * self.shift if self._has_penalty else 0.0
        size = (float(np.trace(self.covariance)) + price) / m
        gain = cvxpy.sum(cvxpy.multiply(self.covariance / size, P))
        if self._has_penalty:
            gain -= price / size * t
            for factor in self._covariance_factors():
                block = cvxpy.bmat([[t * identity, P @ factor], [factor.T @ P, identity]])
                conditions.append(block >> 0)
        return cvxpy.Problem(cvxpy.Maximize(gain), conditions), P, t

    def _unit_means(self) -> tuple[Array, Array]:
        lengths = np.linalg.norm(self.mean_differences, axis=1)
        return self.mean_differences / lengths[:, None], (self.mean_tolerance / lengths) ** 2

    def _covariance_factors(self) -> list[Array]:
        """For every pair and sign an M with ``M M^T = I + Q / shift`` or ``I - Q / shift``."""
        values, vectors = np.linalg.eigh(self.covariance_differences / self.shift)
        return [
            v * np.sqrt(np.maximum(1.0 + sign * w, 0.0))
            for w, v in zip(values, vectors, strict=True)
            for sign in (1.0, -1.0)
        ]

    def _violation(self, projector: Array, bound: float) -> float:
        """The largest violation of a condition of the scaled program."""
        values = np.linalg.eigvalsh(projector)
        found = [-values[0], values[-1] - 1.0, abs(values.sum() - self.r) / self.r]
        directions, limits = self._unit_means()
        found.extend(np.einsum("pi,ij,pj->p", directions, projector, directions) - limits)
        if self._has_penalty:
            needed = (np.linalg.norm(projector @ M, 2) ** 2 for M in self._covariance_factors())
            found.append(max(needed) - bound)
        return float(np.max(found))
