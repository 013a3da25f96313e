"""The playground as people use it: whole games in a browser by keyboard, touch, clock, watching."""

import csv
import json
import re
import urllib.request

import pytest

from tests.support import services
from tests.support.each import each

PHONE = {
    "width": 390,
    "height": 844,
    "has_touch": True,
    "is_mobile": True,
    "device_scale_factor": 2,
}
KEYS = {"Up": "ArrowUp", "Up-Up": "Shift+ArrowUp", "Down": "ArrowDown"}
OTHER_KEYS = {"Up": "1", "Up-Up": "w", "Down": "3"}
STORED = "[JSON.stringify(localStorage), JSON.stringify(sessionStorage)]"
FIRST, SECOND = "Move 1 of 19", "Move 2 of 19"
ADVISERS = ("never", "always", "budget", "penalty")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The address of a service that all games are played on."""
    with services.serving(tmp_path_factory.mktemp("play") / "counsel.db") as found:
        yield found


@pytest.fixture
def visit(open_page, address):
    """Open the page as one visitor."""

    def go(*, seen=True, prepare=lambda page: None, **options):
        page = open_page(address, **options)
        prepare(page)
        if seen:
            page.add_init_script("localStorage.setItem('counsel-play-welcomed', 'true')")
        page.goto(f"{address}/play")
        ready(page)
        return page

    return go


@pytest.fixture(scope="module")
def world(address):
    with urllib.request.urlopen(f"{address}/v1/play") as answer:
        return json.load(answer)


def way_through(world, name="three-phases"):
    """Return moves that fly through the whole map."""
    rows = next(one["rows"] for one in world["maps"] if one["name"] == name)
    start = next(one["start"] for one in world["maps"] if one["name"] == name)

    def onward(row, column):
        if column == len(rows[0]) - 1:
            return []
        for move in world["moves"]:
            to = row + move["rows"]
            if 0 <= to < len(rows) and rows[to][column + 1] != "#":
                rest = onward(to, column + 1)
                if rest is not None:
                    return [move["label"], *rest]
        return None

    return onward(*start)


def ready(page):
    """Wait for the game to begin; the first plan of a map can take a service long."""
    page.locator("#stage[aria-busy=false]").wait_for(timeout=120_000)


def told(page):
    return page.locator("#moves-made").inner_text()


def moved_on(page, before):
    """Wait for the service's answer to a move."""
    page.wait_for_function(
        "before => document.getElementById('moves-made').innerText !== before", arg=before
    )


def sends(page):
    """Wait until a move is sent and answered: a key press that was lost fails here, not later."""
    return page.expect_response("**/moves")


def play(page, moves, make):
    for move in moves:
        before = told(page)
        with sends(page):
            make(move)
        moved_on(page, before)


def press(page):
    return lambda move: page.keyboard.press(KEYS[move])


def choose(page, name, value):
    """Choose a setting and wait for the new game."""
    page.locator(f"#settings [name={name}]").select_option(value)
    ready(page)


def card(page):
    found = page.locator("#card")
    found.wait_for(state="visible")
    return found


def no_sideways(page):
    return page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


# Whole games.


@pytest.mark.parametrize("keys", [KEYS, OTHER_KEYS])
def test_a_whole_game_by_keyboard_alone(visit, world, keys):
    page = visit()
    play(page, way_through(world), lambda move: page.keyboard.press(keys[move]))
    assert "flew through to the end" in card(page).inner_text()
    # The focus is on "Play again": Enter starts the next game without a mouse.
    page.keyboard.press("Enter")
    page.locator("#card").wait_for(state="hidden")
    assert told(page) == FIRST


def test_a_whole_game_by_touch_on_a_phone(visit, world):
    page = visit(**PHONE)
    assert no_sideways(page)

    def tap(move):
        button = page.locator(f".move[data-move='{move}']")
        box = button.bounding_box()
        # Large, and in the lower half of the screen where the thumb is.
        assert box["height"] >= 60
        assert box["width"] >= 100
        assert box["y"] > 422
        button.tap()

    play(page, way_through(world), tap)
    assert card(page).is_visible()
    assert no_sideways(page)


def test_the_landing_cells_can_be_clicked(visit, world):
    page = visit()
    labels = [move["label"] for move in world["moves"]]
    play(
        page,
        way_through(world)[:3],
        lambda move: (
            page.locator(".target")
            .nth(labels.index(move))
            .locator("circle")
            .click(position={"x": 5, "y": 18}, force=True)
        ),
    )
    assert told(page) == "Move 4 of 19"


@pytest.mark.parametrize("adviser", ADVISERS)
def test_a_whole_game_with_each_adviser(visit, world, adviser):
    page = visit()
    if adviser != "budget":  # The page starts with it.
        choose(page, "adviser", adviser)
    page.locator("#board").focus()
    spoken = []

    def make(move):
        spoken.append(page.locator(".move.advised").count())
        page.keyboard.press(KEYS[move])

    play(page, way_through(world), make)
    assert card(page).locator("h2").inner_text()
    pieces = sum(spoken)
    assert {"never": pieces == 0, "always": pieces >= 19, "budget": pieces <= 2, "penalty": True}[
        adviser
    ]
    assert page.locator("#board .marks > *").count() == len(spoken)  # The path shows each move.


def test_the_sliders_reach_the_service(visit):
    page = visit()
    with page.expect_request(lambda sent: sent.method == "POST") as sent:
        page.locator("[name=budget]").fill("5")
    assert (sent.value.post_data_json["budget"], sent.value.post_data_json["penalty"]) == (5, None)
    choose(page, "adviser", "penalty")
    with page.expect_request(lambda sent: sent.method == "POST") as sent:
        page.locator("[name=penalty]").fill("0.75")
    assert (sent.value.post_data_json["budget"], sent.value.post_data_json["penalty"]) == (
        None,
        0.75,
    )


def test_every_map_can_be_played(visit, world):
    for one in world["maps"]:
        page = visit()
        if page.locator("[name=map]").input_value() != one["name"]:
            choose(page, "map", one["name"])
        page.locator("#board").focus()
        play(page, way_through(world, one["name"]), press(page))
        assert card(page).is_visible()


def test_watching_a_simulated_person_shows_the_truth_on_the_bars(visit, world):
    page = visit()
    page.locator("#go-on").evaluate("box => { box.checked = false }")
    page.locator("#speed").evaluate(
        "bar => { bar.value = 20; bar.dispatchEvent(new Event('input')) }"
    )
    choose(page, "person", world["people"][0]["name"])
    card(page).wait_for(state="visible", timeout=20_000)
    assert page.locator(".truth:visible").count() == len(world["moves"])
    assert page.locator("#history svg").is_visible()
    page.get_by_role("button", name="Play yourself").click()
    page.locator("#moves").wait_for(state="visible")
    assert page.locator(".truth:visible").count() == 0


def test_watching_goes_on_pauses_and_steps(visit, world):
    page = visit()
    choose(page, "person", world["people"][0]["name"])
    page.get_by_role("button", name="Pause").click()
    for _ in range(10):  # a move that was asked for may still be on its way
        before = told(page)
        page.wait_for_timeout(800)
        if told(page) == before:
            break
    assert told(page) == before
    page.get_by_role("button", name="One move").click()
    moved_on(page, before)
    page.locator("#speed").fill("20")
    with page.expect_request(lambda sent: sent.url.endswith("/v1/play/games"), timeout=60_000):
        page.get_by_role("button", name="Continue").click()


# Pace.


def test_the_game_waits_for_the_player(visit):
    page = visit()
    page.clock.install(time=0)
    with sends(page):
        page.keyboard.press("ArrowDown")
    moved_on(page, FIRST)
    page.clock.run_for(60_000)  # a minute of the page's own time
    page.wait_for_timeout(200)
    assert told(page) == SECOND
    assert page.locator("#clock").is_hidden()


def test_when_the_time_runs_out_the_bird_repeats_the_last_move(visit):
    page = visit()
    page.clock.install(time=0)
    page.clock.pause_at(1)  # from here time passes only when it is told to
    page.locator("[name=pace]").select_option("3")
    page.locator("#board").focus()
    assert "repeats your last move" in page.locator("#clock").inner_text()
    page.clock.run_for(4000)
    assert told(page) == FIRST  # The clock starts after the first move.
    with sends(page):
        page.keyboard.press("ArrowDown")
    moved_on(page, FIRST)
    bar = page.locator(".clock-left")
    width = bar.bounding_box()["width"]
    asked = []
    page.on("request", lambda sent: asked.append(sent.url) if "/moves" in sent.url else None)
    page.clock.run_for(1500)
    page.wait_for_function(  # the bar takes a tenth of a second to shrink
        "to => document.querySelector('.clock-left').getBoundingClientRect().width <= to",
        arg=0.51 * width,
    )
    assert bar.bounding_box()["width"] == pytest.approx(0.5 * width, rel=0.02)
    page.clock.run_for(1400)
    assert told(page) == SECOND
    assert not asked
    with page.expect_request(lambda sent: sent.url.endswith("/moves")) as sent:
        page.clock.run_for(100)
    assert sent.value.post_data_json["action"] == "Down"
    end = page.locator("#card")
    for _ in range(200):  # Down again and again leaves the map.
        page.clock.run_for(1000)
        if end.is_visible():
            break
        page.wait_for_timeout(50)
    assert end.is_visible()


# Advice and silence.


def test_advice_is_an_arrow_a_line_and_a_ghost_on_the_board(visit):
    page = visit()
    choose(page, "adviser", "always")
    advised = page.locator(".move.advised").get_attribute("data-move")
    assert page.locator(".advice-text").inner_text().startswith(advised)
    assert page.locator(".advice-sign").inner_text() in "↑⇈↓"
    assert page.locator("#board .ghost-arrow").is_visible()
    assert f"Advice: {advised}" in page.locator("#announcer").inner_text()
    page.locator(f".move[data-move='{advised}']").click()
    page.get_by_text("advice taken").wait_for()
    other = page.locator(".move:not(.advised)").first
    other.click()
    page.get_by_text("advice not taken").wait_for()


def test_silence_is_seen_and_explained_on_demand(visit):
    page = visit()
    choose(page, "adviser", "never")
    assert page.locator("#board .hush-dot").is_visible()
    assert "silent" in page.locator(".advice-text").inner_text()
    assert page.locator("#reasons").is_hidden()
    page.get_by_role("button", name="Why?").click()
    assert page.locator("#reasons").inner_text().startswith("Silent")


# The first visit.


def test_the_cards_are_shown_once_and_can_be_skipped(visit):
    page = visit(seen=False)
    dialog = page.locator("#welcome")
    dialog.wait_for(state="visible")
    page.get_by_role("button", name="Skip").click()
    assert dialog.is_hidden()
    page.reload()
    ready(page)
    page.wait_for_timeout(500)
    assert dialog.is_hidden()


def test_the_three_cards_by_keyboard(visit):
    page = visit(seen=False)
    titles = []
    page.locator("#welcome").wait_for(state="visible")
    for _ in range(3):
        titles.append(page.locator("#welcome-title").inner_text())
        page.keyboard.press("Enter")
    assert len(set(titles)) == 3
    page.locator("#welcome").wait_for(state="hidden")
    with sends(page):
        page.keyboard.press("ArrowDown")
    moved_on(page, FIRST)


def test_escape_closes_the_cards_for_ever(visit):
    page = visit(seen=False)
    page.locator("#welcome").wait_for(state="visible")
    page.keyboard.press("Escape")
    page.locator("#welcome").wait_for(state="hidden")
    before = page.evaluate(STORED)
    page.reload()
    ready(page)
    page.wait_for_timeout(300)
    after = page.evaluate(STORED)
    assert page.locator("#welcome").is_hidden(), f"stored before: {before}, after: {after}"


@each("lost", ["localStorage", "sessionStorage"])
def test_the_cards_and_the_player_outlast_the_loss_of_one_storage(visit, lost):
    page = visit(seen=False)
    page.keyboard.press("Escape")
    page.locator("#welcome").wait_for(state="hidden")
    kept, _ = page.evaluate(STORED)
    page.evaluate(f"{lost}.clear()")
    page.reload()
    ready(page)
    assert page.locator("#welcome").is_hidden()
    assert kept in page.evaluate(STORED), "the player has the same name"


def test_where_only_a_tab_may_store_the_cards_are_shown_once_in_it(visit):
    refuse = "Object.defineProperty(window, 'localStorage', {get() { throw new Error('refused') }})"
    page = visit(seen=False, prepare=lambda page: page.add_init_script(refuse))
    page.locator("#welcome").wait_for(state="visible")
    page.keyboard.press("Escape")
    page.reload()
    ready(page)
    assert page.locator("#welcome").is_hidden()


# The panel, the card, the log.


def test_the_heat_map_can_be_turned_off(visit):
    page = visit()
    assert page.locator(".heat").is_visible()
    page.get_by_label("Where advice matters").uncheck()
    assert page.locator(".heat").is_hidden()


def test_the_card_tells_score_alone_and_what_was_learnt(visit, world):
    page = visit()
    choose(page, "adviser", "always")
    page.locator("#board").focus()
    play(page, way_through(world), press(page))
    text = card(page).inner_text()
    for words in (
        "Alone, estimated",
        "Where advice mattered",
        "What the machine learnt",
        "Play again",
        "Download my log",
    ):
        assert words in text
    assert page.get_by_role("button", name=re.compile("^Watch ")).is_visible()


def test_after_a_game_the_player_is_on_the_frontier_and_the_log_has_one_row_per_move(visit, world):
    page = visit()
    moves = way_through(world)
    assert page.locator(".frontier-line").is_visible()
    assert page.locator(".frontier-you").count() == 0
    play(page, moves, press(page))
    card(page)
    page.locator(".frontier-you").wait_for()
    with page.expect_download() as got:
        page.get_by_role("button", name="Download my log").click()
    assert got.value.suggested_filename.endswith(".csv")
    with open(got.value.path(), newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["action"] for row in rows] == moves


def test_settings_of_a_game_under_way_hold_for_the_next(visit):
    page = visit()
    with sends(page):
        page.keyboard.press("ArrowDown")
    moved_on(page, FIRST)
    page.locator("[name=adviser]").select_option("always")
    assert "next game" in page.locator("#settings-note").inner_text()
    assert told(page) == SECOND
    page.get_by_role("button", name="New game").click()
    moved_on(page, SECOND)
    assert page.locator(".move.advised").count() == 1


def test_settings_open_on_a_phone(visit):
    page = visit(**PHONE)
    assert page.locator("[name=adviser]").is_hidden()
    page.locator("#menu").tap()
    assert page.locator("[name=adviser]").is_visible()
    assert no_sideways(page)


def test_when_the_service_fails_its_sentence_is_shown_and_the_bird_goes_back(visit):
    fails = True

    def answer(route):
        if not fails:
            return route.fallback()
        told = {"title": "Busy", "status": 503, "detail": "The service is busy."}
        return route.fulfill(status=503, json=told)

    # Before the page is there: no move can go past it, however busy the machine is.
    page = visit(prepare=lambda page: page.route("**/moves", answer))
    before = page.locator(".bird").first.evaluate("bird => bird.style.transform")
    with sends(page) as refused:
        page.keyboard.press("ArrowDown")
    assert refused.value.status == 503
    page.get_by_text("The service is busy.").wait_for()
    assert page.locator(".bird").first.evaluate("bird => bird.style.transform") == before
    fails = False
    with sends(page) as accepted:
        page.keyboard.press("ArrowDown")
    assert accepted.value.ok
    moved_on(page, FIRST)
    assert page.locator("#trouble").is_hidden()


# Motion, speed, contrast, sizes.


def test_reduced_motion_means_no_animation(visit):
    page = visit(reduced_motion="reduce")
    for move in ("Down", "Up", "Down"):
        before = told(page)
        with sends(page):
            page.keyboard.press(KEYS[move])
            assert page.evaluate("document.getAnimations().length") == 0
        moved_on(page, before)
        assert page.evaluate("document.getAnimations().length") == 0


PRESS = """() => new Promise((resolve) => {
    const pressed = new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true });
    const began = performance.now();
    document.body.dispatchEvent(pressed);
    const worked = performance.now() - began;
    const drawn = () => document.querySelector(".bird").style.transform;
    requestAnimationFrame(() => resolve([worked, drawn()]));
})"""


def test_the_bird_moves_within_fifty_milliseconds(visit):
    """The move is drawn before the service answers, so the wait is the browser's alone."""
    page = visit()
    page.route("**/moves", lambda route: None)  # The service never answers.
    worked, drawn = page.evaluate(PRESS)
    assert worked < 50
    assert drawn == "translate(60px, 180px)"


CONTRAST = """(selector) => {
    const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgba = (colour) => {
        paint.clearRect(0, 0, 1, 1);
        paint.fillStyle = colour;
        paint.fillRect(0, 0, 1, 1);
        return [...paint.getImageData(0, 0, 1, 1).data];
    };
    const linear = (part) => {
        const value = part / 255;
        return value <= .03928 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4;
    };
    const light = (colour) => {
        const [red, green, blue] = colour.slice(0, 3).map(linear);
        return .2126 * red + .7152 * green + .0722 * blue;
    };
    const ground = (node) => {
        for (let at = node; at; at = at.parentElement) {
            const colour = rgba(getComputedStyle(at).backgroundColor);
            if (colour[3] === 255) return colour;
        }
        return [255, 255, 255, 255];
    };
    const seen = (node) => node.getClientRects().length && node.textContent.trim();
    return [...document.querySelectorAll(selector)].filter(seen).map((node) => {
        const style = getComputedStyle(node);
        const text = rgba(node instanceof SVGElement ? style.fill : style.color);
        const [more, less] = [light(text), light(ground(node))].sort((x, y) => y - x);
        return [node.textContent.trim().slice(0, 30), (more + .05) / (less + .05)];
    });
}"""
TEXTS = """
.brand, .links a, .links button, .settings label, .settings select, .state p,
.advice-text, .advice-sign, #why, .reasons dt, .move span:not(.move-sign), .move kbd,
.panel h2, .panel p, .listening-row > *, .axis-text, .frontier-name,
.card h2, .card p, .card li > *, .card button, .compare-text
"""


def test_texts_have_contrast_in_either_theme(visit, world):
    page = visit()

    def contrasts():
        found = []
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") == (
                theme == "dark"
            )
            page.wait_for_timeout(300)  # The colours of buttons fade in.
            found.append(page.evaluate(CONTRAST, TEXTS))
        return found

    page.get_by_role("button", name="Why?").click()
    silent = contrasts()
    choose(page, "adviser", "always")
    spoken = contrasts()
    page.locator("#board").focus()
    play(page, way_through(world), press(page))
    card(page)
    ended = contrasts()
    assert min(map(len, silent)) > 25
    assert min(map(len, ended)) > 25
    texts = [text for found in silent + spoken + ended for text in found]
    poor = [(text, ratio) for text, ratio in texts if ratio < 4.5]
    assert poor == []


def test_nothing_scrolls_sideways(visit, world):
    widths = (390, 768, 1280, 2560)
    for width in widths:
        page = visit(width=width, height=844)
        assert no_sideways(page)
    play(page, way_through(world), press(page))
    card(page)
    for width in widths:
        page.set_viewport_size({"width": width, "height": 844})
        assert no_sideways(page)


def test_the_page_is_light(visit, address):
    page = visit()
    files = page.evaluate(
        "performance.getEntriesByType('resource').map((one) => [one.name, one.decodedBodySize])"
    )
    assert sum(size for name, size in files if "/static/" in name) < 150_000


def test_the_board_is_described_in_words(visit):
    page = visit()
    label = page.locator("#board").get_attribute("aria-label")
    assert "Bird in row 4" in label
    assert "Down:" in label
    assert page.locator("#announcer").get_attribute("role") == "status"
