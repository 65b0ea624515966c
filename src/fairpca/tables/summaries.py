"""What is kept of a column as its batches pass by: enough to encode and to standardise it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca.tables.columns import encoded_text, numbers


@dataclass
class ColumnSummary:
    """Mean, variance and range of the numbers of a column, or how often each text occurs."""

    n_rows: int = 0
    n_missing: int = 0
    mean: float = 0.0
    squares: float = 0.0  # of the deviations from the mean
    low: float = np.inf
    high: float = -np.inf
    texts: Counter[str] | None = None

    def see(self, source: Any, name: str) -> None:
        """Take in the column of a batch, or raise ValueError if it has neither numbers nor text."""
        self.n_rows += len(source)
        encoded = encoded_text(source, name)
        if encoded is None:
            self._see_numbers(numbers(source))
            return
        labels, codes = encoded
        here = codes[codes >= 0]
        self.n_missing += len(codes) - len(here)
        counts = np.bincount(here, minlength=len(labels)).tolist()
        self.texts = self.texts or Counter()
        self.texts.update(dict(zip(map(str, labels), counts, strict=True)))

    def _see_numbers(self, values: Array) -> None:
        finite = np.isfinite(values)
        if not finite.all():
            values = values[finite]
            self.n_missing += len(finite) - len(values)
        if len(values) == 0:
            return
        share = len(values) / (self.n_rows - self.n_missing)
        with np.errstate(over="ignore", invalid="ignore"):
            here = values.mean()
            self.squares += np.square(values - here).sum()
            if share < 1.0:  # what the means so far and here differ by
                self.squares += np.square(here - self.mean) * (1.0 - share) * len(values)
            self.mean = here if share == 1.0 else self.mean + share * (here - self.mean)
        self.low = min(self.low, float(values.min()))
        self.high = max(self.high, float(values.max()))

    def scaling(self, kind: str, categories: Sequence[str]) -> tuple[Array, Array]:
        """Means and standard deviations of the columns that it becomes, without missing values.

        Deviations are 1 where `StandardScaler` takes them to be: in columns of equal values, and
        where they are no more than rounding. Infinite ones say that squares are too large.
        """
        n = self.n_rows
        if kind == "number":
            # The mean of equal numbers may differ from them by rounding, which should not be left.
            same = self.low == self.high
            means = np.array([self.low if same else self.mean])
            variances = np.array([0.0 if same else self.squares / n])
        else:
            found: Mapping[str, int] = self.texts or {}
            counts = np.array([found[text] for text in categories], dtype=np.float64)
            if kind == "codes":
                positions = np.arange(len(counts))
                means = np.array([counts @ positions / n])
                variances = np.array([counts @ (positions - means) ** 2 / n])
            else:
                means = counts / n
                variances = means * (1.0 - means)
        eps = np.finfo(float).eps
        with np.errstate(over="ignore", invalid="ignore"):
            rounding = np.isfinite(variances) & (
                variances <= n * eps * variances + (n * means * eps) ** 2
            )
        return means, np.where(rounding, 1.0, np.sqrt(variances))
