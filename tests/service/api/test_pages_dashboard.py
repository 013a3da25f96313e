"""The dashboard in a browser: what it says, that it stays put, and that no text becomes markup."""

import csv
import io
import json
import math
import re
import time
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.support.each import each

HOSTILE = "<img src=x onerror=alert(1)>'; DROP TABLE decisions; --"
FIGURES = [
    "adherence-over-time",
    "advice-rate",
    "budget-use",
    "lift-by-advice",
    "adherence-by-state",
    "adherence-by-person",
    "frontier",
]
CHARTS_AND_TABLES = [*FIGURES, "where-advice-pays", "recent-decisions"]


def call(address, path, body=None):
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        address + path, content, {"Content-Type": "application/json"} if content else {}
    )
    with urllib.request.urlopen(request) as answer:
        told = answer.read()
    return json.loads(told) if told else None


def an_adviser(address, **changes):
    told = {"name": "alerts", "source": "ward", "budget": 2, "hard": True}
    return call(address, "/v1/advisers", told | changes)


def play(address, adviser, person="ann"):
    """Play one episode in which the person does what is advised, and else carries on."""
    episode = call(address, f"/v1/advisers/{adviser['id']}/episodes", {"person": person})["id"]
    for step in range(adviser["horizon"]):
        at = {"step": step, "state": adviser["states"][-1]}
        said = call(address, f"/v1/episodes/{episode}/advice", at)
        outcome = {
            "advice_id": said["id"],
            "action": said["advice"] or adviser["actions"][0],
            "reward": 1.0,
        }
        call(address, "/v1/outcomes", {"outcomes": [outcome]})
    call(address, f"/v1/episodes/{episode}/end", {})


def decision(number, *, advice="assess", shown=True, text="", **changes):
    numbers = {"lift": 0.6, "advantage": 1.5, "gain": 0.9, "criticality": 0.8, "price": 0.3}
    why = text or "what it gains exceeds what a piece is worth elsewhere"
    return {
        "at": 1763300000.0 + number,
        "person": text or "ann",
        "episode": f"e{number}",
        "step": 3,
        "state": text or "crisis",
        "advice": advice,
        "shown": shown,
        "must": False,
        "held_out": False,
        "action": "assess",
        "reward": 1.0,
        "reason": {"why": why, "considered": advice, "spent": 1, "left": 1} | numbers,
    } | changes


def a_bin(i, *, seen=30, matched=20):
    start = 1763300000.0 + 3600 * i
    low, high = (0.5, 0.8) if seen else (None, None)
    return {
        "from": start,
        "to": start + 3600,
        "decisions": 200,
        "shown": seen,
        "seen": seen,
        "matched": matched,
        "low": low,
        "high": high,
        "episodes": 12,
        "per_episode": 1.7,
    }


def a_summary(*, text="", newest=50):
    """Return what the contract says the service answers, with one text in place of all labels."""
    return {
        "episodes": 120,
        "people": 14,
        "listening": {"share": 0.71, "low": 0.66, "high": 0.75, "pieces": 410}
        | {"always_low": 0.62, "always_high": 0.79},
        "worth": {
            "estimate": 0.8,
            "low": 0.3,
            "high": 1.3,
            "always_low": 0.04,
            "always_high": 1.6,
            "advised": 100,
            "held_out": 20,
            "how": "measured",
        },
        "spending": {
            "per_episode": 1.8,
            "low": 1.6,
            "high": 2.0,
            "budget": 2.0,
            "must_say": 0.1,
            "episodes": 100,
        },
        "advice_rate": 0.12,
        "over_time": [a_bin(i, seen=0, matched=0) if i == 3 else a_bin(i) for i in range(8)],
        "by_advice": [
            {
                "advice": text or "call doctor",
                "lift": 0.6,
                "low": 0.5,
                "high": 0.7,
                "always_low": 0.44,
                "always_high": 0.76,
                "pieces": 200,
                "matched": 150,
            },
            {
                "advice": text + "assess",
                "lift": 0.2,
                "low": -0.1,
                "high": 0.4,
                "always_low": None,
                "always_high": 0.43,
                "pieces": 20,
                "matched": 9,
            },
        ],
        "by_state": [
            {"state": text or "crisis", "pieces": 120, "matched": 90, "low": 0.66, "high": 0.82},
            {"state": text + "stable", "pieces": 40, "matched": 18, "low": 0.31, "high": 0.6},
        ],
        "by_person": {
            "edges": [i / 10 for i in range(11)],
            "count": [0, 0, 0, 1, 1, 2, 4, 4, 2, 0],
        },
        "where": [
            {
                "step": step,
                "state": text or "crisis",
                "advice": text or "call doctor",
                "gain": 0.9 / step,
                "criticality": 0.8,
                "support": 43 - 10 * step,
            }
            for step in (1, 2, 3, 4)
        ],
        "frontier": {
            "pieces": [0, 1, 2, 4],
            "value": [2.0, 2.6, 2.9, 3.0],
            "marks": [
                {"name": "never", "pieces": 0, "value": 2.0},
                {"name": "always", "pieces": 4, "value": 3.0},
                {"name": "chosen", "pieces": 2, "value": 2.9},
                {"name": "now", "pieces": 1.8, "value": 2.7, "low": 2.5, "high": 2.9},
            ],
        },
        "recent": [decision(i, text=text) for i in range(newest, newest - 50, -1)],
        "unknown": [text or "3 states with advice have fewer than 5 decisions"],
    }


def answer_with(page, told):
    """Answer the page with the summary that ``told()`` returns; the list of times it asked."""
    asked = []

    def answer(route):
        asked.append(time.monotonic())
        route.fulfill(json=told())

    page.route("**/summary", answer)
    return asked


def shown_summary(open_page, address, told=None, **view):
    """Open the page on an adviser whose summary is given."""
    adviser = an_adviser(address)
    page = open_page(address, **view)
    answer_with(page, lambda: told or a_summary())
    page.goto(f"{address}/#{adviser['id']}")
    expect(page.locator("#study")).to_be_visible()
    return page


def test_without_advisers_it_says_how_to_make_one_and_then_shows_it(open_page, address):
    page = open_page(address)
    page.clock.install()
    page.goto(address)
    expect(page.get_by_role("heading", level=1)).to_have_text("There is no adviser yet")
    recipe = page.locator("#recipe").inner_text()
    assert f"curl -X POST {address}/v1/advisers" in recipe
    body = json.loads(re.search(r"-d '(.*)'", recipe)[1])
    expect(page.get_by_text("counsel serve --demo")).to_be_visible()
    expect(page.locator("main a[href='/play']")).to_be_visible()
    made = call(address, "/v1/advisers", body)
    page.clock.run_for(6000)
    expect(page.locator("#study")).to_be_visible()
    assert page.url == f"{address}/#{made['id']}"


def test_an_adviser_just_made_has_words_and_no_empty_chart(open_page, address):
    adviser = an_adviser(address)
    page = open_page(address)
    page.goto(f"{address}/#{adviser['id']}")
    expect(page.locator("#finding")).to_have_text("Nothing has happened yet")
    expect(page.locator("#recent-decisions h2")).to_contain_text("No decisions yet")
    for name in (
        "adherence-over-time",
        "adherence-by-state",
        "adherence-by-person",
        "recent-decisions",
    ):
        expect(page.locator(f"#{name} h2")).to_be_visible()
        expect(page.locator(f"#{name} .chart, #{name} table")).to_be_hidden()


def test_it_says_what_the_service_says(open_page, address):
    adviser = an_adviser(address)
    for _ in range(3):
        play(address, adviser)
    page = open_page(address)
    page.goto(address)
    expect(page.locator("#recent-decisions tbody tr").first).to_be_visible()
    told = call(address, f"/v1/advisers/{adviser['id']}/summary")
    expect(page).to_have_url(f"{address}/#{adviser['id']}")
    expect(page).to_have_title("alerts · Counsel")
    expect(page.locator("#recent-decisions tbody tr")).to_have_count(len(told["recent"]))
    expect(page.locator("#lead")).to_contain_text(
        f"{sum(one['decisions'] for one in told['over_time']):,} decisions"
    )
    if told["listening"]["pieces"]:
        share = f"{math.floor(told['listening']['share'] * 100 + 0.5)} %"
        expect(page.locator("#three .figure-number").first).to_have_text(share)
        expect(page.locator("#three > div").first).to_contain_text(
            f"{told['listening']['pieces']:,} piece"
        )


def test_findings_are_computed_from_the_numbers(open_page, address):
    page = shown_summary(open_page, address)
    expect(page.locator("#finding")).to_have_text(
        "People match 71 % of the advice they see [66, 75]; 410 pieces"
    )
    expect(page.locator("#lead")).to_have_text(
        "Advice adds 0.8 reward per episode [+0.3, +1.3]. From 120 episodes with 14 people, with advice in 12 % of 1,600 decisions."
    )
    cards = page.locator("#three > div")
    expect(cards.nth(0)).to_contain_text("[66, 75], at every look [62, 79]; 410 pieces seen")
    expect(cards.nth(1)).to_contain_text(
        "[+0.3, +1.3], at every look [+0.04, +1.6]; 100 episodes with advice, 20 kept silent at random."
    )
    expect(cards.nth(2)).to_contain_text("[1.6, 2]; 100 episodes; apart from 0.1 that must be said")
    findings = {
        "adherence-over-time": "No measurable change in adherence: 67 % in the older half, 67 % in the newer",
        "advice-rate": "The adviser speaks in 12 % of 1,600 decisions and is silent in the rest",
        "budget-use": "1.8 pieces per episode [1.6, 2]: within the budget of 2",
        "lift-by-advice": "The lift of “call doctor” is 60 % [50, 70]; 200 pieces; higher than any other",
        "adherence-by-state": "Adherence depends on the state: 75 % in “crisis” [66, 82], 45 % in “stable” [31, 60]",
        "adherence-by-person": "Eight in ten of 14 people match 40 % to 90 % of the advice they see",
        "where-advice-pays": "Advice pays most in “crisis” at step 1: “call doctor” gains 0.9",
        "frontier": "2 pieces per episode can bring 90 % of what advice adds; now 1.8 bring a reward of 2.7",
        "recent-decisions": "Of the last 50 decisions, 50 came with advice",
    }
    for name, finding in findings.items():
        expect(page.locator(f"#{name} h2")).to_have_text(finding)
    expect(page.locator("#unknown li")).to_have_text(
        ["3 states with advice have fewer than 5 decisions"]
    )
    expect(page.locator("#where-advice-pays tbody tr").last).to_contain_text("3 (few)")


ONE = "{episodes:1,people:1,advice_rate:0.1,over_time:[{decisions:9}]}"
BASIS = "From 1 episode with 1 person, with advice in 10 % of 9 decisions."


SENTENCES = [
    (
        "adherenceChange([{seen:200,matched:80},{seen:200,matched:150}])",
        "Adherence rises: 40 % in the older half, 75 % in the newer",
    ),
    (
        "adherenceChange([{seen:200,matched:150},{seen:200,matched:80}])",
        "Adherence falls: 75 % in the older half, 40 % in the newer",
    ),
    ("adherenceChange([{seen:9,matched:9}])", "It is too early to say whether adherence changes"),
    (
        "budgetUse({per_episode:2.6,low:2.4,high:2.8,budget:2})",
        "2.6 pieces per episode [2.4, 2.8]: more than the budget of 2",
    ),
    (
        "budgetUse({per_episode:2.1,low:1.9,high:2.3,budget:2})",
        "2.1 pieces per episode [1.9, 2.3]: about the budget of 2",
    ),
    (
        "budgetUse({per_episode:1.0034,low:0.9,high:1.1,budget:1})",
        "1 piece per episode [0.9, 1.1]: about the budget of 1",
    ),
    (
        "limitBrings({value:[0,1],marks:[{name:'never',pieces:0,value:0},{name:'chosen',pieces:2,value:1},{name:'now',pieces:1.0034,value:0.5}]})",
        "2 pieces per episode can bring 100 % of what advice adds; now 1 brings a reward of 0.5",
    ),
    (
        "budgetUse({per_episode:1,low:null,high:null,budget:null})",
        "1 piece per episode; there is no budget",
    ),
    (
        "peopleDiffer({edges:[0,0.5,1],count:[0,1]})",
        "1 person matches 50 % to 100 % of the advice they see",
    ),
    ("limitBrings({pieces:[0,1],value:[2,2],marks:[]})", "Advice cannot add anything here"),
    (
        "budgetUse({per_episode:2.1,low:1.9,high:2.3,budget:4,unit:'cost'})",
        "A cost of 2.1 per episode [1.9, 2.3]: within the budget of 4",
    ),
    (
        "limitBrings({pieces:[0,3],value:[1,2],unit:'cost',marks:["
        "{name:'chosen',pieces:3,value:2},{name:'now',pieces:1.5,value:1.4}]})",
        "A cost of 3 per episode can bring 100 % of what advice adds; now a cost of 1.5 brings a "
        "reward of 1.4",
    ),
    (
        "recentAdvice([{advice:'a',shown:false},{advice:null,shown:true}])",
        "Of the last 2 decisions, 0 came with advice, 1 not shown",
    ),
    (
        "finding({...ONE,listening:{share:1,low:0.2,high:1,pieces:1}})",
        "People match 100 % of the advice they see [20, 100]; 1 piece",
    ),
    ("finding({...ONE,listening:{share:null,pieces:0}})", "Nobody has seen advice yet"),
    (
        "basis({...ONE,worth:{estimate:0.2,low:-0.1,high:0.5,how:'measured'}})",
        "It is not clear yet whether advice pays: +0.2 reward per episode [−0.1, +0.5]. " + BASIS,
    ),
    (
        "basis({...ONE,worth:{estimate:-0.2,low:-0.3,high:-0.1,how:'measured'}})",
        "Advice costs 0.2 reward per episode [−0.3, −0.1]. " + BASIS,
    ),
    (
        "basis({...ONE,worth:{estimate:0.2,low:null,high:null,how:'model'}})",
        "The plan expects +0.2 reward per episode from advice; that is not measured. " + BASIS,
    ),
    (
        "basis({...ONE,worth:{estimate:0.2,low:0.1,high:0.3,always_low:-0.05,always_high:0.45,how:'measured'}})",
        "Advice seems to add 0.2 reward per episode [+0.1, +0.3], which is not certain yet for people who look every day. "
        + BASIS,
    ),
    (
        "basis({...ONE,worth:{estimate:-0.2,low:-0.3,high:-0.1,always_low:null,always_high:null,how:'measured'}})",
        "Advice seems to cost 0.2 reward per episode [−0.3, −0.1], which is not certain yet for people who look every day. "
        + BASIS,
    ),
    (
        "highestLift([{advice:'a',lift:0.6,low:0.5,high:0.7,always_low:0.4,always_high:0.8,pieces:9},{advice:'b',lift:0.3,low:0.2,high:0.4,always_low:0.1,always_high:0.5,pieces:9}])",
        "The lift of “a” is 60 % [50, 70]; 9 pieces",
    ),
    (  # two pieces say nothing: the lift that is known best comes first
        "highestLift([{advice:'a',lift:0.6,low:0,high:1,pieces:2},{advice:'b',lift:0.5,low:0.4,high:0.6,pieces:199}])",
        "The lift of “b” is 50 % [40, 60]; 199 pieces",
    ),
    ("basis({...ONE,worth:null})", BASIS),
]


def test_sentences(open_page, address):
    page = open_page(address)
    page.goto(address)
    for asked, said in SENTENCES:
        body = f"const ONE = {ONE}; return sentences.{asked};"
        found = page.evaluate(
            f"import('/static/dashboard-sentences.js').then((sentences) => {{ {body} }})"
        )
        assert found.replace("\u00a0", " ") == said, asked


def test_the_address_says_which_adviser(open_page, address):
    first, second = an_adviser(address, name="day"), an_adviser(address, name="night")
    page = open_page(address)
    page.goto(f"{address}/#{second['id']}")
    expect(page.locator("#about")).to_contain_text("night")
    page.get_by_label("Adviser").first.select_option(label="day")
    expect(page.locator("#about")).to_contain_text("day")
    assert page.url == f"{address}/#{first['id']}"
    page.go_back()
    expect(page.locator("#about")).to_contain_text("night")
    expect(page.locator("#adviser")).to_have_value(second["id"])
    page.goto(f"{address}/#no%20such%")
    expect(page.locator("#trouble")).to_contain_text("There is no adviser “no%20such%” here")
    expect(page.locator("#study")).to_be_hidden()


def test_advisers_of_one_name_are_told_apart(open_page, address):
    made = [an_adviser(address) for _ in range(2)]
    page = open_page(address)
    page.goto(address)
    expect(page.locator("#adviser option")).to_have_text(
        [f"alerts ({one['id'][:8]})" for one in made]
    )


def test_no_text_becomes_markup(open_page, address):
    adviser = an_adviser(address, name=HOSTILE)
    play(address, adviser, person=HOSTILE)
    page = open_page(address)
    page.goto(f"{address}/#{adviser['id']}")
    expect(page.locator("#about")).to_contain_text(HOSTILE)
    expect(page.locator("#recent-decisions tbody tr").first).to_be_visible()
    assert page.locator("img").count() == 0
    answer_with(page, lambda: a_summary(text=HOSTILE))
    page.reload()
    expect(page.locator("#unknown li")).to_have_text([HOSTILE])
    expect(page.locator("#recent-decisions tbody tr").first).to_contain_text(f"{HOSTILE}.")
    expect(page.locator("#where-advice-pays tbody tr").first).to_contain_text(HOSTILE)
    page.locator("#lift-by-advice .chart").hover()
    expect(page.locator("#lift-by-advice .tip")).to_contain_text(HOSTILE)
    assert page.locator("img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_fresh_numbers_leave_scroll_focus_and_open_rows_alone(open_page, address):
    adviser = an_adviser(address)
    page = open_page(address)
    newest = [50]
    answer_with(page, lambda: a_summary(newest=newest[0]))
    page.clock.install()
    page.goto(f"{address}/#{adviser['id']}")
    row = page.locator("#recent-decisions tbody tr").nth(5)
    row.get_by_role("button", name="numbers").click()
    row.evaluate(
        "(one) => { window.watched = one; scrollBy(0, one.getBoundingClientRect().top - 400); }"
    )
    before = page.evaluate("[scrollY, watched.getBoundingClientRect().top]")
    newest[0] = 53
    page.clock.run_for(5500)
    top_row = page.locator("#recent-decisions tbody tr").first
    expect(top_row.locator("time")).to_have_attribute("datetime", re.compile(":34:13"))
    after = page.evaluate("[scrollY, watched.getBoundingClientRect().top]")
    assert after[0] > before[0], "rows came in above"
    assert abs(after[1] - before[1]) < 1
    assert page.evaluate("watched.contains(document.activeElement)")
    expect(page.locator("#recent-decisions .numbers:visible")).to_have_count(1)
    newest[0] = 70
    page.clock.run_for(5500)
    expect(top_row.locator("time")).to_have_attribute("datetime", re.compile(":34:30"))
    assert page.evaluate("watched.getBoundingClientRect().height > 0"), (
        "an open row does not fold away"
    )
    assert abs(page.evaluate("watched.getBoundingClientRect().top") - before[1]) < 1


def test_fresh_numbers_leave_the_value_that_is_looked_at(open_page, address):
    adviser = an_adviser(address)
    page = open_page(address)
    told = a_summary()
    answer_with(page, lambda: told)
    page.clock.install()
    page.goto(f"{address}/#{adviser['id']}")
    expect(page.locator("#finding")).to_contain_text("71 %")  # until then no chart has values
    page.locator("#adherence-over-time .chart").focus()
    page.keyboard.press("End")
    tip = page.locator("#adherence-over-time .tip")
    expect(tip).to_contain_text("20 of 30 pieces")
    told["over_time"][-1] |= {"seen": 31, "matched": 21}
    page.clock.run_for(5500)
    expect(tip).to_contain_text("21 of 31 pieces")
    expect(page.locator("#adherence-over-time .chart")).to_be_focused()


def test_a_late_outcome_keeps_its_row_open_and_focused(open_page, address):
    adviser = an_adviser(address)
    page = open_page(address)
    told = a_summary()
    told["recent"][2]["action"] = None
    answer_with(page, lambda: told)
    page.clock.install()
    page.goto(f"{address}/#{adviser['id']}")
    row = page.locator("#recent-decisions tbody tr").nth(2)
    expect(row).to_contain_text("not reported")
    row.get_by_role("button", name="numbers").click()
    told["recent"][2]["action"] = "carry on"
    page.clock.run_for(5500)
    expect(row).to_contain_text("not as advised")
    expect(row.get_by_role("button", name="numbers")).to_be_focused()
    expect(row.locator(".numbers")).to_be_visible()


def test_pause_stops_asking(open_page, address):
    adviser = an_adviser(address)
    an_adviser(address, name="night")
    page = open_page(address)
    asked = answer_with(page, a_summary)
    page.clock.install()
    page.goto(f"{address}/#{adviser['id']}")
    expect(page.locator("#fresh")).to_contain_text("Every 5 s")
    with page.expect_response("**/summary"):
        page.clock.run_for(5500)
    page.wait_for_timeout(200)
    assert len(asked) == 2
    button = page.get_by_role("button", name="Pause")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#fresh")).to_contain_text("Paused")
    page.clock.run_for(30000)
    page.wait_for_timeout(200)
    assert len(asked) == 2
    page.locator("#adviser").select_option(label="night")
    expect(page.locator("#about")).to_contain_text("night")
    page.clock.run_for(30000)
    page.wait_for_timeout(200)
    assert len(asked) == 3, "another adviser is shown once, and stays paused"
    button.click()
    expect(page.locator("#fresh")).to_contain_text("Every 5 s")
    assert len(asked) == 4


def test_trouble_is_told_and_passes(open_page, address):
    adviser = an_adviser(address)
    page = open_page(address)
    answer_with(page, a_summary)
    page.clock.install()
    page.goto(f"{address}/#{adviser['id']}")
    expect(page.locator("#finding")).to_contain_text("71 %")
    page.route("**/summary", lambda route: route.abort())
    page.clock.run_for(5500)
    expect(page.locator("#trouble")).to_have_text(
        "The service does not answer. Is it running? The numbers below may be old."
    )
    expect(page.locator("#finding")).to_contain_text("71 %")
    answer_with(page, a_summary)
    page.clock.run_for(5500)
    expect(page.locator("#trouble")).to_be_hidden()


FIRST_VALUES = {
    "adherence-over-time": "67 % [50, 80]: 20 of 30 pieces matched",
    "advice-rate": "15 %: 30 of 200 decisions with advice",
    "budget-use": "1.7 pieces per episode in 12 episodes",
    "lift-by-advice": "lift 60 % [50, 70], at every look [44, 76]; 150 of 200 pieces matched",
    "adherence-by-state": "matched 75 % [66, 82]; 90 of 120 pieces matched",
    "adherence-by-person": "0 people",
    "frontier": "never0 pieces per episode, reward 2",
}


def test_charts_give_exact_values_to_keyboard_and_pointer(open_page, address):
    page = shown_summary(open_page, address)
    assert list(FIRST_VALUES) == FIGURES
    for name, first in FIRST_VALUES.items():
        chart, tip = page.locator(f"#{name} .chart"), page.locator(f"#{name} .tip")
        chart.focus()
        page.keyboard.press("ArrowRight")
        expect(tip).to_contain_text(first)
        page.keyboard.press("ArrowRight")
        expect(tip).to_be_visible()
        page.keyboard.press("Home")
        expect(tip).to_contain_text(first)
        page.keyboard.press("Escape")
        expect(tip).to_be_hidden()
        chart.hover()
        expect(tip).to_be_visible()
        page.mouse.move(1, 1)
        expect(tip).to_be_hidden()


def test_decisions_say_what_was_shown_and_why(open_page, address):
    told = a_summary()
    told["recent"] = [
        decision(5, action="carry on"),
        decision(4),
        decision(3, advice=None, reason={"why": "no advice helps here"}),
        decision(2, shown=False, held_out=True),
        decision(1, action=None, reward=None, must=True),
        decision(0, shown=False),
    ]
    page = shown_summary(open_page, address, told)
    rows = page.locator("#recent-decisions tbody tr")
    expect(rows.nth(0)).to_contain_text("not as advised")
    expect(rows.nth(1)).to_contain_text("▲ assess")
    expect(rows.nth(2)).to_contain_text("● silence")
    expect(rows.nth(2)).to_contain_text("No advice helps here.")
    expect(rows.nth(2).get_by_role("button")).to_have_count(0)
    expect(rows.nth(3)).to_contain_text("not shown: episode kept silent")
    expect(rows.nth(4)).to_contain_text("not reported")
    expect(rows.nth(4)).to_contain_text("must be said")
    expect(rows.nth(5)).to_contain_text("not shown: shadow")
    rows.nth(0).get_by_role("button", name="numbers").press("Enter")
    expect(rows.nth(0).locator(".numbers div")).to_have_text(
        [
            "consideredassess",
            "lift60 %",
            "advantage1.5",
            "gain0.9",
            "criticality0.8",
            "price of a piece0.3",
            "spent before1",
            "left1",
        ]
    )


def test_all_decisions_can_be_unfolded(open_page, address):
    page = shown_summary(open_page, address)
    rows = page.locator("#recent-decisions tbody tr:visible")
    expect(rows).to_have_count(12)
    page.get_by_role("button", name="All 50").click()
    expect(rows).to_have_count(50)
    page.get_by_role("button", name="Only the newest 12").click()
    expect(rows).to_have_count(12)


CSV_FILES = {
    "adherence-over-time": (8, {"seen": "30", "done": "20", "low": "0.5", "high": "0.8"}),
    "advice-rate": (8, {"decisions": "200", "shown": "30", "share": "0.15"}),
    "budget-use": (8, {"episodes": "12", "pieces per episode": "1.7", "budget": "2"}),
    "lift-by-advice": (
        2,
        {
            "advice": '\'=1+1, "x"',
            "lift": "0.6",
            "low": "0.5",
            "always low": "0.44",
            "pieces": "200",
        },
    ),
    "adherence-by-state": (2, {"state": '\'=1+1, "x"', "share": "0.75"}),
    "adherence-by-person": (10, {"from": "0", "to": "0.1", "people": "0"}),
    "frontier": (8, {"name": "frontier", "pieces per episode": "0", "reward per episode": "2"}),
    "where-advice-pays": (
        4,
        {"rank": "1", "gain": "0.9", "criticality": "0.8", "support": "33"},
    ),
    "recent-decisions": (
        50,
        {"episode": "e50", "shown": "true", "gain": "0.9", "why": '\'=1+1, "x"'},
    ),
}
"""How many rows each file has, and what is in its first."""


def test_numbers_can_be_taken_away_as_csv(open_page, address):
    page = shown_summary(open_page, address, a_summary(text='=1+1, "x"'))
    assert list(CSV_FILES) == CHARTS_AND_TABLES
    for name, (count, first) in CSV_FILES.items():
        with page.expect_download() as saved:
            page.locator(f"#{name} .csv").click()
        assert saved.value.suggested_filename == f"alerts-{name}.csv"
        content = Path(saved.value.path()).read_text(encoding="utf-8")
        rows = list(csv.DictReader(io.StringIO(content)))
        assert len(rows) == count
        assert first.items() <= rows[0].items(), name


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1+2", "@SUM(A1)", "\t=1", "＝1"])
def test_no_text_in_a_csv_file_is_a_formula(open_page, address, text):
    page = shown_summary(open_page, address, a_summary(text=text))
    with page.expect_download() as saved:
        page.locator("#recent-decisions .csv").click()
    content = Path(saved.value.path()).read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(content, newline="")))
    assert rows[0]["why"] == f"'{text}"
    assert not [cell for row in rows for cell in row.values() if cell.startswith(text)]


def test_the_log_can_be_downloaded(open_page, address):
    page = shown_summary(open_page, address)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download the log").click()
    assert saved.value.suggested_filename == "alerts-log.csv"
    assert "state" in Path(saved.value.path()).read_text().splitlines()[0]


LOW_CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (colour) => {
    const part = (c) => (c / 255 <= .03928 ? c / 255 / 12.92 : ((c / 255 + .055) / 1.055) ** 2.4);
    const [r, g, b] = rgb(colour).map(part);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (rgb(colour)[3] === 255) return colour;
    }
    return "white";
  };
  const low = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const one = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !one.getClientRects().length) continue;
    const style = getComputedStyle(one);
    const [a, b] = [light(one instanceof SVGElement ? style.fill : style.color), light(behind(one))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) low.push([walk.currentNode.data, ratio]);
  }
  return low;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@each("width", [390, 768, 1280, 2560])
def test_every_width_and_theme_can_be_read(open_page, address, width, scheme):
    told = a_summary()
    told["recent"][1]["shown"] = False
    told["recent"][2]["advice"] = None
    page = shown_summary(open_page, address, told, width=width, scheme=scheme)
    page.locator("#adherence-over-time .chart").hover()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(LOW_CONTRAST) == []
    outside = """[...document.querySelectorAll('.chart > svg text')].filter((one) => {
      const [text, box] = [one.getBoundingClientRect(), one.closest('.figure').getBoundingClientRect()];
      return text.left < box.left - 2 || text.right > box.right + 2; }).map((one) => one.textContent)"""
    assert page.evaluate(outside) == []


def test_both_ranges_are_drawn_and_explained(open_page, address):
    page = shown_summary(open_page, address)
    expect(page.locator("#looks")).to_have_text(
        "Looked at every day, the wider, thin range holds; the narrow, thick one holds for one look planned beforehand."
    )
    wider = """(box) => {
      const span = (name) => [...box.querySelectorAll(`svg .${name}`)].map((line) => line.getBoundingClientRect().width);
      return [Math.max(...span("whisker")), Math.max(...span("always"))]; }"""
    for card in range(2):
        usual, always = page.locator("#three > div").nth(card).evaluate(wider)
        assert 0 < usual < always
    # The second row has no lower end: its line is cut off, and has a tick at one end only.
    expect(page.locator("#lift-by-advice svg .always")).to_have_count(3 + 2)
    chart = page.locator("#lift-by-advice .chart")
    chart.focus()
    for text in ("[50, 70], at every look [44, 76]", "[-10, 40], at every look at most 43"):
        page.keyboard.press("ArrowDown")
        expect(chart.locator(".tip")).to_contain_text(text)


def test_without_ranges_for_every_look_nothing_is_said_of_them(open_page, address):
    told = a_summary()
    for part in (told["listening"], told["worth"], *told["by_advice"]):
        part |= {"always_low": None, "always_high": None}
    page = shown_summary(open_page, address, told)
    expect(page.locator("#looks")).to_be_hidden()
    expect(page.locator("svg .always")).to_have_count(0)
    expect(page.locator("#lead")).to_contain_text("Advice seems to add 0.8 reward per episode")


def test_print_loses_nothing(open_page, address):
    page = shown_summary(open_page, address, scheme="dark")
    page.set_viewport_size({"width": 688, "height": 1000})  # A4 less its margins
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.locator("#recent-decisions tbody tr:visible")).to_have_count(50)
    expect(page.locator("#recent-decisions .numbers:visible")).to_have_count(50)
    for name in CHARTS_AND_TABLES:
        expect(page.locator(f"#{name}")).to_be_visible()
    expect(page.locator("button:visible, select:visible, nav:visible")).to_have_count(0)
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(31, 36, 48)"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    cut = "[...document.querySelectorAll('.wide')].filter((box) => box.scrollWidth > box.clientWidth + 1).length"
    assert page.evaluate(cut) == 0


def test_keyboard_alone_reaches_everything(open_page, address):
    page = shown_summary(open_page, address)
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate(
                "(one => one.id || one.closest('[id]')?.id + ' ' + one.className)(document.activeElement)"
            )
        )
        if reached[-1] == "log":
            break
    wanted = {
        "adviser",
        "pause",
        "log",
        *(f"{name} csv" for name in CHARTS_AND_TABLES),
        *(f"{name} chart" for name in FIGURES),
    }
    assert wanted <= set(reached)
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_the_page_is_light_and_obeys_its_own_policy(open_page, address):
    page = open_page(address)
    sizes = {}
    page.on(
        "response",
        lambda answer: (
            sizes.update({answer.url: len(answer.body())}) if "/v1/" not in answer.url else None
        ),
    )
    answer = page.goto(address, wait_until="networkidle")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert 10_000 < sum(sizes.values()) < 80_000
    source = answer.text()
    assert " style=" not in source
    assert not re.search(r"<script(?![^>]*src=)|\son\w+=", source)


def test_a_page_asks_for_a_key_until_one_is_valid_and_keeps_it_in_the_tab(open_page, address):
    def need_key(route):
        if route.request.headers.get("authorization") == "Bearer right":
            route.continue_()
        else:
            route.fulfill(status=401, json={"detail": "give a valid key"})

    page, warnings = open_page(address), []
    page.on("console", lambda message: message.type == "warning" and warnings.append(message.text))
    page.route("**/v1/**", need_key)
    page.goto(address)
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("This service needs a key.")
    page.keyboard.press("Escape")
    for key, what in (("wrong", "This key does not work here."), (" right ", None)):
        page.get_by_role("textbox", name="Key").fill(key)
        page.keyboard.press("Enter")
        if what:
            expect(dialog).to_contain_text(what)
    expect(dialog).to_have_count(0)
    expect(page.locator("#welcome")).to_be_visible()
    page.reload()
    expect(page.locator("#welcome")).to_be_visible()
    assert page.evaluate("[sessionStorage.length, localStorage.length]") == [1, 0]
    assert warnings == []
