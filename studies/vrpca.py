"""VR-PCA: a stochastic way to each group's own subspace, on rows in memory.

`studies.rivals` and `studies.stochastic` compare with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._linalg.dense import polar_factor, qr_factor
from fairpca._linalg.types import Array
from fairpca.groups import Codes
from fairpca.problem import Problem
from fairpca.stochastic import CentredRows
from fairpca.validation import check_number, check_seed, check_whole_number


class WeightedRows(CentredRows):
    """The same, of which each row counts by a weight; they sum to one."""

    def __init__(self, rows: Any, center: Any, weights: Array) -> None:
        super().__init__(rows, center)
        self._weights = weights

    def image(self, basis: Any) -> Any:
        """Weighted sum of ``x x^T basis``."""
        scores = self.scores(basis) * self._weights[:, None]
        image = self._rows.T @ scores
        if self._is_sparse:
            image -= np.outer(self._center, scores.sum(axis=0))
        return image


_FEWEST_STEPS = 100
"""Stochastic steps of an epoch, at the least."""


@dataclass(frozen=True)
class VRPCA:
    """Stochastic PCA with reduced variance, for each group's own subspace.

    Oja's method moves a basis along one random row at a time. Here each epoch first passes over
    all rows, and the random steps only correct for the distance from where it began, so that their
    noise vanishes as the basis converges, and it converges at a geometric rate (Shamir, "A
    Stochastic PCA and SVD Algorithm with an Exponential Convergence Rate", 2015; the block form for
    r > 1 is in "Fast Stochastic Algorithms for SVD and PCA", 2016). Kamani et al. suggest it
    for the groups' own subspaces when there are many rows. It saves no time where the groups'
    moments are at hand.

    Parameters
    ----------
    tol : float, default=1e-6
        Residual of the basis, relative to the length of its image, at which to stop.
    max_epochs : int, default=200
        The most passes over the rows of a group.
    batch_size : int, default=32
        Rows taken in one stochastic step; the published algorithm takes 1.
    step_size : float, default=None
        Size of a step; None is ``batch_size / (s * sqrt(n))``, s being the mean squared length of
        the n rows: the value of the paper's experiments, for batches, and at most ``1 / s``.
    random_state : int or None, default=None
        Seed. None is a fixed seed too.

    Examples
    --------
    From moments and rows to a fair subspace, whose disparities are measured from these subspaces:

    >>> from fairpca import ExactSolver, GroupMoments, Problem
    >>> X = np.random.default_rng(0).normal(size=(300, 6)) * [5, 4, 2, 1, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> groups = np.repeat(["a", "b"], [100, 200])
    >>> moments = GroupMoments.from_rows(X, groups)
    >>> codes = np.searchsorted(moments.labels, groups)
    >>> own = VRPCA().subspaces(X, codes, np.tile(moments.total_mean, (2, 1)), r=2)
    >>> problem = measured_from(Problem(moments, 2), own)
    >>> ExactSolver().solve(problem).certificate.status
    'optimal'
    """

    tol: float = 1e-6
    max_epochs: int = 200
    batch_size: int = 32
    step_size: float | None = None
    random_state: int | None = None

    def __post_init__(self) -> None:
        check_seed(self.random_state)
        check_number("tol", self.tol, least=0.0)
        check_whole_number("max_epochs", self.max_epochs)
        check_whole_number("batch_size", self.batch_size)
        if self.step_size is not None and not self.step_size > 0:
            raise ValueError(f"step_size must be None or positive, got {self.step_size!r}.")

    def subspaces(
        self, rows: Any, codes: Codes, centers: Array, r: int, weights: Array | None = None
    ) -> tuple[Array, ...]:
        """A basis for each group: the rows with code i minus the i-th centre.

        Parameters
        ----------
        rows : array or CSR matrix of shape (n, d)
            The rows of all groups.
        codes : integer array of shape (n,)
            Position of each row's group among the centres; others are left out.
        centers : array of shape (k, d)
            What is subtracted from the rows of each group.
        r : int
            Dimension of the subspaces.
        weights : array of shape (n,), default=None
            Of the rows; None weighs all alike.

        Returns
        -------
        tuple of k arrays of shape (d, r)
        """
        rng, found = np.random.default_rng(self.random_state or 0), []
        for code, center in enumerate(centers):
            some = np.flatnonzero(codes == code)
            chance = np.ones(len(some)) if weights is None else weights[some]
            found.append(self._subspace(rows[some], center, chance / chance.sum(), r, rng))
        return tuple(found)

    def _subspace(
        self, rows: Any, center: Array, chance: Array, r: int, rng: np.random.Generator
    ) -> Array:
        n, d = rows.shape
        every = WeightedRows(rows, center, chance)
        basis, size = qr_factor(rng.standard_normal((d, r))), float(chance @ every.squares())
        if not size > 0.0:
            return basis
        # One exact step from a random start saves many stochastic ones (Shamir, 2016).
        basis = qr_factor(every.image(basis) + 1e-12 * size * basis)
        step = self.step_size or min(self.batch_size / np.sqrt(n), 1.0) / size
        # As many rows as there are, more if they are few, drawn by their weights.
        n_drawn = max(n, _FEWEST_STEPS * self.batch_size)
        for _ in range(self.max_epochs):
            snapshot, image = basis, every.image(basis)
            residual = image - basis @ (basis.T @ image)
            if np.linalg.norm(residual) <= self.tol * np.linalg.norm(image):
                break
            drawn = rng.choice(n, size=n_drawn, p=chance)
            for start in range(0, n_drawn, self.batch_size):
                batch = CentredRows(rows[drawn[start : start + self.batch_size]], center)
                # The rotation that brings the snapshot nearest to the basis.
                turn = polar_factor(snapshot.T @ basis)
                noise = batch.image(basis - snapshot @ turn)
                basis = qr_factor(basis + step * (image @ turn + noise))
        return basis


def measured_from(problem: Problem, own: Sequence[Array]) -> Problem:
    """The problem with disparities from these subspaces of the groups, one for each."""
    gains = [problem.kept(basis)[i] for i, basis in enumerate(own)]
    return problem.measured_from(np.array(gains), np.ones(len(gains)))
