"""The experiments of "Efficient Fair Principal Component Analysis", reproduced.

``python -m experiments`` (or ``make reproduce``) runs all of them and writes figures, the numbers
behind them and a page of claims with verdicts to docs/reproduction. One module holds one figure or
table: `compute` gives the numbers as a data frame, `draw` the figure. `sweep` is what most of
them share, `runner` how they run in parallel and remember what they have done.
"""
