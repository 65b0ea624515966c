"""From a table of numbers and text to the columns that PCA works on."""
