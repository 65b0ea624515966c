"""What disparities are measured from: eigenpairs of the groups' matrices and of their total."""

from functools import cached_property

import numpy as np

from fairpca._linalg.krylov import Pairs, leading_eigenpairs, leading_sum_bound, proven_pairs
from fairpca._linalg.types import Array, GroupMatrices


class GroupSpectra:
    """The r leading eigenpairs of the groups' matrices and of their weighted sum.

    Each is computed once, when it is first asked for.

    Parameters
    ----------
    matrices : GroupMatrices
    weights : array of shape (k,)
        Those of the total.
    r : int
    own_bases : tuple of k arrays of shape (d, r), or None
        Orthonormal, in place of the leading eigenvectors.
    """

    def __init__(
        self, matrices: GroupMatrices, weights: Array, r: int, own_bases: tuple[Array, ...] | None
    ) -> None:
        self.matrices, self.weights, self._r, self._own_bases = matrices, weights, r, own_bases

    @cached_property
    def total_matrix(self) -> Array:
        """The weighted sum as an array; (d, d)."""
        return self.matrices.dense(self.weights)

    @cached_property
    def total(self) -> tuple[Array, Array]:
        """Leading eigenpairs of the total: all where that is as quick as only r of them."""
        total = self.matrices.weighted_sum(self.weights)
        values, vectors = leading_eigenpairs(total, self._r)
        return values, self.matrices.backend.host(vectors)

    @cached_property
    def subspaces(self) -> tuple[Array, ...]:
        """Each group's own basis, (d, r)."""
        if self._own_bases is not None:
            return self._own_bases
        return tuple(self.matrices.backend.host(pairs.vectors) for pairs in self._own_pairs)

    @cached_property
    def gains(self) -> Array:
        """What each group keeps in its own basis; (k,)."""
        if self._own_bases is None:
            return np.array([pairs.values.sum() for pairs in self._own_pairs])
        kept, backend = [], self.matrices.backend
        for i, basis in enumerate(self._own_bases):
            image = backend.host(self.matrices.group(i).image(backend.put(basis)))
            kept.append(np.einsum("ia,ia->", image, basis))
        return np.array(kept)

    @cached_property
    def errors(self) -> Array:
        """How much more each group could keep than `gains`, at the most; (k,)."""
        if self._own_bases is None:
            return np.zeros(self.matrices.k)
        put = self.matrices.backend.put
        most = [
            leading_sum_bound(self.matrices.group(i), self._r, put(basis))
            for i, basis in enumerate(self._own_bases)
        ]
        return np.maximum(np.array(most) - self.gains, 0.0)

    @cached_property
    def _own_pairs(self) -> list[Pairs]:
        # Disparities are measured from these, so that they are the best has to be certain.
        start = self.matrices.backend.put(self.total[1][:, : self._r])
        groups = range(self.matrices.k)
        return [proven_pairs(self.matrices.group(i), self._r, start) for i in groups]
