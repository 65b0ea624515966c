"""From what the user typed as TABLE to prepared columns and groups, and to the reduced table."""

import codecs
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow

from fairpca import FairPCA, GroupMoments
from fairpca._linalg.types import Array
from fairpca.choices import READABLE
from fairpca.cli._options import TableOptions, unique
from fairpca.cli._terminal import BadInputError, check_suffix, failure, refusing, stage, written
from fairpca.data import GroupedData, prepare_data
from fairpca.exceptions import warn_user
from fairpca.folds import in_folds
from fairpca.groups import (
    MISSING,
    Orders,
    check_number_of_groups,
    merged_orders,
    refuse_measurements,
    warn_of_dropped,
)
from fairpca.model_file import FairModel, load_model
from fairpca.moments import MomentSum
from fairpca.tables.columns import Encoded, encode_labels, label_groups, require_columns
from fairpca.tables.preparation import (
    ColumnOutcome,
    Preparation,
    PreparationLearner,
    Tally,
    notes_on,
    refuse_missing,
)
from fairpca.tables.reading import CsvRules, Table
from fairpca.tables.small_groups import Regrouping, regroup
from fairpca.tables.writing import write_batches

STDIN = "-"
"""What stands for the standard input in the place of a file."""

_MAGIC = {b"PAR1": ".parquet", b"ARRO": ".arrow", b"\xff\xff\xff\xff": ".arrow"}
_GZIP = b"\x1f\x8b"


def open_table(
    path: Path,
    options: TableOptions,
    names: Collection[str],
    *,
    text: Collection[str] = (),
    as_text: Collection[str] = (),
    whole: bool = False,
) -> Table:
    """Open the file of a table; `whole` wants all rows in memory, for a report.

    Columns of a CSV file are `text` whatever they look like, and those of any file `as_text`. Those
    of `names` are called so with all their white space, if there are any.
    """
    if options.stream and whole:
        raise BadInputError(
            "a report resamples the rows, which it needs in memory: leave out --report or --stream."
        )
    how: dict[str, Any] = {
        "text": text,
        "as_text": {*as_text, *options.as_text},
        "in_memory": True if whole else False if options.stream else None,
        "rules": CsvRules(
            options.sep,
            options.decimal,
            codecs.lookup(options.encoding).name,
            tuple(options.missing_values),
            frozenset(names),
        ),
    }
    if str(path) == STDIN:
        spooled = _spooled()
        try:
            table = Table(spooled, title="standard input", **how)
        except BaseException:
            spooled.unlink()
            raise
        weakref.finalize(table, os.unlink, spooled)
        return table
    if not path.exists():
        raise BadInputError(f"there is no file {str(path)!r}.")
    if path.is_dir():
        raise BadInputError(f"{str(path)!r} is a folder, not a file.")
    check_suffix(path, READABLE)
    return Table(path, **how)


def _spooled() -> Path:
    """The standard input as a file, since a table is read more than once."""
    if sys.stdin is None or sys.stdin.isatty():
        raise BadInputError("there is no table on the standard input: pipe one in, or name a file.")
    source = sys.stdin.buffer
    head = source.read(8)
    suffix = ".csv.gz" if head.startswith(_GZIP) else _MAGIC.get(head[:4], ".csv")
    with tempfile.NamedTemporaryFile(prefix="fairpca-", suffix=suffix, delete=False) as file:
        file.write(head)
        shutil.copyfileobj(source, file)
    return Path(file.name)


@dataclass(frozen=True, eq=False)
class PreparedTable:
    """The columns of numbers that a table became, and the groups of its rows.

    A table in memory has `rows` and `groups`, as `prepare_data` takes them; of one that is read in
    batches there are the `moments`; and of one that has not been read there is nothing yet.
    """

    table: Table
    preparation: Preparation
    options: TableOptions
    n_rows: int = 0
    rows: Array | None = None
    groups: dict[str, Any] | None = None
    moments: GroupMoments | None = None
    folds: str | None = None
    regrouping: Regrouping = field(default_factory=lambda: Regrouping(()))
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)

    @property
    def outcomes(self) -> tuple[ColumnOutcome, ...]:
        """What became of each column of the table."""
        enter = {column.name for column in self.preparation.columns}
        labels = {name: texts for name, texts in self.labels().items() if name not in enter}
        notes = {name: notes_on(texts, texts, "group") for name, texts in labels.items()}
        return self.preparation.outcomes(self.tally, {**notes, **self.notes})

    def labels(self) -> dict[str, set[str]]:
        """The texts that make the groups, for each of the sensitive columns."""
        found: dict[str, set[str]] = {}
        for j, name in enumerate(self.options.sensitive):
            labels = [] if self.groups is None else [*self.groups[name].categories]
            if self.moments is not None:
                labels = [x[j] if isinstance(x, tuple) else x for x in self.moments.labels]
            found[name] = {text for text in labels if isinstance(text, str)} - {MISSING}
        return found

    @property
    def n_unlabelled(self) -> int:
        """How many rows are left out because they have no label."""
        small = self.regrouping
        return self.table.n_unkept - (small.n_rows if small.drops else 0)

    def grouped_data(self, groups: str = "", *, reduce_wide: bool = False) -> GroupedData:
        """The table as it is fitted to; `groups` and `reduce_wide` are as for `prepare_data`."""
        groups = groups or self.options.groups
        if self.moments is not None:
            return GroupedData.from_moments(self.moments, groups)
        return prepare_data(
            self.rows,
            self.groups,
            missing_labels=self.options.missing_labels,
            groups=groups,
            reduce_wide=reduce_wide,
            folds=self.folds,
        )

    def batches(self, doing: str, columns: Sequence[str] = ()) -> Iterator[tuple[Any, Array]]:
        """Batches of some columns, each with the prepared rows."""
        if self.rows is None:
            for batch, rows, _ in _prepared(self, doing, columns):
                yield batch, rows
            return
        start = 0
        for batch in self.table.batches(columns or self.table.names[:1]):
            yield batch, self.rows[start : start + batch.num_rows]
            start += batch.num_rows


@refusing()
def prepare_table(
    path: Path,
    options: TableOptions,
    *,
    carry: Sequence[str] = (),
    whole: bool = False,
    folds: str | None = None,
    kept: bool = False,
) -> PreparedTable:
    """Learn how to prepare a table, and do it.

    `carry` are other columns that will be needed; `kept` says that a model or a report is written.
    """
    text = () if options.keep_sensitive else options.sensitive
    named = [*options.sensitive, *options.unused, *carry, *options.as_text, *options.as_number]
    table = open_table(path, options, named, text=text, whole=whole)
    require_columns(table.names, carry)
    learner = partial(
        PreparationLearner,
        table.names,
        places=table.places,
        codes=table.codes,
        **options.learning(),
    )
    used = learner().used
    table.need(unique([*used, *options.sensitive, *carry]), used if options.drop_missing else ())
    small = options.small_groups or ("error" if kept else "keep")

    def prepare() -> PreparedTable:
        learning = learner()
        regrouping = _regrouping(table, options, small)
        for batch in _batches(table, "learning the columns", used):
            learning.see(batch)
        found = learning.preparation()
        prepared = PreparedTable(
            table,
            found,
            options,
            folds=folds,
            regrouping=regrouping,
            notes=learning.notes(found),
        )
        return _gathered(prepared)

    return _checked_labels(table.settled(prepare))


@refusing()
def prepare_with_model(
    path: Path, preparation: Preparation, options: TableOptions, folds: str | None = None
) -> PreparedTable:
    """Prepare a new table as that of a model was."""
    opened = open_with_model(path, preparation, options, options.sensitive)
    table = opened.table

    def prepare() -> PreparedTable:
        regrouping = _regrouping(table, options, options.small_groups or "keep")
        return _gathered(replace(opened, regrouping=regrouping, folds=folds))

    return _checked_labels(table.settled(prepare))


@refusing()
def open_with_model(
    path: Path, preparation: Preparation, options: TableOptions, others: Sequence[str]
) -> PreparedTable:
    """The same, of which nothing is read yet; `others` are further columns that will be needed."""
    needed = [column.name for column in preparation.columns]
    texts = {*preparation.text_columns}
    text = {*texts, *preparation.sensitive, *options.sensitive} - ({*needed} - texts)
    named = {*needed, *preparation.ignored, *others, *options.unused}
    table = open_table(path, options, named, text=text, as_text=texts)
    require_columns(table.names, [*others, *options.unused])
    unused = {*options.unused, *(name for name in others if name not in needed)}
    preparation.check_names([name for name in table.names if name not in unused])
    table.need(unique([*needed, *others]), needed if options.drop_missing else ())
    return PreparedTable(table, preparation, options)


def _regrouping(table: Table, options: TableOptions, small: str) -> Regrouping:
    names, missing = options.sensitive, options.missing_labels
    return regroup(table, names, missing, small, options.min_rows, options.groups)


def read_model(path: Path) -> tuple[FairModel, Preparation]:
    """Read a model file; also its preparation, which tables cannot do without."""
    try:
        with refusing():
            model = load_model(path)
    except FileNotFoundError as error:
        raise BadInputError(f"there is no file {str(path)!r}.") from error
    except OSError as error:
        raise BadInputError(failure(error, "read", path)) from error
    if model.preparation is None:
        raise BadInputError(
            f"{str(path)!r} was fitted on columns without names: tables cannot be used."
        )
    return model, model.preparation


@refusing()
def reduce_table(prepared: PreparedTable, fair: FairPCA, carry: Sequence[str], path: Path) -> int:
    """Write the reduced rows, behind the columns that are carried over; returns how many."""
    doing, carried = f"reducing the rows into {path.name}", unique(carry)

    def write() -> int:
        batches = prepared.batches(doing, carried)
        return write_batches((_reduced(fair, *part, carried) for part in batches), path)

    n_rows = prepared.table.settled(write)
    written.append(path)
    return n_rows


def _reduced(fair: FairPCA, batch: Any, rows: Array, carried: Sequence[str]) -> Any:
    names = [str(name) for name in fair.get_feature_names_out()]
    for name in carried:
        if name in names:
            raise BadInputError(
                f"the column {name!r} cannot be carried over: a reduced one has its name."
            )
    columns = [batch.column(name) for name in carried]
    columns += [pyarrow.array(column) for column in fair.transform(rows).T]
    return pyarrow.RecordBatch.from_arrays(columns, names=[*carried, *names])


def _gathered(prepared: PreparedTable) -> PreparedTable:
    """The prepared rows of a table in memory, or the moments of one that is read in batches."""
    table, sensitive, regrouping = prepared.table, prepared.options.sensitive, prepared.regrouping
    n_rows, total = 0, MomentSum()
    kept: list[Array] = []
    labels: dict[str, list[Any]] = {name: [] for name in sensitive}
    orders: Orders | None = None
    for batch, rows, encoded in _prepared(prepared, "preparing the columns", (), sensitive):
        n_rows += len(rows)
        groups = label_groups(batch, sensitive, prepared.options.missing_labels)
        if table.in_memory:
            kept.append(rows)
            orders = merged_orders(orders, groups.orders)
            for name, (values, codes) in zip(sensitive, encoded, strict=True):
                labels[name].append(np.array([*values, None], dtype=object)[codes])
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            parted = in_folds(groups, rows) if prepared.folds and groups.labels else groups
            total.add(GroupMoments.from_groups(rows, parted))
        check_number_of_groups(total.n_groups)
    prepared = replace(prepared, n_rows=n_rows)
    if regrouping.said:
        warn_user(regrouping.said)
    warn_of_dropped(prepared.n_unlabelled, n_rows + table.n_unkept)
    if not table.in_memory:
        if not total.n_groups:
            raise ValueError("The sensitive columns have no value in any row.")
        moments = total.moments()
        if not moments.is_finite:
            raise ValueError("Values are too large to be squared.")
        return replace(prepared, moments=moments)
    rows = kept[0] if len(kept) == 1 else np.concatenate(kept)
    # As categories: whether the labels are numbers has been looked at.
    groups_of = {
        name: pandas.Categorical(np.concatenate(parts), categories=order, ordered=bool(order))
        for (name, parts), order in zip(labels.items(), orders or [None] * len(labels), strict=True)
    }
    return replace(prepared, rows=rows, groups=groups_of)


def _checked_labels(prepared: PreparedTable) -> PreparedTable:
    """The same; refuses labels of a CSV file, which are text, that are a measurement's numbers."""
    if not prepared.table.is_csv:
        return prepared
    for name, labels in prepared.labels().items():
        try:
            numbers = [float(label) for label in labels]
        except ValueError:
            continue
        try:
            refuse_measurements(numbers, name)
        except ValueError as error:
            raise BadInputError(
                f"the column {name!r} has {len(numbers):,} different numbers, too many to be "
                "groups: bin them in a column of text, or, if they are codes, put a letter before "
                "each."
            ) from error
    return prepared


def _prepared(
    prepared: PreparedTable, doing: str, columns: Sequence[str] = (), sensitive: Sequence[str] = ()
) -> Iterator[tuple[Any, Array, list[Encoded]]]:
    """Batches, each with its prepared rows and the labels and codes of its sensitive columns.

    From the first that lacks values on there are none: what the table lacks is counted to its end,
    and then refused.
    """
    preparation, tally = prepared.preparation, prepared.tally
    tally.clear()
    names = [column.name for column in preparation.columns]
    n_rows = unlabelled = 0
    columns = unique([*names, *sensitive, *columns])
    for batch in _batches(prepared.table, doing, columns, len(preparation.means)):
        rows = preparation.apply(batch.select(names), tally, prepared.options.unknown_categories)
        encoded = encode_labels(batch, sensitive)
        n_rows += len(rows)
        if prepared.options.missing_labels == "error" and encoded:
            unlabelled += int(np.any([codes < 0 for _, codes in encoded], axis=0).sum())
        if not unlabelled and not any(what == "missing" for what, _ in tally):
            labelled = prepared.regrouping.labelled(batch) if sensitive else batch
            encoded = encoded if labelled is batch else encode_labels(labelled, sensitive)
            yield labelled, rows, encoded
    if unlabelled:
        n_rows += prepared.table.n_unkept
        raise BadInputError(
            f"the sensitive columns have no value in {unlabelled:,} of {n_rows:,} rows: leave "
            "those rows out with --missing-labels drop, or make them a group with "
            "--missing-labels group."
        )
    refuse_missing(Tally({("missing", name): tally["missing", name] for name in names}))


def _batches(
    table: Table, doing: str, columns: Sequence[str], width: int = 0
) -> Iterator[pyarrow.RecordBatch]:
    """Batches of a table, as `Table.batches` has them, while it is said how much has been read."""
    with stage(doing) as progress:
        yield from table.batches(
            columns,
            width,
            lambda rows, share: progress(
                f"{doing}: {rows:,} rows, per cent", round(100 * share), 100
            ),
        )
