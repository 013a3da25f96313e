"""Look through the built site: ``python tools/check_site.py docs/_build/html``.

Every link to a page, a picture or a place on a page must lead somewhere; nothing may be loaded from
another host; and every word of our own pages must be in the dictionary or in ``docs/words.txt``.
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from spellchecker import SpellChecker

DOCS = Path(__file__).resolve().parents[1] / "docs"
LOADED = {"script": "src", "img": "src", "link": "href", "source": "src", "iframe": "src"}


class Page(HTMLParser):
    """What a page links to, what it loads, and the places on it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Take note of a tag."""
        told = {name: value or "" for name, value in attributes}
        if "id" in told:
            self.places.add(told["id"])
        if tag == "a" and "href" in told:
            self.links.append(told["href"])
        if tag in LOADED and LOADED[tag] in told and told.get("rel") != "canonical":
            self.loaded.append(told[LOADED[tag]])


def broken(site: Path) -> Iterator[str]:
    """Yield links that lead nowhere, and what is loaded from another host."""
    site = site.resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        where = path.relative_to(site)
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme in ("data", "mailto"):
                continue
            if parts.scheme or parts.netloc:
                if link in page.loaded:
                    yield f"{where} loads {link}"
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                yield f"{where}: {link} leads nowhere"
            elif target in pages and parts.fragment:
                place = unquote(parts.fragment)
                if place not in pages[target].places:
                    yield f"{where}: {link} names no place there"


def prose(text: str) -> str:
    """Return the words of a Markdown or gallery page, without code, formulas and addresses."""
    text = re.sub(r"^```.*?^```", " ", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->", " ", text, flags=re.DOTALL)
    text = re.sub(r"``.*?``|`[^`]*`", " ", text, flags=re.DOTALL)
    text = re.sub(r"\$\$.*?\$\$|\$[^$\n]+\$", " ", text, flags=re.DOTALL)
    text = re.sub(r"\]\([^)]*\)|https?://\S+|^\[.*?\]:.*$", " ", text, flags=re.MULTILINE)
    return re.sub(r"\{[a-z:]+\}", " ", text)


def written() -> list[Path]:
    """Return our own pages."""
    found = [*DOCS.rglob("*.md"), *(DOCS / "gallery").glob("*.rst")]
    found = [path for path in found if not {"_build", "_gallery"} & set(path.parts)]
    return sorted([*found, *(DOCS.parent.glob("*.md"))])


def misspelt() -> Iterator[str]:
    """Yield words that neither the dictionary nor we know, with where they stand."""
    known = SpellChecker(language="en", distance=1)
    known.word_frequency.load_words((DOCS / "words.txt").read_text(encoding="utf-8").split())
    for path in written():
        text = prose(path.read_text(encoding="utf-8"))
        words = {word.strip("'’") for word in re.findall(r"[A-Za-z][A-Za-z'’]+", text)}
        usual = {word for word in words if not re.search(r"[a-z][A-Z]|[A-Z]{2}", word)}
        usual = {re.sub(r"['’]s?$", "", word) for word in usual}
        for word in sorted(known.unknown(usual)):
            yield f"{path.name}: {word!r} is in no list; mend it, or add it to docs/words.txt"


def main() -> None:
    """Say what is wrong."""
    faults = [*broken(Path(sys.argv[1])), *misspelt()]
    if faults:
        faults.append("The site is built all the same, but these are to be mended.")
    sys.exit("\n".join(faults) or None)


if __name__ == "__main__":
    main()
