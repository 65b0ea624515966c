"""What the developers run: counts, contracts and checks of docstrings."""
