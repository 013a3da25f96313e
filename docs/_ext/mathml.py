"""Formulas as MathML, which browsers draw themselves: no script, no picture, no other host."""

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError


def _draw(translator: Any, node: nodes.Node, *, block: bool) -> None:
    formula = node.astext()
    try:
        drawn = tex2mathml(formula, as_block=block)
    except MathError as fault:
        raise ExtensionError(f"a formula cannot be drawn: {formula!r}: {fault}") from fault
    if block:
        drawn = f'<div class="math">{drawn}</div>'
    translator.body.append(drawn)
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(lambda self, node: _draw(self, node, block=False), None),
        block_renderers=(lambda self, node: _draw(self, node, block=True), None),
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
