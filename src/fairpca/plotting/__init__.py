"""Pictures, as Display classes in scikit-learn's manner; they need the extra ``fairpca[plot]``.

Each class holds the numbers of one picture, is made by a ``from_...`` method that also draws it,
and draws itself again with `plot`. Those of estimators take any fitted reduction for which the
picture makes sense, also inside a pipeline. Other looks are set on the axes, `ax_`.
Colours are those of the report and can be told apart by colour-blind readers, markers differ as
well, and every group is shown with its number of rows. Names are drawn with the fonts of
matplotlib's ``rcParams["font.family"]``: add one for Chinese, say.
"""

from fairpca.plotting._displays import (
    ComparisonDisplay,
    DisparityDisplay,
    FrontDisplay,
    HeldOutLossDisplay,
)

__all__ = [
    "ComparisonDisplay",
    "DisparityDisplay",
    "FrontDisplay",
    "HeldOutLossDisplay",
]
