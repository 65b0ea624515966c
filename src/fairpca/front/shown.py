"""A front in columns, in a table and in words."""

from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca._rows.text import distinct_texts, formatted, number_format
from fairpca.problem import Problem

_SHOWN_POINTS = 8
"""Points in the printed table of a front."""

_ROUNDING = 1e-9
"""Part of the largest number below which another is shown as zero."""


def shown_measures(problem: Problem, measures: Array) -> Array:
    """Measures as they are shown: what is kept has no minus sign."""
    if problem.measure != "variance":
        return measures
    shown: Array = problem.measured.constants - measures
    return shown


def columns_of(front: Any) -> dict[str, list[Any]]:
    """The columns by name, as lists with one entry for each point."""
    moments, noun = front.problem.moments, _noun(front)
    names = distinct_texts(moments.labels, moments.group_names)
    shown = shown_measures(front.problem, front.measures)
    columns: dict[str, list[Any]] = {
        worst_of(front): np.abs(front.largest).tolist(),
        "spread": front.spread.tolist(),
        "total loss": front.total_loss.tolist(),
        "extra loss": front.extra_loss.tolist(),
        "relative gap": front.relative_gap.tolist(),
        "status": [solution.certificate.status for solution in front],
    }
    for name, measures in zip(names, shown.T, strict=True):
        columns[f"{noun} of {name}"] = measures.tolist()
    return columns


def cells_of(front: Any) -> tuple[list[str], list[list[str]]]:
    """Head and a few of the points, the first and the last among them."""
    few = _few(front)
    noun, shown = _noun(front), shown_measures(front.problem, front.measures)
    kept = front.problem.measure == "variance"
    best = f"largest {noun}" if kept else f"least {noun}"
    numbers = {
        worst_of(front): np.abs(front.largest),
        "total loss": front.total_loss,
        "extra loss": 100 * front.extra_loss,
        best: shown.max(axis=1) if kept else shown.min(axis=1),
        "spread": front.spread,
    }
    if front.over == "spread":
        first, *rest, last = numbers
        numbers = {name: numbers[name] for name in (last, *rest, first)}
    sizes = [values for name, values in numbers.items() if name != "extra loss"]
    form, least = number_format(sizes), _ROUNDING * max(np.abs(v).max() for v in sizes)
    rows = [
        [
            str(i),
            *(
                formatted(values[i], ".2f", 100 * _ROUNDING) + " %"
                if name == "extra loss"
                else formatted(values[i], form, least)
                for name, values in numbers.items()
            ),
            front[i].certificate.status,
        ]
        for i in few
    ]
    heads = [" ".join(name.split(" ")[:-1]) + f"\n{name.split(' ')[-1]}" for name in numbers]
    return ["point", *heads, "status"], rows


def sentences_of(front: Any) -> list[str]:
    """How many points are proven optimal, and what is proven of the fairest."""
    shown = len(_few(front))
    some = f"The table has {shown} of {len(front)} points. " if shown < len(front) else ""
    proven = sum(solution.certificate.status == "optimal" for solution in front)
    gap = "" if proven == len(front) else f", the largest gap is {front.relative_gap.max():.2g}"
    return [
        f"{some}{proven} of {len(front)} points proven optimal{gap}. The fairest:",
        *front[-1].certificate.sentences(),
    ]


def _few(front: Any) -> Array:
    """The numbers of the points in the table."""
    few: Array = np.linspace(0, len(front) - 1, min(len(front), _SHOWN_POINTS)).round().astype(int)
    return few


def _noun(front: Any) -> str:
    noun: str = front[0].certificate.measure
    return noun


def worst_of(front: Any) -> str:
    """What the largest measure is called."""
    return f"{'least' if front.problem.measure == 'variance' else 'largest'} {_noun(front)}"
