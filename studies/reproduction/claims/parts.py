"""A claim, its parts, and the one rule for verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import pandas as pd

from studies.reproduction.claims.evidence import (
    COLUMNS,
    SETTING,
    Condition,
    Evidence,
    held_out,
    judge,
    numbers,
    share,
)
from studies.reproduction.methods import PCA, PRINTED
from studies.reproduction.plots.style import only

HOLDS, MOSTLY, PART = "holds", "mostly holds", "holds in part"
RARELY, NOT = "mostly does not hold", "does not hold"
VERDICTS = (HOLDS, MOSTLY, PART, RARELY, NOT)

_FEW = 0.1
"""Share of the cases that are exceptions."""

_WAYS = {  # starts and regularisations
    ("pca", "0"): "from PCA, α = 0",
    ("pca", "appendix"): "from PCA, the appendix's α",
    ("random", "0"): "random starts, α = 0",
}
_LENGTHS = {"short": "1,000 steps", "long": "10,000 steps"}


@dataclass(frozen=True)
class Part:
    """One thing that is said, and in which cases it is so: as printed, and in other ways."""

    words: str
    cases: Mapping[str, pd.Series]

    @property
    def verdict(self) -> str:
        """Of the printed form."""
        return verdict(self.cases[PRINTED])


@dataclass(frozen=True)
class Claim:
    """What the paper says, and what was found."""

    statement: str
    where: str
    parts: tuple[Part, ...]
    measured: str
    figures: tuple[str, ...] = ()
    tables: tuple[str, ...] = field(default=())


def verdict(cases: pd.Series) -> str:
    """One of five: all cases, all but a tenth, more, at most a tenth, none."""
    share_true = cases.mean()
    if share_true in (0.0, 1.0):
        return HOLDS if share_true else NOT
    if min(share_true, 1.0 - share_true) > _FEW:
        return PART
    return MOSTLY if share_true > _FEW else RARELY


def parts_of(frame: pd.DataFrame, conditions: Mapping[str, Condition]) -> tuple[Part, ...]:
    """One part for each condition."""
    return tuple(Part(words, judge(frame, condition)) for words, condition in conditions.items())


def escaped(words: str) -> str:
    """Words as a cell of a table holds them."""
    return words.replace("|", "\\|")


def cell(cases: Mapping[str, pd.Series], name: str) -> str:
    """A verdict with its count; empty where nothing was run."""
    if name not in cases:
        return ""
    return f"**{verdict(cases[name])}** ({share(cases[name])})"


def sweep(
    frame: pd.DataFrame,
    words: str,
    values: Condition,
    thresholds: Iterable[float],
    form: Callable[[float], str],
) -> str:
    """Where a verdict turns: in how many cases a number is at most each threshold."""
    plain = numbers(frame, PCA)
    found = {name: values(numbers(frame, name), plain) for name in COLUMNS}
    lines = [
        f"| {escaped(words)} | {' | '.join(COLUMNS.values())} |",
        "|---" * (1 + len(COLUMNS)) + "|",
    ]
    for threshold in thresholds:
        cells = [share(found[name] <= threshold) for name in COLUMNS]
        lines.append(f"| at most {form(threshold)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def ways(
    evidence: Evidence, frame: pd.DataFrame, conditions: Mapping[str, Condition], **choices: object
) -> str:
    """The printed form with what the paper leaves open; of random starts the least and the most."""
    plain = numbers(frame, PCA)
    table = only(evidence.printed, **choices)
    lines = [
        f"| as printed | {' | '.join(map(escaped, conditions))} |",
        "|---" * (1 + len(conditions)) + "|",
    ]
    for (start, alpha), words in _WAYS.items():
        for steps, length in _LENGTHS.items():
            part = only(table, start=start, steps=steps)
            part = part[part["alpha"].astype(str) == alpha]
            seeds = [one.set_index(SETTING) for _, one in part.groupby("seed")]
            seeds = [one[one.index.isin(plain.index)] for one in seeds]
            cells = []
            for condition in conditions.values():
                counts = sorted(int(condition(one, plain).sum()) for one in seeds)
                least, most = counts[0], counts[-1]
                number = f"{least}" if least == most else f"{least} to {most}"
                cells.append(f"{number} of {len(seeds[0])}")
            lines.append(f"| {words}, {length} | {' | '.join(cells)} |")
    return "\n".join(lines)


def unseen(evidence: Evidence, conditions: Mapping[str, Condition], **choices: object) -> str:
    """The same on rows that were fitted to, and on rows that were not: all dimensions."""
    lines = [
        f"| standardised codes, all dimensions | {' | '.join(COLUMNS.values())} |",
        "|---" * (1 + len(COLUMNS)) + "|",
    ]
    for words, condition in conditions.items():
        for part, rows in (("train", "training rows"), ("test", "held-out rows")):
            lines.append(
                f"| {escaped(words)}: {rows} | {held_out(evidence, condition, part, **choices)} |"
            )
    return "\n".join(lines)
