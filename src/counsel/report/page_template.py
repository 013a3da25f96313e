"""The HTML skeleton of all pages: document, style sheet, content security policy, tables."""

from collections.abc import Iterable, Mapping
from html import escape

from counsel.drawing.palette import DARK, LIGHT


def _variables(colours: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


DARK_STYLE = f"""
:root {{ color-scheme: light dark; }}
@media screen and (prefers-color-scheme: dark) {{ :root {{ {_variables(DARK)} }} }}
"""
"""For pages whose pictures follow the theme, after the common style."""

COMMON_STYLE = f"""
:root {{ color-scheme: light; {_variables(LIGHT)} }}
body {{ margin: 0 auto; max-width: 64rem; padding: 2.5rem 1.25rem 4rem; background: var(--paper);
  color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif;
  font-variant-numeric: tabular-nums; }}
h1 {{ font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; }}
h2 {{ font-size: 1.3rem; line-height: 1.3; margin: 3rem 0 .5rem; }}
p.lead {{ font-size: 1.1rem; margin: 0 0 1.5rem; }}
a {{ color: var(--advice); }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; width: 100%; font-size: .92rem; }}
th, td {{ text-align: left; padding: .42rem .75rem .42rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }}
td.number, th.number {{ text-align: right; white-space: nowrap; }}
@media print {{ @page {{ size: A4; margin: 15mm; }}
  body {{ max-width: none; padding: 0; background: white; }}
  h2 {{ break-after: avoid; }} figure, tr {{ break-inside: avoid; }}
  .wide {{ overflow: visible; }} }}
"""


OFFLINE = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""The content security policy of a page without scripts: load nothing from outside the page."""


def whole_page(
    title: str, style: str, body: Iterable[str], *, policy: str = OFFLINE, script: str = ""
) -> str:
    """Return a whole page: the title is plain text, the parts of the body are markup.

    ``policy`` is the content security policy, ``script`` goes into the head.
    """
    scripts = f"<script>{script}</script>" if script else ""
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{style}</style>{scripts}</head><body>",
            *body,
            "</body></html>\n",
        ]
    )


def table(head: str, body: str) -> str:
    """Return a table that scrolls if it is too wide, from its head cells and body rows."""
    whole = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f"<div class='wide'><table>{whole}</table></div>"


def table_head(*names: str, text: int) -> str:
    """Return the head cells of a table; the first ``text`` columns are text, the others numbers."""
    kinds = ("" if i < text else " class='number'" for i in range(len(names)))
    return "".join(f"<th{kind}>{name}</th>" for kind, name in zip(kinds, names, strict=True))
