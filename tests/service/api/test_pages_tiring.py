"""People who tire, in the browser: the meter of the playground, and levels on the dashboard."""

import json
import urllib.request

import pytest
from playwright.sync_api import expect

from tests.support import services

PHONE = {"width": 390, "height": 844, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with services.serving(tmp_path_factory.mktemp("tiring") / "counsel.db") as found:
        yield found


@pytest.fixture
def visit(open_page, address):
    """Open the playground as one visitor who has seen the welcome."""

    def go(**options):
        page = open_page(address, **options)
        page.add_init_script("localStorage.setItem('counsel-play-welcomed', 'true')")
        page.goto(f"{address}/play")
        ready(page)
        return page

    return go


def ready(page):
    page.locator("#stage[aria-busy=false]").wait_for(timeout=120_000)


def choose(page, name, value):
    page.locator(f"#settings [name={name}]").select_option(value)
    ready(page)


def test_the_meter_shows_how_rested_the_player_is_in_words(visit):
    page = visit()
    expect(page.locator("#rest")).to_be_hidden()
    choose(page, "tires", "tires")
    choose(page, "adviser", "always")
    meter = page.locator("#rest")
    expect(meter).to_contain_text("100 % rested")
    expect(meter).to_contain_text("Rested: advice moves you as well as ever.")
    page.keyboard.press("ArrowUp")
    expect(meter).to_contain_text("25 % rested")
    expect(page.locator("#announcer")).to_contain_text("Tired of advice: a piece moves you 25 %")
    expect(page.locator("#listening-about")).to_contain_text("when rested")
    page.locator("#why").click()
    expect(page.locator("#reasons")).to_contain_text("costs of later listening")
    choose(page, "tires", "")
    page.locator("#new-game").click()
    expect(meter).to_be_hidden()


def test_watching_somebody_who_tires_the_adviser_knows_it(visit):
    page = visit()
    choose(page, "person", "tiring")
    assert page.locator("#settings [name=tires]").input_value() == "tires"
    expect(page.locator("#rest")).to_contain_text("rested")
    choose(page, "person", "safe")
    assert page.locator("#settings [name=tires]").input_value() == ""
    expect(page.locator("#rest")).to_be_hidden()


@pytest.mark.parametrize("view", [PHONE, {"width": 1280, "height": 860}], ids=["phone", "desktop"])
def test_the_meter_takes_no_room_from_anything_else(visit, view):
    page = visit(**view)
    if view is PHONE:
        page.locator("#menu").click()
    choose(page, "tires", "tires")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    boxes = [
        page.locator(name).bounding_box() for name in ("#rest", "#moves-made", "label:has(#heat)")
    ]
    for i, one in enumerate(boxes):
        for other in boxes[i + 1 :]:
            apart = (
                one["x"] + one["width"] <= other["x"] + 0.5
                or other["x"] + other["width"] <= one["x"] + 0.5
                or one["y"] + one["height"] <= other["y"] + 0.5
                or other["y"] + other["height"] <= one["y"] + 0.5
            )
            assert apart, boxes


def call(address, path, body):
    request = urllib.request.Request(
        address + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read() or "null")


def test_the_dashboard_shows_levels_of_people_who_tire_and_of_nobody_else(open_page, address):
    told = {"name": "alarm", "source": "ward/tiring", "always": True, "memory_across": "person"}
    adviser = call(address, "/v1/advisers", told)
    assert adviser["memory"]["levels"][1] == "1 piece so far"
    assert adviser["memory"]["rested"][1] == pytest.approx(0.7)
    episode = call(address, f"/v1/advisers/{adviser['id']}/episodes", {"person": "ann"})["id"]
    for step in range(3):
        at = {"step": step, "state": "deteriorating"}
        said = call(address, f"/v1/episodes/{episode}/advice", at)
        assert said["reason"]["level"] == adviser["memory"]["levels"][step]
        outcome = {"advice_id": said["id"], "action": said["advice"]}
        call(address, "/v1/outcomes", {"outcomes": [outcome]})
    plain = call(address, "/v1/advisers", {"name": "plain", "source": "ward", "penalty": 0.1})
    assert plain["memory"] is None
    page = open_page(address)
    page.goto(f"{address}/#{adviser['id']}")
    expect(page.locator("#about")).to_contain_text("people remember advice over their episodes")
    figure = page.locator("#adherence-by-level")
    expect(figure).to_be_visible()
    expect(figure.locator("h2")).to_contain_text("No measurable difference between rested and")
    expect(page.locator("#recent-decisions")).to_contain_text("2 pieces so far")
    page.locator("#recent-decisions button.more").first.click()
    expect(page.locator("#recent-decisions dl").first).to_contain_text("49 %")
    page.goto(f"{address}/#{plain['id']}")
    expect(page.locator("#about")).to_contain_text("plain")
    expect(figure).to_be_hidden()
