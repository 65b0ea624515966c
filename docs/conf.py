"""The documentation's site: `make docs` builds it into docs/_build/html.

Nothing is fetched, neither while it is built nor by its pages: there are no inventories of other
projects, and formulas are MathML.
"""

import re
import shutil
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import fairpca

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "fairpca"
author = "The fairpca developers"
copyright = author  # noqa: A001, the name that Sphinx gives it
version = release = fairpca.__version__

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.py"]
templates_path = ["_templates"]

# A reference that leads nowhere is an error; a name in single backquotes is a link where it can be,
# and code where it cannot (of a parameter, say).
nitpicky = True
default_role = "py:obj"
nitpick_ignore_regex = [("py:obj", ".*")]

# Markdown, read as it is read in the repository.
myst_enable_extensions = ["colon_fence", "dollarmath", "substitution"]
myst_substitutions = {"version": version}
myst_heading_anchors = 4
html_math_renderer = "mathml"

# The reference. Types stand in the docstrings, which say more than the annotations.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = True
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False

# The gallery, whose scripts are run. A picture of an example that fails is no picture.
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "parallel": 2,
    "doc_module": ("fairpca",),
    "backreferences_dir": "api/generated/backreferences",
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = f"fairpca {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/mark.svg"
html_logo = "_static/mark.svg"
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "fairpca"},
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "header_links_before_dropdown": 5,
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
    "navigation_with_keys": False,
}
# Pages without pages below them need no column that lists these.
html_sidebars = {"index": []}
copybutton_exclude = ".linenos, .gp, .go"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def setup(app: Sphinx) -> None:
    """Leave out what other libraries' classes bring along, and say what is meant."""
    _copy_studies(Path(app.srcdir))
    app.connect("source-read", _link_studies)
    app.connect("source-read", _name_pages)
    app.connect("html-page-context", _leave_corners_empty)
    app.connect("autodoc-skip-member", _is_of_another_library)
    app.connect("autodoc-process-docstring", _escape_shapes, priority=100)  # before numpydoc


def _copy_studies(docs: Path) -> None:
    """Pages of the studies lie beside their scripts, and the site reads them in docs/studies."""
    shutil.rmtree(docs / "studies", ignore_errors=True)
    unread = shutil.ignore_patterns("*.py", "*.json", "*.csv", "*.svg", "__pycache__")
    shutil.copytree(docs.parent / "studies", docs / "studies", ignore=unread)


def _link_studies(app: Sphinx, name: str, source: list[str]) -> None:
    """In the repository the studies lie beside docs, in the site inside it."""
    source[0] = source[0].replace("../studies/", "studies/").replace("../docs/", "../")


def _name_pages(app: Sphinx, name: str, source: list[str]) -> None:
    """Let a link whose text is the name of a file, as in the repository, have the page's title."""
    source[0] = re.sub(r"\[[\w/]+\.md\]\(", "[](", source[0])


def _leave_corners_empty(
    app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """A cell of a table's first line that is empty is no header, as screen readers would say."""
    if "body" in context:
        empty = r'<th class="head[^"]*"><p></p></th>'
        context["body"] = re.sub(empty, "<td></td>", context["body"])


def _is_of_another_library(
    app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    function = member.fget if isinstance(member, property) else member
    home = getattr(getattr(function, "__func__", function), "__module__", None) or "fairpca"
    return True if home.partition(".")[0] != "fairpca" else None


def _escape_shapes(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """In ``array of shape (n_components_,)`` the underscore ends a name, and makes no link."""
    for i, line in enumerate(lines):
        if "of shape (" in line:
            lines[i] = re.sub(r"_(?=[,)])", r"\\_", line)
