"""How heavy the tails of rows are, in the directions of ordinary PCA: from fourth moments.

With y_a the coordinates of a row, the matrix of a group that is drawn at random differs from that
of all rows between the directions a and b with variance ``t E[y_a^2 y_b^2]``: as with normal rows,
but for the fourth moment in the place of ``l_a l_b``. Along a direction the variance is
``t (E[y_a^4] - l_a^2)``, so that one that was left out can come before one that was kept. Both
together say what chance makes at most. Some thousand rows tell it, unless a few others far out
decide: then these thousand have another variance than all rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fairpca._linalg.products import column_products
from fairpca._linalg.types import Array
from fairpca.generalization.drawn import FEW_ROWS, SomeRows

_MORE_ROWS = 2**15
"""How many rows are asked at most where few are not like all others."""

_NEAR = 10
"""Of many columns so many directions beyond the first r are looked at one by one."""

_ERRORS = 3.0
"""How many standard errors chance makes at most. Groups drawn at random from typical rows, normal
ones and ones with heavy tails, had less than half of what follows from that, as the errors of all
pairs add up."""

_TYPICAL = 0.88, 1.14
"""Variances of the rows that are asked, over those of all rows: within these none is missing that
decides. The standard error of normal rows is 0.02."""

_NOTHING = 1e-12
"""Part of all variance that is rounding."""


@dataclass(frozen=True, eq=False)
class Tails:
    """Fourth moments of some rows in the directions of ordinary PCA.

    Attributes
    ----------
    values : array of shape (d,)
        Eigenvalues of all rows over their sum, largest first.
    pairs : array of shape (r, d - r)
        How many times what is normal the products of squares are, at least once, for a <= r < b.
    squares : array of shape (d,)
        Variances of the squares; of many columns those of the directions that are looked at.
    """

    values: Array
    pairs: Array
    squares: Array

    def most_by_chance(self, noise: Array) -> Array:
        """What is above the disparity of any random group, where all directions are looked at.

        Along each direction, and between any two, chance makes so many standard errors. A pair at
        the distance g with v between them adds ``(sqrt(g^2 + 4 v^2) - g) / 2`` to the larger one.
        """
        r = len(self.pairs)
        products = self.pairs * np.multiply.outer(self.values[:r], self.values[r:])
        errors = _ERRORS * np.sqrt(noise)[:, None] * np.sqrt(self.squares)
        kept, left = self.values[:r] - errors[:, :r], self.values[r:] + errors[:, r:]
        distances = np.maximum(kept[:, :, None] - left[:, None, :], 0.0)
        squares = 4.0 * _ERRORS**2 * noise[:, None, None] * products
        between = (np.sqrt(distances**2 + squares) - distances) / 2.0
        n = min(r, left.shape[1])
        swapped = -np.sort(-left, axis=1)[:, :n] - np.sort(kept, axis=1)[:, :n]
        return np.asarray(between.sum(axis=(1, 2)) + np.maximum(swapped, 0.0).sum(axis=1))


def tails_of(
    some: SomeRows, values: Array, directions: Array, r: int, *, near: bool
) -> Tails | None:
    """The tails of a few rows, if these are typical, that is, have the variances of all rows.

    With `near`, directions far beyond the first r are taken together, and where a few rows are not
    typical, more are asked, whatever they are like. None where nothing is known.
    """
    found = _tails(some, values, directions, r, near, FEW_ROWS)
    if found is None and near:
        found = _tails(some, values, directions, r, near, _MORE_ROWS)
    return found


def squared_coordinates(
    some: SomeRows, basis: Array, n_rows: int = _MORE_ROWS
) -> Iterator[tuple[Array, Array, Array]]:
    """Squares of some rows in a basis, the rows themselves, and weights."""
    for block, weights in some.blocks(n_rows):
        yield np.square(block @ basis[: block.shape[1]]), block, weights


def _tails(
    some: SomeRows, values: Array, directions: Array, r: int, near: bool, n_rows: int
) -> Tails | None:
    """The tails of so many rows; None where none has weight, or a few are not typical."""
    m = min(directions.shape[1], r + _NEAR) if near else directions.shape[1]
    whole = m == len(values)
    fourth, weight = np.zeros((m if whole else m + 1,) * 2), 0.0
    for inside, rows, weights in squared_coordinates(some, directions[:, :m], n_rows):
        if n_rows == FEW_ROWS and not _are_typical(weights, inside, values[:m]):
            return None
        weighted = inside
        if not whole:
            total = np.einsum("ij,ij->i", rows, rows)
            weighted = np.column_stack([inside, total - inside.sum(axis=1)])
        if some.grouped_data.weights is not None:
            weighted = weighted * weights[:, None]
        fourth += column_products(weighted)
        weight += float(weights @ weights)
    if weight == 0.0:
        return None
    # What is beyond m directions is taken together, and stands for each of them.
    rest = max(float(values[m:].sum()), _NOTHING)
    normal = values[:r, None] * (values[r:] if whole else np.append(values[r:m], rest))
    pairs = np.ones_like(normal)
    np.divide(fourth[:r, r:], weight * normal, out=pairs, where=normal > 0.0)
    if not whole:
        times = np.ones(m - r + 1, dtype=int)
        times[-1] = len(values) - m
        pairs = np.repeat(pairs, times, axis=1)
    squares = np.maximum(np.diag(fourth)[:m] / weight - values[:m] ** 2, 0.0)
    return Tails(values, np.maximum(pairs, 1.0), squares)


def _are_typical(weights: Array, squares: Array, values: Array) -> bool:
    """Whether rows with these squared coordinates have nearly the variances of all rows."""
    some, weight = values > _NOTHING, float(weights.sum())
    if weight == 0.0:
        return False
    ratios = (weights @ squares)[some] / (weight * values[some])
    return bool(ratios.min() >= _TYPICAL[0] and ratios.max() <= _TYPICAL[1])
