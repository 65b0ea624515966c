"""Which groups the rows cannot tell from as many rows drawn at random: from moments, cheaply.

Let all rows have the second moment A, with eigenvalues l_1 >= … >= l_d, and let a group be n_i of
these n rows, drawn at random. Its own matrix then differs from A by chance, with variance
``l_a l_b t`` between the directions a and b, where ``t = 1 / n_i - 1 / n``. Its own best subspace
follows that, so its disparity with ordinary PCA is about ``t * sum_{a <= r < b} l_a l_b / (l_a -
l_b)``: a sum of squares of normal numbers, whose upper quantile follows from the effective number
of its terms. Where l_a is within the noise of what is left out, that sum is too large, and l_a is
replaced by the edge of the noise (Baik and Silverstein, 2006): see `_by_chance`. Rows with heavy
tails differ by more. Where that can matter and rows are at hand, some of them say how heavy their
tails are. What is above all that these can make is not chance; otherwise groups are drawn from the
rows, a permutation test, unless there are many columns, of which that takes long.

Losses and kept variances have no subspace of their own to follow: there the standard error of a
group is compared with the differences between groups.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from fairpca._linalg.types import Array
from fairpca.data import GroupedData
from fairpca.generalization.drawn import SomeRows, often_drawn
from fairpca.generalization.tails import Tails, squared_coordinates, tails_of
from fairpca.group_table import GroupTable
from fairpca.problem import Problem

_NO_LOSS = 1e-12
"""What is lost, relative to all variance, that is rounding: then nobody loses anything."""

_NO_NOISE = 1e-18
"""Of t: that of a group which has all rows."""

_FACTOR = 3.5
"""A disparity that is at most so many times what is to be expected by chance may be chance, also
where a quantile is lower: the expectation is a model's."""

_QUANTILE = 2.326348
"""Of the normal distribution, for 99 % below it."""

_OF_INTEREST = 0.25
"""What chance makes of a group is of interest from this part of the largest disparity."""

_BY_CHANCE = 0.005
"""Probability that a group stands out among groups that are alike."""

_ERRORS = 4.0
"""Standard errors of a group that all groups together have to differ by."""

_HEAVIEST, _HEAVIEST_ERROR = 1000.0, 100.0
"""How many times what is normal heavy tails make of a disparity, and of a standard error, at the
most: beyond it no rows are asked."""

_USUAL = 1.5
"""How many times what is normal the variances are of rows that cannot be asked."""

_MOST_COLUMNS = 128
"""Groups are drawn from rows of at most so many columns."""

_MOST_TERMS = 2**20
"""Numbers in memory at once."""


def indistinct_groups(
    problem: Problem, table: GroupTable, grouped_data: GroupedData | None = None
) -> NDArray[np.bool_]:
    """Which groups the rows cannot tell from chance, by the measure of the problem; (k,).

    `table` has what the groups lose with ordinary PCA, and with what was found or is judged: a
    disparity that is as small as chance is of no interest beside much larger ones. Of the rows of
    `grouped_data`, some are asked how heavy their tails are, if that can matter.
    """
    r, rows = problem.n_components, problem.moments.effective_count
    values = _spectrum(problem)
    unit = float(values.sum())
    if not float(values[r:].sum()) > _NO_LOSS * unit:
        return np.zeros(len(rows), dtype=bool)
    # A group of all rows is not drawn from them; next to nothing is in its place.
    noise = np.maximum(1.0 / rows - problem.moments.n_partitions / rows.sum(), _NO_NOISE)
    # In shares of all variance, so that no unit of the rows is too large or too small.
    units: Array | float = unit * (problem.moments.weight if problem.aggregation == "sum" else 1.0)
    groups = _Groups(problem, grouped_data, values / unit, unit, noise)
    traces = problem.traces / units
    if problem.goal.measured.baseline == "own":
        largest = float((table.disparity / units).max())
        found = groups.alike(table.pca_disparity / units, traces, _OF_INTEREST * largest)
    elif problem.goal.measured.relative or problem.aggregation == "mean":
        found = groups.apart_by_chance(table.pca_loss / units, traces)
    else:  # sums differ as the sizes of groups do
        found = np.zeros(len(rows), dtype=bool)
    # So few rows lie in a subspace of their own, whatever they are.
    return np.asarray(found & (noise > _NO_NOISE) | (rows <= r))


@dataclass(frozen=True, eq=False)
class _Groups:
    """Groups beside what chance makes of as many rows.

    `values` are the eigenvalues of all rows over their sum, which is `unit`; `noise` has t of each
    group.
    """

    problem: Problem
    grouped_data: GroupedData | None
    values: Array
    unit: float
    noise: Array

    @property
    def _some_rows(self) -> SomeRows | None:
        if self.grouped_data is None or self.grouped_data.rows is None:
            return None
        return SomeRows(self.problem, self.grouped_data, self.unit)

    def alike(self, disparities: Array, traces: Array, least: float) -> NDArray[np.bool_]:
        """Groups whose disparities may be chance, where chance makes at least so much."""
        # A group with more variance has more noise as well; one without has nothing to lose.
        sizes = np.where(traces > 0.0, traces, -1.0)
        expected, terms = _by_chance(self.values, self.problem.n_components, self.noise)
        most = sizes * expected * _upper(terms)
        unsettled = (disparities > most) & (disparities < _HEAVIEST * most)
        found = (disparities <= most) & (most >= least)
        if not unsettled.any():
            return np.asarray(found)
        some, r, many = self._some_rows, self.problem.n_components, len(self.values) > _MOST_COLUMNS
        tails = None if some is None else self._tails(some, near=many)
        if some is None or many:
            pairs = _USUAL if tails is None else tails.pairs
            expected, terms = _by_chance(self.values, r, self.noise, pairs)
            most = sizes * expected * _upper(terms)
            return np.asarray((disparities <= most) & (most >= least))
        if tails is not None:
            unsettled &= disparities <= np.maximum(sizes, 1.0) * tails.most_by_chance(self.noise)
        if unsettled.any():
            levels = np.maximum(disparities, least)[unsettled]
            found[unsettled] = often_drawn(some, r, self.noise[unsettled], levels)
        return np.asarray(found)

    def apart_by_chance(self, losses: Array, traces: Array) -> NDArray[np.bool_]:
        """Groups whose loss, or kept variance, is uncertain beside the differences of all."""
        problem, r = self.problem, self.problem.n_components
        rows = problem.moments.weight / problem.moments.weight.sum()
        share = float(rows @ losses / (rows @ traces))
        # The measure as a sum of what is kept and what is lost, to first order.
        on_kept, on_lost = (0.0, 1.0) if problem.goal.measured.baseline == "all" else (1.0, 0.0)
        if problem.goal.measured.relative:
            on_kept, on_lost = -share, 1.0 - share
        measures = on_kept * (traces - losses) + on_lost * losses
        apart = measures - rows @ measures
        squares = self.values**2
        normal = 2.0 * (on_kept**2 * squares[:r].sum() + on_lost**2 * squares[r:].sum())
        errors = np.sqrt(normal * self.noise)
        # That no group stands out by chance has the same probability for any number of groups.
        surely = NormalDist().inv_cdf(1.0 - _BY_CHANCE / (2 * len(rows)))
        least, most = surely * errors, _HEAVIEST_ERROR * surely * errors
        if (np.abs(apart) > least).any() and (np.abs(apart) < most).any():
            tails = self._tails_of_sum(on_kept, on_lost, float(rows @ measures), normal)
            errors *= np.sqrt(tails)
        if (np.abs(apart) <= surely * errors).all():
            return np.ones(len(rows), dtype=bool)
        return np.asarray(_ERRORS * errors >= np.ptp(apart))

    def _tails(self, some: SomeRows, *, near: bool) -> Tails | None:
        directions = self.problem.total_eigenpairs[1]
        return tails_of(some, self.values, directions, self.problem.n_components, near=near)

    def _tails_of_sum(self, on_kept: float, on_lost: float, mean: float, normal: float) -> float:
        """The variance of a sum of what is kept and what is lost of a row, over the normal one."""
        squares, weight = 0.0, 0.0
        some, basis = self._some_rows, self.problem.pca_basis
        for inside, block, weights in () if some is None else squared_coordinates(some, basis):
            kept, total = inside.sum(axis=1), np.einsum("ij,ij->i", block, block)
            asked = on_kept * kept + on_lost * (total - kept)
            squares += float(weights**2 @ (asked - mean) ** 2)
            weight += float(weights @ weights)
        return max(squares / weight / normal, 1.0) if weight > 0.0 else _USUAL


def _by_chance(
    values: Array, r: int, noise: Array, tails: Array | float = 1.0
) -> tuple[Array, Array]:
    """The disparities to be expected of random groups, and how many terms they effectively have.

    With x_a the larger of l_a and the edge of the noise, no more than ``l_{r+1} + sqrt(t *
    sum_{b > r} l_b^2)``, leading eigenvalues are ``x_a + t * sum_{b > r} x_a l_b / (x_a - l_b)`` in
    the mean. `noise` has t of each group; `tails` multiplies the terms.
    """
    top, low = values[:r], values[r:]
    heavy = low * tails
    edges = low[0] + np.sqrt(noise[:, None] * (heavy @ low))
    leading = np.maximum(top, edges)
    sums, squares = np.empty(len(noise)), np.empty(len(noise))
    step = max(_MOST_TERMS // (r * len(low)), 1)
    for start in range(0, len(noise), step):
        part = slice(start, start + step)
        x, t = leading[part, :, None], noise[part, None, None]
        terms = x * t * heavy / (x - low)
        np.einsum("kab->k", terms, out=sums[part])
        np.einsum("kab,kab->k", terms, terms, out=squares[part])
    return leading.sum(axis=1) - top.sum() + sums, sums**2 / squares


def _upper(terms: Array) -> Array:
    """Quantile of a mean of so many squares of normal numbers (Wilson and Hilferty, 1931)."""
    share = 2.0 / (9.0 * np.maximum(terms, 1.0))
    return np.maximum((1.0 - share + _QUANTILE * np.sqrt(share)) ** 3, _FACTOR)


def _spectrum(problem: Problem) -> Array:
    """Eigenvalues of all rows' second moment, largest first.

    Of many columns only the leading ones are known: the others are taken to fall off as a power,
    with the sum that they have.
    """
    moments, d = problem.moments, problem.moments.n_features
    rows = moments.weight.sum() / moments.n_partitions if problem.aggregation == "sum" else 1.0
    values = np.maximum(problem.total_eigenpairs[0], 0.0) / rows
    m = len(values)
    if m == d:
        return values
    left, last = problem.scale / rows - values.sum(), values[-1]
    if left <= 0.0 or last <= 0.0:
        return np.concatenate([values, np.zeros(d - m)])
    steps = np.log(np.arange(m + 1, d + 1) / m)
    low, high = 0.0, 50.0  # powers; as the last known is the largest of them, 0 has most of all
    for _ in range(30):
        middle = (low + high) / 2.0
        low, high = (middle, high) if last * np.exp(-middle * steps).sum() > left else (low, middle)
    return np.concatenate([values, last * np.exp(-low * steps)])
