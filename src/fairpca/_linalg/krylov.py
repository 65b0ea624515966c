"""Leading eigenpairs of large symmetric matrices, and the proof that none was missed.

Rayleigh-Ritz on a space that grows by narrow blocks, each the image of the one before, and that
shrinks to its leading vectors when it is full (block Lanczos with thick restarts and full
orthogonalisation). Narrow blocks reach high powers of the matrix with few products; vectors that
are thought to be nearly right can be put in at the start.

No such iteration can know that it has seen every large eigenvalue: one whose eigenvector is
orthogonal to all that it began with stays hidden. So where a result has to be certain,
`proven_pairs` factorises what is left of the matrix: docs/exact_solver.md, section 15.
"""

from typing import NamedTuple

import numpy as np

from fairpca._linalg.threads import one_blas_thread
from fairpca._linalg.types import ROUNDING, Array, Matrix, Tall

FEW_COLUMNS = 300
"""Up to this many columns a matrix is no trouble: all eigenvectors are as quick as some."""

EXTRA_VECTORS = 8
"""Vectors that are kept beside those that are wanted, so that the gap below these is seen."""

_NARROWEST, _WIDEST, _BLOCKS = EXTRA_VECTORS, 16, 6
"""Columns of a block, and blocks between restarts, at the least: fewer leave memory unread, more
reach lower powers of the matrix with as many products."""

_MOST_RESTARTS, _MOST_PROOFS = 60, 4
"""After this many the matrix is one that all eigenvalues at once are the answer to."""

_CLEARLY = 1e3
"""Times the estimated error by which a sum has to be beyond a level."""

_SPENT, _UNTOUCHED = 1e-13, 0.5
"""What is left of a column, relative to the largest before and to itself: at most so much is
rounding; at least so much has lost no digits."""

_ANGLE, _RESIDUAL = 1e-8, 5e-13
"""Angle to the eigenvectors' span that counts as none, and the norm of the residual, relative to
the largest eigenvalue, below which no better one is asked for."""


class Pairs(NamedTuple):
    """The r largest eigenvalues that were found, largest first, and their eigenvectors.

    `bound` is at least the sum of the r largest eigenvalues there are; None if that is not proven.
    `beside` are a few vectors for the next eigenvalues, which need not be exact.
    """

    values: Array
    vectors: Tall
    beside: Tall
    bound: float | None = None


def is_large(d: int, r: int) -> bool:
    """Whether r eigenpairs of a matrix of this size are found by iteration, not all at once."""
    return d > FEW_COLUMNS and _fits(d, r)


def leading_sum_bound(matrix: Matrix, r: int, start: Tall | None = None) -> float:
    """The sum of the r largest eigenvalues, or a little more, but not less.

    An iteration approaches eigenvalues from below and could miss some, so its result is proven:
    see `proven_pairs`. Starting vectors, right or wrong, only change how long it takes.
    """
    bound = proven_pairs(matrix, r, start).bound
    assert bound is not None
    return bound


def found_pairs(
    matrix: Matrix,
    r: int,
    start: Tall | None = None,
    *,
    beyond: float = np.inf,
    accuracy: float | None = None,
) -> Pairs:
    """By `leading_pairs`, with exact vectors unless an accuracy of their sum is given.

    All at once where that does not converge.
    """
    found, exact = None, accuracy is None
    if _fits(matrix.d, r) and not matrix.at_once:
        how = {"beyond": beyond, "accuracy": ROUNDING if accuracy is None else accuracy}
        found = leading_pairs(matrix, r, start, exact_vectors=exact, **how)
    return all_pairs(matrix, r) if found is None else found


def leading_pairs(
    matrix: Matrix,
    r: int,
    start: Tall | None = None,
    *,
    exact_vectors: bool = False,
    beyond: float = np.inf,
    accuracy: float = ROUNDING,
) -> Pairs | None:
    """The r largest eigenvalues and their eigenvectors, as far as an iteration can tell.

    It ends when the error of the sum of the eigenvalues, by the usual estimate, is at most the part
    `accuracy` of the matrix's size. The eigenvectors then have half the digits, or with
    `exact_vectors` nearly all that the gap below the last eigenvalue allows. It also ends when the
    sum is `beyond` a number, by far more than its error. None if it comes to neither.
    """
    iteration = _Iteration(matrix, r)
    iteration.begin(start)
    for _ in range(_MOST_RESTARTS):
        iteration.fill()
        iteration.shrink()
        if iteration.has_converged(exact_vectors, accuracy) or iteration.is_beyond(beyond):
            return iteration.pairs()
    return None


def proven_pairs(
    matrix: Matrix, r: int, start: Tall | None = None, found: Pairs | None = None
) -> Pairs:
    """The r largest eigenvalues and their eigenvectors, with a proof that no larger ones exist.

    Let V hold what was found, and move it down to the smallest value found, v: if the rest,
    ``M' = M - V (values - v) V^T``, has no eigenvalue above a level, which a Cholesky factorisation
    of ``level * I - M'`` shows, then the r largest of M' sum to at most ``r * level``, and those of
    M to as much and the trace of the second term. That holds for any orthonormal V. If the
    factorisation fails, it gives a direction in which M' is above the level, and the iteration goes
    on with that beside what it has; where that does not help, all eigenvalues are computed. What
    was `found` by `leading_pairs` need not be found again.
    """
    if found is None and (matrix.at_once or not _fits(matrix.d, r)):
        return all_pairs(matrix, r)
    for _ in range(_MOST_PROOFS):
        found = leading_pairs(matrix, r, start) if found is None else found
        if found is None or found.bound is not None:
            break
        values = found.values
        rounding = 4 * np.finfo(float).eps * np.sqrt(matrix.d) * abs(float(values[-1]))
        margin = ROUNDING * matrix.size + float(rounding)
        if margin == 0.0:
            return found._replace(bound=0.0)
        missed = matrix.disproof(found.vectors, values - values[-1], float(values[-1]) + margin)
        if missed is None:
            return found._replace(bound=float(values.sum()) + r * margin)
        start = matrix.backend.empty(matrix.d, r + 1)
        start[:, :1], start[:, 1:] = missed, found.vectors
        found = None
    return all_pairs(matrix, r) if found is None else found


def all_pairs(matrix: Matrix, r: int) -> Pairs:
    """The r largest eigenvalues and their eigenvectors, at once."""
    more = min(r + EXTRA_VECTORS, matrix.d)
    values, vectors = matrix.leading(more)
    return Pairs(values[:r], vectors[:, :r], vectors[:, r:more], float(values[:r].sum()))


def _fits(d: int, r: int) -> bool:
    """Whether the space of the iteration is much smaller than the whole."""
    return 2 * _space_size(r) <= d


def _block_width(r: int) -> int:
    return min(max(r // 2, _NARROWEST), _WIDEST)


def _space_size(r: int) -> int:
    return max(3 * r, r + EXTRA_VECTORS + _BLOCKS * _block_width(r))


class _Iteration:
    """An orthonormal basis, its image, and the next block; the basis grows and shrinks."""

    def __init__(self, matrix: Matrix, r: int) -> None:
        self._matrix, self._backend, self._r = matrix, matrix.backend, r
        self._rng = np.random.default_rng(0)
        size = _space_size(r)
        self._basis = self._backend.empty(matrix.d, size)
        self._image = self._backend.empty(matrix.d, size)
        self._size, self._width, self._used = size, _block_width(r), 0
        self._block = self._backend.empty(matrix.d, 0)

    def begin(self, start: Tall | None) -> None:
        """Random columns, most of them in the span of the starting vectors if there are any.

        A block in their span is poor in all that is not wanted, and is as narrow as any other.
        Starting vectors may be exact eigenvectors of the wrong eigenvalues, so a quarter of the
        block is random in the whole space.
        """
        block = self._random(self._width)
        if start is not None and start.shape[1] > 0:
            n = self._width - self._width // 4
            mix = self._rng.standard_normal((start.shape[1], n))
            block[:, :n] = start @ self._backend.put(mix)
        self._block = self._orthonormal(block)

    def fill(self) -> None:
        """Add the next block, its image, the image of that, … until there is no room for more."""
        while self._used + self._width <= self._size:
            image = self._append(self._block)
            self._block = self._orthonormal(image)

    def shrink(self) -> None:
        """Keep the leading vectors: all that are wanted, and half of the others."""
        keep = min(max(self._r + EXTRA_VECTORS, (self._used + self._r) // 2), self._used)
        keep = min(keep, self._size - self._width)
        self.values, self.vectors, image = self._rotate(keep)
        wanted = self.vectors[:, : self._r] * self._backend.put(self.values[: self._r])
        residuals = image[:, : self._r] - wanted
        self._norms = np.sqrt(np.diag(self._backend.host(residuals.T @ residuals)))
        self._basis[:, :keep], self._image[:, :keep] = self.vectors, image
        self._used = keep

    def pairs(self) -> Pairs:
        """What was found."""
        r, more = self._r, self._r + EXTRA_VECTORS
        return Pairs(self.values[:r], self.vectors[:, :r], self.vectors[:, r:more])

    def has_converged(self, exact_vectors: bool, accuracy: float = ROUNDING) -> bool:
        """Whether what was found is exact: see `leading_pairs`."""
        if self._error() > accuracy * self._matrix.size:
            return False
        rounding = 4 * np.finfo(float).eps * self._matrix.size
        floor = max(_RESIDUAL * self._largest, rounding)
        small = np.maximum(_ANGLE * self._gaps(), floor)
        return not exact_vectors or bool(np.linalg.norm(self._norms / small) <= 1.0)

    def is_beyond(self, level: float) -> bool:
        """Whether the sum of the eigenvalues is above a level, by far more than its error."""
        return float(self.values[: self._r].sum()) - level > _CLEARLY * self._error()

    def _error(self) -> float:
        """Estimated error of the sum of the eigenvalues."""
        with np.errstate(over="ignore"):
            return float(np.minimum(self._norms, self._norms**2 / self._gaps()).sum())

    def _gaps(self) -> Array:
        """How far the eigenvalues are above the first that is not wanted."""
        above: Array = self.values[: self._r] - self.values[self._r]
        return np.maximum(above, np.finfo(float).tiny)

    def _append(self, block: Tall) -> Tall:
        end = self._used + block.shape[1]
        image = self._matrix.image(block)
        self._basis[:, self._used : end], self._image[:, self._used : end] = block, image
        self._used = end
        return image

    def _rotate(self, keep: int) -> tuple[Array, Tall, Tall]:
        """The leading Ritz values and vectors, and the image of the vectors."""
        basis, image = self._basis[:, : self._used], self._image[:, : self._used]
        with one_blas_thread():
            inner = basis.T @ image
            values, turn = self._backend.eigh((inner + inner.T) / 2)
            self._largest = max(abs(values[0]), abs(values[-1]))
            leading = turn[:, :keep]
            return values[:keep], basis @ leading, image @ leading

    @one_blas_thread()  # threads would save next to nothing, and wait for each other
    def _orthonormal(self, block: Tall) -> Tall:
        """Orthonormal to the basis and in itself; what is in the span already becomes random."""
        basis = self._basis[:, : self._used]
        size = 0.0
        for _ in range(4):
            block = block - basis @ (basis.T @ block)
            block, triangle = self._backend.qr(block)
            left = np.abs(np.diag(triangle))
            size = size or float(left.max())
            spent = np.flatnonzero(left <= _SPENT * size)
            if len(spent):
                block[:, spent] = self._random(len(spent))
            elif (
                size == 1.0 and left.min() > _UNTOUCHED
            ):  # no digits were lost: this was the last time
                break
            size = 1.0
        return block

    def _random(self, width: int) -> Tall:
        # Any will do, and these take a quarter of the time of normal ones.
        return self._backend.put(self._rng.random((self._matrix.d, width)) - 0.5)
