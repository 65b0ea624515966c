"""Which rows of a table are kept, and what groups they make."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fairpca.tables.batches import Table
from fairpca.tables.small_groups import GroupCounter, Regrouping, RowRule


class RowChoice:
    """Leaves out the rows without a label and those of small groups, where that is chosen.

    They are out of the table before anything is learned from it: from the means with and without a
    row, that row follows.

    Parameters
    ----------
    table : Table
        Keeps the rows that are kept from here on.
    names : sequence of str
        The sensitive columns.
    missing_labels : {"error", "group", "drop"}
        What becomes of rows without a label.
    small : {"error", "pool", "drop", "keep"}
        What becomes of groups with fewer than `min_rows` rows.
    min_rows, grouping
        As for `GroupCounter.regrouping`.

    Attributes
    ----------
    counts : bool
        Whether `see` has to see the labels of all rows before `regrouping` knows the groups.
    """

    def __init__(
        self,
        table: Table,
        names: Sequence[str],
        missing_labels: str,
        small: str,
        min_rows: int,
        grouping: str,
    ) -> None:
        self._counter = GroupCounter(names, missing_labels)
        self._how, self._found = (small, min_rows, grouping), None
        self.counts = bool(names) and small in ("error", "pool")
        rule = RowRule(tuple(names), unlabelled=missing_labels != "drop")
        table.keep(None if rule.unlabelled or not names else rule)
        if names and small == "drop":
            for batch in table.batches(names):
                self._counter.see(batch)
            self._found = self._counter.regrouping(*self._how)
            if self._found is not None:
                table.keep(replace(rule, small=frozenset(self._found.changes)))

    def see(self, batch: Any) -> None:
        """Take in a batch of the rows that are kept."""
        if self.counts:
            self._counter.see(batch)

    def regrouping(self) -> Regrouping | None:
        """What becomes of the small groups, once all rows have been seen."""
        return self._counter.regrouping(*self._how) if self.counts else self._found
