"""Linear algebra on dense, large and device matrices: open to every package of ours."""
