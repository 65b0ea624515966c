"""A table of groups as it is printed, and in words."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca._rows.cells import TextTable
from fairpca._rows.text import formatted, number_format, short_texts

NO_CHANGE = 1e-9
"""Part of a group's variance below which it is neither better nor worse off: rounding."""

TRAINING = "training "
"""Before the names of columns that are about the PCA of other rows."""

_PERCENT = ".1f"

_UNKNOWN = "unknown"

_TIED = 1e-6
"""Part of the largest disparity by which another may be smaller and still count as the largest."""


def table_of(table: Any, groups: Sequence[int]) -> TextTable:
    """A row for each of these groups, and a last one with the largest differences."""
    form, least = _number_format(table), _rounding(table)
    own, pca = (name.replace(TRAINING, "training\n") for name in table.baseline_names)
    disparities = {
        f"{pca}\ndisparity": table.pca_disparity,
        f"{table.name}\ndisparity": table.disparity,
    }
    for name, values in zip((pca, table.name), table.held_out or (), strict=False):
        disparities[f"{name} disp.\nheld out"] = values
    columns: dict[str, tuple[Any, str]] = {
        "rows": (table.count, ","),
        "variance": (table.variance, form),
        f"{own}\nloss": (table.own_loss, form),
        f"{pca}\nloss": (table.pca_loss, form),
        f"{pca}\n% lost": (100.0 * table.share_of(table.pca_loss), _PERCENT),
        f"{table.name}\nloss": (table.loss, form),
        f"{table.name}\n% lost": (100.0 * table.share_of(table.loss), _PERCENT),
        **{name: (values, form) for name, values in disparities.items()},
    }
    names = short_texts(table.group_texts())
    rows = [
        [
            names[i],
            *(
                _known(values[i], form, 100.0 * NO_CHANGE if form == _PERCENT else least)
                for values, form in columns.values()
            ),
        ]
        for i in groups
    ]
    spreads = [_known(spread_of(part), form, least) for part in disparities.values()]
    foot = ["largest difference", *[""] * (len(columns) - len(spreads)), *spreads]
    head, units = ["group", *columns], [2, 3, 2] + [2] * (len(disparities) // 2)
    worst = {
        (row, column)
        for column, values in enumerate(disparities.values(), len(head) - len(disparities))
        for row, i in enumerate(groups)
        if i in _largest(values)
    }
    if table.intervals is not None:
        head.append(f"{table.name} disparity\n95 % interval")
        units.append(1)
        known = table.difference_interval or (np.nan, np.nan)
        ends = [*(table.intervals.disparity[i] for i in groups), known]
        for cells, (low, high) in zip([*rows, foot], ends, strict=True):
            said = f"{formatted(low, form, least)} to {formatted(high, form, least)}"
            cells.append(said if np.isfinite(low) else _UNKNOWN)
    return TextTable(head, rows, foot, units, frozenset(worst))


def compared(table: Any) -> str:
    """Who is better and who is worse off than with ordinary PCA; one group with nobody."""
    k, better, worse = len(table), table.n_better_off, table.n_worse_off
    pca = "ordinary PCA" if table.baseline == "rows" else "the PCA of the training rows"
    if k == 1:
        return ""
    if not better and not worse:
        return f"Every group is as well off as with {pca}."
    if k in (better, worse):
        said = f"Every group is {'better' if better else 'worse'} off than with {pca}."
    else:
        said = (
            f"Compared with {pca}, {better or 'none'} of {k} groups "
            f"{'is' if better < 2 else 'are'} better off and {worse or 'none'} "
            f"{'is' if worse < 2 else 'are'} worse off."
        )
    if better:
        said += f" The largest gain: {_moved(table, int(table.change.argmin()), 'less')}."
    if worse:
        said += f" The largest loss: {_moved(table, int(table.change.argmax()), 'more')}."
    if table.pca_is_best and 0 < worse < k:
        said += (
            " Ordinary PCA has the least total loss, so any other subspace leaves some group "
            "worse off."
        )
    return said


def spread_of(values: Array) -> float:
    """The difference between the largest and the smallest number, of those that are known."""
    known = values[~np.isnan(values)]
    return float(np.ptp(known)) if len(known) else float("nan")


def _moved(table: Any, i: int, word: str) -> str:
    change = np.abs(table.change)
    amount = formatted(change[i], _number_format(table), least=0.0)
    share = formatted(100.0 * table.share_of(change)[i], _PERCENT, least=0.0)
    name = short_texts(table.group_texts())[i]
    return f"{name} loses {amount} {word} ({share} % of its variance)"


def _number_format(table: Any) -> str:
    return number_format(column[np.isfinite(column)] for column in _numbers(table))


def _rounding(table: Any) -> float:
    """What is nothing beside the largest number; more than that is never shown as zero."""
    return NO_CHANGE * max(float(np.nan_to_num(column).max()) for column in _numbers(table))


def _numbers(table: Any) -> tuple[Array, ...]:
    return table.variance, table.own_loss, table.pca_loss, table.loss


def _largest(values: Array) -> set[int]:
    """Where the numbers are largest; nowhere if most are, which is what fairness is after."""
    most = np.nanmax(values, initial=0.0)
    found = np.flatnonzero(values >= most - _TIED * abs(most))
    return set(found.tolist()) if 2 * len(found) <= len(values) else set()


def _known(value: float, form: str, least: float) -> str:
    return _UNKNOWN if np.isnan(value) else formatted(value, form, least)
