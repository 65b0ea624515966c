"""Whether matrices can be scatters: symmetric and positive semi-definite, up to rounding."""

import numpy as np
from scipy.linalg import lapack

from fairpca._linalg.types import Array
from fairpca.files.checks import require

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
