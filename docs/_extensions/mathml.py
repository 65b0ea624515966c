"""Formulas as MathML, which browsers draw themselves: no script, no font and no network."""

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    """Make "mathml" one of the values of html_math_renderer."""
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _visit_inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _visit_block(writer: Any, node: nodes.math_block) -> None:
    formula = convert(node.astext(), display="block")
    writer.body.append(f'<div class="formula" tabindex="0">{formula}</div>')
    raise nodes.SkipNode
