"""Formulas as MathML, which browsers draw themselves: no script, no picture, no other host.

Signs that grow (brackets, sums, bars) take a font that says how. Many machines have none, so one is
put beside the pages.
"""

import html
import re
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from fontTools.ttLib import TTFont
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

MATHML = "http://www.w3.org/1998/Math/MathML"
ACCENTS = frozenset("ˉˆ˜~˙")
BARS = frozenset("|∣∥‖")
ElementTree.register_namespace("", MATHML)


def placed(drawn: str) -> str:
    r"""Put an index beside a letter with an accent, and what a brace says below the brace.

    Docutils puts the index of ``\bar V_h`` below the letter and the word of
    ``\underbrace{x}_{\text{gain}}`` beside the brace. Of two bars around something browsers
    stretch the first alone.
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
        elif node.tag == f"{{{MATHML}}}mo" and node.text in BARS:
            node.attrib.setdefault("stretchy", "false")
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


def _add_font(app: Sphinx, fault: Exception | None) -> None:
    """Put the font where ``counsel.css`` looks for it."""
    if fault is None and app.builder.format == "html":
        with as_file(files("ziamath.fonts") / "STIXTwoMath-Regular.ttf") as path:
            font = TTFont(path)
        font.flavor = "woff"
        font.save(Path(app.outdir) / "_static" / "STIXTwoMath-Regular.woff")


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(lambda self, node: _draw(self, node, block=False), None),
        block_renderers=(lambda self, node: _draw(self, node, block=True), None),
    )
    app.connect("build-finished", _add_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
