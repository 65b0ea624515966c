"""The words that parameters and options take.

They stand alone, so that the program's help and its completion in a shell load nothing else.
"""

CRITERIA = ("soft", "minmax", "equal", "balanced")
"""The names of criteria: `fairpca.criteria.CRITERIA`."""

MEASURES = (
    "disparity",
    "relative_disparity",
    "loss",
    "share_lost",
    "kept_variance",
    "share_kept",
)
"""What fairness can be judged on: `fairpca.measures.MEASURES`."""

FRONTS = ("minmax", "equal")
"""The criteria that a front leads to."""

GROUPINGS = ("intersections", "marginals", "both", None)
"""What several sensitive columns make groups of; None is no groups."""

MISSING_LABELS = ("error", "group", "drop")
"""What becomes of rows without a label."""

BASELINES = ("rows", "training")
"""Whose own PCA and PCA an audit compares with."""

STANDARDIZATIONS = ("numbers", "all", "none")
"""Which columns of a table are standardised; "numbers" leaves 0/1 columns as they are."""

UNKNOWN = ("error", "ignore")
"""What becomes of categories that did not occur at the fit."""

SMALL_GROUPS = ("error", "pool", "keep")
"""What becomes of groups with few rows."""

MIN_ROWS = 5
"""Categories and groups with fewer rows tell about single people: the mean of one row is that row,
and of two, whoever knows one knows the other.

Five is a usual bound for tables that are published. The program pools such categories
and refuses such groups, files leave some of them out, and reports do not name them."""

READABLE = (".csv", ".parquet", ".arrow", ".feather", ".csv.gz", ".tsv", ".tsv.gz")
"""How tables that can be read end."""

WRITABLE = (".csv", ".parquet", ".arrow", ".feather")
"""How tables that can be written end."""
