"""The tables that claims are judged by, and how numbers are taken from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

import pandas as pd

from studies.reproduction.data import REFERENCE
from studies.reproduction.methods import EXACT, PARETO, PCA, PRINTED
from studies.reproduction.plots.style import only
from studies.reproduction.sweep import THIRD, by_setting

SETTING = ["data", "sensitive", "preprocessing", "loss", "r"]
VALUES = ("total loss", "mean disparity", "mean pairwise", "largest disparity", "spread")

COLUMNS = {PRINTED: "as printed", PARETO: "our default", EXACT: "exact"}
"""What is judged side by side, and how the columns are headed."""

Condition = Callable[[pd.DataFrame, pd.DataFrame], pd.Series]
"""Takes the numbers of a method and those of ordinary PCA to whether something holds, by case."""


@dataclass(frozen=True)
class Evidence:
    """All tables."""

    methods: pd.DataFrame
    preprocessings: pd.DataFrame
    classifiers: pd.DataFrame
    printed: pd.DataFrame
    heldout: pd.DataFrame
    remedy: pd.DataFrame
    times: pd.DataFrame
    exponents: pd.DataFrame
    starts: pd.DataFrame
    steps: pd.DataFrame
    sdp: pd.DataFrame
    groupings: pd.DataFrame

    @classmethod
    def read(cls, folder: Path) -> Evidence:
        """The tables as they were written, so that the page follows from them alone."""
        return cls(
            **{field.name: pd.read_csv(folder / f"{field.name}.csv") for field in fields(cls)}
        )

    def cases(self, *, third: bool = False, **choices: object) -> pd.DataFrame:
        """All dimensions of the reference preprocessing, and three of the others; by group.

        Of the paper's data, or of the third data set.
        """
        other = self.preprocessings
        other = other[(other["preprocessing"] != REFERENCE) | (other["loss"] != "mean")]
        frame = pd.concat([self.methods, other])
        return only(frame[(frame["data"] == THIRD[0]) == third], **choices)


def numbers(frame: pd.DataFrame, method: str) -> pd.DataFrame:
    """The numbers of a method, by setting and dimension, and how many groups are not served."""
    plain = frame[frame["method"] == PCA].set_index([*SETTING, "group"])["disparity"]
    part = frame[frame["method"] == method].set_index([*SETTING, "group"])
    own = part["own loss"]
    counts = pd.DataFrame(
        {
            "worse off": part["disparity"] > plain.reindex(part.index) * (1 + 1e-9),
            "far": part["disparity"] > 0.05 * own.where(own > 0),
        }
    )
    whole = by_setting(frame[frame["method"] == method]).set_index(SETTING)
    return whole.assign(**{name: counts.groupby(level=SETTING)[name].sum() for name in counts})


def ratio(value: str) -> Callable[[pd.DataFrame, pd.DataFrame], pd.Series]:
    """A number of a method over that of ordinary PCA."""
    return lambda found, plain: found[value] / plain[value].reindex(found.index)


def at_most(value: str, part: float) -> Condition:
    """Whether a number of a method is at most this part of that of ordinary PCA."""
    return lambda found, plain: ratio(value)(found, plain) <= part


def price(found: pd.DataFrame, plain: pd.DataFrame) -> pd.Series:
    """What is lost in total above ordinary PCA, in per cent."""
    return 100 * (ratio("total loss")(found, plain) - 1)


def judge(frame: pd.DataFrame, condition: Condition) -> dict[str, pd.Series]:
    """Whether a condition holds, by case, for each of the columns."""
    plain = numbers(frame, PCA)
    return {name: condition(numbers(frame, name), plain) for name in COLUMNS}


def held_out(evidence: Evidence, condition: Condition, part: str, **choices: object) -> str:
    """In how many cases a condition holds on rows of a part, for each of the columns."""
    frame = only(evidence.heldout, part=part, **choices).set_index(["data", "sensitive", "r"])
    plain = frame[frame["method"] == PCA]
    cells = [condition(frame[frame["method"] == name], plain) for name in COLUMNS]
    return " | ".join(share(cell) for cell in cells)


def share(cases: pd.Series) -> str:
    """In how many cases, of how many."""
    return f"{int(cases.sum())} of {len(cases)}"


def span(values: pd.Series, form: str = ".3g", unit: str = "") -> str:
    """The median, and between what the middle half lies."""
    low, middle, high = values.quantile([0.25, 0.5, 0.75])
    half = f"{low:{form}} to {high:{form}}{unit} in the middle half"
    return f"{middle:{form}}{unit} in the median ({half})"
