"""Formulas as MathML, which browsers draw without scripts, pictures or other hosts.

Signs that stretch (brackets, sums, bars) need a mathematical font. Many machines have none, so the
site ships one.
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


def fix_scripts(mathml: str) -> str:
    r"""Place indices beside accented letters, and labels of braces below the braces.

    Docutils puts the index of ``\bar V_h`` below the letter and the label of
    ``\underbrace{x}_{\text{gain}}`` beside the brace. Bars are made not to stretch, because
    browsers stretch only the first of two.
    """
    plain = re.sub(r"&(?!lt;|gt;|amp;)\w+;", lambda match: html.unescape(match[0]), mathml)
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
        mathml = fix_scripts(tex2mathml(formula, as_block=block))
    except MathError as fault:
        raise ExtensionError(f"a formula cannot be drawn: {formula!r}: {fault}") from fault
    if block:
        mathml = f'<div class="math">{mathml}</div>'
    translator.body.append(mathml)
    raise nodes.SkipNode


def _add_font(app: Sphinx, fault: Exception | None) -> None:
    """Write the font to where ``counsel.css`` expects it."""
    if fault is None and app.builder.format == "html":
        with as_file(files("ziamath.fonts") / "STIXTwoMath-Regular.ttf") as path:
            font = TTFont(path)
        font.flavor = "woff"
        font.save(Path(app.outdir) / "_static" / "STIXTwoMath-Regular.woff")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer and the font."""
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(lambda self, node: _draw(self, node, block=False), None),
        block_renderers=(lambda self, node: _draw(self, node, block=True), None),
    )
    app.connect("build-finished", _add_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
