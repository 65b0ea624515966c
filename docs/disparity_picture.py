"""Make the guide's picture of a disparity: two groups in the plane, and three axes.

Run ``python docs/disparity_picture.py``. The rows are those of docs/guide/unfair.md.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt

GUIDE = Path(__file__).parent / "guide"
_REACH = 5.0


def main() -> None:
    """Write docs/guide/disparity.png."""
    page = (GUIDE / "unfair.md").read_text(encoding="utf-8")
    rows: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0], rows)
    fair, baselines = rows["fair"], rows["fair"].baselines_
    figure, ax = plt.subplots(figsize=(6.4, 4.2))
    ax.scatter(*rows["large"].T, s=6, color="#9ecae1", label="large group, 900 rows")
    ax.scatter(*rows["small"].T, s=14, color="#fdae6b", label="small group, 100 rows")
    small = list(fair.group_table_.labels).index("small")
    for name, axis, color, style in (
        ("PCA of all rows", baselines.pca_basis[:, 0], "#333333", "-"),
        ("the small group's own PCA", baselines.own_bases[small][:, 0], "#D55E00", "--"),
        ("fair PCA", fair.components_[0], "#0072B2", "-"),
    ):
        ends = fair.mean_ + _REACH * axis * [[-1.0], [1.0]]
        ax.plot(*ends.T, style, color=color, linewidth=2, label=name)
    ax.set_aspect("equal")
    ax.set_xlim(-6.5, 6.5)
    ax.set_ylim(-4.5, 4.5)
    ax.legend(fontsize=8, loc="upper right")
    figure.tight_layout()
    figure.savefig(GUIDE / "disparity.png", dpi=130)


if __name__ == "__main__":
    main()
