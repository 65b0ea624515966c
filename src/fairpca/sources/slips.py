"""Columns that are no numbers because of a slip, and would be left out without a word."""

from collections.abc import Collection
from typing import Any

from fairpca.tables.column_checks import ColumnChecker, ColumnSummary
from fairpca.tables.columns import TableError, encoded_text
from fairpca.tables.reading import CsvFile


def refuse_slips(table: Any, known: Collection[str]) -> None:
    """Raise TableError if a text column of a CSV file is meant as numbers, by its first rows.

    Parameters
    ----------
    table : CsvFile, ParquetFile or ArrowFile
        The types of the others are written in the file, and hold.
    known : collection of str
        Columns that are read, whatever they look like.
    """
    if not isinstance(table, CsvFile):
        return
    texts = [field.name for field in table.schema if field.name not in known]
    if not texts:
        return
    batch, _ = next(table.batches(texts))
    checker = ColumnChecker(places=table.places)
    for name in texts:
        column = batch.column(name)
        if encoded_text(column, name) is None:
            continue
        summary = ColumnSummary(name)
        summary.see(column)
        try:
            checker.numbers(name, summary.kinds, summary.texts)
        except TableError as error:
            raise TableError(error.problem, "correct that, or name the features") from error
