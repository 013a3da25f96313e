"""The page of the demo: findings with numbers, in one file, readable by everybody, everywhere."""

import re
from html.parser import HTMLParser
from importlib import resources

import pytest

from counsel.experiments import demo as demos
from counsel.experiments.demo import make_demo
from counsel.report.page_template import DARK, LIGHT

VOID = {"meta", "br", "img", "link", "input", "hr"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A small demo."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demos, "cores", lambda: 1)
        return make_demo(tmp_path_factory.mktemp("demo"), episodes=300)


@pytest.fixture(scope="module")
def page(made):
    return made.page.read_text(encoding="utf-8")


class Reader(HTMLParser):
    """Collects tags, ids and text; notes what is not closed."""

    def __init__(self, page):
        super().__init__()
        self.open, self.ids, self.pictures, self.text = [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "svg":
            self.pictures.append(given)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.slow
def test_it_is_one_small_well_formed_file_that_asks_no_host(page):
    assert len(page.encode()) < 1_500_000
    assert "://" not in page
    assert "<script" not in page
    assert not re.search(r"\b(src|href)=[\"'](?!#)", page.replace("xlink:", ""))
    read = Reader(page)
    assert read.open == []
    assert len(read.ids) == len(set(read.ids))
    for target in re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', page):
        assert "".join(target) in read.ids


def test_every_picture_has_words_and_follows_the_theme(page):
    pictures = Reader(page).pictures
    assert len(pictures) == 7  # flights, policies and frontiers of two players, and the regret
    for picture in pictures:
        assert picture["role"] == "img"
        assert len(picture["aria-label"]) > 40
    drawn = "".join(re.findall(r"<svg.*?</svg>", page, re.DOTALL))
    assert not re.search(r"(fill|stroke): #", drawn)
    assert "▲" in page
    assert "●" in page


def test_the_headline_states_the_finding_with_the_numbers_of_the_demo(made, page):
    (title,) = re.findall(r"<h1>(.*?)</h1>", page)
    for player in made.players:
        assert f"{player.alone:.1f}" in title
        assert f"{player.evaluation.value:.1f}" in title
    text = "".join(Reader(page).text)
    for player in made.players:
        cost = f"{player.cost:,.0f}" if player.cost >= 10 else f"{player.cost:.2g}"
        assert f"{cost} stars for {player.name}" in text
        assert f"{player.always.pieces:.1f} pieces" in text
    assert "200 flights" in text
    for command in ("counsel serve --demo", "counsel fit ward.csv", "counsel reproduce"):
        assert command in text


def test_what_matters_most_is_what_the_policy_says(made):
    for player in made.players:
        assert player.reasons
        worth = [why.pieces * why.gain for why in player.reasons]
        assert worth == sorted(worth, reverse=True)
        assert sum(why.pieces for why in player.reasons) == pytest.approx(
            player.evaluation.advice_count
        )


@pytest.mark.slow
def test_a_price_at_which_nothing_pays_makes_a_page_too(tmp_path, monkeypatch):
    monkeypatch.setattr(demos, "cores", lambda: 1)
    page = make_demo(tmp_path, episodes=50, penalty=100.0).page.read_text(encoding="utf-8")
    assert "<h1>At this price the machine stays silent" in page
    assert "hears no advice at all" in page
    Reader(page)


def contrast(one, other):
    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_every_text_can_be_read(theme):
    for text in ("ink", "soft", "advice", "silence", "gold", "harm"):
        for ground in ("paper", "card"):
            assert contrast(theme[text], theme[ground]) >= 4.5, (text, ground)
    assert contrast(theme["ink"], theme["code"]) >= 4.5
    for mark in ("star", "wall"):
        if mark != "star" or theme is DARK:  # stars have a dark rim on light ground
            assert contrast(theme[mark], theme["card"]) >= 3.0


def test_the_colours_are_those_of_the_service():
    style = (resources.files("counsel.service") / "static" / "common.css").read_text()
    light, dark = re.findall(r":root \{(.*?)\}", style, re.DOTALL)[:2]
    for sheet, theme in ((light, LIGHT), (dark, DARK)):
        named = dict(re.findall(r"--([\w-]+): (#\w+);", sheet))
        for name in ("advice", "silence", "harm", "star", "ink", "soft", "paper", "card", "wall"):
            assert named[name].upper() == theme[name].upper(), name


@pytest.mark.parametrize("width", [390, 1280, 2560])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_every_screen_and_asks_nobody(width, scheme, made, open_page):
    address = made.page.as_uri()
    page = open_page(address, width=width, scheme=scheme)
    page.goto(address)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(251, 250, 247)" if scheme == "light" else "rgb(23, 26, 33)")
    small = page.evaluate(
        "[...document.querySelectorAll('svg text')].map(t => t.getBoundingClientRect().height)"
    )
    assert min(small) >= 9
    wide = page.evaluate("[...document.querySelectorAll('svg')].every(s => s.clientWidth > 250)")
    assert wide
