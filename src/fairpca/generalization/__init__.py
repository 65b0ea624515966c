"""What holds for rows that are not in the table: folds, held-out rows, the bootstrap, tests."""
