"""Combinations of options: values, bounds, endings, tables and sentences against brute force.

Run ``python -m studies.combinations`` to rewrite studies/combinations.md (ten thousand draws, about
ten minutes on one core). Each draw takes rows in two or three columns, groups, weights, a unit and a
criterion at random, ugly ones among them, fits them, and judges the result by a fine grid of all
subspaces, from the rows alone: nothing of the library is used but `FairPCA`. Numbers in sentences
are parsed back from the text.
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

from fairpca import AtMost, Balanced, Equal, FairPCA, MinMax, SoftMinMax

Array = NDArray[np.float64]

TARGET = Path(__file__).with_name("combinations.md")

N_DRAWS = 10_000

MEASURES = ("disparity", "loss", "kept_variance", "relative_disparity", "share_lost", "share_kept")

_ANGLES, _POINTS = 4_000, 12_000
"""Subspaces of the grid in two columns, and in three."""

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

    @classmethod
    def of(cls, seed: int) -> Draw:
        """The draw of a seed."""
        rng = np.random.default_rng([seed, 38])
        d = int(rng.choice([2, 3]))
        k, n = int(rng.integers(1, 5)), int(rng.integers(8, 40))
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
        if family == "point" and k > 1:  # a group that has no variance about the mean of all rows
            others = codes != 0
            known = np.ones(n) if weights is None else weights
            X[others] -= np.average(X[others], axis=0, weights=known[others])
            X[~others] = 0.0
        X = X * 10.0 ** float(rng.choice([0, 0, 0, -8, 8, 3]))
        labels, groups = np.array(list("abcdef"))[codes], "intersections"
        if rng.random() < 0.25:
            labels = np.column_stack([labels, rng.choice(["x", "y"], n)])
            groups = str(rng.choice(["intersections", "marginals", "both"]))
        r = int(rng.integers(1, d))
        trial = cls(X, labels, weights, groups, r, None, family)
        criterion = _criterion(rng, trial)
        words = f"{family}, d={d}, r={r}, k={k}, {groups}, {criterion}"
        return cls(X, labels, weights, groups, r, criterion, words)

    @cached_property
    def truth(self) -> Truth:
        """What is known of it without the library."""
        return Truth.of(self)

    def fitted(self) -> FairPCA:
        """The fit that is judged."""
        fair = FairPCA(self.r, criterion=self.criterion, groups=self.groups)
        return fair.fit(self.X, sensitive_features=self.labels, sample_weight=self.weights)


def _criterion(rng: np.random.Generator, draw: Draw) -> Any:
    """A criterion whose numbers are of the size of the measures."""
    measure = str(rng.choice(MEASURES))
    measures = draw.truth.measures(draw.truth.grid, measure)
    size = float(f"{np.ptp(measures) or 1.0:.2g}")
    extra = [None, None, 0.0, 0.01, 0.3][int(rng.integers(5))]
    kind = int(rng.integers(6))
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
    return MinMax(measure, max_extra_loss=extra)


# --- What is known without the library ------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Truth:
    """Second moments of the groups about the mean of all rows, and a grid of all subspaces."""

    labels: list[Any]
    counts: NDArray[np.int64]
    matrices: Array
    shares: Array
    mean: Array
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
        matrices, sums = [], []
        for _, mask in parts:
            w = weights * mask
            matrices.append((centred * w[:, None]).T @ centred / w.sum())
            sums.append(w.sum())
        shares = np.array(sums) / sum(sums)
        counts = np.array([int(mask.sum()) for _, mask in parts])
        return cls([name for name, _ in parts], counts, np.array(matrices), shares, mean, draw.r)

    @property
    def d(self) -> int:
        """Number of columns."""
        return int(self.matrices.shape[1])

    @cached_property
    def grid(self) -> Array:
        """What each group keeps in each of many subspaces; (N, k)."""
        if self.d == 2:
            angles = np.linspace(0.0, np.pi, _ANGLES, endpoint=False)
            axes = np.column_stack([np.cos(angles), np.sin(angles)])
        else:
            i = np.arange(_POINTS) + 0.5
            z, turn = 1.0 - i / _POINTS, np.pi * (1.0 + 5.0**0.5) * i
            flat = np.sqrt(1.0 - z * z)
            axes = np.column_stack([flat * np.cos(turn), flat * np.sin(turn), z])
        axes = np.vstack([axes, np.eye(self.d), self.pca_axes])
        kept = np.einsum("kij,ni,nj->nk", self.matrices, axes, axes, optimize=True)
        # In three columns two dimensions are what is left of an axis.
        return np.asarray(kept if self.r == 1 else self.traces - kept)

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
        axes = np.linalg.eigh(np.tensordot(self.shares, self.matrices, 1))[1][:, -self.r :]
        return np.asarray(np.einsum("kij,ia,ja->k", self.matrices, axes, axes))

    def measures(self, kept: Array, measure: str) -> Array:
        """The measures, those of what is kept with a minus sign."""
        if measure in ("disparity", "relative_disparity"):
            found = self.own - kept
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fair = draw.fitted()
        except ValueError as error:
            verdict.refusal = re.sub(r"[-+.\d]+(e[-+]\d+)?", "#", str(error))
            return verdict
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
        self.measure = getattr(draw.criterion, "measure", "loss")
        self.table = self.fair.group_table_
        order = [truth.labels.index(label) for label in self.table.labels]
        basis = self.fair.components_.T
        kept = np.einsum("kij,ia,ja->k", truth.matrices, basis, basis)
        self.order, self.kept = order, kept
        self.e = truth.measures(kept, self.measure)
        self.pca = truth.measures(truth.pca_kept, self.measure)
        self.all_e = truth.measures(truth.grid, self.measure)
        self.all_losses = truth.losses(truth.grid)
        self.loss = float(truth.losses(kept))
        relative = self.measure in ("relative_disparity", "share_lost", "share_kept")
        self.variance = float(truth.traces.max()) or 1.0
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
        self.check_certificate()
        for statement in self.certificate.statements():
            try:
                SENTENCES[_kind(statement.kind)](self, str(statement))
            except (KeyError, IndexError, StopIteration, ValueError) as error:
                about = f"{statement.kind}: {statement} {error!r}"
                self.verdict.check("sentence: can be parsed", False, about)

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

    def value_of(self, e: Array, losses: Array) -> Array:
        """What the criterion minimises, of many subspaces; infinite where it is not met."""
        criterion = self.draw.criterion
        if isinstance(criterion, Balanced):
            return np.asarray(e.mean(axis=-1))
        if isinstance(criterion, MinMax | SoftMinMax):
            value = e.max(axis=-1)
            if isinstance(criterion, SoftMinMax) and criterion.temperature > 0.0:
                value = self.soft(e, float(criterion.temperature))
            if (extra := criterion.max_extra_loss) is not None:
                slack = max(0.0, self.loss - self.truth.least_loss * (1.0 + extra))
                check = self.verdict.check
                check("budget is kept", slack <= 1e-9 * self.variance, f"{slack}")
                most = self.truth.least_loss * (1.0 + extra)
                value = np.where(losses <= most, value, np.inf)
            return np.asarray(value)
        return np.where(self.violation(e) <= self.allowed, losses, np.inf)

    def soft(self, e: Array, temperature: float) -> Array:
        """The soft maximum."""
        relative = self.unit == 1.0 and self.measure not in ("disparity", "loss", "kept_variance")
        traces = self.truth.traces
        some = traces > 1e-30 * traces.max()
        prior = self.truth.shares * (np.where(some, traces, traces.max()) if relative else 1.0)
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
        criterion = self.draw.criterion
        if isinstance(criterion, Equal):
            return np.asarray(np.ptp(e, axis=-1) - criterion.tolerance)
        return np.asarray((e - self.upper_bounds).max(axis=-1))

    @property
    def upper_bounds(self) -> Array:
        """Of `AtMost`, with a minus sign for what is kept."""
        given = self.draw.criterion.bounds
        sign = -1.0 if self.measure in ("kept_variance", "share_kept") else 1.0
        if isinstance(given, dict):
            return np.array([sign * given.get(one, sign * np.inf) for one in self.truth.labels])
        return np.full(len(self.truth.labels), sign * given)

    def check_certificate(self) -> None:
        """Its numbers, and that no subspace of the grid contradicts it."""
        check, certificate, order = self.verdict.check, self.certificate, self.order
        conditional = isinstance(self.draw.criterion, Equal | AtMost)
        scale = _ROUNDING * (self.variance if conditional else self.unit)
        check("measures", self.near(certificate.measures, self.e[order]), f"{certificate.measures}")
        check("spread", self.near(certificate.spread, np.ptp(self.e)))
        if self.pca_is_one:
            change, expected = certificate.change_from_pca, (self.e - self.pca)[order]
            check("change from PCA", self.near(change, expected, 10 * self.tiny), f"{change}")
        values = self.value_of(self.all_e, self.all_losses)
        if conditional:
            value = self.loss
        else:
            value = float(self.value_of(self.e[None], np.array([-np.inf]))[0])
        check("value", self.near(certificate.value, value, scale), f"{certificate.value}, {value}")
        least = float(values.min())
        check("bound", certificate.lower_bound <= least + scale, f"{certificate.lower_bound}")
        check("gap", self.near(certificate.gap, max(value - certificate.lower_bound, 0.0), scale))
        if not conditional:
            check("status", certificate.status in ("optimal", "bounded"))
        else:
            nearest = float(self.violation(self.all_e).min())
            check("status", self.condition_status(nearest), f"{certificate.status}, {nearest}")
        if certificate.status == "optimal":
            slack = 1e-7 * abs(value) + scale
            check("optimal: none is better", value <= least + slack, f"{value} {least}")
        elif np.isfinite(least):
            self.verdict.beaten = max((value - least) / self.variance, 0.0)

    def condition_status(self, nearest: float) -> bool:
        """Whether a condition that is met is called met, and one that is impossible impossible."""
        status, here = self.certificate.status, float(self.violation(self.e))
        zero = 1e-7 * self.unit
        if status in ("optimal", "bounded"):
            return here <= zero
        if status == "infeasible":
            bound = self.certificate.violation_bound
            if isinstance(self.draw.criterion, Equal):
                bound -= self.draw.criterion.tolerance
            return bound <= nearest + self.tiny and nearest > 0.0
        return here > 0.0


# --- Sentences ------------------------------------------------------------------------------------

Sentence = Callable[[Judged, str], None]

_NUMBER = r"-?\d[\d.]*(?:e[-+]\d+)?"


def numbers(text: str) -> list[float]:
    """All numbers in a text."""
    return [float(one.rstrip(".")) for one in re.findall(_NUMBER, text)]


def _kind(kind: str) -> str:
    return re.sub("^(minmax|max_extra_loss|soft max_extra_loss)(?=,)", "minmax", kind)


def _shown(judged: Judged, e: Array) -> Array:
    """Measures as texts have them."""
    return -e if judged.measure in ("kept_variance", "share_kept") else e


def _close(judged: Judged, found: float, expected: float, digits: float = _NEAR) -> bool:
    return abs(found - expected) <= digits * abs(expected) + 10 * judged.tiny


def _noun(judged: Judged, text: str) -> bool:
    nouns = {name: name.replace("_", " ") for name in MEASURES}
    plural = {"loss": "losses", "disparity": "disparities", "share_lost": "shares lost"}
    plural |= {"share_kept": "shares kept", "relative_disparity": "relative disparities"}
    return nouns[judged.measure] in text or plural.get(judged.measure, "kept variances") in text


def largest(judged: Judged, text: str) -> None:
    """Some group has at least this in every subspace, and none has more than that here."""
    check = judged.verdict.check
    criterion = judged.draw.criterion
    check("sentence: measure", _noun(judged, text), text)
    found = numbers(text)
    extra = re.search(rf"({_NUMBER}) % more than the least total loss", text)
    if extra is not None:
        check("sentence: extra loss", float(extra[1]) == 100 * criterion.max_extra_loss, text)
        found = numbers(text.replace(extra[0], ""))
    soft = isinstance(criterion, SoftMinMax) and criterion.temperature > 0.0
    e, losses = judged.e[None], np.array([-np.inf])
    here = float(_shown(judged, judged.value_of(e, losses))[0])
    grid = judged.value_of(judged.all_e, judged.all_losses)
    best = float(_shown(judged, np.array([grid.min()]))[0])
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
    here = float(judged.e.mean())
    judged.verdict.check("sentence: mean", _close(judged, numbers(text)[0], here), text)


def condition(judged: Judged, text: str, met: bool) -> None:
    """What is said of equality and of bounds."""
    check, criterion = judged.verdict.check, judged.draw.criterion
    equal = isinstance(criterion, Equal)
    violation = float(judged.violation(judged.e))
    nearest = float(judged.violation(judged.all_e).min())
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
            if equal and number < criterion.tolerance * (1 + 1e-6):
                check("sentence: tolerance as asked", number == criterion.tolerance, text)
        lower = re.findall(rf"lower it by more than ({_NUMBER}) %", text)
        if lower:
            others = judged.violation(judged.all_e) <= max(violation, 0.0)
            if others.any():
                best = float(judged.all_losses[others].min())
                gain = 100 * (judged.loss - best) / judged.loss
                check("sentence: lower by at most", gain <= float(lower[0]) * 1.02 + 1e-6, text)
        return
    check("sentence: condition is not met", violation > 0.0, text)
    found = numbers(text)
    shift = criterion.tolerance if equal else 0.0
    if "impossible: in" in text:
        check("sentence: impossible", nearest > 0.0, text)
        slack = 10 * judged.tiny
        check("sentence: at least so far", found[0] <= nearest + shift + slack, f"{text} {nearest}")
    check("sentence: smallest found", _close(judged, found[-1], violation + shift), text)


def compared(judged: Judged, text: str) -> None:
    """How many groups are better and worse off than with PCA, and by how much."""
    if not judged.pca_is_one:
        return
    check, change = judged.verdict.check, judged.e - judged.pca
    clear = np.abs(change) > 1e-7 * judged.unit
    unclear = int((np.abs(change) > 0).sum() - clear.sum())
    for word, sizes in (
        ("better", -change[clear & (change < 0)]),
        ("worse", change[clear & (change > 0)]),
    ):
        part = re.findall(
            rf"(one|\d+)(?: groups? (?:is|are))? {word} off, by (?:up to )?({_NUMBER})", text
        )
        said = 0 if not part else 1 if part[0][0] == "one" else int(part[0][0])
        check(f"sentence: {word} off", abs(said - len(sizes)) <= unclear, text)
        if part and len(sizes):
            number = float(part[0][1].rstrip("."))
            check(
                f"sentence: {word} off by", _close(judged, number, float(sizes.max()), 6e-3), text
            )
    if "some group always is" in text:
        check(
            "sentence: PCA loses least", judged.loss >= judged.truth.least_loss - judged.tiny, text
        )


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


def no_change(judged: Judged, text: str) -> None:
    """Nobody is better or worse off."""
    if judged.pca_is_one:
        change = np.abs(judged.e - judged.pca).max()
        judged.verdict.check(
            "sentence: as with PCA", change <= 1e-6 * judged.unit, f"{text} {change}"
        )


def levels(judged: Judged, text: str) -> None:
    """Minimising the largest leaves nobody worse off: lower, or what is kept higher."""
    check, other = judged.verdict.check, judged.certificate.minmax_measures
    gains = judged.e[judged.order] - other
    kept = judged.measure in ("kept_variance", "share_kept")
    check("sentence: higher or lower", f"are {'higher' if kept else 'lower'} by" in text, text)
    low, high = (float(x) for x in re.findall(rf"by ({_NUMBER}) to ({_NUMBER}),", text)[0])
    right = _close(judged, low, max(gains.min(), 0.0), 6e-3) and _close(
        judged, high, gains.max(), 6e-3
    )
    check("sentence: levels down by", right, f"{text} {gains}")
    # Some subspace of the grid is nearly as good for the worst-off group.
    reached = judged.all_e.max(axis=1).min()
    check("sentence: levels down", reached <= other.max() + 0.02 * judged.unit, text)


def least_spread(judged: Judged, text: str) -> None:
    """In every subspace two groups differ by at least this."""
    nearest = float(np.ptp(judged.all_e, axis=1).min())
    judged.verdict.check(
        "sentence: differ by at least", numbers(text)[0] <= nearest + judged.tiny, text
    )


def mixtures(judged: Judged, text: str) -> None:
    """The largest disparity of any mixture of the groups."""
    rng, truth = np.random.default_rng(0), judged.truth
    relative = judged.measure == "relative_disparity"
    most = float(re.findall(rf"at most ({_NUMBER})", text)[0].rstrip("."))
    for w in rng.dirichlet(np.ones(len(truth.labels)) * 0.5, 20):
        matrix = np.tensordot(w, truth.matrices, 1)
        own = np.linalg.eigvalsh(matrix)[-truth.r :].sum()
        excess = float(own - w @ judged.kept) / (
            float(np.trace(matrix)) or 1.0 if relative else 1.0
        )
        judged.verdict.check(
            "sentence: mixtures", excess <= most * (1 + _NEAR) + 10 * judged.tiny, text
        )


def said(judged: Judged, text: str) -> None:
    """Nothing in it can be computed from the rows."""
    judged.verdict.checks["sentence: not judged"] += 1


SENTENCES: dict[str, Sentence] = {
    **{
        f"minmax, {status}{kept}": largest
        for status in ("optimal", "bounded")
        for kept in ("", ", kept")
    },
    **{
        f"soft, {status}{kept}": largest
        for status in ("optimal", "bounded")
        for kept in ("", ", kept")
    },
    **{f"balanced, {status}": balanced for status in ("optimal", "bounded")},
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
    "one group": said,
    "compared with PCA": compared,
    "all worse off": all_worse,
    "as with PCA": no_change,
    "levels down": levels,
    "alternative": levels,
    "least spread": least_spread,
    "mixtures, optimal": mixtures,
    "mixtures, bounded": mixtures,
    "rounded": said,
    "stopped by gap": said,
}


# --- The page -------------------------------------------------------------------------------------

HEAD = """# Combinations of options

{n:,} fits of rows in two or three columns: one to four groups, or those of two columns that overlap; weights; columns that are
constant, groups along a line, of one row, of no variance, or all the same; units from 1e-8 to 1e8; every criterion with every
measure, tolerances, bounds, temperatures and limits on the extra loss. Each is judged by a grid of all subspaces, from the rows
alone. Made by `python -m studies.combinations`.
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
        f"\nOf the fits that are not called optimal, {len(beaten)} have a subspace of the grid that is "
        "better by more than a millionth of the variance."
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
