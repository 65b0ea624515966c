"""The words that parameters and options take.

They stand alone, so that the program's help and its completion in a shell load nothing else.
"""

CRITERIA = ("minmax", "equal")
"""What is asked for: the least largest measure, or equal ones."""

MEASURES = ("disparity", "loss", "variance")
"""What fairness is judged by."""

UNFAIRNESS = ("largest", "spread")
"""What a front can trade for total loss."""

GROUPINGS = ("intersections", "marginals", "both", None)
"""What several sensitive columns make groups of; None is no groups."""

MISSING_LABELS = ("error", "group", "drop")
"""What becomes of rows without a label."""

BASELINES = ("rows", "training")
"""Whose own PCA and PCA an audit compares with."""

SOLVER_NAMES = (
    "exact",
    "pareto",
    "sdp",
    "sdp-iterative",
    "mw",
    "mw-iterative",
    "epsilon-constraint",
    "lagrangian",
    "nash",
    "u-fpca",
    "c-fpca",
)
"""The names in `fairpca.solvers.SOLVERS`."""

ENCODINGS = ("onehot", "codes", "error")
"""What becomes of columns of text."""

READABLE = (".csv", ".parquet", ".arrow", ".feather", ".csv.gz")
"""How tables that can be read end."""

WRITABLE = (".csv", ".parquet", ".arrow", ".feather")
"""How tables that can be written end."""
