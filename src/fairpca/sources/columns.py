"""Which columns of a table are features, make the groups, or hold the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow

from fairpca._rows.text import listed
from fairpca.tables.columns import MOST_NAMES, check_column_names, is_numeric, require_columns
from fairpca.tables.reading import INDEX


@dataclass(frozen=True)
class ColumnChoice:
    """What the user says of the columns; `features` is None for all numeric ones."""

    features: tuple[str, ...] | None
    sensitive: tuple[str, ...]
    weight: str | None

    @classmethod
    def of(
        cls,
        features: Sequence[str] | None,
        sensitive_features: str | Sequence[str] | None,
        sample_weight: str | None,
    ) -> ColumnChoice:
        """Check names as the user gives them."""
        sensitive = _names("sensitive_features", sensitive_features)
        chosen = None if features is None else _names("features", features)
        if chosen is not None and not chosen:
            raise ValueError("features must name at least one column.")
        if not (sample_weight is None or isinstance(sample_weight, str)):
            raise TypeError("sample_weight must be the name of a column.")
        return cls(chosen, sensitive, sample_weight)

    def columns(self, schema: Any, known: Columns | None = None) -> Columns:
        """The columns of a table with this schema; those of the first, where they are known."""
        if known is not None:
            known.check(schema)
            return known
        names = check_column_names(schema.names)
        others = {name for name in (*self.sensitive, self.weight) if name is not None}
        require_columns(names, [*others, *(self.features or ())])
        features = self.features
        if features is None:
            features = tuple(name for name in _numeric(schema) if name not in others)
            if not features:
                raise ValueError("The table has no numeric columns besides those for groups.")
        found = Columns(features, self.sensitive, self.weight, self.features is None)
        found.check(schema)
        return found


@dataclass(frozen=True)
class Columns:
    """The columns that are read.

    `all_numeric` says that the features are all numeric columns that there were, so that a further
    table with more of them is another table.
    """

    features: tuple[str, ...]
    sensitive: tuple[str, ...]
    weight: str | None
    all_numeric: bool

    @property
    def names(self) -> list[str]:
        """Each column that is read, once."""
        return list(dict.fromkeys((*self.features, *self.sensitive, *self.numbers)))

    @property
    def numbers(self) -> set[str]:
        """The columns that must hold numbers."""
        return {*self.features, *([self.weight] if self.weight is not None else [])}

    def types(self, schema: Any) -> dict[str, Any]:
        """The types to read a CSV file in: features and weights as numbers, labels as text."""
        kinds = dict.fromkeys(self.sensitive, pyarrow.string())
        for name in self.numbers:
            boolean = pyarrow.types.is_boolean(schema.field(name).type)
            kinds[name] = pyarrow.bool_() if boolean else pyarrow.float64()
        return kinds

    def check(self, schema: Any) -> None:
        """Raise ValueError unless a table with this schema has these columns, with numbers."""
        names = check_column_names(schema.names)
        require_columns(names, self.names)
        text = [n for n in names if n in self.numbers and not is_numeric(schema.field(n).type)]
        if text:
            kinds = ", ".join(str(schema.field(name).type) for name in text[:MOST_NAMES])
            raise ValueError(
                f"Columns hold no numbers: {listed(text, MOST_NAMES)} ({kinds}); encode them or "
                "leave them out."
            )
        if self.all_numeric:
            known = {*self.names}
            more = [name for name in _numeric(schema, nulls=False) if name not in known]
            if more:
                raise ValueError(
                    f"The table has numeric columns that the first one has not: "
                    f"{listed(more, MOST_NAMES)}; name the features to leave them out."
                )


def _numeric(schema: Any, *, nulls: bool = True) -> list[str]:
    found = [
        field for field in schema if is_numeric(field.type) and not INDEX.fullmatch(field.name)
    ]
    return [f.name for f in found if nulls or not pyarrow.types.is_null(f.type)]


def _names(what: str, names: str | Sequence[str] | None) -> tuple[str, ...]:
    if names is None:
        return ()
    chosen = (names,) if isinstance(names, str) else tuple(names)
    if not all(isinstance(name, str) for name in chosen):
        raise TypeError(f"{what} must be names of columns, not the values themselves.")
    repeated = [name for name in dict.fromkeys(chosen) if chosen.count(name) > 1]
    if repeated:
        raise ValueError(f"{what} names columns twice: {listed(repeated, MOST_NAMES)}.")
    return chosen
