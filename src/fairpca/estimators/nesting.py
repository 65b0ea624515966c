"""NestingTable: what it costs that the first components are a fair subspace too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca._rows.cells import TextTable, laid_out
from fairpca._rows.checks import import_pandas
from fairpca._rows.text import formatted, html_table, number_format
from fairpca.measures import BY_NOUN
from fairpca.solvers import NestedStep


@dataclass(frozen=True, eq=False, repr=False)
class NestingTable:
    """The largest measure of a group in the first j components, nested and free, for every j.

    Attributes
    ----------
    value : array of shape (r,)
        Largest measure with the first j components.
    free_value : array of shape (r,)
        Largest measure in the best subspace of j dimensions that was found.
    free_bound : array of shape (r,)
        What no subspace of j dimensions can be below.
    status : tuple of str
        Whether component j is proven "optimal", given those before it, or "bounded".
    gap : array of shape (r,)
        By how much it can be too large at the most, given those before it.
    measure : str
        What is measured, in words: see `Certificate`.

    See Also
    --------
    fairpca.solvers.Nested : Finds the subspaces.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> X = np.random.default_rng(0).normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> fair = FairPCA(3, nested=True).fit(X, sensitive_features=["a"] * 100 + ["b"] * 200)
    >>> fair.nesting_
    components  largest disparity  free optimum   price  given the ones before
    --------------------------------------------------------------------------
    1                      3.7654        3.7654  0.0000                optimal
    2                      6.8737        6.8415  0.0321                optimal
    3                      6.5087        6.4829  0.0258                optimal
    --------------------------------------------------------------------------
    """

    value: Array
    free_value: Array
    free_bound: Array
    status: tuple[str, ...]
    gap: Array
    measure: str

    @classmethod
    def from_steps(cls, steps: Sequence[NestedStep]) -> NestingTable:
        """The table of the steps that a nested subspace was found in."""
        return cls(
            value=np.array([step.value for step in steps]),
            free_value=np.array([step.free_value for step in steps]),
            free_bound=np.array([step.free_bound for step in steps]),
            status=tuple(step.certificate.status for step in steps),
            gap=np.array([step.certificate.gap for step in steps]),
            measure=steps[0].certificate.measure,
        )

    @property
    def price(self) -> Array:
        """What nesting costs: how much larger the largest measure is than it need be; (r,)."""
        return np.maximum(self.value - self.free_value, 0.0)

    def __len__(self) -> int:
        return len(self.value)

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns by name, as lists with one entry for each number of components."""
        return {
            "components": list(range(1, len(self) + 1)),
            f"largest {self.measure}": self.value.tolist(),
            "free optimum": self.free_value.tolist(),
            "price": self.price.tolist(),
            "free bound": self.free_bound.tolist(),
            "given the ones before": list(self.status),
            "gap": self.gap.tolist(),
        }

    def to_frame(self) -> Any:
        """The table as a pandas data frame, by number of components."""
        return import_pandas().DataFrame(self.to_dict()).set_index("components")

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return laid_out(self.text_parts())

    def text_parts(self) -> list[TextTable | str]:
        """What is printed: the table."""
        return [TextTable(*self._cells())]

    def _repr_html_(self) -> str:
        return html_table(*self._cells())

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        sign = BY_NOUN[self.measure].sign
        numbers = (sign * self.value, sign * self.free_value, self.price)
        form = number_format(numbers)
        rows = [
            [str(j + 1), *(formatted(part[j], form) for part in numbers), self.status[j]]
            for j in range(len(self))
        ]
        most = "smallest" if sign < 0 else "largest"
        head = ["components", f"{most} {self.measure}", "free optimum", "price"]
        return [*head, "given the ones before"], rows
