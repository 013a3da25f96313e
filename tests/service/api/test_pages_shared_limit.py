"""A shared limit in the browser: price and use on the dashboard."""

import time

import numpy as np
import pytest
from playwright.sync_api import expect

from counsel.service.core.settings import AdviserSettings
from counsel.service.core.shared_limit import stretch_start
from tests.support import services
from tests.support.timed_decisions import decide_at

DAY = 86_400
PIECES, PER_DAY, DAYS = 5, 24, 9


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The address of a service, and the ids of two advisers: one has shared its limit for days."""
    path = tmp_path_factory.mktemp("shared") / "counsel.db"
    rng = np.random.default_rng(0)
    with services.open_desk(f"sqlite:///{path}") as desk:
        known = {"source": "ward", "knows_habit": True}
        limit = {"pieces": PIECES, "per": "day"}
        phone = desk.create(1, "phone", AdviserSettings(**known, shared_limit=limit))
        plain = desk.create(1, "plain", AdviserSettings(**known))
        today = stretch_start(time.time(), DAY)
        for day in range(DAYS):
            passed = 1.0 if day < DAYS - 1 else (time.time() - today) / DAY
            for moment in np.sort(rng.random(PER_DAY)) * passed:
                episode = desk.start(1, phone, f"nurse {rng.integers(6)}")
                at = today + (day - DAYS + 1 + moment) * DAY
                state = int(rng.choice(4, p=[0.3, 0.4, 0.2, 0.1]))
                decide_at(desk, episode, at, state, draw=float(rng.random()))
    with services.serving(path) as address:
        yield address, phone, plain


def test_the_dashboard_shows_price_and_use_of_a_shared_limit_and_nothing_without(open_page, place):
    address, phone, plain = place
    page = open_page(address)
    page.goto(f"{address}/#{phone}")
    expect(page.locator("#about")).to_contain_text("5 pieces per day for all episodes together")
    use, price = page.locator("#shared-limit-use"), page.locator("#shared-limit-price")
    expect(use.locator("h2")).to_contain_text("of 5 pieces")
    expect(use.locator("svg .limit")).to_have_count(1)
    expect(use.locator("svg .column")).to_have_count(DAYS)
    expect(price.locator("svg .column")).to_have_count(DAYS)
    use.locator(".chart").focus()
    page.keyboard.press("Home")
    expect(use.locator(".tip")).to_contain_text("of 5 used; ")
    page.locator("#recent-decisions button.more").first.click()
    expect(page.locator("#recent-decisions dl").first).to_contain_text("left of the shared limit")
    page.goto(f"{address}/#{plain}")
    expect(page.locator("#about")).to_contain_text("plain")
    expect(use).to_be_hidden()
    expect(price).to_be_hidden()


def test_the_numbers_of_the_shared_limit_can_be_downloaded(open_page, place):
    address, phone, _ = place
    page = open_page(address)
    page.goto(f"{address}/#{phone}")
    with page.expect_download() as download:
        page.locator("#shared-limit-use").get_by_role("button", name="CSV").click()
    head, *rows = download.value.path().read_text(encoding="utf-8").split()
    assert "used" in head
    assert "mean price" in " ".join([head, *rows])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_figures_fit_the_page(open_page, place, scheme, width):
    address, phone, _ = place
    page = open_page(address, width=width, scheme=scheme)
    page.goto(f"{address}/#{phone}")
    expect(page.locator("#shared-limit-price svg .column")).to_have_count(DAYS)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
