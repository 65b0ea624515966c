"""GroupTable: who pays, as a table for the terminal, the notebook and data frames."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._linalg.types import Array
from fairpca._rows.checks import import_pandas
from fairpca._rows.text import (
    formatted,
    html_table,
    label_text,
    number_format,
    short_text,
    text_table,
)
from fairpca.problem import Problem


@dataclass(frozen=True, eq=False, repr=False)
class GroupTable:
    """Losses and disparities of each group, with a reduction and with ordinary PCA.

    Attributes
    ----------
    name : str
        What the reduction is called in the column heads.
    labels : tuple of length k
        The groups.
    count : integer array of shape (k,)
        Rows of each group.
    own_loss : array of shape (k,)
        Loss of each group with its own PCA: the least possible in this dimension.
    pca_loss : array of shape (k,)
        Loss with ordinary PCA on all rows.
    loss : array of shape (k,)
        Loss with the reduction.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> fair = FairPCA(2).fit(X, sensitive_features=["a"] * 100 + ["b"] * 200)
    >>> fair.group_table_
    group               rows  own PCA loss  PCA loss  fair loss  PCA disparity  fair disparity
    ------------------------------------------------------------------------------------------
    a                    100        2.2762    4.6726     4.7416         2.3965          2.4654
    b                    200        1.7882    4.2878     4.2536         2.4997          2.4654
    ------------------------------------------------------------------------------------------
    largest difference                                                  0.1032          0.0000
    """

    name: str
    labels: tuple[Hashable, ...]
    count: NDArray[np.int64]
    own_loss: Array
    pca_loss: Array
    loss: Array

    @classmethod
    def from_problem(cls, problem: Problem, loss: Array, name: str) -> GroupTable:
        """The table for losses that some reduction has on a problem."""
        moments, pca_loss = problem.moments, problem.group_losses(problem.pca_basis)
        return cls(name, moments.labels, moments.count, problem.own_losses, pca_loss, loss)

    @property
    def disparity(self) -> Array:
        """What each group loses with the reduction beyond its own PCA; (k,)."""
        return self.loss - self.own_loss

    @property
    def pca_disparity(self) -> Array:
        """What each group loses with ordinary PCA beyond its own PCA; (k,)."""
        return self.pca_loss - self.own_loss

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns by name, as lists."""
        return {
            "group": [label_text(label) for label in self.labels],
            "rows": self.count.tolist(),
            "own PCA loss": self.own_loss.tolist(),
            "PCA loss": self.pca_loss.tolist(),
            f"{self.name} loss": self.loss.tolist(),
            "PCA disparity": self.pca_disparity.tolist(),
            f"{self.name} disparity": self.disparity.tolist(),
        }

    def to_frame(self) -> Any:
        """The table as a pandas data frame, with the labels of the groups as its index.

        Groups of several sensitive features have an index of several levels.
        """
        pandas = import_pandas()
        frame = pandas.DataFrame(self.to_dict()).drop(columns="group")
        if all(isinstance(label, tuple) for label in self.labels):
            frame.index = pandas.MultiIndex.from_tuples(self.labels)
        else:
            frame.index = pandas.Index(self.labels, name="group")
        return frame

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return text_table(*self._cells())

    def _repr_html_(self) -> str:
        return html_table(*self._cells())

    def _cells(self) -> tuple[list[str], list[list[str]], list[str]]:
        """Head, one row for each group, and a last row with the largest differences."""
        columns = self.to_dict()
        groups, counts, *numbers = columns.values()
        form = number_format(numbers)
        rows = [
            [short_text(group), f"{count:,}", *(formatted(value, form) for value in values)]
            for group, count, *values in zip(groups, counts, *numbers, strict=True)
        ]
        spreads = [formatted(np.ptp(values), form) for values in numbers[-2:]]
        return list(columns), rows, ["largest difference", "", "", "", "", *spreads]
