"""Make the README's picture of a report: UCI Adult by sex, in light and dark.

Run ``python docs/report_picture.py`` where Chromium is installed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from sklearn.compose import make_column_transformer
from sklearn.preprocessing import StandardScaler

from fairpca.datasets import load_adult
from fairpca.report import report

DOCS = Path(__file__).parent
_WIDTH = 1040
sys.path.append(str(DOCS.parent / "tests"))

from browser import Visit, running_browser  # noqa: E402


def main() -> None:
    """Write docs/report-light.png and docs/report-dark.png."""
    adult = load_adult(encoding="onehot", sensitive="sex", keep_sensitive=False)
    numbers = [name for name in adult.data if "=" not in name and name != "fnlwgt"]
    scale = make_column_transformer(
        (StandardScaler(), numbers), remainder="passthrough", verbose_feature_names_out=False
    )
    X = scale.set_output(transform="pandas").fit_transform(adult.data.drop(columns="fnlwgt"))
    given = {"n_components": 5, "data_name": "UCI Adult"}
    made = report(X, sensitive_features=adult.sensitive_features, **given)
    with tempfile.TemporaryDirectory() as folder, running_browser() as browser:
        path = Path(folder) / "report.html"
        made.write_html(path)
        for scheme in ("light", "dark"):
            visit = Visit(browser, path, width=_WIDTH, scheme=scheme)
            end = visit.page.locator("#methods-groups").bounding_box()
            visit.page.screenshot(
                path=DOCS / f"report-{scheme}.png",
                full_page=True,
                clip={"x": 0, "y": 0, "width": _WIDTH, "height": end["y"] + end["height"] + 10},
            )


if __name__ == "__main__":
    main()
