"""What looks through the documentation finds what is wrong with it."""

import sys

import pytest

from tests.support.paths import ROOT

sys.path.insert(0, str(ROOT / "tools"))
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

import check_site
import offline


def test_links_that_lead_nowhere_are_found(tmp_path):
    (tmp_path / "a.html").write_text('<p id="here"><a href="b.html#there">b</a><img src="c.png">')
    (tmp_path / "b.html").write_text('<p id="there"><a href="a.html#here">a</a>')
    assert list(check_site.broken_links(tmp_path)) == ["a.html: c.png has no target"]
    (tmp_path / "c.png").touch()
    assert list(check_site.broken_links(tmp_path)) == []
    (tmp_path / "b.html").write_text('<a href="a.html#gone">a</a><a href="d.html">d</a>')
    assert list(check_site.broken_links(tmp_path)) == [
        "a.html: b.html#there has no such anchor",
        "b.html: a.html#gone has no such anchor",
        "b.html: d.html has no target",
    ]


@pytest.mark.parametrize(
    "tag",
    [
        '<script src="https://cdn.example/x.js">',
        '<link rel="stylesheet" href="//fonts.example/x.css">',
        '<img src="http://other.example/x.png">',
    ],
)
def test_what_comes_from_another_host_is_found(tag, tmp_path):
    (tmp_path / "a.html").write_text(tag)
    (told,) = check_site.broken_links(tmp_path)
    assert told.startswith("a.html loads ")


def test_a_link_to_another_host_is_not_loaded(tmp_path):
    (tmp_path / "a.html").write_text('<a href="https://example.org">elsewhere</a>')
    assert list(check_site.broken_links(tmp_path)) == []


def test_code_formulas_and_addresses_are_not_spelt():
    page = "Wrods `qwxz` $\\pqrs$ [text](zzyx.md) https://qqq.example\n```python\nxyzzy\n```\n"
    assert check_site.prose(page).split() == ["Wrods", "[text"]


def test_our_pages_are_spelt_right():
    assert list(check_site.unknown_words()) == []


def test_a_word_that_is_misspelt_is_found(monkeypatch, tmp_path):
    text = "Advise that people recieve is of no use to thier planing."  # codespell:ignore
    (tmp_path / "page.md").write_text(text)
    monkeypatch.setattr(check_site, "own_pages", lambda: [tmp_path / "page.md"])
    monkeypatch.setattr(check_site, "DOCS", ROOT / "docs")
    told = " ".join(check_site.unknown_words())
    assert "'recieve' is unknown" in told
    assert "'thier' is unknown" in told


def test_a_build_that_reaches_for_another_host_fails():
    with pytest.raises(PermissionError, match=r"another host: 'example\.org'"):
        offline._refuse("socket.getaddrinfo", ("example.org", 443, 0, 0, 0))
    with pytest.raises(PermissionError, match="another host"):
        offline._refuse("socket.connect", (None, ("192.0.2.1", 443)))
    offline._refuse("socket.connect", (None, ("127.0.0.1", 8000)))
    offline._refuse("socket.connect", (None, "/run/socket"))
