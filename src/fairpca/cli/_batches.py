"""Tables that are read in batches: data frames that have the types of the whole table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import pyarrow

from fairpca._rows.text import short_text
from fairpca.cli._csv_batches import CsvBatches
from fairpca.cli._tables import check_table, from_arrow, reading
from fairpca.cli._terminal import BadInputError, refusing, stage
from fairpca.sources.columns import INDEX, Columns
from fairpca.sources.files import TableFile
from fairpca.tables.preparation import check_column_names

_BATCH_VALUES, _MOST_ROWS = 2**20, 2**16
"""How large a batch may be: text in data frames takes many times the memory of numbers."""

Progress = Callable[[str, int, int], None]


class _Reader(Protocol):
    """A file of some format."""

    names: list[str]

    def learn_types(
        self, read: Collection[str], shown: Collection[str], step: int
    ) -> Iterator[tuple[int, float]]: ...

    def frames(self, columns: Sequence[str], step: int) -> Iterator[tuple[Any, float]]: ...

    def not_numeric(self, columns: Sequence[str]) -> list[str]: ...

    def arrow_type(self, name: str) -> Any: ...


class TableBatches:
    """A file of a table that is read in batches, as often as needed.

    Parameters
    ----------
    path : Path
        The file. It must not change as long as this is used.
    text_columns : collection of str, default=()
        Columns that are text even where they look like numbers.

    Attributes
    ----------
    names : list of str
        Names of the columns.
    """

    def __init__(self, path: Path, text_columns: Collection[str] = ()) -> None:
        suffix = check_table(path)
        self.path = path
        with reading(path):
            self._file = TableFile.of(path)
            self._reader: _Reader
            if suffix == ".csv":
                self._reader = CsvBatches(self._file, text_columns)
            else:
                self._reader = _ArrowBatches(self._file)
        self.names = self._reader.names

    def check_carried(self, carry: Collection[str], output: Path | None) -> None:
        """Refuse columns that a file written in batches would not have as one written at once."""
        if output is None:
            return
        uncertain = _uncertain_in_csv if output.suffix.lower() == ".csv" else _uncertain_in_arrow
        for name, kind in self.arrow_types(carry).items():
            if uncertain(kind):
                raise BadInputError(
                    f"the column {short_text(name)!r} cannot be carried over in batches, since "
                    f"its type is {kind}: leave it out, or use --no-stream."
                )

    def arrow_types(self, columns: Collection[str]) -> dict[str, Any]:
        """The Arrow types that columns have where pandas has them as Python objects."""
        return {name: self._reader.arrow_type(name) for name in columns}

    def not_numeric(self, columns: Sequence[str]) -> list[str]:
        """Those of the columns that may hold something else than numbers."""
        return self._reader.not_numeric(columns)

    def learn_types(self, read: Collection[str], shown: Collection[str]) -> None:
        """Find the types of columns, before the first batches.

        Parameters
        ----------
        read : collection of str
            The columns that will be read.
        shown : collection of str
            Those whose values are shown or copied, as labels are. A missing value in any batch
            makes others of whole numbers, which does not matter where none may be missing.
        """
        doing, rows = f"looking through {self.path.name}", 0
        with stage(doing) as progress, reading(self.path):
            for more, share in self._reader.learn_types(read, shown, _step(len(self.names))):
                rows += more
                self._tell(progress, doing, rows, share)

    def frames(
        self, progress: Progress, doing: str, columns: Sequence[str], width: int = 0
    ) -> Iterator[Any]:
        """Data frames of some rows each, which together are the table.

        Parameters
        ----------
        progress : callable
            What `stage` gives.
        doing : str
            What is being done, for it.
        columns : sequence of str
            The columns to read, in this order.
        width : int, default=0
            How many columns the rows will become: more of them need smaller batches.
        """
        rows = 0
        with reading(self.path):
            for frame, share in self._reader.frames(columns, _step(max(len(columns), width))):
                if len(frame):
                    rows += len(frame)
                    yield frame
                    self._tell(progress, doing, rows, share)
        with refusing():
            self._file.check_unchanged()
        if rows == 0:
            raise BadInputError(f"{str(self.path)!r} has no rows.")

    def _tell(self, progress: Progress, doing: str, rows: int, share: float) -> None:
        size = max(1, round(self._file.size / 1e6))
        progress(f"{doing}: {rows:,} rows, megabyte", min(round(share * size), size), size)


def _step(n_columns: int) -> int:
    return max(1, min(_BATCH_VALUES // n_columns, _MOST_ROWS))


class _ArrowBatches:
    """A Parquet or Arrow file, whose schema says nearly all about types."""

    def __init__(self, file: TableFile) -> None:
        self._file = file
        self._schema = pyarrow.schema([])
        self._find_schema()
        # An index without a name is no data.
        self.names = [n for n in check_column_names(self._schema.names) if not INDEX.fullmatch(n)]
        self._with_nulls: set[str] = set()

    def learn_types(
        self, read: Collection[str], shown: Collection[str], step: int
    ) -> Iterator[tuple[int, float]]:
        """Go over columns of whole numbers and truth values in search of missing ones."""
        names = [n for n in self.names if n in shown and _changes_with_nulls(self._kind(n))]
        if not names:
            return
        for batch, share in self._batches(names):
            self._with_nulls.update(name for name in names if batch.column(name).null_count)
            yield batch.num_rows, share

    def frames(self, columns: Sequence[str], step: int) -> Iterator[tuple[Any, float]]:
        """Some columns in batches of `step` rows, each with the share of the file that was read."""
        types = {
            name: object if pyarrow.types.is_boolean(self._kind(name)) else float
            for name in columns
            if name in self._with_nulls
        }
        for batch, share in self._batches(columns):
            for start in range(0, batch.num_rows, step):
                part = pyarrow.Table.from_batches([batch.slice(start, step)])
                yield from_arrow(part).astype(types)[list(columns)], share

    def not_numeric(self, columns: Sequence[str]) -> list[str]:
        """Those of the columns that may hold something else than numbers."""
        types = pyarrow.types
        return [
            name
            for name in columns
            if not (_changes_with_nulls(self._kind(name)) or types.is_floating(self._kind(name)))
        ]

    def arrow_type(self, name: str) -> Any:
        """The type that Arrow makes of pandas' objects."""
        kind = self._kind(name)
        if _is_text(kind):
            return pyarrow.string()
        return pyarrow.date32() if pyarrow.types.is_date(kind) else kind

    def _kind(self, name: str) -> Any:
        return self._schema.field(name).type

    def _find_schema(self) -> None:
        def settle(schema: Any) -> Columns:
            self._schema = schema
            raise _EnoughError

        with suppress(_EnoughError), refusing():
            next(self._file.batches(settle), None)

    def _batches(self, columns: Sequence[str]) -> Iterator[tuple[Any, float]]:
        """Record batches of some columns."""
        with refusing():  # which already name the file
            yield from self._file.batches(lambda _: Columns(tuple(columns), (), None, False))


class _EnoughError(Exception):
    """The schema is known, and no rows are needed yet."""


def _uncertain_in_csv(kind: Any) -> bool:
    """Whether pandas may write a value in another way because of others: times as days, say."""
    types = pyarrow.types
    if types.is_dictionary(kind):
        return _uncertain_in_csv(kind.value_type)
    return bool(types.is_nested(kind) or (types.is_temporal(kind) and not types.is_date32(kind)))


def _uncertain_in_arrow(kind: Any) -> bool:
    """Whether the type that is written depends on the values: dictionaries, decimals, lists."""
    types = pyarrow.types
    return not (_is_text(kind) or types.is_primitive(kind) or types.is_null(kind))


def _is_text(kind: Any) -> bool:
    return bool(pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind))


def _changes_with_nulls(kind: Any) -> bool:
    return bool(pyarrow.types.is_integer(kind) or pyarrow.types.is_boolean(kind))
