"""The report of a reproduction: one self-contained page that opens offline and prints.

``reproduction_page`` is a pure function of text. The page loads nothing from another host.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from counsel.report.page_template import COMMON_STYLE, table, table_head, whole_page


@dataclass(frozen=True, slots=True)
class PagePicture:
    """A picture as SVG text, and its caption."""

    name: str
    svg: str
    caption: str


@dataclass(frozen=True, slots=True)
class PageClaim:
    """A claim in words: text, source, statistic with its limit, measurement, and verdict.

    The verdict is "holds", "does not hold" or "cannot be told".
    """

    text: str
    source: str
    stated: str
    measured: str
    verdict: str


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table of text, of which the first row is the head, and its caption."""

    caption: str
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Section:
    """One experiment: name, title, pictures, claims, tables, and settings by run."""

    name: str
    title: str
    pictures: Sequence[PagePicture]
    claims: Sequence[PageClaim]
    tables: Sequence[PageTable]
    settings: Sequence[tuple[str, str, str]]


STYLE = f"""{COMMON_STYLE}
nav ul {{ padding: 0; display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; list-style: none; }}
figure {{ margin: 1.2rem 0; }}
figure img {{ max-width: 100%; height: auto; display: block; }}
figcaption {{ font-size: .92rem; margin-top: .5rem; max-width: 52rem; }}
.holds {{ color: var(--advice); font-weight: 600; white-space: nowrap; }}
.fails {{ color: var(--harm); font-weight: 600; white-space: nowrap; }}
.unknown {{ font-weight: 600; white-space: nowrap; }}
details {{ margin: .8rem 0; font-size: .9rem; }}
summary {{ cursor: pointer; color: var(--advice); }}
code {{ font-size: .85em; overflow-wrap: anywhere; }}
@media print {{ details, nav {{ display: none; }} }}
"""

VERDICTS = {
    "holds": "<td class='holds'>▲ holds</td>",
    "does not hold": "<td class='fails'>● does not hold</td>",
    "cannot be told": "<td class='unknown'>? cannot be told</td>",
}


def reproduction_page(
    title: str, lead: str, notes: Sequence[str], sections: Sequence[Section]
) -> str:
    """Return the whole page; ``notes`` say how the experiments were run."""
    claims = [(section.name, claim) for section in sections for claim in section.claims]
    parts = [
        f"<h1>{escape(title)}</h1><p class='lead'>{escape(lead)}</p>",
        "<nav aria-label='Experiments'><ul>",
        *(f"<li><a href='#{escape(s.name)}'>{escape(s.name)}</a></li>" for s in sections),
        "</ul></nav>",
        "<h2 id='claims'>Claims</h2>",
        _claims(claims),
        *(_section(section) for section in sections),
        "<h2 id='how'>How the experiments were run</h2><ul>",
        *(f"<li>{escape(note)}</li>" for note in notes),
        "</ul>",
    ]
    return whole_page(title, STYLE, parts)


def _section(section: Section) -> str:
    pictures = "\n".join(_figure(picture) for picture in section.pictures)
    tables = "\n".join(_table(table) for table in section.tables)
    rows = "".join(
        f"<tr><td><code>{escape(key)}</code></td><td><code>{escape(settings)}</code></td>"
        f"<td class='number'>{escape(seconds)}</td></tr>"
        for key, settings, seconds in section.settings
    )
    head = table_head("run", "settings", "seconds", text=2)
    return (
        f"<section><h2 id='{escape(section.name)}'>{escape(section.title)}</h2>{pictures}{tables}"
        f"<details><summary>{len(section.settings)} runs and their settings</summary>"
        f"{table(head, rows)}</details></section>"
    )


def _figure(picture: PagePicture) -> str:
    data = base64.b64encode(picture.svg.encode()).decode()
    return (
        f"<figure id='{escape(picture.name)}'><img alt='{escape(picture.caption)}' "
        f"src='data:image/svg+xml;base64,{data}'><figcaption>{escape(picture.caption)}</figcaption></figure>"
    )


def _table(content: PageTable) -> str:
    head, *rows = content.rows
    cells = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    names = table_head(*map(escape, head), text=len(head))
    return f"{table(names, cells)}<p>{escape(content.caption)}</p>"


def _claims(claims: Sequence[tuple[str, PageClaim]]) -> str:
    rows = "".join(
        f"<tr><td><a href='#{escape(name)}'>{escape(name)}</a></td><td>{escape(claim.text)}</td>"
        f"<td>{escape(claim.source)}</td><td>{escape(claim.measured)}<br>"
        f"<small>{escape(claim.stated)}</small></td>{VERDICTS[claim.verdict]}</tr>"
        for name, claim in claims
    )
    names = ("experiment", "claim", "source", "measured [99 % interval]", "verdict")
    return table(table_head(*names, text=len(names)), rows)
