"""The experiments of "Efficient Fair Principal Component Analysis", reproduced.

``python -m studies.reproduction`` (or ``make reproduce``) runs all of them and writes claims.md, a
page of claims with verdicts, its pictures (figures) and the numbers behind them (tables). A module
holds one figure or table: `compute` gives the numbers as a data frame, and in `plots` `draw` the
figure. `sweep` is what most of them share, `runner` how they run in parallel and remember what
they have done.
"""
