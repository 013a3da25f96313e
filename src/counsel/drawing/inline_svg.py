"""Figures of matplotlib as inline SVG that follows the theme of the page.

Colours of the palette become CSS variables of the page, so one drawing serves light and dark; text
stays text, in the font of the page; ids are prefixed by the figure's name, so that they are unique.
"""

import io
import re
from html import escape
from typing import TYPE_CHECKING

from counsel.drawing.palette import ADVICE, DARK_GOLD, GOLD, HARM, INK, LINES, PAPER, SILENCE, WHITE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THEMED = {
    ADVICE: "advice",
    SILENCE: "silence",
    HARM: "harm",
    GOLD: "star",
    DARK_GOLD: "gold",
    INK: "ink",
    PAPER: "paper",
    LINES: "line",
    WHITE: "card",
}
"""The CSS variable for each colour of a drawing."""


def inline_svg(figure: "Figure", name: str, description: str) -> str:
    """Return a figure without its background as markup.

    ``name``, of letters and dashes, is unique on the page; ``description`` is for screen readers.
    """
    import matplotlib as mpl

    sink = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "counsel", "savefig.bbox": None}):
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(sink, format="svg", transparent=False, facecolor="none", metadata=nothing)
    text = sink.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<!--.*?-->\s*|<style.*?</style>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'\b(id="|href="#|url\(#)', rf"\g<1>{name}-", text)
    text = re.sub(
        r"(font(?:-family)?:[^;\"]*?)'[^;\"]*sans-serif", r"\1system-ui, sans-serif", text
    )
    for colour, variable in THEMED.items():
        text = text.replace(colour.lower(), f"var(--{variable})")
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text)
    assert size is not None  # matplotlib always writes it  # noqa: S101
    opening = (
        f'<svg class="{name}" viewBox="0 0 {size[1]} {size[2]}" role="img" '
        f'aria-label="{escape(description)}">'
    )
    return re.sub(r"<svg[^>]*>", lambda _: opening, text, count=1).strip()
