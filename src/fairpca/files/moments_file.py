"""Files of moments (suffix ``.moments``), in the manner of model files and without pickle.

`SCHEMA` says what is in them, beside what archives have (`fairpca.files.archive`). Labels of groups
are texts, numbers and truth values as they are, intersections as lists, and dates, times, decimal
numbers and folds as ``{kind: text}``. Others become texts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import lapack

from fairpca._linalg.types import Array
from fairpca.files.archive import (
    COUNT,
    POSITIVE,
    ROWS,
    TEXT,
    FileFormat,
    Optional,
    Texts,
    Values,
    labels,
    quoted,
    require,
    shown_source,
    taking_for_damage,
)
from fairpca.groups import Fold, warn_of_small_groups

# Whether matrices can be scatters: symmetric and positive semi-definite, up to rounding.

_MOST_FACTORED = 1000
"""Columns up to which a matrix is factored, which takes about as long as reading it. Of larger ones
(at 5,000 columns that would be seconds for each group) only the diagonal and each pair of columns
are looked at: no entry may be larger than the variances of its two columns allow."""

_BLOCK = 256
"""Rows of a matrix that are looked at together, so that the check takes little memory."""

_ROUNDING = 1e-6
"""What scatters may miss, relative to the sizes of their columns."""

_MEAN_SHARE = 1e-5
"""How far the mean of a column counts as its size, squared: sums of squares are rounded by 1e-11 of
those of the raw column, which for columns far from zero is more than 1e-6 of their scatter."""

_TINY = 1e-150
"""Columns of smaller size have squares that underflow, and are taken to have this one."""


def check_scatters(scatter: Array, mean: Array, weight: Array, called: list[str]) -> None:
    """Refuse scatters of shape (k, d, d) that no rows have; the others stay as they are."""
    with np.errstate(all="ignore"):  # of numbers near the largest there are
        for matrix, centre, total, name in zip(scatter, mean, weight, called, strict=True):
            diagonal = np.diagonal(matrix)
            squares = np.maximum(diagonal, 0.0) + _MEAN_SHARE * total * centre**2
            sizes = np.maximum(np.sqrt(squares), _TINY)
            what = f"the scatter of its group {name}"
            require(
                (diagonal >= -_ROUNDING * sizes**2).all(),
                f"{what} has a negative sum of squares",
            )
            for start in range(0, len(matrix), _BLOCK):
                block = slice(start, start + _BLOCK)
                room = sizes[block, None] * sizes
                differences = np.abs(matrix[block] - matrix[:, block].T)
                require(
                    (differences <= _ROUNDING * room).all(), f"{what} is not the same both ways"
                )
                require(
                    (np.abs(matrix[block]) <= (1.0 + _ROUNDING) * room).all(),
                    f"{what} has entries that are larger than its sums of squares allow",
                )
            if 2 < len(matrix) <= _MOST_FACTORED:
                scaled = matrix / sizes[:, None]
                scaled /= sizes
                scaled.flat[:: len(matrix) + 1] += _ROUNDING
                failed = lapack.dpotrf(scaled.T, overwrite_a=True)[1]
                require(failed == 0, f"{what} is not positive semi-definite, as all scatters are")


SCHEMA = {
    "mean": Values("kd"),
    "count": ROWS,
    "weight": Values("k", POSITIVE),
    "weight_squares": Optional(Values("k", POSITIVE)),
    "scatter": Values("kdd"),
    "labels": labels,
    # As in a data frame, two columns may have the same name.
    "feature_names": Optional(Texts("d", different=False)),
    "group_names": Optional(Texts()),
    "n_dropped": COUNT,
    "pass": Optional({"asked": TEXT, "files": [{"name": TEXT, "size": COUNT, "changed_ns": TEXT}]}),
}
"""What a file of moments holds, of k groups and d columns: the attributes of `GroupMoments`, and
under ``pass`` what a pass over files has read so far (see `fairpca.sources`)."""

FILE = FileFormat("fairpca moments", 1, "file of moments", SCHEMA)


def save(path: str | Path, moments: Any) -> None:
    """Write the moments that a user saves, with a warning if they tell of single rows."""
    if not moments.is_finite:
        raise ValueError("Moments that are not finite cannot be saved.")
    warn_of_small_groups("file of moments", moments.group_texts, moments.count)
    write(path, moments)


def write(path: str | Path, stored: Any, reading: dict[str, Any] | None = None) -> None:
    """Write moments to a file, with what has been read if they are those of a pass."""
    FILE.write(path, {**_source(stored), "pass": reading})


def read(source: str | Path | bytes) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The attributes of the moments of a file or its bytes, and what a pass had read, if any."""
    found = FILE.read(source)
    with taking_for_damage(shown_source(source)):
        reading, groups = found.pop("pass"), found["labels"]
        widths = {len(label) if isinstance(label, tuple) else 1 for label in groups}
        require(len(widths) <= 1, "its groups go by different numbers of sensitive columns")
        folds = {isinstance(label, tuple) and isinstance(label[-1], Fold) for label in groups}
        require(len(folds) <= 1, "some of its groups are in folds and others are not")
        names = found["group_names"]
        fit = names is None or not widths or {len(names)} == widths
        require(fit, "its group_names are not one for each sensitive column")
        called = [quoted(label) for label in groups]
        check_scatters(found["scatter"], found["mean"], found["weight"], called)
        return found, reading


def pack(stored: Any) -> bytes:
    """Moments as the bytes of such a file."""
    return b"".join(FILE.parts({**_source(stored), "pass": None}))


def _source(stored: Any) -> dict[str, Any]:
    return {name: getattr(stored, name) for name in SCHEMA if name != "pass"}
