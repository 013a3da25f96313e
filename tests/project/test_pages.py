"""Every page of the documentation does what it shows."""

import pytest

from tests.support import pages
from tests.support.paths import ROOT

PAGES = [path for path in pages.written() if path.name != "README.md" and pages.blocks(path)]


@pytest.mark.docs
@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_does_what_it_shows(path, command, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    pages.run(path, command, tmp_path)


def test_a_page_that_tells_otherwise_is_found(command, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(2 + 2)\n```\n\n```text\n5\n```\n")
    with pytest.raises(AssertionError, match="prints otherwise:\n4"):
        pages.run(page, command, tmp_path)
    page.write_text("```sh\ncounsel worlds --nothing\n```\n")
    with pytest.raises(AssertionError, match="nothing"):
        pages.run(page, command, tmp_path)
    page.write_text("```sh\nrm -rf everything\n```\n")
    with pytest.raises(AssertionError, match="cannot be run here"):
        pages.run(page, command, tmp_path)


def test_a_line_of_dots_stands_for_any_lines():
    assert pages.same("a\n…\nd", "a\nb  \nc\nd\n")
    assert not pages.same("a\n…\nd", "a\nb\nc\n")
    assert not pages.same("a\nd", "a\nb\nd")
