"""Combinations of options: values, bounds, endings, tables and sentences against brute force.

Run ``python -m studies.combinations`` to rewrite studies/combinations.md (ten thousand draws, about
ten minutes on one core). Each draw takes rows in two or three columns, groups, weights, a unit and a
criterion at random, ugly ones among them, fits them, and judges the result by a fine grid of all
subspaces, and by searches near the best of them, from the rows alone: nothing of the library is
used but `FairPCA`. Of the default criterion the temperature and the baselines, which are estimated
from folds, are taken as they are said to be. Numbers in sentences are parsed back from the text.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed  # comes with scikit-learn
from numpy.typing import NDArray

from fairpca import (
    AtMost,
    Balanced,
    Equal,
    ExactSolver,
    FairPCA,
    MinMax,
    ParetoDescent,
    SoftMinMax,
)

Array = NDArray[np.float64]

TARGET = Path(__file__).with_name("combinations.md")

N_DRAWS = 10_000

MEASURES = ("disparity", "loss", "kept_variance", "relative_disparity", "share_lost", "share_kept")

_ANGLES, _POINTS = 4_000, 12_000
"""Subspaces of the grid in two columns, and in three."""

_POLISHED, _ROUNDS, _SHRINK = 6, 45, 0.6
"""How many of the grid are searched around, how often, and how much nearer each time."""

_ROUNDING = 1e-9
"""What rounding may do to a number, relative to the variance of the group that has most."""

_NEAR = 1e-5
"""The same for numbers in sentences, which have six digits; some have three, or are per cents."""


# --- What is drawn --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Draw:
    """Rows, their groups, and what is asked of them."""

    X: Array
    labels: Any
    weights: Array | None
    groups: str
    r: int
    criterion: Any
    words: str
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, seed: int) -> Draw:
        """The draw of a seed."""
        rng = np.random.default_rng([seed, 38])
        d = int(rng.choice([2, 3]))
        k, n = int(rng.integers(1, 5)), int(rng.integers(10, 40))
        k = 8 if rng.random() < 0.03 else k
        codes = np.sort(np.concatenate([np.arange(k), rng.integers(0, k, n - k)]))
        family = str(rng.choice(["plain", "integer", "tied", "flat", "constant", "tiny", "point"]))
        X = rng.normal(size=(n, d)) * rng.uniform(0.2, 3.0, (k, d))[codes]
        if family == "integer":
            X = np.round(X)
        elif family == "tied":  # all groups have the same rows
            X = X[: n // k][np.arange(n) % max(n // k, 1)]
            codes = np.minimum(np.arange(n) // max(n // k, 1), k - 1)
        elif family == "flat":  # a group along a line
            X[codes == 0, 1:] = 0.0
        elif family == "constant":
            X[:, -1] = 1.0
        elif family == "tiny":  # a group of one row
            codes[codes == 0] = k - 1
            codes[0] = 0
        weights = None
        if rng.random() < 0.3:
            weights = rng.integers(1, 4, n).astype(np.float64)
            if k > 2 and rng.random() < 0.2:  # a group without weight
                weights[codes == k - 1] = 0.0
        if family == "point" and k > 1:  # a group that has no variance about the mean of all rows
            others = codes != 0
            known = np.ones(n) if weights is None else weights
            X[others] -= np.average(X[others], axis=0, weights=known[others])
            X[~others] = 0.0
        X = X * 10.0 ** float(rng.choice([0, 0, 0, -8, 8, 3, 25, -25]))
        labels, groups = np.array(list("abcdefgh"))[codes], "intersections"
        if rng.random() < 0.25:
            labels = np.column_stack([labels, rng.choice(["x", "y"], n)])
            groups = str(rng.choice(["intersections", "marginals", "both"]))
        r = int(rng.integers(1, d))
        trial = cls(X, labels, weights, groups, r, None, family)
        criterion = _criterion(rng, trial)
        options: dict[str, Any] = {"solver": ExactSolver(n_starts=8)}
        if rng.random() < 0.03:
            options["solver"] = ParetoDescent(max_iter=100)
        more = ", Pareto descent" * (not isinstance(options["solver"], ExactSolver))
        words = f"{family}, d={d}, r={r}, k={k}, {groups}, {criterion}{more}"
        return cls(X, labels, weights, groups, r, criterion, words, options)

    @cached_property
    def truth(self) -> Truth:
        """What is known of it without the library."""
        return Truth.of(self)

    def fitted(self) -> FairPCA:
        """The fit that is judged."""
        fair = FairPCA(self.r, criterion=self.criterion, groups=self.groups, **self.options)
        return fair.fit(self.X, sensitive_features=self.labels, sample_weight=self.weights)


def _criterion(rng: np.random.Generator, draw: Draw) -> Any:
    """A criterion whose numbers are of the size of the measures."""
    measure = str(rng.choice(MEASURES))
    measures = draw.truth.measures(draw.truth.grid, measure)
    size = float(f"{np.ptp(measures) or 1.0:.2g}")
    extra = [None, None, 0.0, 0.01, 0.3][int(rng.integers(5))]
    kind = int(rng.integers(7))
    if kind == 0:
        return MinMax(measure, max_extra_loss=extra)
    if kind == 1:
        temperature = float(rng.choice([0.0, 0.01, 0.3, 10.0, np.inf])) * size
        return SoftMinMax(measure, max_extra_loss=extra, temperature=temperature)
    if kind == 2:
        return Equal(float(rng.choice([0.0, 0.0, 0.1, 0.5])) * size, measure)
    if kind == 3:
        sign = -1.0 if measure in ("kept_variance", "share_kept") else 1.0
        levels = np.quantile(measures.max(axis=1), [0.02, 0.3, 0.9])
        bound = sign * float(rng.choice(levels))
        if rng.random() < 0.5:
            return AtMost({draw.truth.labels[0]: bound}, measure)
        return AtMost(bound, measure)
    if kind == 4:
        return Balanced()
    if kind == 5:
        errors = float(rng.choice([0.0, 0.5, 2.0, 2.0, np.inf]))
        return SoftMinMax(measure, standard_errors=errors, max_extra_loss=extra)
    return MinMax(measure, max_extra_loss=extra)


# --- What is known without the library ------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Truth:
    """Second moments of the groups about the mean of all rows, and a grid of all subspaces."""

    labels: list[Any]
    counts: NDArray[np.int64]
    matrices: Array
    shares: Array
    r: int

    @classmethod
    def of(cls, draw: Draw) -> Truth:
        """From the rows."""
        X, n = draw.X, len(draw.X)
        weights = np.ones(n) if draw.weights is None else draw.weights
        columns = draw.labels.reshape(n, -1)
        parts: list[Any] = []
        if draw.groups in ("marginals", "both") and columns.shape[1] > 1:
            for j in range(columns.shape[1]):
                for label in np.unique(columns[:, j]):
                    name = tuple(str(label) if i == j else "(all)" for i in range(columns.shape[1]))
                    parts.append((name, columns[:, j] == label))
        if draw.groups in ("intersections", "both") or columns.shape[1] == 1:
            for label in sorted({tuple(row) for row in columns.tolist()}):
                name = label if len(label) > 1 else label[0]
                parts.append((name, (columns == np.array(label)).all(axis=1)))
        mean = np.average(X, axis=0, weights=weights)
        centred = X - mean
        parts = [(name, mask) for name, mask in parts if weights[mask].any()]
        matrices, sums = [], []
        for _, mask in parts:
            w = weights * mask
            matrices.append((centred * w[:, None]).T @ centred / w.sum())
            sums.append(w.sum())
        shares = np.array(sums) / sum(sums)
        if np.trace(matrices, axis1=1, axis2=2).max() <= 1e-24 * np.square(X).max():
            matrices = list(np.zeros_like(matrices))  # all rows are the same
        counts = np.array([int((mask & (weights > 0.0)).sum()) for _, mask in parts])
        return cls([name for name, _ in parts], counts, np.array(matrices), shares, draw.r)

    @property
    def d(self) -> int:
        """Number of columns."""
        return int(self.matrices.shape[1])

    @cached_property
    def grid(self) -> Array:
        """What each group keeps in each of many subspaces; (N, k)."""
        return self.kept_along(self.axes)

    @cached_property
    def axes(self) -> Array:
        """An axis for each subspace of the grid; (N, d)."""
        if self.d == 2:
            angles = np.linspace(0.0, np.pi, _ANGLES, endpoint=False)
            axes = np.column_stack([np.cos(angles), np.sin(angles)])
        else:
            i = np.arange(_POINTS) + 0.5
            z, turn = 1.0 - i / _POINTS, np.pi * (1.0 + 5.0**0.5) * i
            flat = np.sqrt(1.0 - z * z)
            axes = np.column_stack([flat * np.cos(turn), flat * np.sin(turn), z])
        return np.vstack([axes, np.eye(self.d), self.pca_axes])

    def kept_along(self, axes: Array) -> Array:
        """What each group keeps on each axis, or in the plane orthogonal to it; (N, k)."""
        products = (axes[:, :, None] * axes[:, None, :]).reshape(len(axes), -1)
        kept = products @ self.matrices.reshape(len(self.matrices), -1).T
        # In three columns two dimensions are what is left of an axis.
        return np.asarray(kept if self.r == 1 else self.traces - kept)

    def kept_in(self, basis: Array) -> Array:
        """What each group keeps in a subspace; (k,)."""
        return np.asarray(np.einsum("kij,ia,ja->k", self.matrices, basis, basis))

    def best(self, function: Callable[[Array], Array]) -> Array:
        """What each group keeps where a function of that is the least: of the grid, then nearby."""
        rng, values = np.random.default_rng(0), function(self.grid)
        axes, radius = self.axes[np.argsort(values)[:_POLISHED]], 0.05
        for _ in range(_ROUNDS):
            steps = radius * rng.normal(size=(16, self.d))
            near = np.concatenate([axes[:, None], axes[:, None] + steps], axis=1)
            near /= np.linalg.norm(near, axis=2, keepdims=True)
            found = function(self.kept_along(near.reshape(-1, self.d))).reshape(len(axes), -1)
            axes = near[np.arange(len(axes)), found.argmin(axis=1)]
            radius *= _SHRINK
        kept = np.vstack([self.kept_along(axes), self.grid[values.argmin()]])
        return np.asarray(kept[function(kept).argmin()])

    @cached_property
    def pca_axes(self) -> Array:
        """Eigenvectors of the total matrix and of the groups, as rows."""
        matrices = [np.tensordot(self.shares, self.matrices, 1), *self.matrices]
        return np.vstack([np.linalg.eigh(matrix)[1].T for matrix in matrices])

    @cached_property
    def traces(self) -> Array:
        """Variance of each group; (k,)."""
        return np.asarray(np.trace(self.matrices, axis1=1, axis2=2))

    @cached_property
    def own(self) -> Array:
        """What each group keeps in its own subspace; (k,)."""
        return np.asarray(np.linalg.eigvalsh(self.matrices)[:, -self.r :].sum(axis=1))

    @property
    def pca_kept(self) -> Array:
        """What each group keeps with ordinary PCA; (k,)."""
        total = np.tensordot(self.shares, self.matrices, 1)
        return self.kept_in(np.linalg.eigh(total)[1][:, -self.r :])

    def measures(self, kept: Array, measure: str, own: Array | None = None) -> Array:
        """The measures, those of what is kept with a minus sign."""
        if measure in ("disparity", "relative_disparity"):
            found = (self.own if own is None else own) - kept
        elif measure in ("loss", "share_lost"):
            found = self.traces - kept
        else:
            found = -kept
        if measure in ("relative_disparity", "share_lost", "share_kept"):
            some = self.traces > 1e-30 * self.traces.max()
            units = np.where(some, self.traces, self.traces.max() or 1.0)
            found = found / units
            if measure == "share_kept":  # all of nothing is kept
                found = np.where(some, found, -1.0)
        return np.asarray(found)

    def losses(self, kept: Array) -> Array:
        """The total loss; (N,)."""
        return np.asarray((self.traces - kept) @ self.shares)

    @property
    def least_loss(self) -> float:
        """That of ordinary PCA."""
        return float(self.losses(self.pca_kept))


# --- What is judged -------------------------------------------------------------------------------


@dataclass
class Verdict:
    """What was found of a draw."""

    words: str
    status: str = ""
    refusal: str = ""
    checks: Counter[str] = field(default_factory=Counter)
    false: list[str] = field(default_factory=list)
    beaten: float = 0.0

    def check(self, what: str, holds: Any, about: str = "") -> None:
        """Count a check, and keep what is false."""
        self.checks[what] += 1
        if not bool(holds):
            self.false.append(f"{what}: {about}")


def judge(seed: int) -> Verdict:
    """Fit a draw and check everything that is said of it."""
    draw = Draw.of(seed)
    verdict = Verdict(f"{seed}: {draw.words}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fair = draw.fitted()
        except ValueError as error:
            criterion = type(draw.criterion).__name__
            text = str(error).replace(repr(draw.criterion), f"{criterion}(...)")
            text = re.sub(r"ParetoDescent\(.*\)(?= has)", "ParetoDescent(...)", text)
            verdict.refusal = text
            return verdict
    texts = [str(one.message) for one in caught]
    weightless = draw.weights is not None and not np.all(draw.weights)
    said = any("left out" in text for text in texts)
    verdict.check("warning: a group without weight", said == weightless, " ".join(texts))
    Judged(draw, fair, verdict).run()
    return verdict


@dataclass
class Judged:
    """A fit beside what is known of its rows."""

    draw: Draw
    fair: Any
    verdict: Verdict

    def __post_init__(self) -> None:
        draw, truth = self.draw, self.draw.truth
        self.truth, self.certificate = truth, self.fair.certificate_
        self.criterion, self.measure = draw.criterion, getattr(draw.criterion, "measure", "loss")
        self.table = self.fair.group_table_
        if isinstance(draw.options["solver"], ParetoDescent):  # it has a criterion of its own
            self.criterion = Equal(self.certificate.tolerance, self.measure)
        own, order = None, [truth.labels.index(label) for label in self.table.labels]
        if isinstance(self.criterion, SoftMinMax) and self.criterion.temperature is None:
            # What folds tell of the noise is taken as it is said.
            heat = self.certificate.temperature
            extra = self.criterion.max_extra_loss
            self.criterion = SoftMinMax(self.measure, max_extra_loss=extra, temperature=heat)
            several = len(truth.labels) > 1  # a single group is compared with nobody
            estimated = several and draw.criterion.standard_errors < np.inf
            if self.table.held_out is not None and estimated:
                own = truth.own.copy()
                own[order] = truth.traces[order] - self.table.held_out.own_loss
        kept = truth.kept_in(self.fair.components_.T)
        self.order, self.kept = order, kept
        self.of = partial(truth.measures, measure=self.measure, own=own)
        self.e, self.pca = self.of(kept), self.of(truth.pca_kept)
        self.all_e, self.all_losses = self.of(truth.grid), truth.losses(truth.grid)
        self.loss = float(truth.losses(kept))
        relative = self.measure in ("relative_disparity", "share_lost", "share_kept")
        # Of rows that are all the same, rounding is left.
        self.variance = float(truth.traces.max()) or 1e-20 * float(np.square(draw.X).max()) or 1.0
        self.unit = 1.0 if relative else self.variance
        self.tiny = _ROUNDING * self.unit
        # PCA may have a choice, as where eigenvalues are equal: nothing can then be compared.
        values = np.linalg.eigvalsh(np.tensordot(truth.shares, truth.matrices, 1))[::-1]
        self.pca_is_one = values[truth.r - 1] - values[truth.r] > 1e-7 * values[0]

    def near(self, found: Any, expected: Any, scale: float | None = None) -> bool:
        """Whether numbers are the same up to rounding."""
        size = self.tiny if scale is None else scale
        return bool(np.allclose(found, expected, rtol=_ROUNDING, atol=size))

    def run(self) -> None:
        """All checks."""
        self.verdict.status = self.certificate.status
        self.check_table()
        if self.pca_is_one:
            self.check_table_words(self.table.sentences())
        self.check_certificate()
        for statement in self.certificate.statements():
            self.check_sentence(_kind(statement.kind), str(statement))

    def check_sentence(self, kind: str, text: str) -> None:
        """One sentence of a certificate: its words, and what they state."""
        form, stated = forms(self.measure)[kind], re.search(_SHARE, text)
        if stated is not None:
            share(self, *map(float, stated.groups()))
            text = text.replace(stated[0], stated[1])
        self.verdict.check("sentence: words", re.fullmatch(form, text), f"{kind}: {text}")
        try:
            SENTENCES[kind](self, text)
        except (KeyError, IndexError, StopIteration, ValueError) as error:
            self.verdict.check("sentence: can be parsed", False, f"{kind}: {text} {error!r}")

    def check_table(self) -> None:
        """The table of groups."""
        check, table, truth, order = self.verdict.check, self.table, self.truth, self.order
        scale = _ROUNDING * self.variance
        check("table: rows", (table.count == truth.counts[order]).all())
        for name, found, expected in (
            ("variance", table.variance, truth.traces),
            ("loss", table.loss, truth.traces - self.kept),
            ("own loss", table.own_loss, truth.traces - truth.own),
            ("disparity", table.disparity, truth.own - self.kept),
        ):
            check(f"table: {name}", self.near(found, expected[order], scale), f"{found}")
        if self.pca_is_one:
            expected = (truth.traces - truth.pca_kept)[order]
            check("table: PCA's loss", self.near(table.pca_loss, expected, scale))
            change = (truth.pca_kept - self.kept)[order]
            clear = np.abs(change) > 1e-8 * self.variance
            better = {label for label, c in zip(table.labels, change, strict=True) if c < 0}
            clearly = {label for label, c in zip(table.labels, clear, strict=True) if c}
            check("table: better off", clearly & better == clearly & set(table.better_off))
            check("table: worse off", clearly - better == clearly & set(table.worse_off))

    def check_table_words(self, text: str) -> None:
        """Who is better and worse off, by how much of its variance, and on held-out rows."""
        check, truth, k = self.verdict.check, self.truth, len(self.truth.labels)
        if k == 1:
            check("table says: nothing of one group", "off" not in text, text)
            return
        some = truth.traces > 1e-30 * truth.traces.max()
        shares = np.where(some, (truth.pca_kept - self.kept) / np.where(some, truth.traces, 1.0), 0)
        clear = np.abs(shares) > 1e-7
        unclear = k - int(clear.sum() + (shares == 0.0).sum())
        for word, sign in (("better", -1.0), ("worse", 1.0)):
            n = int((clear & (sign * shares > 0.0)).sum())
            found = re.search(rf"(\d+|none) (?:of \d+ groups )?(?:is|are) {word} off", text)
            said = int(found[1].replace("none", "0")) if found else k * (f"is {word} off" in text)
            check(f"table says: {word} off", abs(said - n) <= unclear, f"{text} {shares}")
        texts = self.table.group_texts()
        for what, word, sign in (("gain", "less", -1.0), ("loss", "more", 1.0)):
            found = re.search(
                rf"largest {what}: (\S[^:]*?) loses ({_NUMBER}) % of its variance {word}", text
            )
            largest, right = sign * shares[self.order], False
            if largest.max() > 1e-7:
                if found is not None:
                    said = largest[texts.index(found[1])]
                    digits = 0.051 if largest.max() > 5e-4 else 0.1 * 100 * largest.max()
                    right = said >= largest.max() - 1e-9
                    right &= abs(100 * said - float(found[2])) <= digits
                check(f"table says: largest {what}", right, f"{text} {shares}")
        if "any other subspace" in text:
            check("table says: PCA loses least", self.loss >= truth.least_loss - self.tiny, text)
        found = re.search(r"all rows together lose (\S+) % and (\S+) %", text)
        if found is not None:
            held_out, w = self.table.held_out, truth.shares[self.order]
            whole = float(w @ truth.traces[self.order])
            lost = [100 * float(w @ one) / whole for one in (held_out.pca_loss, held_out.loss)]
            right = np.allclose(lost, [float(found[1]), float(found[2])], rtol=0, atol=0.051)
            check("table says: held-out rows", right, f"{text} {lost}")

    @property
    def is_conditional(self) -> bool:
        """Whether the total loss is minimised under a condition."""
        return isinstance(self.criterion, Equal | AtMost)

    @property
    def most_loss(self) -> float:
        """The total loss that is allowed."""
        extra = getattr(self.criterion, "max_extra_loss", None)
        return np.inf if extra is None else self.truth.least_loss * (1.0 + extra)

    def values(self, e: Array) -> Array:
        """What a criterion without a condition minimises, of many subspaces."""
        if isinstance(self.criterion, Balanced):
            return np.asarray(e.mean(axis=-1))
        if isinstance(self.criterion, SoftMinMax) and self.criterion.temperature:
            return self.soft(e, float(self.criterion.temperature))
        return np.asarray(e.max(axis=-1))

    @cached_property
    def least(self) -> tuple[float, float]:
        """The least value that was found without the library, and how far that is from allowed."""

        def excess(kept: Array) -> Array:
            if self.is_conditional:
                return (self.violation(self.of(kept)) - self.allowed) / self.unit
            return (self.truth.losses(kept) - self.most_loss) / self.variance

        def aim(kept: Array) -> Array:
            return self.truth.losses(kept) if self.is_conditional else self.values(self.of(kept))

        if self.pca_is_one and self.most_loss <= self.truth.least_loss:
            return float(self.values(self.pca)), 0.0  # nothing else is allowed
        size, found = (self.variance if self.is_conditional else self.unit), []
        for price in (10.0, 1e4):

            def penalised(kept: Array, price: float = price) -> Array:
                return aim(kept) + price * size * np.maximum(excess(kept), 0.0)

            kept = self.truth.best(penalised)[None]
            over = max(float(excess(kept)[0]), 0.0)
            # Beside a limit on the loss, a little more of it is worth its root.
            if over <= (1e-11 if self.is_conditional else 1e-15):
                found.append((float(aim(kept)[0]), over))
            if not self.is_conditional and self.most_loss == np.inf:
                break
        return min(found, default=(np.inf, 0.0))

    @cached_property
    def nearest(self) -> float:
        """The least violation of the condition that was found without the library."""
        kept = self.truth.best(lambda kept: self.violation(self.of(kept)))
        return float(self.violation(self.of(kept)))

    def soft(self, e: Array, temperature: float) -> Array:
        """The soft maximum."""
        relative = self.unit == 1.0 and self.measure not in ("disparity", "loss", "kept_variance")
        traces = self.truth.traces
        some = traces > 1e-30 * traces.max()
        units = np.where(some, traces, traces.max() or 1.0)
        prior = self.truth.shares * (units if relative else 1.0)
        prior = prior / prior.sum()
        if np.isinf(temperature):
            return np.asarray(e @ prior)
        most = e.max(axis=-1, keepdims=True)
        inside = np.exp((e - most) / temperature) @ prior
        return np.asarray(most[..., 0] + temperature * np.log(inside))

    @property
    def allowed(self) -> float:
        """The violation that a subspace may have: that of the fit, or what was asked for."""
        return max(float(self.violation(self.e)), 0.0)

    def violation(self, e: Array) -> Array:
        """How far measures are from the condition, in their units."""
        criterion = self.criterion
        if isinstance(criterion, Equal):
            return np.asarray(np.ptp(e, axis=-1) - criterion.tolerance)
        return np.asarray((e - self.upper_bounds).max(axis=-1))

    @property
    def upper_bounds(self) -> Array:
        """Of `AtMost`, with a minus sign for what is kept."""
        given = self.criterion.bounds
        sign = -1.0 if self.measure in ("kept_variance", "share_kept") else 1.0
        if isinstance(given, dict):
            return np.array([sign * given.get(one, sign * np.inf) for one in self.truth.labels])
        return np.full(len(self.truth.labels), sign * given)

    def check_certificate(self) -> None:
        """Its numbers, and that no subspace of the grid contradicts it."""
        check, certificate, order = self.verdict.check, self.certificate, self.order
        scale = _ROUNDING * (self.variance if self.is_conditional else self.unit)
        check("measures", self.near(certificate.measures, self.e[order]), f"{certificate.measures}")
        check("spread", self.near(certificate.spread, np.ptp(self.e)))
        if self.pca_is_one:
            change, expected = certificate.change_from_pca, (self.e - self.pca)[order]
            check("change from PCA", self.near(change, expected, 10 * self.tiny), f"{change}")
        over = self.loss - self.most_loss
        check("budget is kept", over <= 1e-9 * self.variance, f"{over}")
        value = self.loss if self.is_conditional else float(self.values(self.e))
        check("value", self.near(certificate.value, value, scale), f"{certificate.value}, {value}")
        least, over = self.least
        # Where what was found is a little beyond what is allowed, its price counts.
        scale += float(np.abs(certificate.multipliers).sum()) * over * self.unit
        check(
            "bound", certificate.lower_bound <= least + scale, f"{certificate.lower_bound} {least}"
        )
        check("gap", self.near(certificate.gap, max(value - certificate.lower_bound, 0.0), scale))
        if not self.is_conditional:
            check("status", certificate.status in ("optimal", "bounded"))
        else:
            check("status", self.condition_status(), f"{certificate.status}, {self.nearest}")
        if certificate.status == "optimal":
            slack = 1e-7 * abs(value) + scale
            check("optimal: none is better", value <= least + slack, f"{value} {least}")
        elif np.isfinite(least):
            size = self.variance if self.is_conditional else self.unit
            self.verdict.beaten = max((value - least) / size, 0.0)

    def condition_status(self) -> bool:
        """Whether a condition that is met is called met, and one that is impossible impossible."""
        status, here = self.certificate.status, float(self.violation(self.e))
        zero = 1e-7 * self.unit
        if status in ("optimal", "bounded"):
            return here <= zero
        if status == "infeasible":
            bound = self.certificate.violation_bound
            if isinstance(self.criterion, Equal):
                bound -= self.criterion.tolerance
            return bound <= self.nearest + self.tiny and self.nearest > 0.0
        return here > 0.0


# --- Sentences ------------------------------------------------------------------------------------

Sentence = Callable[[Judged, str], None]

_NUMBER = r"-?\d[\d.]*(?:e[-+]\d+)?"

_SHARE = rf"({_NUMBER}) \(({_NUMBER}) % of the variance of all rows\)"


def numbers(text: str) -> list[float]:
    """All numbers in a text."""
    return [float(one.rstrip(".")) for one in re.findall(_NUMBER, text)]


def _kind(kind: str) -> str:
    """That of the sentence: some criteria, and measures of what is kept, share theirs."""
    goal, _, status = kind.removesuffix(", kept").partition(", ")
    goal = {"max_extra_loss": "minmax", "soft max_extra_loss": "soft"}.get(goal, goal)
    return f"{goal}, {status}" if status else goal


def _shown(judged: Judged, e: Array) -> Array:
    """Measures as texts have them."""
    return -e if judged.measure in ("kept_variance", "share_kept") else e


def _close(judged: Judged, found: float, expected: float, digits: float = _NEAR) -> bool:
    return abs(found - expected) <= digits * abs(expected) + 10 * judged.tiny


def forms(measure: str) -> dict[str, str]:
    """The words of each sentence, as a pattern: which are right is up to the measure."""
    kept = measure in ("kept_variance", "share_kept")
    one, number = measure.replace("_", " "), _NUMBER
    many = {"loss": "losses", "share_lost": "shares lost", "share_kept": "shares kept"}.get(
        measure, one.replace("disparity", "disparities").replace("variance", "variances")
    )
    at_least, more = ("at most", "less") if kept else ("at least", "more")
    above, below, largest = (
        ("below", "above", "smallest") if kept else ("above", "below", "largest")
    )
    maximum, smaller = ("minimum", "larger") if kept else ("maximum", "smaller")
    every = "subspace of this dimension"
    limited = f"{every}(?: that loses at most {number} % more than the least total loss)?"
    within = f"(?:equal {many}|{many} within {number} of each other)"
    minmax = "'minmax'" if measure == "disparity" else rf"MinMax\('{measure}'\)"
    levels = (
        f"another subspace, found for criterion={minmax}, leaves no group worse off than here, and "
        f"{many} are {'higher' if kept else 'lower'} there by {number} to {number}, though not equal."
    )
    does = "that does the same"
    found = "was found, and none is proven impossible. "
    words = {
        "minmax, optimal": f"Proven optimal: in every {limited} some group has a {one} of "
        f"{at_least} {number}, and here none has {more} than {number}.",
        "minmax, bounded": f"No group has a {one} {above} {number}; no {limited} can bring the "
        f"{largest} one {below} {number}.",
        "soft, optimal": f"Proven optimal: the soft {maximum} of the groups' {many} is {number}, "
        f"and no {limited} has a {smaller} one.",
        "soft, bounded": f"The soft {maximum} of the groups' {many} is {number}; no {limited} has "
        f"a {smaller} one than {number}.",
        "balanced, optimal": f"Proven optimal: the mean of the groups' losses is {number}, and no "
        f"{every} has a smaller one.",
        "balanced, bounded": f"The mean of the groups' losses is {number}; no {every} has a "
        f"smaller one than {number}.",
        "equal, optimal": f"Proven optimal: all groups have {within} at a total loss of {number}, "
        f"and no {every} {does} loses less.",
        "equal, bounded": f"All groups have {within}, at a total loss of {number}; no {every} "
        f"{does} can lower it by more than {number} %.",
        "equal, infeasible": f"Proven impossible: in every {every} the {many} of two groups differ "
        f"by at least {number}. The smallest difference that was found is {number}.",
        "equal, unresolved": f"No {every} with {within} {found}The smallest difference that was "
        f"found is {number}.",
        "bounds, optimal": f"Proven optimal: all bounds are met at a total loss of {number}, and "
        f"no {every} {does} loses less.",
        "bounds, bounded": f"All bounds are met, at a total loss of {number}; no {every} {does} "
        f"can lower it by more than {number} %.",
        "bounds, infeasible": f"Proven impossible: in every {every} some group misses its bound by "
        f"at least {number}. Here none misses it by more than {number}, the smallest that was "
        "found.",
        "bounds, unresolved": f"No {every} that meets all bounds {found}Here none misses it by "
        f"more than {number}, the smallest that was found.",
        "one group": "One group: the result is that of ordinary PCA.",
        "all worse off": "Every group is worse off than with ordinary PCA, by "
        f"{number} to {number}.",
        "levels down": f"Equality levels down here: {levels}",
        "alternative": f"There is an alternative: {levels}",
        "least spread": f"In every {every} the {many} of two groups differ by at least {number}.",
        "unmet": f"(?i:{within}) were not reached: this solver has a criterion of its own.",
    }
    return {kind: pattern.rstrip(".") + r"\." for kind, pattern in words.items()} | {
        "rounded": "Rounding .*",
        "stopped by gap": "The search ended there: .*",
    }


def largest(judged: Judged, text: str) -> None:
    """Some group has at least this in every subspace, and none has more than that here."""
    check = judged.verdict.check
    criterion = judged.criterion
    found = numbers(text)
    extra = re.search(rf"({_NUMBER}) % more than the least total loss", text)
    if extra is not None:
        check("sentence: extra loss", float(extra[1]) == 100 * criterion.max_extra_loss, text)
        found = numbers(text.replace(extra[0], ""))
    soft = isinstance(criterion, SoftMinMax) and bool(criterion.temperature)
    here = float(_shown(judged, judged.values(judged.e)))
    best = float(_shown(judged, np.array(judged.least[0])))
    if soft and "Proven" in text:
        check("sentence: soft maximum", _close(judged, found[0], here), text)
        return
    at_least, at_most = (found[1], found[0]) if "Proven" not in text else (found[0], found[1])
    check("sentence: largest here", _close(judged, at_most, here), text)
    kept = judged.measure in ("kept_variance", "share_kept")
    slack = _NEAR * abs(best) + 10 * judged.tiny
    true = at_least >= best - slack if kept else at_least <= best + slack
    check("sentence: none below", true, f"{text} {best}")


def balanced(judged: Judged, text: str) -> None:
    """The mean of the groups' losses."""
    here, found = float(judged.e.mean()), numbers(text)
    judged.verdict.check("sentence: mean", _close(judged, found[0], here), text)
    for bound in found[1:]:
        slack = _NEAR * here + 10 * judged.tiny
        judged.verdict.check("sentence: none below", bound <= judged.least[0] + slack, text)


def condition(judged: Judged, text: str, met: bool) -> None:
    """What is said of equality and of bounds."""
    check, criterion, nearest = judged.verdict.check, judged.criterion, judged.nearest
    equal = isinstance(criterion, Equal)
    violation = float(judged.violation(judged.e))
    zero = 1e-7 * judged.unit
    if met:
        check("sentence: condition is met", violation <= zero, f"{text} {violation}")
        loss = float(re.findall(rf"total loss of ({_NUMBER})", text)[0].rstrip("."))
        scale = _NEAR * judged.loss + _ROUNDING * judged.variance
        check("sentence: total loss", abs(loss - judged.loss) <= scale, text)
        if "equal " in text.replace("All groups have", "all groups have"):
            size = float(np.abs(judged.e).max())
            check("sentence: equal", np.ptp(judged.e) <= 1e-6 * size + zero, text)
        within = re.findall(rf"within ({_NUMBER})", text)
        if within:
            spread = float(np.ptp(judged.e))
            number = float(within[0])
            check("sentence: within", spread <= number * (1 + _NEAR) + zero, text)
            if (
                equal
                and criterion is judged.draw.criterion
                and number < criterion.tolerance * (1 + 1e-6)
            ):
                right = abs(number - criterion.tolerance) <= 1e-12 * number
                check("sentence: tolerance as asked", right, text)
        lower = re.findall(rf"lower it by more than ({_NUMBER}) %", text)
        if lower and np.isfinite(judged.least[0]):
            gain = 100 * (judged.loss - judged.least[0]) / judged.loss
            check("sentence: lower by at most", gain <= float(lower[0]) + 1e-6, text)
        return
    check("sentence: condition is not met", violation > 0.0, text)
    found = numbers(text)
    shift = criterion.tolerance if equal else 0.0
    if "impossible: in" in text:
        check("sentence: impossible", nearest > 0.0, text)
        slack = 10 * judged.tiny
        check("sentence: at least so far", found[0] <= nearest + shift + slack, f"{text} {nearest}")
    for within in re.findall(rf"within ({_NUMBER}) of", text):
        right = abs(float(within) - criterion.tolerance) <= _NEAR * criterion.tolerance
        check("sentence: tolerance as asked", right, text)
    check("sentence: smallest found", _close(judged, found[-1], violation + shift), text)


def all_worse(judged: Judged, text: str) -> None:
    """Every group is worse off."""
    if judged.pca_is_one:
        change = judged.e - judged.pca
        if change.max() < judged.tiny:  # too small for what is known of it here
            return
        low, high = (
            float(x.rstrip(".")) for x in re.findall(rf"by ({_NUMBER}) to ({_NUMBER})", text)[0]
        )
        check = judged.verdict.check
        check("sentence: all worse off", (change > 0).all(), text)
        check(
            "sentence: all worse by",
            _close(judged, low, change.min(), 6e-3) and _close(judged, high, change.max(), 6e-3),
            text,
        )


def levels(judged: Judged, text: str) -> None:
    """Some subspace leaves nobody worse off, and this is how much better off they are there."""
    check, other = judged.verdict.check, np.empty_like(judged.e)
    other[judged.order] = judged.certificate.minmax_measures
    gains = judged.e - other
    low, high = (float(x) for x in re.findall(rf"by ({_NUMBER}) to ({_NUMBER}),", text)[0])
    right = _close(judged, low, gains.min(), 6e-3) and _close(judged, high, gains.max(), 6e-3)
    check("sentence: levels down by", right and gains.max() > 0.0, f"{text} {gains}")
    there = judged.truth.best(lambda kept: (judged.of(kept) - other).max(axis=1))
    missed = float((judged.of(there) - other).max())
    check("sentence: levels down", missed <= 1e-3 * judged.unit, f"{text} {missed}")


def least_spread(judged: Judged, text: str) -> None:
    """In every subspace two groups differ by at least this."""
    nearest = judged.nearest + judged.criterion.tolerance
    judged.verdict.check(
        "sentence: differ by at least", numbers(text)[0] <= nearest + judged.tiny, text
    )


def unmet(judged: Judged, text: str) -> None:
    """What a solver with a criterion of its own did not reach."""
    said = numbers(text)[0] if "within" in text else 0.0
    asked = getattr(judged.draw.criterion, "tolerance", 0.0)
    right = np.ptp(judged.e) > asked and abs(said - asked) <= _NEAR * asked
    judged.verdict.check("sentence: not reached", right, text)


def one_group(judged: Judged, text: str) -> None:
    """The result is that of ordinary PCA."""
    same = judged.near(judged.loss, judged.truth.least_loss, _ROUNDING * judged.variance)
    judged.verdict.check("sentence: that of PCA", same and len(judged.truth.labels) == 1, text)


def share(judged: Judged, shown: float, percent: float) -> None:
    """The value, and its share of the variance of all rows."""
    value, variance = (
        judged.certificate.value,
        float(judged.truth.shares @ judged.truth.traces),
    )
    if "kept" in judged.certificate.measure:  # which is minimised with a minus sign
        value = abs(value)
    if variance <= 1e-20 * float(np.square(judged.draw.X).max()):  # rows that are all the same
        return
    expected = 100 * value / variance
    right = _close(judged, shown, value) and abs(percent - expected) <= 6e-3 * abs(expected) + 1e-7
    judged.verdict.check("sentence: share of the variance", right, f"{shown} {percent}")


def needs_pca(kind: str) -> bool:
    """Whether sentences of a kind can be judged only where PCA leaves no choice."""
    return SENTENCES[kind] is all_worse


def said(judged: Judged, text: str) -> None:
    """Nothing in it can be computed from the rows."""
    judged.verdict.checks["sentence: not judged"] += 1


_PROVEN = ("optimal", "bounded")

SENTENCES: dict[str, Sentence] = {
    **{f"{one}, {status}": largest for one in ("minmax", "soft") for status in _PROVEN},
    **{f"balanced, {status}": balanced for status in _PROVEN},
    **{
        f"{goal}, {status}": partial(condition, met=met)
        for goal in ("equal", "bounds")
        for status, met in (
            ("optimal", True),
            ("bounded", True),
            ("infeasible", False),
            ("unresolved", False),
        )
    },
    "one group": one_group,
    "unmet": unmet,
    "all worse off": all_worse,
    "levels down": levels,
    "alternative": levels,
    "least spread": least_spread,
    "rounded": said,
    "stopped by gap": said,
}


# --- The page -------------------------------------------------------------------------------------

HEAD = """# Combinations of options

{n:,} draws of rows in two or three columns: one to four groups, or eight, or those of two columns that overlap; weights, at times
none for a group; columns that are constant, groups along a line, of one row, of no variance, or all the same; units from 1e-25 to
1e25; every criterion with every measure, tolerances, bounds, temperatures, standard errors and limits on the extra loss;
and Pareto descent. Each is judged from the rows alone, by a grid of all subspaces and searches near the best of them.
The exact solver has eight starts, so that this takes ten minutes. Made by `python -m studies.combinations`.
"""


def page(verdicts: Iterable[Verdict]) -> str:
    """What was found of all draws."""
    found = list(verdicts)
    lines = [HEAD.format(n=len(found))]
    statuses = Counter(one.status for one in found if one.status)
    lines += ["Endings: " + ", ".join(f"{n:,} {status}" for status, n in statuses.most_common())]
    false = [(one.words, each) for one in found for each in one.false]
    lines += [f"\nFalse: {len(false)}.\n"]
    lines += [f"- {words}: {each[:300]}" for words, each in false[:50]]
    checks: Counter[str] = Counter()
    for one in found:
        checks.update(one.checks)
    lines += ["", "| what was checked | times |", "|---|---|"]
    lines += [f"| {what} | {n:,} |" for what, n in sorted(checks.items())]
    beaten = [one for one in found if one.beaten > 1e-6]
    lines += [
        f"\nOf the fits that are not called optimal, {len(beaten)} have a subspace of the grid, or near it, "
        "that is better by more than a millionth of the variance: "
        f"{sum('Pareto' in one.words for one in beaten)} of Pareto descent."
    ]
    refusals = Counter(one.refusal for one in found if one.refusal)
    lines += ["\n## Refused\n", "Numbers stand as #.\n"]
    lines += [f"- {n:,} times: {text}" for text, n in refusals.most_common()] or ["Nothing."]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Judge all draws and write the page."""
    from studies import combinations  # so that processes find its functions by name

    n = int(sys.argv[1]) if len(sys.argv) > 1 else N_DRAWS
    verdicts = Parallel(n_jobs=-1)(delayed(combinations.judge)(seed) for seed in range(n))
    if len(sys.argv) > 1:
        print(page(verdicts))
    else:
        TARGET.write_text(page(verdicts), encoding="utf-8")


if __name__ == "__main__":
    main()
