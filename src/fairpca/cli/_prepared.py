"""From what the user typed as TABLE to prepared columns and groups, and to the reduced table."""

import codecs
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow

from fairpca import FairPCA, GroupMoments
from fairpca._linalg.types import Array
from fairpca.choices import READABLE
from fairpca.cli._options import TableOptions
from fairpca.cli._small_groups import Regrouping, regroup
from fairpca.cli._terminal import (
    BadInputError,
    check_suffix,
    failure,
    fixes,
    refusal,
    refusing,
    show_warning,
    stage,
)
from fairpca.data import GroupedData, prepare_data
from fairpca.exceptions import warn_user
from fairpca.folds import in_folds
from fairpca.groups import check_number_of_groups, warn_of_dropped
from fairpca.model_file import FairModel, load_model
from fairpca.moments import MomentSum
from fairpca.tables.columns import (
    TableError,
    collecting,
    label_groups,
    numbers,
    quoted,
    refuse,
    require_columns,
    typed_options,
)
from fairpca.tables.preparation import (
    ColumnOutcome,
    Preparation,
    PreparationLearner,
    Tally,
    missing_error,
    notes_on,
)
from fairpca.tables.reading import CsvRules, OtherTypeError, Table
from fairpca.tables.writing import write_batches

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class PreparedTable:
    """The columns of numbers that a table became, and the groups of its rows.

    A table in memory has `rows`, `groups` and `weights`, as `prepare_data` takes them; of one that
    is read in batches there are the `moments`; and of one that has not been read there is nothing
    yet. `added` are the options that `--auto` has added, and `problems` why.
    """

    table: Table
    preparation: Preparation
    options: TableOptions
    n_rows: int = 0
    rows: Array | None = None
    groups: Any = None
    weights: Array | None = None
    moments: GroupMoments | None = None
    folds: str | None = None
    regrouping: Regrouping = field(default_factory=lambda: Regrouping(()))
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)
    added: str = ""
    problems: Sequence[str] = ()

    @property
    def outcomes(self) -> tuple[ColumnOutcome, ...]:
        """What became of each column of the table."""
        texts = self.regrouping.texts.items()
        notes = {name: notes_on(found, found, "group") for name, found in texts}
        if self.options.weights:
            notes[self.options.weights] = ["the weights of the rows"]
        return self.preparation.outcomes(self.tally, {**notes, **self.notes})

    def grouped_data(self, *, reduce_wide: bool = False) -> GroupedData:
        """The table by combinations of its sensitive columns, as `prepare_data` has it."""
        if self.moments is not None:
            return GroupedData.from_moments(self.moments)
        return prepare_data(
            self.rows,
            self.groups,
            self.weights,
            missing_labels=self.options.missing_labels,
            reduce_wide=reduce_wide,
            folds=self.folds,
        )

    def batches(self, doing: str, columns: Sequence[str] = ()) -> Iterator[tuple[Any, Array]]:
        """Batches of some columns, each with the prepared rows.

        From the first that lacks values on there are none: what the table lacks is counted to its
        end, and then refused.
        """
        if self.rows is not None:  # of the one batch that there is
            (batch,) = self.table.batches(columns or [self.preparation.columns[0].name])
            yield batch, self.rows
            return
        self.tally.clear()
        names = [column.name for column in self.preparation.columns]
        every, unknown = [*dict.fromkeys([*names, *columns])], self.options.unknown_categories
        lacking = False
        for batch in _batches(self.table, doing, every, len(self.preparation.means)):
            rows = self.preparation.apply(batch.select(names), self.tally, unknown)
            lacking = any(what == "missing" for what, _ in self.tally)
            if not lacking:
                yield batch, rows
        if lacking:
            refuse(missing_error(self.tally, is_new=True))


def prepare_table(
    path: Path,
    options: TableOptions,
    n_components: int | float = 1,
    *,
    carry: Sequence[str] = (),
    folds: str | None = None,
    keeps: str = "",
) -> PreparedTable:
    """Learn how to prepare a table, and do it.

    `carry` are other columns that will be needed, and `keeps` says whether a "model" is written, or
    a "report", which needs all rows in memory. What is wrong with the table is said at once, for up
    to `n_components` columns.
    """

    def learned(table: Table, tried: TableOptions) -> PreparedTable:
        require_columns(table.names, carry)
        learner = PreparationLearner(table.names, tried.rules(table))
        if copies := [name for name in table.repeated if name in learner.used]:
            raise TableError(
                f"Columns have the name of another: {quoted(copies)}, as they are called here",
                "give each a name of its own, or leave them out",
                drop=tuple(copies),
            )
        table.complete = [*learner.used, *tried.weighted] if tried.drop_missing else ()
        table.needed = [*learner.used, *tried.sensitive, *tried.weighted, *carry]
        errors: list[TableError] = []
        regrouping = Regrouping(())
        with collecting(errors):
            regrouping = regroup(table, tried, "error" if keeps else "keep")
        wrong, errors = errors, []
        with collecting(errors):
            for batch in _batches(table, "learning the columns", learner.used):
                learner.see(batch)
            found = learner.preparation()
        refuse([*errors, *wrong])
        prepared = PreparedTable(table, found, tried, folds=folds, regrouping=regrouping)
        prepared = _gathered(replace(prepared, notes=learner.notes), carry)
        if prepared.n_rows < 2:
            raise BadInputError("the table has one row: a fair subspace needs at least two.")
        if n_components > len(found.means):
            raise BadInputError(
                f"--n-components {n_components} is more than the {len(found.means)} columns that "
                "there are."
            )
        return prepared

    return _settled(path, options, learned, whole=keeps == "report")


def prepare_with_model(
    path: Path,
    model: Preparation,
    options: TableOptions,
    *,
    carry: Sequence[str] = (),
    read: bool = True,
) -> PreparedTable:
    """Prepare a new table as that of a model was; `read` says whether its rows are read already."""
    needed = [column.name for column in model.columns]

    def prepared(table: Table, tried: TableOptions) -> PreparedTable:
        others = [*carry, *tried.sensitive, *tried.weighted]
        require_columns(table.names, [*others, *tried.unused])
        unused = {*tried.unused, *(name for name in others if name not in needed)}
        model.check_names([name for name in table.names if name not in unused])
        table.needed = [*needed, *others]
        table.complete = needed if tried.drop_missing else ()
        found = PreparedTable(table, model, tried)
        if not read:
            return found
        return _gathered(replace(found, regrouping=regroup(table, tried, "keep")))

    text = {*model.sensitive} - {*needed}
    as_text = [column.name for column in model.columns if column.categories]
    return _settled(path, options, prepared, text=text, as_text=as_text)


def until_types_hold(work: Callable[[], Result]) -> Result:
    """What the work on a table gives, which begins again when the type of a column changes."""
    while True:
        with suppress(OtherTypeError):
            return work()


def _settled(
    path: Path,
    options: TableOptions,
    prepared_from: Callable[[Table, TableOptions], PreparedTable],
    **how: Any,
) -> PreparedTable:
    """What a table becomes once nothing is wrong with it; `how` it is read is as for `_opened`.

    Where the table is refused, the options that help are added, and it is tried again. So all that
    is wrong is known, and what makes the table run has been tried. `--auto` goes on with it.
    """
    errors: list[Exception] = []
    tried, caught = options, []
    while True:
        try:
            table = _opened(path, tried, **how)
            with warnings.catch_warnings(record=True, action="always") as caught:
                prepared = until_types_hold(partial(prepared_from, table, tried))
            break
        except (ValueError, ImportError, BadInputError) as error:
            errors += [error, *getattr(error, "also", ())]
            more = tried.adding(fixes(errors))
            if more == tried:
                raise refusal(errors, sure=False) from error
            tried = more
    if errors and not options.auto:
        raise refusal(errors)
    for warning in caught:
        show_warning(warning.message, warning.category)
    if not errors:
        return prepared
    problems = [*dict.fromkeys(getattr(each, "problem", str(each)) for each in errors)]
    return replace(prepared, added=typed_options(fixes(errors)), problems=problems)


def _opened(
    path: Path,
    options: TableOptions,
    *,
    text: Set[str] = frozenset(),
    as_text: Sequence[str] = (),
    whole: bool = False,
) -> Table:
    """The table of a file; `whole` keeps it in memory, and other choices are as for `Table`."""
    if not path.exists():
        raise BadInputError(f"there is no file {str(path)!r}.")
    if path.is_dir():
        raise BadInputError(f"{str(path)!r} is a folder, not a file.")
    check_suffix(path, READABLE)
    encoding, missing = codecs.lookup(options.encoding).name, tuple(options.missing_values)
    return Table(
        path,
        text={*text, *options.sensitive},
        as_text={*as_text, *options.as_text},
        in_memory=True if whole else False if options.stream else None,
        rules=CsvRules(options.sep, options.decimal, encoding, missing),
    )


def _gathered(prepared: PreparedTable, carry: Sequence[str] = ()) -> PreparedTable:
    """The prepared rows of a table in memory, or the moments of one that is read in batches.

    The columns that are carried over are read so that their types are known.
    """
    table, options = prepared.table, prepared.options
    names, n_rows, total = list(options.sensitive), 0, MomentSum()
    columns = [*names, *options.weighted, *carry]
    for batch, rows in prepared.batches("preparing the columns", columns):
        n_rows += len(rows)
        labelled = prepared.regrouping.labelled(batch)
        weights = row_weights(batch, options.weights) if options.weights else None
        if table.in_memory:
            groups = labelled.select(names).to_pandas(integer_object_nulls=True)
            prepared = replace(prepared, rows=rows, groups=groups, weights=weights)
            continue
        parted = label_groups(labelled, names, options.missing_labels)
        with np.errstate(over="ignore", invalid="ignore"):
            if prepared.folds and parted.labels:
                parted = in_folds(parted, rows, weights)
            total.add(GroupMoments.from_groups(rows, parted, weights))
        check_number_of_groups(total.n_groups)
    if prepared.regrouping.said:
        warn_user(prepared.regrouping.said)
    warn_of_dropped(table.n_unlabelled, n_rows + table.n_unlabelled)
    prepared = replace(prepared, n_rows=n_rows)
    if table.in_memory:
        return prepared
    if not total.n_groups:
        raise ValueError("The sensitive columns have no value in any row.")
    moments = total.moments()
    if not moments.is_finite:
        raise ValueError("Values are too large to be squared.")
    return replace(prepared, moments=moments)


def row_weights(batch: Any, name: str) -> Array:
    """The weights of the rows of a batch."""
    refusal = f"The weights in column {quoted([name])} must be numbers of at least 0."
    try:
        weights = numbers(batch.column(name))
    except ValueError as error:  # of text
        raise ValueError(refusal) from error
    if not (np.isfinite(weights) & (weights >= 0.0)).all():
        raise ValueError(refusal)
    return weights


def read_model(path: Path) -> tuple[FairModel, Preparation]:
    """Read a model file; also its preparation, which tables cannot do without."""
    try:
        with refusing():
            model = load_model(path)
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
    names = [str(name) for name in fair.get_feature_names_out()]
    twice = [name for name in carry if name in names]
    if twice:
        raise BadInputError(
            f"the column {twice[0]!r} cannot be carried over: a reduced one has its name."
        )

    def reduced() -> Iterator[Any]:
        for batch, rows in prepared.batches(f"reducing the rows into {path.name}", carried):
            columns = [batch.column(name) for name in carried]
            columns += [pyarrow.array(column) for column in fair.transform(rows).T]
            yield pyarrow.RecordBatch.from_arrays(columns, names=[*carried, *names])

    carried = list(dict.fromkeys(carry))
    return until_types_hold(lambda: write_batches(reduced(), path))


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
