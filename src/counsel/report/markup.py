"""What all pages have in common: type, colour, tables, text as text, and how they print."""

import html

from counsel.worlds.canvas import ADVICE, INK, LINES, PAPER

COMMON_STYLE = f"""
:root {{ color-scheme: light; }}
body {{ margin: 0 auto; max-width: 64rem; padding: 2.5rem 1.25rem 4rem; background: {PAPER};
  color: {INK}; font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif;
  font-variant-numeric: tabular-nums; }}
h1 {{ font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; }}
h2 {{ font-size: 1.3rem; line-height: 1.3; margin: 3rem 0 .5rem; }}
p.lead {{ font-size: 1.1rem; margin: 0 0 1.5rem; }}
a {{ color: {ADVICE}; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; width: 100%; font-size: .92rem; }}
th, td {{ text-align: left; padding: .42rem .75rem .42rem 0; border-bottom: 1px solid {LINES};
  vertical-align: top; }}
td.number, th.number {{ text-align: right; white-space: nowrap; }}
@media print {{ @page {{ size: A4; margin: 15mm; }}
  body {{ max-width: none; padding: 0; background: white; }}
  h2 {{ break-after: avoid; }} figure, tr {{ break-inside: avoid; }}
  .wide {{ overflow: visible; }} }}
"""


def escaped(given: str) -> str:
    """Return a text that a page shows as it is, whatever it holds."""
    return html.escape(given, quote=True)


def table(head: str, body: str) -> str:
    """Return a table, which scrolls where it is too wide, from its head cells and body rows."""
    whole = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f"<div class='wide'><table>{whole}</table></div>"
