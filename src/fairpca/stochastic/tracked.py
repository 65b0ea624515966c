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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._linalg.backends import NUMPY, Backend
from fairpca._linalg.dense import direction_of
from fairpca._linalg.types import Array
from fairpca.groups import Groups
from fairpca.moments import GroupMoments, MomentSum
from fairpca.objectives import FEW_GROUPS, adjacent_differences

# A step of Pareto descent where the groups' matrices are known by a sample of their rows only.
# All gradients of the paper's objectives are combinations of the k images ``A_i U``, so the
# direction in which all objectives fall, and everything that is asked of it, follows from the k
# x k products of these images' tangent parts. That is all that this module sees of the data: it
# costs the same for any number of columns, and for arrays on any device.
# Differences of disparities within reach of a step are *held* at zero, as in `_adaptive`, and a
# Newton step leads back to zero: their signs are noise there, and following them would make the
# basis tremble.

_DEPENDENT = 1e-6
"""Singular value, relative to the largest, of slopes that depend on each other."""

_ROUNDING = 1e-12
"""Part of the largest product that is rounding."""


@dataclass(frozen=True, eq=False)
class NoisyStep:
    """Where to go from a basis; coefficients are those of the k tangent images.

    Attributes
    ----------
    step : array of shape (k,)
        The step, back to zero and onwards.
    direction : array of shape (k,)
        The direction in which all objectives that are not held fall, as long as a step of the power
        method for the total loss, times a number from 1 to 0: 0 where nothing improves.
    """

    step: Array
    direction: Array


def noisy_step(products: Array, disparities: Array, shares: Array, step_size: float) -> NoisyStep:
    """The step from a basis.

    Parameters
    ----------
    products : array of shape (k, k)
        Inner products of the tangent parts of the images ``A_i U``, in a metric in which the step
        of one, along minus half the gradient of the total loss, is one of the power method.
    disparities : array of shape (k,)
        What each group loses beyond its own best subspace.
    shares : array of shape (k,)
        Weights of the groups in the total loss.
    step_size : float
        Length of the step, in those of the power method.

    Returns
    -------
    NoisyStep
    """
    values, axes = np.linalg.eigh((products + products.T) / 2.0)
    values = np.where(values > _ROUNDING * max(values[-1], 0.0), values, 0.0)
    # The images in few coordinates: rows with the same products.
    images: Array = axes * np.sqrt(values)
    if len(shares) <= FEW_GROUPS:
        matrix = adjacent_differences(disparities)
    else:  # the gradient of the sum of all squared differences, by their root: one objective
        centred = disparities - disparities.mean()
        size = float(np.linalg.norm(centred))
        matrix = centred[None] / size if size > 0.0 else np.zeros((1, len(shares)))
    differences = matrix @ disparities
    total, slopes = -(shares @ images), -2.0 * (matrix @ images)
    sizes = np.sqrt(np.einsum("ij,ij->i", slopes, slopes))
    length = step_size * float(np.linalg.norm(total))
    held = np.abs(differences) <= length * sizes
    pulls = np.vstack([total, slopes])
    pulls = pulls[np.concatenate([[True], ~held])]
    free, back = pulls, np.zeros(len(shares))
    if held.any():
        left, levels, right = np.linalg.svd(slopes[held], full_matrices=False)
        some = levels > _DEPENDENT * levels[0]
        right = right[some]
        free = pulls - (pulls @ right.T) @ right
        back = -((left[:, some].T @ differences[held]) / levels[some]) @ right
        # Newton's step is only right nearby.
        back *= min(1.0, length / max(float(np.linalg.norm(back)), np.finfo(float).tiny))
    zero = np.full(len(pulls), np.sqrt(_ROUNDING * max(float(values[-1]), 0.0)))
    direction, _, _ = direction_of(pulls, free, normalize=True, zero=zero)
    steps = np.array([back + length * direction, float(np.linalg.norm(total)) * direction])
    # From the few coordinates to coefficients of the images; what has no length has none.
    scale = np.divide(1.0, np.sqrt(values), out=np.zeros(len(values)), where=values > 0.0)
    return NoisyStep(*((steps * scale) @ axes.T))


FORGETTING = 2.0
"""b is this many times a batch's part of the rows drawn so far: what is older than half of them
counts by a quarter."""

MORE_COLUMNS = 5
"""Columns of the groups' own bases beyond r: the further the next eigenvalue, the faster."""

_NOISE_EVERY = 8
"""The noise of batches is measured once in this many steps."""

_NOISE_MEMORY = 0.8
"""Weight of what was measured before."""

_FLAT = 1e-6
"""Part of the mean variance along a basis that is added where a basis is divided by variances."""

_WELL_CONDITIONED = 1e-6
"""Smallest eigenvalue of a basis' products, relative to the largest, that costs no digits."""

PART, WHOLE, AGAIN = "part", "whole", "again"
"""What a block is: some new rows of its group, all of its rows, or some that were given before."""


class CentredRows:
    """Rows minus a centre, without a centred copy where they are sparse.

    `weights` sum to one; None weighs all rows alike.
    """

    def __init__(self, rows: Any, center: Any, weights: Array | None = None) -> None:
        self.n = rows.shape[0]
        self._is_sparse = hasattr(rows, "tocsr")
        self._rows: Any = rows if self._is_sparse else rows - center
        self._center: Any = center
        self._weights = weights

    def scores(self, basis: Any) -> Any:
        """Coordinates along the columns of a basis; (n, r)."""
        scores = self._rows @ basis
        return scores - self._center @ basis if self._is_sparse else scores

    def image(self, basis: Any) -> Any:
        """Mean of ``x x^T basis``."""
        scores = self.scores(basis)
        scores = scores / self.n if self._weights is None else scores * self._weights[:, None]
        image = self._rows.T @ scores
        if self._is_sparse:
            image -= np.outer(self._center, scores.sum(axis=0))
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
        self.images: list[Any] = []
        self.drawn, self.shares, self.noise = np.zeros((3, 0))
        self.add_matrices(n_matrices)

    def add_matrices(self, n: int) -> None:
        """Make room for n further matrices."""
        self.images += [None] * n
        self.drawn, self.shares = (np.append(old, np.zeros(n)) for old in (self.drawn, self.shares))
        self.noise = np.append(self.noise, np.ones(n))

    def follow(self, i: int, rows: CentredRows, kind: str) -> None:
        """Correct the image under matrix i by a batch of its rows."""
        self.drawn[i] += rows.n
        share = 1.0 if kind == WHOLE else min(FORGETTING * rows.n / self.drawn[i], 1.0)
        self.shares[i] = share
        if self.images[i] is None or share >= 1.0:
            self.images[i] = rows.image(self.basis)
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
    step_size : float
        The longest step, in units of the power method.
    """

    def __init__(
        self,
        d: int,
        r: int,
        rng: np.random.Generator,
        backend: Backend = NUMPY,
        step_size: float = 1.0,
    ) -> None:
        self.d, self.r, self.width = d, r, min(r + MORE_COLUMNS, d)
        self.backend, self.step_size, self._rng = backend, step_size, rng
        self.fair, self.pca = (MovingBasis(self._random(width), 0) for width in (r, self.width))
        self.own: list[MovingBasis] = []
        self.means: list[Any] = []
        self.drawn, self.n_steps = np.zeros(0), 0

    def add_groups(self, n: int) -> None:
        """Make room for n further groups."""
        self.fair.add_matrices(n)
        self.pca.add_matrices(n)
        self.own += [MovingBasis(self._random(self.width)) for _ in range(n)]
        self.means += [None] * n
        self.drawn = np.append(self.drawn, np.zeros(n))

    def center(self, shares: Array) -> Any:
        """Mean of all rows, as far as they have been drawn."""
        known = zip(shares, self.means, strict=True)
        return sum(share * mean for share, mean in known if mean is not None)

    def take(self, batch: Sequence[Any], shares: Array, kinds: Sequence[str]) -> None:
        """Learn from a batch: one block of rows for each group, and what part each is of all rows.

        `kinds` say of each block whether it is PART, WHOLE or AGAIN.
        """
        measures = self.n_steps < _NOISE_EVERY or self.n_steps % _NOISE_EVERY == 0
        for i, (block, kind) in enumerate(zip(batch, kinds, strict=True)):
            if kind != AGAIN:
                self.drawn[i] += block.shape[0]
                part, mean, last = block.shape[0] / self.drawn[i], block_mean(block), self.means[i]
                self.means[i] = mean if last is None else last + part * (mean - last)
        center = self.center(shares)
        for i, (block, kind) in enumerate(zip(batch, kinds, strict=True)):
            rows = CentredRows(block, center)
            for moving in (self.fair, self.pca):
                moving.follow(i, rows, kind)
            self._follow_own(i, rows, kind)
            if measures:
                for moving, j in ((self.fair, i), (self.own[i], 0)):
                    if moving.images[j] is not None:
                        moving.measure_noise(j, rows)
                    moving.noise[j] *= kind != WHOLE
        self.n_steps += 1
        self._move(shares)

    def restart(self) -> None:
        """Begin anew with another fair basis; what is known of the groups themselves stays."""
        self.fair = MovingBasis(self._random(self.r), len(self.own))

    def _move(self, shares: Array) -> None:
        length = self._length(self.fair.noise, self.fair.shares)
        found, tangents, turn = self._direction(self.fair.basis, shares, length)
        step = _combination(found.step, tangents)
        self.fair.move(self._orthonormal(self.fair.basis + step @ turn))
        self._move_own()
        noise = np.sqrt(np.square(shares) @ np.square(self.fair.noise))
        length = self._length(np.array([noise]), np.array([shares @ self.pca.shares]))
        self._power_step(self.pca, _combination(shares, self.pca.images), length)

    def _follow_own(self, i: int, rows: CentredRows, kind: str) -> None:
        self.own[i].follow(0, rows, kind)

    def _move_own(self) -> None:
        for moving in self.own:
            self._power_step(moving, moving.images[0], self._length(moving.noise, moving.shares))

    def _length(self, noise: Array, parts: Array) -> float:
        """Length of a step, in units of the power method."""
        limits = np.sqrt(parts) / np.maximum(noise, np.finfo(float).tiny)
        return float(self.step_size * min(1.0, limits.min()))

    def _direction(
        self, basis: Any, shares: Array, length: float
    ) -> tuple[NoisyStep, list[Any], Any]:
        """The step, the images' tangent parts that it combines, and the metric's root.

        The basis is the one that the images are of.
        """
        put, host = self.backend.put, self.backend.host
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
        inner = [self.backend.host(moving.basis.T @ moving.images[0]) for moving in self.own]
        values = np.linalg.eigvalsh([(part + part.T) / 2.0 for part in inner])
        return np.asarray(values[:, -self.r :].sum(axis=1))

    def _power_step(self, moving: MovingBasis, image: Any, length: float) -> None:
        """A step of the power method towards the leading subspace, of this length."""
        inner = self.backend.host(moving.basis.T @ image)
        tangent = image - moving.basis @ self.backend.put(inner)
        step = tangent @ self.backend.put(_inverse_power(inner, 1.0, _FLAT))
        moving.move(self._orthonormal(moving.basis + length * step))

    def held_out_norm(self, parts: Sequence[Sequence[Any]], shares: Array) -> tuple[float, float]:
        """Square of the norm of the direction, by rows that were held out, and its standard error.

        It is how far a step of the power method would turn the basis. A norm of noisy numbers is
        too large on average; here the direction is computed for each part of the held-out rows,
        with the same coefficients, and products of different parts have the right mean. Each part
        has a block of rows for each group; of a group with None the tracked image is taken for it.
        """
        # Where the images are those of: the basis has moved since.
        basis, center = self.fair.before, self.center(shares)
        found, tangents, turn = self._direction(basis, shares, 0.0)
        directions = []
        for blocks in parts:
            own = list(tangents)
            for i, block in enumerate(blocks):
                if block is not None:
                    image = CentredRows(block, center).image(basis)
                    own[i] = (image - basis @ (basis.T @ image)) @ turn
            directions.append(_combination(found.direction, own) @ turn)
        pairs = [float((a * b).sum()) for j, a in enumerate(directions) for b in directions[:j]]
        return float(np.mean(pairs)), float(np.std(pairs) / np.sqrt(len(pairs)))

    def _random(self, width: int) -> Any:
        found = np.linalg.qr(self._rng.standard_normal((self.d, width)))[0]
        return self.backend.put(np.ascontiguousarray(found))

    def _orthonormal(self, matrix: Any) -> Any:
        """The nearest matrix with orthonormal columns, from the products of its columns."""
        values, axes = np.linalg.eigh(self.backend.host(matrix.T @ matrix))
        if not values[0] > _WELL_CONDITIONED * values[-1]:
            return self.backend.qr(matrix)[0]
        return matrix @ self.backend.put(np.ascontiguousarray((axes * values**-0.5) @ axes.T))


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


# What each group loses in subspaces, without its covariance.


@dataclass(frozen=True, eq=False)
class SubspaceLosses:
    """Sums over all rows.

    Attributes
    ----------
    mean : array of shape (d,)
        Mean of all rows.
    count : integer array of shape (k,)
        Rows of each group.
    variance : array of shape (k,)
        Mean squared distance of each group's rows from the mean of all rows.
    inner : list of k tuples of three arrays
        For each group the mean of ``s s^T`` for the coordinates s of its centred rows along the
        fair basis, that of PCA and its own.
    """

    mean: Array
    count: Any
    variance: Array
    inner: list[tuple[Array, ...]]


def summed_losses(
    spaces: TrackedSubspaces, shares: Array, blocks: Iterable[tuple[int, Any]]
) -> SubspaceLosses:
    """The losses by a pass over all rows, in blocks of one group each.

    Coordinates along the bases are rows with few columns, so their moments are kept.
    """
    host, center = spaces.backend.host, spaces.center(shares)
    bases = [(spaces.fair.basis, spaces.pca.basis, own.basis) for own in spaces.own]
    k, total = len(bases), MomentSum()
    offsets, squares = np.zeros((k, spaces.d)), np.zeros(k)
    for i, block in blocks:
        rows = CentredRows(block, center)
        scores = np.hstack([host(rows.scores(basis)) for basis in bases[i]])
        total.add(GroupMoments.from_groups(scores, Groups((i,), np.zeros(rows.n, np.int8))))
        offsets[i] += rows.n * host(block_mean(block) - center)
        squares[i] += float(rows.squares().sum())
    moments = total.moments()
    offsets /= moments.count[:, None]
    # So far all is about where the centre was thought to be; the mean of all rows is known now.
    shift = moments.count @ offsets / moments.n_rows
    variance = squares / moments.count - 2.0 * (offsets @ shift) + shift @ shift
    parts = np.split(np.arange(moments.n_features), np.cumsum([spaces.r, spaces.width]))
    inner = []
    for i, own in enumerate(bases):
        along = moments.mean[i] - np.hstack([host(basis).T @ shift for basis in own])
        products = moments.scatter[i] / moments.count[i] + np.outer(along, along)
        inner.append(tuple(products[np.ix_(part, part)] for part in parts))
    return SubspaceLosses(host(center) + shift, moments.count, variance, inner)
