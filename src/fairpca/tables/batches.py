"""Table: the rows of a file in batches, as often as needed; a small table is a single batch."""

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow

from fairpca.tables.columns import INDEX, check_column_names
from fairpca.tables.csv_files import CsvFile, OtherTypeError
from fairpca.tables.reading import TableFile, cut

IN_MEMORY = 2**30
"""Files up to this many bytes are read once, and kept in memory as one batch."""

Result = TypeVar("Result")


class Table:
    """The rows of a file in batches, as often as needed.

    Parameters
    ----------
    path : Path
        The file. It must not change as long as this is used.
    text : collection of str, default=()
        Columns that are text in a CSV file, even where they look like numbers.
    in_memory : bool, default=None
        Whether the rows are read once and kept, as one batch; None decides by the file's size.

    Attributes
    ----------
    names : list of str
        Names of the columns.
    in_memory : bool
        Whether all rows are one batch.
    """

    def __init__(
        self, path: Path, *, text: Collection[str] = (), in_memory: bool | None = None
    ) -> None:
        self._file = TableFile.of(path)
        self._source = self._file.open(text)
        with self._file.naming():
            names = check_column_names(self._source.schema.names)
        self.names = [name for name in names if not INDEX.fullmatch(name)]
        self.in_memory = self._file.size <= IN_MEMORY if in_memory is None else in_memory
        self._needed: Sequence[str] = self.names
        self._kept: list[Any] | None = None

    def need(self, columns: Sequence[str]) -> None:
        """Say which columns will be read, before any is: a table in memory has these alone."""
        self._needed = columns

    def settled(self, work: Callable[[], Result]) -> Result:
        """What the work on batches gives, once the types of all columns are known.

        If a column of a CSV file turns out to be of another type than its first rows told, the work
        is done again, from the first batch on.
        """
        while True:
            try:
                return work()
            except ValueError as error:
                cause = error.__cause__
                if not (isinstance(cause, OtherTypeError) and isinstance(self._source, CsvFile)):
                    raise
                self._source.widen(cause)
                self._kept = None

    def batches(
        self,
        columns: Sequence[str],
        width: int = 0,
        tell: Callable[[int, float], None] | None = None,
    ) -> Iterator[Any]:
        """Record batches with some of the columns, which together are the table.

        Parameters
        ----------
        columns : sequence of str
            The columns to read, in this order.
        width : int, default=0
            How many columns the rows will become: more of them need smaller batches.
        tell : callable, default=None
            Called with the rows and the share of the file that have been read.
        """
        rows = 0
        if self.in_memory and self._kept is None:
            whole = pyarrow.Table.from_batches([batch for batch, _ in self._read(self._needed)])
            self._kept = whole.combine_chunks().to_batches()
        found = self._read(columns) if self._kept is None else ((b, 1.0) for b in self._kept)
        for batch, share in found:
            for part in cut(batch, width) if self._kept is None else [batch]:
                rows += part.num_rows
                yield part.select(list(columns))
                if tell is not None:
                    tell(rows, share)

    def _read(self, columns: Sequence[str]) -> Iterator[tuple[Any, float]]:
        empty = True
        with self._file.naming():
            for batch, share in self._source.batches(columns):
                if batch.num_rows:
                    empty = False
                    yield batch, share
        self._file.check_unchanged()
        if empty:
            raise ValueError(f"{self._file.shown} has no rows.")
