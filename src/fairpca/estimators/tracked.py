"""Subspaces that move while rows stream by: the fair one, that of PCA, and each group's own.

None of the groups' matrices A_i is ever formed. What is kept are the images of the bases under
them, (d, r) each, and every mini-batch B corrects these (STORM: Cutkosky and Orabona, 2019)::

    Y  <-  (1 - b) Y  +  B (U - (1 - b) U_before)

Without the second part of the bracket this is the average over recent batches, which lags behind
the basis; with it, Y follows the basis as it moves, and its noise falls with the number of rows
drawn. That treats two biases at once. The direction in which all objectives fall depends on the
gradients in a way that is not linear, so that of noisy gradients is wrong on average, not only in
single steps; with tracked gradients it is right in the limit (Fernando et al., "Mitigating gradient
bias in multi-objective learning", 2023). And the penalty of a difference of disparities has the
difference times its slope as its gradient: both of the same rows, their noises would multiply.

Steps are in units of the power method, whatever the scale of the rows, and as long as the noise
allows: with noise n in the image of a batch, relative to the image, the noise that corrections
gather stays below what they correct where steps are at most ``sqrt(b) / n``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairpca._linalg.backends import NUMPY, Backend
from fairpca._linalg.types import Array
from fairpca.solvers.noisy_step import NoisyStep, noisy_step

FORGETTING = 2.0
"""b is so many times a batch's part of the rows drawn so far: what is older than half of them
counts by a quarter."""

MORE_COLUMNS = 5
"""Columns of the groups' own bases beyond r: the further the next eigenvalue, the faster."""

_NOISE_EVERY = 8
"""The noise of batches is measured in every so many steps."""

_NOISE_MEMORY = 0.8
"""Weight of what was measured before."""

_FLAT = 1e-6
"""Part of the mean variance along a basis that is added where a basis is divided by variances."""

VARIANCE_REDUCTIONS = ("recursive", "average", None)
STEPS = ("noise", "sqrt", "constant")


class CentredRows:
    """Rows minus a centre, without a centred copy where they are sparse."""

    def __init__(self, rows: Any, center: Any) -> None:
        self.n = rows.shape[0]
        self._is_sparse = hasattr(rows, "tocsr")
        self._rows: Any = rows if self._is_sparse else rows - center
        self._center: Any = center

    def scores(self, basis: Any) -> Any:
        """Coordinates along the columns of a basis; (n, r)."""
        scores = self._rows @ basis
        return scores - self._center @ basis if self._is_sparse else scores

    def image(self, basis: Any) -> Any:
        """Mean of ``x x^T basis``."""
        scores = self.scores(basis)
        image = self._rows.T @ scores
        if self._is_sparse:
            image -= np.outer(self._center, scores.sum(axis=0))
        image /= self.n
        return image

    def squares(self) -> Any:
        """Squared length of each row; (n,)."""
        if not self._is_sparse:
            return (self._rows * self._rows).sum(1)
        lengths = np.asarray(self._rows.multiply(self._rows).sum(axis=1)).ravel()
        return lengths - 2.0 * (self._rows @ self._center) + self._center @ self._center


class MovingBasis:
    """A basis, and its images under matrices of which only batches of rows are seen.

    Parameters
    ----------
    basis : array of shape (d, r)
        Where to begin.
    n_matrices : int
        How many matrices there are.
    """

    def __init__(self, basis: Any, n_matrices: int = 1) -> None:
        self.basis = self.before = basis
        self.images: list[Any] = [None] * n_matrices
        self.noise = np.ones(n_matrices)

    def follow(self, i: int, rows: CentredRows, share: float, reduction: str | None) -> None:
        """Correct the image under matrix i by a batch of its rows that has this share."""
        if self.images[i] is None or share >= 1.0 or reduction is None:
            self.images[i] = rows.image(self.basis)
        elif reduction == "average":
            self.images[i] = (1.0 - share) * self.images[i] + share * rows.image(self.basis)
        else:
            new = rows.image(self.basis - (1.0 - share) * self.before)
            new += (1.0 - share) * self.images[i]
            self.images[i] = new

    def measure_noise(self, i: int, rows: CentredRows) -> None:
        """How far the image of a batch is from the tracked one, relative to that, on average."""
        scores, size = rows.scores(self.basis), float((self.images[i] * self.images[i]).sum())
        rowwise = float((rows.squares() * (scores * scores).sum(1)).sum()) / rows.n
        noise = np.sqrt(max(rowwise / size - 1.0, 0.0) / rows.n) if size > 0.0 else 0.0
        self.noise[i] = _NOISE_MEMORY * self.noise[i] + (1.0 - _NOISE_MEMORY) * noise

    def move(self, basis: Any) -> None:
        """Go to another basis."""
        self.before, self.basis = self.basis, basis


class TrackedSubspaces:
    """The fair subspace, that of PCA and the groups' own, learnt together from mini-batches.

    Parameters
    ----------
    d, r : int
        Numbers of columns and of components.
    rng : numpy.random.Generator
        For random beginnings.
    backend : Backend
        The library in which the bases live.
    how : tuple
        `step`, `step_size` and `variance_reduction`, as for `StochasticFairPCA`.
    """

    def __init__(
        self,
        d: int,
        r: int,
        rng: np.random.Generator,
        backend: Backend = NUMPY,
        how: tuple[str, float, str | None] = ("noise", 1.0, "recursive"),
    ) -> None:
        self.d, self.r, self.width = d, r, min(r + MORE_COLUMNS, d)
        self.step, self.step_size, self.reduction = how
        self.backend, self._rng = backend, rng
        self.fair, self.pca = MovingBasis(self._random(r), 0), MovingBasis(self._random(self.width))
        self.own: list[MovingBasis] = []
        self.means: list[Any] = []
        self.drawn, self.n_steps = np.zeros(0), 0
        self.average: Any = None
        self.n_averaged = 0
        self.last: NoisyStep | None = None

    def add_groups(self, n: int) -> None:
        """Make room for n further groups."""
        self.fair.images += [None] * n
        self.fair.noise = np.append(self.fair.noise, np.ones(n))
        self.own += [MovingBasis(self._random(self.width)) for _ in range(n)]
        self.means += [None] * n
        self.drawn = np.append(self.drawn, np.zeros(n))

    def center(self, shares: Array) -> Any:
        """Mean of all rows, as far as they have been drawn."""
        known = zip(shares, self.means, strict=True)
        return sum(share * mean for share, mean in known if mean is not None)

    def take(self, batch: Sequence[Any], shares: Array, whole: Sequence[bool]) -> None:
        """Learn from a batch: one block of rows for each group, and what part each is of all rows.

        `whole` says which blocks are all rows of their group: their images are exact.
        """
        measures = self.n_steps < _NOISE_EVERY or self.n_steps % _NOISE_EVERY == 0
        for i, block in enumerate(batch):
            self.drawn[i] += block.shape[0]
            mean, part = block_mean(block), block.shape[0] / self.drawn[i]
            self.means[i] = mean if part == 1.0 else self.means[i] + part * (mean - self.means[i])
        center = self.center(shares)
        parts = np.array([block.shape[0] for block in batch]) / self.drawn
        parts = np.where(whole, 1.0, np.minimum(FORGETTING * parts, 1.0))
        total, part = None, float(shares @ parts)
        for i, block in enumerate(batch):
            rows = CentredRows(block, center)
            self.fair.follow(i, rows, parts[i], self.reduction)
            self._own_images(i, rows, parts[i])
            # The image of PCA's basis is that under the sum of the groups' matrices.
            now = self.pca.basis
            shown = now if part >= 1.0 else now - (1.0 - part) * self.pca.before
            image = shares[i] * rows.image(shown)
            total = image if total is None else total + image
            if measures:
                for moving, j in ((self.fair, i), (self.own[i], 0)):
                    if moving.images[j] is not None:
                        moving.measure_noise(j, rows)
                    moving.noise[j] *= not whole[i]
        if self.pca.images[0] is None or part >= 1.0:
            self.pca.images[0] = total
        else:
            self.pca.images[0] = total + (1.0 - part) * self.pca.images[0]
        self.n_steps += 1
        self._move(shares, parts, part)

    def _move(self, shares: Array, parts: Array, part: float) -> None:
        self.last, tangents, turn = self._direction(shares, self._length(self.fair.noise, parts))
        step = _combination(self.last.step, tangents)
        self.fair.move(self._orthonormal(self.fair.basis + step @ turn))
        self._own_steps(parts)
        spread = np.sqrt(np.square(shares) @ np.square(self.fair.noise))
        self._power_step(self.pca, self._length(np.array([spread]), np.array([part])))

    def _own_images(self, i: int, rows: CentredRows, part: float) -> None:
        self.own[i].follow(0, rows, part, self.reduction)

    def _own_steps(self, parts: Array) -> None:
        for i, moving in enumerate(self.own):
            self._power_step(moving, self._length(moving.noise, parts[i : i + 1]))

    def _length(self, noise: Array, parts: Array) -> float:
        """Length of a step, in units of the power method."""
        if self.step == "noise":
            limits = np.sqrt(parts) / np.maximum(noise, np.finfo(float).tiny)
            return float(self.step_size * min(1.0, limits.min()))
        return self.step_size / (np.sqrt(self.n_steps) if self.step == "sqrt" else 1.0)

    def _direction(self, shares: Array, length: float) -> tuple[NoisyStep, list[Any], Any]:
        """The step, the images' tangent parts that it combines, and the metric's root."""
        basis, put, host = self.fair.basis, self.backend.put, self.backend.host
        inner = [host(basis.T @ image) for image in self.fair.images]
        turn = put(_inverse_power(np.tensordot(shares, inner, 1), 0.5))
        tangents = [
            (image - basis @ put(part)) @ turn
            for image, part in zip(self.fair.images, inner, strict=True)
        ]
        kept = np.array([np.trace(part) for part in inner])
        products = np.array([[float((a * b).sum()) for b in tangents] for a in tangents])
        found = noisy_step(products, self.own_gains() - kept, shares, length)
        return found, tangents, turn

    def own_gains(self) -> Array:
        """What each group keeps in its own subspace, as far as it is known; (k,)."""
        return np.array([self._values(moving)[-self.r :].sum() for moving in self.own])

    def kept(self) -> Array:
        """What each group keeps in the fair subspace, as far as it is known; (k,)."""
        basis = self.fair.basis
        return np.array([float((basis * image).sum()) for image in self.fair.images])

    def _values(self, moving: MovingBasis) -> Array:
        inner = self.backend.host(moving.basis.T @ moving.images[0])
        return np.asarray(np.linalg.eigvalsh((inner + inner.T) / 2.0))

    def _power_step(self, moving: MovingBasis, length: float) -> None:
        """A step of the power method towards the leading subspace, of this length."""
        inner = self.backend.host(moving.basis.T @ moving.images[0])
        tangent = moving.images[0] - moving.basis @ self.backend.put(inner)
        step = tangent @ self.backend.put(_inverse_power(inner, 1.0, _FLAT))
        moving.move(self._orthonormal(moving.basis + length * step))

    def held_out_norm(self, parts: Sequence[Sequence[Any]], shares: Array) -> tuple[float, float]:
        """Square of the norm of the direction, by rows that were held out, and its standard error.

        A norm of noisy numbers is too large on average. Here the direction is computed for each
        part of the held-out rows, with the same coefficients, and products of different parts
        have the right mean. Each part has a block of rows for each group, or None.
        """
        if self.last is None:
            return np.inf, np.inf
        basis, center = self.fair.basis, self.center(shares)
        _, tangents, turn = self._direction(shares, 0.0)
        found = []
        for blocks in parts:
            own = list(tangents)
            for i, block in enumerate(blocks):
                if block is not None:
                    image = CentredRows(block, center).image(basis)
                    own[i] = (image - basis @ (basis.T @ image)) @ turn
            found.append(_combination(self.last.direction, own))
        pairs = [float((a * b).sum()) for j, a in enumerate(found) for b in found[:j]]
        return float(np.mean(pairs)), float(np.std(pairs) / np.sqrt(len(pairs)))

    def average_in(self) -> None:
        """Count the basis in the average of bases."""
        self.n_averaged += 1
        last = self.fair.basis
        self.average = (
            last
            if self.average is None
            else (self.average + (last - self.average) / self.n_averaged)
        )

    def result(self) -> Any:
        """The fair basis, or the basis nearest to the average where one was kept."""
        return self.fair.basis if self.average is None else self._orthonormal(self.average)

    def _random(self, width: int) -> Any:
        found = np.linalg.qr(self._rng.standard_normal((self.d, width)))[0]
        return self.backend.put(np.ascontiguousarray(found))

    def _orthonormal(self, matrix: Any) -> Any:
        """The nearest matrix with orthonormal columns, from the products of its columns."""
        products = self.backend.host(matrix.T @ matrix)
        return matrix @ self.backend.put(_inverse_power(products, 0.5))


def block_mean(block: Any) -> Any:
    """Mean of the rows of a block; (d,)."""
    mean = block.mean(0)
    return np.asarray(mean).ravel() if hasattr(block, "tocsr") else mean


def _combination(coefficients: Array, arrays: Sequence[Any]) -> Any:
    return sum(float(c) * array for c, array in zip(coefficients, arrays, strict=True))


def _inverse_power(matrix: Array, power: float, flat: float = 1e-12) -> Array:
    """A negative power of a symmetric matrix whose eigenvalues are made positive.

    Without any positive one there is nothing to be divided by, and it is the identity.
    """
    values, axes = np.linalg.eigh((matrix + matrix.T) / 2.0)
    level = flat * float(np.maximum(values, 0.0).mean())
    if not level > 0.0:
        return np.eye(len(matrix))
    return np.ascontiguousarray((axes * (np.maximum(values, 0.0) + level) ** -power) @ axes.T)
