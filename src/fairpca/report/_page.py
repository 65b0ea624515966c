"""From a summary to a page: templates filled in, everything from the data escaped."""

import base64
import hashlib
import json
from functools import partial
from importlib.resources import files
from typing import Any

from fairpca.report._numbers import number, rows

_FIGURES = 7
"""Significant figures of the numbers that charts are drawn from."""


def import_jinja2() -> Any:
    """Return jinja2, or say which extra brings it."""
    try:
        import jinja2
    except ImportError as error:
        raise ImportError("Reports need jinja2: install `fairpca[report]`.") from error
    return jinja2


def render(summary: dict[str, Any]) -> str:
    """The whole page."""
    jinja2 = import_jinja2()
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["number"] = partial(number, rounding=summary["rounding"])
    environment.filters["rows"] = rows
    script = _template("page.js")
    page: str = environment.from_string(_template("page.html")).render(
        summary=summary,
        fairest=summary["points"][-1],
        style=jinja2.utils.markupsafe.Markup(_template("page.css")),
        script=jinja2.utils.markupsafe.Markup(script),
        # The browser runs this one script and none that data could smuggle in.
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=jinja2.utils.markupsafe.Markup(_script_json(summary)),
    )
    return page


def _template(name: str) -> str:
    return files("fairpca.report").joinpath(name).read_text(encoding="utf-8")


def _script_json(value: Any) -> str:
    """JSON with short numbers that cannot end the script element it stands in."""
    short = json.loads(json.dumps(value), parse_float=lambda text: _rounded(float(text)))
    text = json.dumps(short, allow_nan=False, separators=(",", ":"))  # in ASCII
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _rounded(value: float) -> float:
    return float(f"{value:.{_FIGURES}g}")
