"""Matrices whose eigenvalues differ by orders of magnitude, without loss of the small ones' digits.

Rounding errors of sums are relative to their largest term. Where a column has a variance of 1e10,
what is kept is known to 1e-6 at the best, which may be more than all that is lost. So what is lost
is computed by itself here: from a basis N of what is left out, whose entries are tiny wherever the
matrices are huge, as ``tr(N^T A_i N)``.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._linalg.backends import Backend
from fairpca._linalg.types import Array

_EPS = float(np.finfo(float).eps)

GRADED = 1e-3
"""Ratio from which small eigenvalues are computed again without the large ones, and what is lost by
itself, not from what is kept."""


def graded_eigh(matrix: Array) -> tuple[Array, Array]:
    """All eigenvalues, largest first, and their eigenvectors, small ones with digits of their own.

    What is orthogonal to the eigenvectors of large eigenvalues is a smaller problem, of smaller
    numbers, in which errors are relative to these.
    """
    values, vectors = np.linalg.eigh(matrix)
    order = np.argsort(-np.abs(values), kind="stable")
    values, vectors = values[order], vectors[:, order]
    begin = 0
    while True:
        small = np.flatnonzero(np.abs(values[begin:]) < GRADED * abs(values[begin]))
        if len(small) == 0:
            break
        begin += int(small[0])
        rest = vectors[:, begin:]
        inner = rest.T @ (matrix @ rest)
        some, turn = np.linalg.eigh((inner + inner.T) / 2)
        order = np.argsort(-np.abs(some), kind="stable")
        values[begin:], vectors[:, begin:] = some[order], rest @ turn[:, order]
    order = np.argsort(-values, kind="stable")
    return values[order], np.ascontiguousarray(vectors[:, order])


class GradedBackend(Backend):
    """NumPy's arrays, with eigenvalues by `graded_eigh`."""

    def eigh(self, matrix: Any) -> tuple[NDArray[Any], Any]:
        """All eigenvalues, largest first, and their eigenvectors."""
        return graded_eigh(matrix)


@dataclass(frozen=True, eq=False)
class GradedLosses:
    """What groups lose, of matrices ``stack[i] + offsets[i] offsets[i]^T``.

    The offsets are apart so that means that are far from each other cost no digits.
    """

    stack: Array
    offsets: Array
    r: int

    @classmethod
    def of_scatters(
        cls, scatter: Array, offsets: Array, weight: Array, r: int, loss: str, centering: str
    ) -> "GradedLosses":
        """The parts of groups with these scatters, whose means are `offsets` from that of all."""
        factors = np.ones(len(weight)) if loss == "sum" else 1.0 / weight
        apart = np.sqrt(factors * weight) if centering == "global" else np.zeros(len(weight))
        return cls(scatter * factors[:, None, None], offsets * apart[:, None], r)

    def losses(self, rest: Array) -> Array:
        """``tr(N^T A_i N)``, where N is a basis of what is left out; (k,)."""
        lost: Array = np.einsum("kia,ia->k", self.stack @ rest, rest)
        lost = lost + np.square(self.offsets @ rest).sum(axis=1)
        return np.maximum(lost, 0.0)

    def turned(self, turn: Array) -> Array:
        """The matrices in other coordinates, whose axes are orthonormal columns; (k, d, d)."""
        inner = turn.T @ self.stack @ turn
        offsets = self.offsets @ turn
        inner += offsets[:, :, None] * offsets[:, None, :]
        return (inner + inner.transpose(0, 2, 1)) / 2

    def eigenpairs(self, weights: Array, turn: Array) -> tuple[Array, Array]:
        """All eigenpairs of a weighted sum; `turn` are coordinates in which it is nearly graded."""
        values, vectors = graded_eigh(np.tensordot(weights, self.turned(turn), 1))
        return values, turn @ vectors

    def rounding(self, rest: Array) -> Array:
        """How far rounding can move the losses; (k,)."""
        d, size = len(rest), np.abs(rest)
        sums = np.einsum("kia,ia->k", np.abs(self.stack) @ size, size)
        # The entries of N are rounded, too.
        images = np.abs(self.stack @ rest).sum(axis=(1, 2))
        products = np.abs(self.offsets @ rest)
        of_products = _EPS * (d + 4) * (np.abs(self.offsets) @ size)
        of_products += _EPS * np.abs(self.offsets).sum(axis=1, keepdims=True)
        traces = np.trace(self.stack, axis1=1, axis2=2) + np.square(self.offsets).sum(axis=1)
        errors: Array = _EPS * ((d + 4) * sums + 4.0 * images)
        errors += np.square(d * _EPS) * rest.shape[1] * traces
        return np.asarray(errors + ((2.0 * products + of_products) * of_products).sum(axis=1))

    @cached_property
    def own(self) -> tuple[Array, tuple[Array, ...]]:
        """What each group loses in its own best subspace, (k,), and bases of the subspaces."""
        bases, losses = [], []
        for i in range(len(self.stack)):
            one = GradedLosses(self.stack[i : i + 1], self.offsets[i : i + 1], self.r)
            matrix = one.stack[0] + np.outer(one.offsets[0], one.offsets[0])
            first = np.linalg.eigh(matrix)[1][:, ::-1]
            vectors = one.eigenpairs(np.ones(1), first)[1]
            bases.append(np.ascontiguousarray(vectors[:, : self.r]))
            losses.append(one.losses(vectors[:, self.r :])[0])
        return np.array(losses), tuple(bases)

    def least(self, weights: Array, turn: Array) -> float:
        """Least sum of weighted losses over all subspaces, or a little less, not more.

        `turn` are coordinates in which the matrices are nearly graded.
        """
        values, vectors = self.eigenpairs(weights, turn)
        kept, rest = vectors[:, : self.r], vectors[:, self.r :]
        # By the vectors, which nearly diagonalise: the rest is bounded by what is beside.
        lost = float(weights @ self.losses(rest))
        images = np.tensordot(weights, self.stack @ rest, 1)
        images = images + (self.offsets * weights[:, None]).T @ (self.offsets @ rest)
        # Turning the rest towards what is kept by an angle t gains at most s sin 2t - g sin² t for
        # each singular value s of what is beside the diagonal, and a gap g between eigenvalues.
        sizes = np.linalg.svd(kept.T @ images, compute_uv=False)
        gap = float(values[self.r - 1] - values[self.r])
        half = max(gap, 0.0) / 2.0
        missing = float((np.hypot(half, sizes) - half).sum()) + len(sizes) * max(-gap, 0.0)
        return lost - missing - float(np.abs(weights) @ self.rounding(rest))
