"""One module for each figure: `draw` makes it from the numbers."""
