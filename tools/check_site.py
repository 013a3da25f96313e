"""Check the built site: ``python tools/check_site.py docs/_build/html``.

Every link to a page, a picture or an anchor must have a target; nothing may be loaded from another
host; and every word of our own pages must be in the dictionary or in ``docs/words.txt``.
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
    """The links of a page, the files it loads, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Collect links, loaded files and anchors."""
        values = {name: value or "" for name, value in attributes}
        if "id" in values:
            self.anchors.add(values["id"])
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in LOADED and LOADED[tag] in values and values.get("rel") != "canonical":
            self.loaded.append(values[LOADED[tag]])


def broken_links(site: Path) -> Iterator[str]:
    """Yield broken links, and files loaded from another host."""
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
                yield f"{where}: {link} has no target"
            elif target in pages and parts.fragment:
                anchor = unquote(parts.fragment)
                if anchor not in pages[target].anchors:
                    yield f"{where}: {link} has no such anchor"


def prose(text: str) -> str:
    """Return the words of a Markdown or gallery page, without code, formulas and addresses."""
    text = re.sub(r"^```.*?^```", " ", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->", " ", text, flags=re.DOTALL)
    text = re.sub(r"``.*?``|`[^`]*`", " ", text, flags=re.DOTALL)
    text = re.sub(r"\$\$.*?\$\$|\$[^$\n]+\$", " ", text, flags=re.DOTALL)
    text = re.sub(r"\]\([^)]*\)|https?://\S+|^\[.*?\]:.*$", " ", text, flags=re.MULTILINE)
    return re.sub(r"\{[a-z:]+\}", " ", text)


def own_pages() -> list[Path]:
    """Return our own pages."""
    paths = [*DOCS.rglob("*.md"), *(DOCS / "gallery").glob("*.rst")]
    paths = [path for path in paths if not {"_build", "_gallery"} & set(path.parts)]
    return sorted([*paths, *(DOCS.parent.glob("*.md"))])


def unknown_words() -> Iterator[str]:
    """Yield words that are neither in the dictionary nor in our list, with their page."""
    known = SpellChecker(language="en", distance=1)
    known.word_frequency.load_words((DOCS / "words.txt").read_text(encoding="utf-8").split())
    for path in own_pages():
        text = prose(path.read_text(encoding="utf-8"))
        words = {word.strip("'’") for word in re.findall(r"[A-Za-zÀ-ÿ][A-Za-zÀ-ÿ'’]+", text)}
        usual = {word for word in words if not re.search(r"[a-z][A-Z]|[A-Z]{2}", word)}
        usual = {re.sub(r"['’]s?$", "", word) for word in usual}
        for word in sorted(known.unknown(usual)):
            yield f"{path.name}: {word!r} is unknown; correct it, or add it to docs/words.txt"


def main() -> None:
    """Print all faults."""
    faults = [*broken_links(Path(sys.argv[1])), *unknown_words()]
    if faults:
        faults.append("The site is built, but correct these faults.")
    sys.exit("\n".join(faults) or None)


if __name__ == "__main__":
    main()
