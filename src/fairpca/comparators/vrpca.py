"""VR-PCA: a stochastic way to each group's own subspace, on rows in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._linalg.dense import polar_factor, qr_factor
from fairpca._linalg.types import Array
from fairpca.groups import Codes
from fairpca.validation import check_number, check_seed, check_whole_number

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
    for the groups' own subspaces when there are many rows. A `Problem` takes these as `own_bases`,
    bounds by its moments what they miss, and lets the certificate allow for that; this saves no
    time, and is here to study what such an error does.

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

    See Also
    --------
    fairpca.Problem : Takes its subspaces as `own_bases`.

    Examples
    --------
    From moments and rows to a fitted estimator. With ``Problem(centering="group")`` the
    centres are ``moments.mean``.

    >>> import numpy as np
    >>> from fairpca import ExactSolver, FairPCA, GroupMoments, Problem
    >>> from fairpca.comparators import VRPCA
    >>> X = np.random.default_rng(0).normal(size=(300, 6)) * [5, 4, 2, 1, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> groups = np.repeat(["a", "b"], [100, 200])
    >>> moments = GroupMoments.from_rows(X, groups)
    >>> codes = np.searchsorted(moments.labels, groups)
    >>> centers = np.tile(moments.total_mean, (len(moments.labels), 1))
    >>> own_bases = VRPCA().subspaces(X, codes, centers, r=2)
    >>> problem = Problem(moments, 2, own_bases=own_bases)
    >>> solution = ExactSolver().solve(problem)
    >>> solution.certificate.own_error < 1e-6
    True
    >>> fair = FairPCA.from_solution(problem, solution)
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
        rng = np.random.default_rng(self.random_state or 0)
        found = []
        for code, center in enumerate(centers):
            some = np.flatnonzero(codes == code)
            chance = np.ones(len(some)) if weights is None else weights[some]
            group = _CentredRows(rows[some], center, chance / chance.sum())
            found.append(self._subspace(group, r, rng))
        return tuple(found)

    def _subspace(self, rows: _CentredRows, r: int, rng: np.random.Generator) -> Array:
        basis = qr_factor(rng.standard_normal((rows.d, r)))
        size = rows.mean_square()
        if size == 0.0:
            return basis
        # One exact step from a random start saves many stochastic ones (Shamir, 2016).
        basis = qr_factor(rows.image(basis) + 1e-12 * size * basis)
        step = self.step_size or min(self.batch_size / np.sqrt(rows.n), 1.0) / size
        for _ in range(self.max_epochs):
            snapshot, image = basis, rows.image(basis)
            residual = image - basis @ (basis.T @ image)
            if np.linalg.norm(residual) <= self.tol * np.linalg.norm(image):
                break
            for batch in rows.batches(self.batch_size, rng):
                # The rotation that brings the snapshot nearest to the basis.
                turn = polar_factor(snapshot.T @ basis)
                noise = rows.image(basis - snapshot @ turn, batch)
                basis = qr_factor(basis + step * (image @ turn + noise))
        return basis


class _CentredRows:
    """Rows minus a centre, without a centred copy, so that sparse rows stay sparse."""

    def __init__(self, rows: Any, center: Array, chance: Array) -> None:
        self.rows, self.center, self.chance = rows, center, chance
        self.n, self.d = rows.shape

    def image(self, basis: Array, batch: Array | None = None) -> Array:
        """Mean of ``x x^T basis`` over all rows, by their weights, or over a batch of them."""
        rows = self.rows if batch is None else self.rows[batch]
        weights = self.chance if batch is None else np.full(len(batch), 1.0 / len(batch))
        scores = (rows @ basis - self.center @ basis) * weights[:, None]
        image: Array = rows.T @ scores - np.outer(self.center, scores.sum(axis=0))
        return image

    def mean_square(self) -> float:
        """Mean squared length of a row."""
        rows, center = self.rows, self.center
        squares = rows.multiply(rows).sum(axis=1) if hasattr(rows, "toarray") else (rows**2).sum(1)
        lengths = np.asarray(squares, dtype=float).ravel() - 2.0 * (rows @ center)
        return max(float(self.chance @ lengths) + float(center @ center), 0.0)

    def batches(self, size: int, rng: np.random.Generator) -> Any:
        """As many rows as there are, more if they are few, drawn by their weights, in batches."""
        n_drawn = max(self.n, _FEWEST_STEPS * size)
        drawn = rng.choice(self.n, size=n_drawn, p=self.chance)
        return (drawn[j : j + size] for j in range(0, n_drawn, size))
