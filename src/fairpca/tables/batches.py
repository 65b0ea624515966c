"""Table: the rows of a file in batches, as often as needed; a small table is a single batch."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow
import pyarrow.compute

from fairpca.tables.columns import INDEX, check_column_names
from fairpca.tables.csv_files import CsvFile, CsvRules, OtherTypeError
from fairpca.tables.reading import TableFile, cut
from fairpca.tables.refusals import TableError
from fairpca.tables.small_groups import RowRule

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
    as_text : collection of str, default=()
        Columns that are text in files of all kinds.
    rules : CsvRules, default=None
        How a CSV file is written, where it is not as usual.
    title : str, default=""
        What messages call the file, if not by its path.

    Attributes
    ----------
    names : list of str
        Names of the columns.
    in_memory : bool
        Whether all rows are one batch.
    n_dropped : int
        How many rows the last pass left out, as `drop_missing` asks for.
    n_unkept : int
        How many further rows it left out, as `keep` asks for.
    """

    def __init__(
        self,
        path: Path,
        *,
        text: Collection[str] = (),
        in_memory: bool | None = None,
        as_text: Collection[str] = (),
        rules: CsvRules | None = None,
        title: str = "",
    ) -> None:
        self._file, self._rules = TableFile.of(path, title), rules
        self._source, self._as_text = self._file.open({*text, *as_text}, rules), frozenset(as_text)
        with self._file.naming(rules):
            names = check_column_names(self._source.schema.names)
        self.names = [name for name in names if not INDEX.fullmatch(name)]
        self.in_memory = self._file.size <= IN_MEMORY if in_memory is None else in_memory
        self._needed: Sequence[str] = self.names
        self._complete: tuple[str, ...] = ()
        self._kept: list[Any] | None = None
        self._rule: RowRule | None = None
        self.n_dropped = self.n_unkept = 0

    def drop_missing(self, columns: Sequence[str]) -> None:
        """Leave out rows that have no value, or an infinite one, in one of these columns."""
        self._complete = tuple(columns)

    def keep(self, rule: RowRule | None) -> None:
        """Leave out the rows that a rule about their labels does not keep; None keeps all."""
        self._rule = rule

    def places(self, name: str, texts: Collection[str]) -> dict[str, str]:
        """Where each of some cells of a column of text first stands, for messages."""
        if isinstance(self._source, CsvFile):
            return self._source.places(name, texts)
        found: dict[str, str] = {}
        row = 0
        for batch, _ in self._source.batches([name]):
            for text in batch.column(0).to_pylist():
                row += 1
                if text in texts:
                    found.setdefault(text, f"row {row:,}")
            if len(found) == len(texts):
                break
        return found

    @property
    def is_csv(self) -> bool:
        """Whether its labels are text, whatever they look like."""
        return isinstance(self._source, CsvFile)

    @property
    def codes(self) -> Mapping[str, str]:
        """Columns of numbers with zeros in front, and such a number of each."""
        return self._source.codes if isinstance(self._source, CsvFile) else {}

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
        rows = dropped = unkept = 0
        labels = () if self._rule is None else self._rule.names
        wanted = list(dict.fromkeys((*columns, *self._complete, *labels)))
        if self.in_memory and self._kept is None:
            whole = pyarrow.Table.from_batches([batch for batch, _ in self._read(self._needed)])
            self._kept = whole.combine_chunks().to_batches()
        found = self._read(wanted) if self._kept is None else ((b, 1.0) for b in self._kept)
        for batch, share in found:
            for part in cut(batch, width) if self._kept is None else [batch]:
                complete = part.filter(_complete(part, self._complete)) if self._complete else part
                dropped += part.num_rows - complete.num_rows
                kept = complete if self._rule is None else self._rule.applied(complete)
                unkept += complete.num_rows - kept.num_rows
                rows += kept.num_rows
                if kept.num_rows:
                    yield kept.select(list(columns))
                if tell is not None:
                    tell(rows, share)
        self.n_dropped, self.n_unkept = dropped, unkept
        if not rows and unkept:
            raise ValueError("The sensitive columns have no value in any row.")
        if not rows:
            raise TableError(
                f"Each of the {dropped:,} rows lacks a value, so that none is left",
                "fill them in, or leave out the columns that lack most",
                "fill them in with --impute mean, or leave out the columns that lack most with "
                "--drop",
            )

    def _read(self, columns: Sequence[str]) -> Iterator[tuple[Any, float]]:
        empty = True
        with self._file.naming(self._rules):
            for batch, share in self._source.batches(columns):
                if batch.num_rows:
                    empty = False
                    yield _with_text(batch, self._as_text), share
        self._file.check_unchanged()
        if empty:
            raise ValueError(f"{self._file.shown} has no rows.")


def _with_text(batch: Any, names: Collection[str]) -> Any:
    """The batch with some columns as text; those of numbers and dates are written out."""
    for i, field in enumerate(batch.schema):
        written = pyarrow.types.is_primitive(field.type) and not pyarrow.types.is_boolean(
            field.type
        )
        if field.name in names and written:
            text = batch.column(i).cast(pyarrow.string())
            batch = batch.set_column(i, field.name, text)
    return batch


def _complete(batch: Any, columns: Sequence[str]) -> Any:
    """Which rows of a batch have a value in each of some columns."""
    kept = None
    for name in columns:
        column = batch.column(name)
        here = pyarrow.compute.is_valid(column)
        if pyarrow.types.is_floating(column.type):
            here = pyarrow.compute.fill_null(pyarrow.compute.is_finite(column), False)
        kept = here if kept is None else pyarrow.compute.and_(kept, here)
    return kept
