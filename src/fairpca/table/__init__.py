"""GroupTable: who pays, as a table for the terminal, the notebook and data frames."""

from fairpca.table.group_table import GroupTable

__all__ = ["GroupTable"]
