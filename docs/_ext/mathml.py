"""Formulas as MathML, which browsers draw themselves: no script, no picture, no other host."""

import html
import re
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

MATHML = "http://www.w3.org/1998/Math/MathML"
ACCENTS = frozenset("ˉˆ˜~˙")
ElementTree.register_namespace("", MATHML)


def placed(drawn: str) -> str:
    r"""Put an index beside a letter with an accent, and what a brace says below the brace.

    Docutils puts the index of ``\bar V_h`` below the letter and the word of
    ``\underbrace{x}_{\text{gain}}`` beside the brace.
    """
    plain = re.sub(r"&(?!lt;|gt;|amp;)\w+;", lambda found: html.unescape(found[0]), drawn)
    tree = ElementTree.fromstring(plain)
    for node in list(tree.iter()):
        parts = list(node)
        if node.tag == f"{{{MATHML}}}munderover" and parts[2].text in ACCENTS:
            letter, index, accent = parts
            for part in parts:
                node.remove(part)
            node.tag = f"{{{MATHML}}}msub"
            over = ElementTree.SubElement(node, f"{{{MATHML}}}mover", accent="true")
            over.extend((letter, accent))
            node.append(index)
        elif node.tag == f"{{{MATHML}}}msub" and len(parts[0]) == 2 and parts[0][1].text == "⏟":
            node.tag = f"{{{MATHML}}}munder"
    return ElementTree.tostring(tree, encoding="unicode")


def _draw(translator: Any, node: nodes.Node, *, block: bool) -> None:
    formula = node.astext()
    try:
        drawn = placed(tex2mathml(formula, as_block=block))
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
