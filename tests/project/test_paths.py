"""Files that README, CONTRIBUTING and CHANGELOG name exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "src", "tests", "tools", "benchmarks", ".ci", ".github")
WRITTEN = ("docs/_build", "docs/_gallery")
"""Folders that commands write and that are not in the repository."""


def links(text):
    """Return the files that links point to."""
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    return {target.partition("#")[0] for target in targets if "://" not in target} - {""}


def quoted(text):
    """Return the paths in backticks that begin with a folder or a file of the repository."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    words = [word for span in re.findall(r"`([^`\n]+)`", text) for word in span.split()]
    words = [word.removeprefix("./").rstrip(",;:") for word in words]
    starts = tuple(f"{folder}/" for folder in FOLDERS)
    return {word for word in words if word.startswith(starts) and not word.startswith(WRITTEN)}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_every_file_that_a_page_names_exists(page):
    text = (ROOT / page).read_text("utf-8")
    assert quoted(text) | links(text)
    missing = [
        name for name in sorted(links(text) | quoted(text)) if not any(ROOT.glob(name.rstrip("/")))
    ]
    assert not missing


def test_a_page_that_has_moved_is_noticed():
    text = "Now in [a page](docs/how-to/gone.md#part) and `docs/service.md`; see `make docs`."
    assert links(text) == {"docs/how-to/gone.md"}
    assert quoted(text) == {"docs/service.md"}
