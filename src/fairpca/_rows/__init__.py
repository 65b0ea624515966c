"""Checks of rows and groups, and their sums: open to every package of ours."""
