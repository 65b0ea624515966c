"""Folds of rows, by what the rows hold: wherever rows come from, the same row is in the same fold.

A row's fold is a hash of its values, each divided by the largest of the row and rounded to 20 bits.
So neither rounding errors nor the unit of the table move a row to another fold, and neither does
the order of the rows. (The order of the columns does: one-hot rows, rankings and rows with the same
quantiles hold the same values, and could not be told apart without it.) A row with a single value
other than zero has no other to be divided by: it is divided by a power of two, and only units that
differ by such a factor leave it in its fold. Rows that are the same are in one fold: a row that is
there twice is never judged by its copy, just as one of twice the weight is not. (Standard errors do
tell them apart: two equal rows are two people, and a weight of two is one.)

The hash is the sum over the columns of the bits of a value times an odd constant of its column,
modulo 2^64.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from fairpca._linalg.backends import device_library, namespace, to_host
from fairpca.groups import Fold, Groups

N_FOLDS = 5
"""Folds that `compare` judges methods on."""

MOST_FOLDS, _FEW_COLUMNS = 10, 120
"""Up to this number of columns, rows are divided into ten folds, which pair up to those of
`N_FOLDS`: what the default criterion learns from held-out rows then depends half as much on which
rows happen to be held out together. Twenty are hardly better. With more columns ten would take too
long."""

_LARGE = 200
"""Rows for each column from which a group's covariance is known so well that its rows need not be
held out: its own subspace fits them too well by less than a hundredth of their variance."""

_BLOCK_VALUES = 2**17
"""Values that are looked at together: they stay in the processor's cache."""

_WHOLE = -1
"""The fold of groups that are not divided into folds."""

_DROPPED_BITS = 32
"""Bits of the 52 after the point of a value's mantissa that its fold does not depend on."""

_GRID_SHIFT = 0x9E3779B9
"""Where between two neighbours of 20 bits the rounding changes, in units of the last bit of all: a
place where no short number is. Halfway would be 2^31, and many numbers are."""

_COARSE = 1.5 * 2.0**12
"""A number that numbers from -1 to 1 lose all multiples of less than 2^-40 by being added to. So
much of a row's largest value may be left by rounding where a mean is taken from its equal."""

_NEGLIGIBLE = 2.0**-41
"""The same as a share of the row's largest value: smaller ones count as zero."""

_EXPONENT, _UNEVEN = 0x7FF0000000000000, 0.7236067977499789
"""The bits of a number that are left of the power of two below it; and what it is multiplied by
before, so that 1 is not at the edge between two powers, nor is any other short number."""

Bits = NDArray[np.uint64]


def in_folds(groups: Groups, rows: Any, weights: Any = None, *, needed: bool = False) -> Groups:
    """The parts of groups that lie in one fold each, as groups with the fold as one more column.

    The rows are an array or sparse matrix of shape (n, d), or an array of a device, without missing
    values. If `needed`, which is not for some of the rows alone, large groups are one part each,
    and nothing changes where all groups are large.
    """
    group_of = np.asarray(groups.codes)
    folds = np.full(len(group_of), _WHOLE, dtype=np.int64)
    if needed:
        effective = np.bincount(group_of).astype(np.float64)
        if weights is not None:
            total, squares = (np.bincount(group_of, weights**power) for power in (1, 2))
            effective = total**2 / np.where(squares > 0.0, squares, 1.0)
        chosen = np.flatnonzero(~are_large(effective, rows.shape[1])[group_of])
        if len(chosen) == 0:
            return groups
        folds[chosen] = row_folds(rows, chosen)
    else:
        folds = row_folds(rows)
    # The parts that occur, and for each row which of them it is in.
    several = n_folds(rows.shape[1]) + 1
    parts = group_of * several + folds - _WHOLE
    found = np.flatnonzero(np.bincount(parts))
    positions = np.zeros(parts.max(initial=0) + 1, dtype=np.int64)
    positions[found] = np.arange(len(found))
    labels = []
    for part in found.tolist():
        whole = groups.labels[part // several]
        fold = Fold(part % several + _WHOLE)
        labels.append((*whole, fold) if isinstance(whole, tuple) else (whole, fold))
    names = None if groups.names is None else (*groups.names, "fold")
    return replace(groups, labels=tuple(labels), codes=positions[parts], names=names)


def are_large(effective_count: NDArray[np.float64], d: int) -> NDArray[np.bool_]:
    """Which groups are so large that their rows need not be held out; (k,)."""
    return np.asarray(effective_count >= _LARGE * d)


def n_folds(n_columns: int) -> int:
    """How many folds rows are divided into."""
    return MOST_FOLDS if n_columns <= _FEW_COLUMNS else N_FOLDS


def row_folds(rows: Any, chosen: NDArray[np.intp] | None = None) -> NDArray[np.int64]:
    """The fold of each row, or of the chosen ones; (n,)."""
    bits = row_numbers(rows, chosen, rounded=True)
    bits ^= bits >> np.uint64(32)
    bits *= _constants(1, first=-1)[0]
    return np.asarray((bits >> np.uint64(33)) % np.uint64(n_folds(rows.shape[1])), dtype=np.int64)


def row_numbers(
    rows: Any, chosen: NDArray[np.intp] | None = None, *, rounded: bool = False
) -> Bits:
    """The number of each row, or of the chosen ones: the same where all values are; (n,).

    Those of rounded values are the same where values differ by a few units in the last place, or
    all by one factor.
    """
    if device_library(rows) is not None:
        return _of_device(rows, chosen, rounded)
    sparse = scipy.sparse.issparse(rows)
    rows = rows.tocsr(copy=False) if sparse else rows
    constants = _constants(rows.shape[1])
    bits = np.empty(rows.shape[0] if chosen is None else len(chosen), dtype=np.uint64)
    step = max(_BLOCK_VALUES // rows.shape[1], 1)
    for begin in range(0, len(bits), step):
        part = slice(begin, begin + step)
        block, factors = rows[part] if chosen is None else rows[chosen[part]], constants
        if sparse:  # zeros add nothing
            block, factors = _packed(block, constants)
        whole = _whole(np.asarray(block, dtype=np.float64), np, rounded=rounded)
        whole = np.ascontiguousarray(whole).view(np.uint64)
        bits[part] = np.einsum("ij,ij->i" if sparse else "ij,j->i", whole, factors)
    return bits


def _packed(rows: Any, constants: Bits) -> tuple[NDArray[np.float64], Bits]:
    """The entries of sparse rows without most zeros, and the constants of their columns."""
    sizes = np.diff(rows.indptr)
    there = np.arange(max(sizes.max(initial=0), 1)) < sizes[:, None]
    values, factors = np.zeros(there.shape), np.zeros(there.shape, dtype=np.uint64)
    values[there], factors[there] = rows.data, constants[rows.indices]
    return values, factors


def column_numbers(column: Any, j: int) -> Bits:
    """What the values of column j add to the numbers of their rows; (n,)."""
    values = np.ascontiguousarray(np.asarray(column, dtype=np.float64) + 0.0)
    return np.asarray(values.view(np.uint64) * _constants(1, first=j)[0])


def _of_device(rows: Any, chosen: NDArray[np.intp] | None, rounded: bool) -> Bits:
    """The same on the rows' device, where 64-bit integers have a sign but wrap around as well."""
    xp = namespace(rows)
    constants = xp.asarray(_constants(rows.shape[1]).view(np.int64), device=rows.device)
    n = rows.shape[0] if chosen is None else len(chosen)
    step = max(2**25 // rows.shape[1], 1)
    parts = [np.zeros(0, np.uint64)]
    for begin in range(0, n, step):
        if chosen is None:
            block = rows[begin : begin + step, :]
        else:
            members = xp.asarray(chosen[begin : begin + step], device=rows.device)
            block = xp.take(rows, members, axis=0)
        numbers = _whole(xp.astype(block, xp.float64), xp, rounded=rounded)
        parts.append(to_host(xp.sum(numbers * constants, axis=1, dtype=xp.int64)).view(np.uint64))
    return np.concatenate(parts)


def _whole(block: Any, xp: Any, *, rounded: bool) -> Any:
    """The bits of values as signed whole numbers, on any device.

    Rounded values are first divided by the largest of their row, if several of the row are not
    zero, else by a power of two near it. The bits at the top are spread over all of the number.
    """
    if not rounded:
        return (block + 0.0).view(xp.int64)  # of which there is one zero
    sizes = abs(block)
    largest = xp.max(sizes, axis=1)
    several = (sizes > _NEGLIGIBLE * largest[:, None]).sum(axis=1) > 1
    powers = ((_UNEVEN * largest).view(xp.int64) & _EXPONENT).view(xp.float64)
    divisors = xp.where(several, largest, powers)
    block = block / xp.where(divisors > 0.0, divisors, xp.ones_like(divisors))[:, None]
    block += _COARSE
    block -= _COARSE
    high = ((block + 0.0).view(xp.int64) + _GRID_SHIFT) >> _DROPPED_BITS
    return (high << _DROPPED_BITS) ^ (high & (2**_DROPPED_BITS - 1))


def _constants(n: int, first: int = 0) -> Bits:
    """Odd numbers that look random, one for each column (the sequence of splitmix64)."""
    with np.errstate(over="ignore"):
        z = (np.arange(first, first + n, dtype=np.int64).astype(np.uint64) + np.uint64(1)) * (
            np.uint64(0x9E3779B97F4A7C15)
        )
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return (z ^ (z >> np.uint64(31))) | np.uint64(1)
