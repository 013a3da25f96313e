"""Pictures: what is on them pixel by pixel, the files written, and what is left alone."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

import counsel
from counsel import CounselError, Criticality, Episodes
from counsel.drawing import draw_map
from counsel.drawing.canvas import CELL, DOTS, pixels, save
from counsel.drawing.palette import ADVICE, GOLD, INK, SILENCE
from counsel.worlds import GridMap, generate_map, make, make_flappy_bird
from tests.support.each import each
from tests.support.later import Later
from tests.support.paths import ROOT

mpl, figures = Later("matplotlib"), Later("matplotlib.figure")

MIXED = GridMap.parse("..*.#...\n.#..*..#\n...*....\n#......*\n..#...#.")
OPEN = GridMap.parse("\n".join(6 * [12 * "."]))
UP, UP_UP, DOWN, DEFER = 0, 1, 2, 3
ROWS_DOWN = (-1, -2, 1)
WHITE = (255, 255, 255)


def same_file(one, two):
    return one.read_bytes() == two.read_bytes()


def rgb(colour):
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


def read_png(path):
    """The pixels [height, width, 3] of a file."""
    with Image.open(path) as image:
        assert image.format == "PNG"
        return np.asarray(image.convert("RGB"))


def pixel_of(figure, row, column):
    """Where on the picture a place of the map is: pixels from the top, from the left."""
    x, y = figure.axes[0].transData.transform((column, row))
    height = figure.get_size_inches()[1] * DOTS
    return round(height - y), round(x)


def colour_at(image, figure, row, column):
    y, x = pixel_of(figure, row, column)
    return tuple(int(part) for part in image[y, x])


def inside_the_map(image, figure, grid):
    """The part of a picture that is the map, without its frame."""
    top, left = pixel_of(figure, -0.5, -0.5)
    bottom, right = pixel_of(figure, grid.rows - 0.5, grid.columns - 0.5)
    return image[top + 2 : bottom - 1, left + 2 : right - 1]


def is_colour(image, colour):
    return (image == rgb(colour)).all(axis=-1)


def luminance(colour):
    # Rounded: on some processors the luminance of white is one digit below 255.
    return round(float(np.dot(colour, (0.2126, 0.7152, 0.0722))), 9)


def flights(grid, *ways, start_row=None):
    """Episodes that fly the moves [(advice, action), ...] of each way over an open map."""
    state, advice, action, next_state, lengths = [], [], [], [], []
    over = grid.rows * grid.columns
    for way in ways:
        row = grid.start_row if start_row is None else start_row
        for column, (said, done) in enumerate(way):
            state.append(grid.state(row, column))
            advice.append(said)
            action.append(done)
            row += ROWS_DOWN[done]
            inside = 0 <= row < grid.rows and column + 1 < grid.columns
            alive = inside and grid.cells[row, column + 1] != 2
            next_state.append(grid.state(row, column + 1) if alive else over)
        lengths.append(len(way))
    return Episodes(
        first=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        state=np.array(state, np.int32),
        advice=np.array(advice, np.int16),
        action=np.array(action, np.int16),
        reward=np.zeros(len(state)),
        next_state=np.array(next_state, np.int32),
        terminated=np.zeros(len(ways), bool),
        defer=DEFER,
    )


def heat_of(grid, cells):
    """A criticality that says these numbers [row, column], each at the step of its column."""
    lower = np.zeros((grid.columns, grid.rows * grid.columns + 1))
    for row, column in np.ndindex(cells.shape):
        lower[column, grid.state(row, column)] = cells[row, column]
    return Criticality(lower=lower, upper=lower, exact=True)


@pytest.fixture(scope="module")
def played():
    """A problem on our map, its criticality, and many flights under good advice."""
    problem = make("flappy-bird/greedy")
    policy = counsel.solve(problem, penalty=0.3).policy
    simulator = counsel.Simulator(problem)

    def play(episodes):
        return simulator.play(policy, episodes=episodes, rng=np.random.default_rng(8))

    return play, counsel.criticality(problem)


# ------------------------------------------------------------------------------- the bare map


@pytest.mark.parametrize("source", ["grid", "name", "file", "path"])
def test_a_map_may_be_given_as_flappy_bird_takes_it(tmp_path, source):
    grid = GridMap.named("budget")
    path = tmp_path / "my.txt"
    path.write_text(str(grid) + "\n")
    told = {"grid": grid, "name": "budget", "file": str(path), "path": path}[source]
    figure = draw_map(told)
    assert isinstance(figure, figures.Figure)
    np.testing.assert_array_equal(pixels(figure), pixels(draw_map(grid)))


@each(("rows", "columns"), [(1, 1), (7, 20), (3, 40), (30, 4)])
def test_the_size_is_a_frame_and_so_many_dots_a_cell(tmp_path, rows, columns):
    grid = generate_map(rows, columns, rng=np.random.default_rng(0))
    figure = draw_map(grid, tmp_path / "map.png")
    height, width, _ = read_png(tmp_path / "map.png").shape
    cell = CELL * DOTS
    assert cell == 45.0
    # A frame of 0.12 inches on each side; a part of a dot is cut off.
    assert width == pytest.approx(columns * cell + 0.24 * DOTS, abs=1)
    assert height == pytest.approx(rows * cell + 0.24 * DOTS, abs=1)
    top, left = pixel_of(figure, -0.5, -0.5)
    bottom, right = pixel_of(figure, rows - 0.5, columns - 0.5)
    assert (bottom - top, right - left) == pytest.approx((rows * cell, columns * cell), abs=1)
    assert pixels(figure).shape == (height, width, 3)


def test_a_title_makes_room_for_itself_and_leaves_the_map_as_it_is():
    bare, titled = (pixels(draw_map(MIXED, title=title)) for title in (None, "A title: 5 $ or 6 $"))
    assert titled.shape[1] == bare.shape[1]
    extra = titled.shape[0] - bare.shape[0]
    assert extra == pytest.approx(0.38 * DOTS, abs=1)
    assert (titled[:extra] < 100).any()  # something is written there
    # Whole lines of dots or parts of one: the maps are alike but for the smoothing of edges.
    different = (titled[-(MIXED.rows * 45) :] != bare[-(MIXED.rows * 45) :]).any(axis=-1)
    assert different.mean() < 0.05


def test_walls_are_ink_empty_cells_white_and_stars_gold(tmp_path):
    for grid in (MIXED, GridMap.named("three-phases"), GridMap.named("budget")):
        figure = draw_map(grid, tmp_path / "map.png")
        image = read_png(tmp_path / "map.png")
        wanted = {0: WHITE, 1: rgb(GOLD), 2: rgb(INK)}
        for (row, column), kind in np.ndenumerate(grid.cells):
            assert colour_at(image, figure, row, column) == wanted[int(kind)], (row, column)
        for row, column in np.argwhere(grid.cells == 2):
            for dy, dx in [(-0.4, -0.4), (-0.4, 0.4), (0.4, -0.4), (0.4, 0.4)]:
                assert colour_at(image, figure, row + dy, column + dx) == rgb(INK)
        for row, column in np.argwhere(grid.cells == 1):
            assert colour_at(image, figure, row - 0.35, column - 0.35) == WHITE


def test_neither_advice_nor_silence_is_on_a_bare_map():
    image = pixels(draw_map(MIXED))
    assert not is_colour(image, ADVICE).any()
    assert not is_colour(image, SILENCE).any()


# ---------------------------------------------------------------------------------- the files


def test_png_and_svg_are_what_they_say(tmp_path, played):
    play, critical = played
    png, svg = tmp_path / "flight.png", tmp_path / "flight.svg"
    for path in (png, str(svg)):
        draw_map(
            "three-phases", path, episodes=play(5), criticality=critical, title="Five <flights> &"
        )
    assert sorted(os.listdir(tmp_path)) == ["flight.png", "flight.svg"]
    assert png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    height, width, _ = read_png(png).shape
    root = ET.parse(svg).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    # SVG counts in points, 72 an inch; PNG cuts a part of a dot off.
    for side, dots in (("width", width), ("height", height)):
        points = float(root.get(side).removesuffix("pt"))
        assert round(points / 72 * DOTS, 6) == pytest.approx(dots, abs=1)
    paint = svg.read_text().lower()
    for colour in (ADVICE, SILENCE, GOLD, INK):
        assert colour.lower() in paint


def test_a_file_that_is_there_is_replaced(tmp_path):
    path = tmp_path / "map.png"
    path.write_text("something else")
    draw_map(MIXED, path)
    assert read_png(path).ndim == 3
    assert os.listdir(tmp_path) == ["map.png"]


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_the_same_picture_is_the_same_file(tmp_path, played, kind):
    play, critical = played
    for name in ("one", "two"):
        path = tmp_path / f"{name}.{kind}"
        draw_map("three-phases", path, episodes=play(20), criticality=critical, title="Twice")
        draw_map(MIXED, tmp_path / f"between.{kind}")
    assert same_file(tmp_path / f"one.{kind}", tmp_path / f"two.{kind}")


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_a_saved_picture_does_not_depend_on_what_was_done_with_the_figure(tmp_path, kind):
    figure = draw_map(MIXED, tmp_path / f"one.{kind}")
    pixels(figure)
    save(figure, tmp_path / f"two.{kind}")
    assert same_file(tmp_path / f"one.{kind}", tmp_path / f"two.{kind}")


def test_a_png_is_what_pixels_gives(tmp_path):
    figure = draw_map(MIXED, tmp_path / "map.png", title="Alike")
    np.testing.assert_array_equal(read_png(tmp_path / "map.png"), pixels(figure))


# --------------------------------------------------------------------------------- one flight

# Up and down across an open map, advised now and then; the last is in the last column but one.
WAY = [
    (UP, UP),
    (DEFER, DOWN),
    (UP_UP, UP_UP),
    (DOWN, DOWN),
    (DEFER, DOWN),
    (DEFER, UP_UP),
    (UP, DOWN),
    (DEFER, DOWN),
    (UP_UP, DOWN),
    (DEFER, UP),
    (UP, UP),
]


def steps_of(grid, way):
    """The row, column, landing row, advice and action of each step."""
    row = grid.start_row
    for column, (said, done) in enumerate(way):
        yield row, column, row + ROWS_DOWN[done], said, done
        row += ROWS_DOWN[done]


def along(image, figure, row, column, landing):
    """The pixels on the middle part of a step, clear of the marks at its ends."""
    return [
        colour_at(image, figure, row + share * (landing - row), column + share)
        for share in np.linspace(0.3, 0.7, 30)
    ]


def test_a_step_is_green_where_advised_and_red_where_not():
    figure = draw_map(OPEN, episodes=flights(OPEN, WAY))
    image = pixels(figure)
    for row, column, landing, said, _ in steps_of(OPEN, WAY):
        seen = along(image, figure, row, column, landing)
        if said == DEFER:
            assert rgb(SILENCE) in seen, column
            assert WHITE in seen, column  # it is dashed: to be told apart without colour
            assert rgb(ADVICE) not in seen, column
        else:
            assert set(seen) == {rgb(ADVICE)}, column  # and this is solid


def test_marks_are_full_where_advice_was_taken_and_hollow_where_not():
    figure = draw_map(OPEN, episodes=flights(OPEN, WAY))
    image = pixels(figure)
    for row, column, _, said, done in steps_of(OPEN, WAY):
        y, x = pixel_of(figure, row, column)
        middle = image[y - 1 : y + 2, x - 1 : x + 2]
        if said in (DEFER, done):
            assert is_colour(middle, SILENCE if said == DEFER else ADVICE).all(), column
        else:
            # The hollow is a few dots wide and smoothed: it is light, not white throughout.
            assert middle.min(axis=-1).max() > 190, column


def test_no_green_is_drawn_where_nothing_was_advised():
    silent = [(DEFER, done) for _, done in WAY]
    figure = draw_map(OPEN, episodes=flights(OPEN, silent))
    part = inside_the_map(pixels(figure), figure, OPEN)
    assert not is_colour(part, ADVICE).any()
    assert is_colour(part, SILENCE).sum() > 100
    # By hue as well, so that no pale or smoothed green hides: silence is red before green.
    assert (part[..., 0] >= part[..., 1]).mean() == 1.0


def test_no_red_is_drawn_where_all_was_advised_and_nothing_was_hit():
    advised = [(done, done) for _, done in WAY]
    figure = draw_map(OPEN, episodes=flights(OPEN, advised))
    part = inside_the_map(pixels(figure), figure, OPEN)
    assert not is_colour(part, SILENCE).any()
    assert is_colour(part, ADVICE).sum() > 100


def test_a_decision_in_the_last_column_is_marked():
    way = [(UP, UP), *[(DEFER, DOWN), (DEFER, UP)] * 5, (DOWN, DOWN)]
    figure = draw_map(OPEN, episodes=flights(OPEN, way))
    assert colour_at(pixels(figure), figure, OPEN.start_row - 1 + 0.02, 11) == rgb(ADVICE)


def test_a_crash_is_crossed_where_it_happens_and_what_survives_is_not():
    grid = GridMap.parse("....\n.#..\n....\n....")
    crashed = draw_map(grid, episodes=flights(grid, [(DEFER, UP)]))
    assert colour_at(pixels(crashed), crashed, 1, 1) == rgb(SILENCE)
    survived = draw_map(grid, episodes=flights(grid, [(DEFER, DOWN)]))
    assert colour_at(pixels(survived), survived, 1, 1) == rgb(INK)


def test_the_legend_says_what_lines_mean():
    figure = draw_map(OPEN, episodes=flights(OPEN, WAY))
    assert {text.get_text() for text in figure.axes[0].texts} == {"advised", "not taken", "silent"}


@each("columns", [1, 2, 5, 9, 20])
def test_the_legend_is_on_the_picture_whole(columns):
    grid = GridMap(np.zeros((3, columns), int))
    figure = draw_map(grid, episodes=flights(grid, [(DEFER, UP)]))
    pixels(figure)  # places the texts
    width, height = figure.get_size_inches() * DOTS
    for text in figure.axes[0].texts:
        box = text.get_window_extent()
        assert box.x0 >= 0.0, text
        assert box.y0 >= 0.0, text
        assert box.x1 <= width, text
        assert box.y1 <= height, text


# ------------------------------------------------------------------------------- many flights


def touched(grid, episodes):
    """The cells [row, column] whose middle looks other than without any flight."""
    none = flights(grid, [])
    figure = draw_map(grid, episodes=none)
    other = (pixels(figure) != pixels(draw_map(grid, episodes=episodes))).any(axis=-1)
    seen = np.zeros((grid.rows, grid.columns), bool)
    for row, column in np.ndindex(seen.shape):
        y, x = pixel_of(figure, row, column)
        seen[row, column] = other[y - 3 : y + 4, x - 3 : x + 4].any()
    return seen


def test_one_flight_touches_the_cells_it_was_in():
    seen = touched(OPEN, flights(OPEN, WAY))
    for row, column, *_ in steps_of(OPEN, WAY):
        assert seen[row, column]


def test_many_flights_touch_every_cell_that_any_of_them_was_in(played):
    play, _ = played
    grid = GridMap.named("three-phases")
    # The same seed: the 60 begin with the one.
    one, many = play(1), play(60)
    assert many.state[: one.state.size].tolist() == one.state.tolist()
    seen_one, seen_many = touched(grid, one), touched(grid, many)
    assert (seen_many | ~seen_one).all()
    assert seen_many.sum() > seen_one.sum()
    for episodes, seen in ((one, seen_one), (many, seen_many)):
        column, row = np.divmod(episodes.state, grid.rows)
        assert seen[row, column].all()


def test_a_step_is_stronger_the_more_flights_take_it():
    low, high = [(DEFER, DOWN)], [(UP_UP, UP_UP)]
    paint = []
    for times in (1, 10, 100):
        figure = draw_map(OPEN, episodes=flights(OPEN, *[high] * times, *[low] * (100 - times)))
        middle = (OPEN.start_row - 1, 0.5)
        paint.append(luminance(colour_at(pixels(figure), figure, *middle)))
    assert 250.0 > paint[0] > paint[1] > paint[2]
    assert paint[2] == luminance(rgb(ADVICE))


def test_drawing_many_flights_does_not_depend_on_their_order():
    ways = [[(UP, UP), (DEFER, DOWN)], [(DEFER, DOWN), (UP, UP)], [(UP, DOWN), (DEFER, UP)]]
    forth, back = (pixels(draw_map(OPEN, episodes=flights(OPEN, *w))) for w in (ways, ways[::-1]))
    # Where lines cross the last one lies on top; nothing else may differ.
    assert (forth != back).any(axis=-1).mean() < 0.01


# -------------------------------------------------------------------------------- criticality


def shade(image, figure, row, column):
    """The colour of a cell beside its middle, clear of stars, numbers and lines."""
    return colour_at(image, figure, row - 0.35, column - 0.35)


def test_cells_are_darker_the_larger_their_criticality():
    rng = np.random.default_rng(2)
    cells = np.where(rng.random(MIXED.cells.shape) < 0.3, 0.0, rng.uniform(size=MIXED.cells.shape))
    figure = draw_map(MIXED, criticality=heat_of(MIXED, cells))
    image = pixels(figure)
    # Walls and cells where advice never pays are as on a map without shades.
    for row, column in np.argwhere(MIXED.cells == 2):
        assert shade(image, figure, row, column) == rgb(INK)
    for row, column in np.argwhere((MIXED.cells != 2) & (cells == 0.0)):
        assert shade(image, figure, row, column) == WHITE
    shaded = np.argwhere((MIXED.cells != 2) & (cells > 0.0))
    shaded = shaded[np.argsort(cells[tuple(shaded.T)])]
    light = [luminance(shade(image, figure, *place)) for place in shaded]
    value = cells[tuple(shaded.T)]
    assert len(light) > 15
    assert (np.diff(light) <= 0.0).all()
    # There are 256 shades: two cells that differ by more than one of them look different.
    apart = np.diff(value) > 2 * value.max() / 256
    assert apart.sum() > 10
    assert (np.diff(light)[apart] < 0.0).all()
    assert shade(image, figure, *shaded[-1]) == rgb(ADVICE)


def test_the_criticality_of_a_real_problem_is_shaded_at_the_step_of_each_column(played):
    _, critical = played
    grid = GridMap.named("three-phases")
    figure = draw_map(grid, criticality=critical)
    image = pixels(figure)
    value, light = [], []
    for (row, column), kind in np.ndenumerate(grid.cells):
        if kind != 2:
            value.append(critical.lower[column, grid.state(row, column)])
            light.append(luminance(shade(image, figure, row, column)))
    assert max(value) > 1.0
    order = np.argsort(value, kind="stable")
    assert (np.diff(np.array(light)[order]) <= 0.0).all()
    assert all(part == 255.0 for part, worth in zip(light, value, strict=True) if worth == 0.0)


def test_each_shaded_cell_says_its_number():
    cells = np.array([[0.0, 0.25, 1.5], [0.0, 0.0, 12.0]])
    grid = GridMap.parse("...\n.#.")
    figure = draw_map(grid, criticality=heat_of(grid, cells))
    told = {text.get_text(): text.get_position() for text in figure.axes[0].texts}
    assert set(told) == {"0.25", "1.5", "12"}
    assert [round(x) for x, _ in told.values()] == [1, 2, 2]


def test_nothing_critical_is_a_map_without_shades():
    for nothing in (np.zeros(MIXED.cells.shape), np.full(MIXED.cells.shape, np.nan)):
        shaded = pixels(draw_map(MIXED, criticality=heat_of(MIXED, nothing)))
        np.testing.assert_array_equal(shaded, pixels(draw_map(MIXED)))


def test_a_cell_where_something_must_be_said_is_the_darkest_and_its_sign_can_be_read():
    problem = make_flappy_bird(map=OPEN)
    required = np.zeros((problem.horizon, problem.n_states), bool)
    required[2, OPEN.state(3, 2)] = True
    critical = counsel.criticality(problem, required=required)
    assert critical.lower[2, OPEN.state(3, 2)] == np.inf
    cells = np.full(OPEN.cells.shape, 0.5)
    cells[3, 2], cells[1, 1] = np.inf, 1.0
    for given in (critical, heat_of(OPEN, cells)):
        figure = draw_map(OPEN, criticality=given)
        image = pixels(figure)
        must = luminance(shade(image, figure, 3, 2))
        assert must < 200.0
        for row, column in np.ndindex(OPEN.cells.shape):
            assert must <= luminance(shade(image, figure, row, column))
        top, left = pixel_of(figure, 3.2, 1.75)
        bottom, right = pixel_of(figure, 3.47, 2.25)
        sign = image[top:bottom, left:right] @ np.array((0.2126, 0.7152, 0.0722))
        assert np.ptp(sign) > 60.0  # the sign stands out from what it is written on


# ------------------------------------------------------------------- what cannot be drawn


def refused(folder, *arguments, **told):
    """Hold a refusal to one sentence and to leaving the folder as it was."""
    before = {name: (folder / name).stat().st_mtime_ns for name in os.listdir(folder)}
    with pytest.raises(CounselError) as fault:
        draw_map(*arguments, **told)
    after = {name: (folder / name).stat().st_mtime_ns for name in os.listdir(folder)}
    assert after == before
    text = str(fault.value)
    assert 10 < len(text) < 400
    assert "\n" not in text
    return text


@pytest.mark.parametrize("name", ["map.jpg", "map.pdf", "map", "map.png.txt", ".png", "png"])
def test_a_file_of_another_kind_is_refused(tmp_path, name):
    told = refused(tmp_path, MIXED, tmp_path / name)
    assert ".png or .svg" in told
    assert name in told


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_a_missing_folder_is_named_and_not_made(tmp_path, kind):
    path = tmp_path / "none" / f"map.{kind}"
    told = refused(tmp_path, MIXED, path)
    assert str(path) in told
    assert "No such file" in told


def test_a_folder_is_not_written_over(tmp_path):
    (tmp_path / "map.png").mkdir()
    assert "map.png" in refused(tmp_path, MIXED, tmp_path / "map.png")
    assert os.listdir(tmp_path / "map.png") == []


@pytest.mark.parametrize("kind", ["png", "svg"])
@pytest.mark.parametrize("there", [True, False])
def test_a_picture_half_written_is_not_left_behind(tmp_path, monkeypatch, kind, there):
    path = tmp_path / f"map.{kind}"
    if there:
        path.write_text("as it was")

    def fill_the_disk(self, file, **told):
        with open(file, "wb") as stream:
            stream.write(b"half of")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(figures.Figure, "savefig", fill_the_disk)
    assert "No space left" in refused(tmp_path, MIXED, path)
    assert not there or path.read_text() == "as it was"


# Problems that are no flight over MIXED, which has 5 × 8 cells and so 41 states.
OTHER = {
    "larger map": lambda: make_flappy_bird(map="three-phases"),
    "smaller map": lambda: make_flappy_bird(map=GridMap.parse("..*.\n....\n.#..")),
    "one column less": lambda: make_flappy_bird(map=GridMap(MIXED.cells[:, :-1])),
    "night shift": lambda: make("night-shift"),
    "turned": lambda: make_flappy_bird(map=GridMap(np.zeros((8, 5), int))),
    "another map of this size": lambda: make_flappy_bird(map=GridMap(np.zeros((5, 8), int))),
}
LARGER_OR_SMALLER = list(OTHER)[:4]


@pytest.mark.parametrize("name", OTHER)
def test_flights_of_another_world_are_refused_and_nothing_is_written(tmp_path, name):
    problem = OTHER[name]()
    told = counsel.solve(problem).policy
    simulator = counsel.Simulator(problem)
    episodes = simulator.play(told, episodes=50, rng=np.random.default_rng(0))
    assert "episodes" in refused(tmp_path, MIXED, tmp_path / "map.png", episodes=episodes)


@pytest.mark.parametrize("name", LARGER_OR_SMALLER)
def test_the_criticality_of_another_world_is_refused_and_nothing_is_written(tmp_path, name):
    problem = OTHER[name]()
    critical = counsel.criticality(problem)
    told = refused(tmp_path, MIXED, tmp_path / "map.svg", criticality=critical)
    assert "criticality" in told
    assert "41" in told
    assert str(problem.n_states) in told


def test_a_world_of_two_actions_is_no_flight():
    # The states fit; but silence is 2 there and Down here.
    mdp = counsel.MDP(np.zeros((41, 2), int), np.ones((41, 2)), horizon=8)
    problem = counsel.AdviceProblem(mdp, counsel.Human(np.full((41, 2), 0.5), 0.5))
    never = counsel.Policy.never(horizon=8, n_states=41, n_actions=2)
    episodes = counsel.Simulator(problem).play(never, episodes=1, rng=np.random.default_rng(0))
    with pytest.raises(CounselError, match="episodes"):
        draw_map(MIXED, episodes=episodes)


@pytest.mark.parametrize("wrong", ["nowhere", 5, None, ["..", ".."]])
def test_what_is_no_map_is_refused(tmp_path, wrong):
    assert "map" in refused(tmp_path, wrong, tmp_path / "map.png")


# ----------------------------------------------------------------- matplotlib is left alone


def run(code, **environment):
    """Run code in a process of its own and return what it prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_importing_the_worlds_does_not_import_matplotlib_and_drawing_needs_no_pyplot(tmp_path):
    code = f"""
import json, sys
import counsel.worlds
before = [name for name in sys.modules if name.split(".")[0] in ("matplotlib", "PIL")]
counsel.worlds.make("flappy-bird/greedy")
later = [name for name in sys.modules if name.split(".")[0] in ("matplotlib", "PIL")]
import matplotlib
settings = matplotlib.rcParams.copy()  # to read "backend" would load pyplot
for kind in ("png", "svg"):
    counsel.drawing.draw_map("budget", {str(tmp_path)!r} + "/other." + kind, title="Alone")
pyplot = "matplotlib.pyplot" in sys.modules
print(json.dumps([before, later, pyplot, matplotlib.rcParams.copy() == settings]))
"""
    told = run(code, PYTHONHASHSEED="77")
    assert told == [[], [], False, True]
    # And another process writes the very same files.
    for kind in ("png", "svg"):
        draw_map("budget", tmp_path / f"here.{kind}", title="Alone")
        assert same_file(tmp_path / f"here.{kind}", tmp_path / f"other.{kind}")


def test_drawing_leaves_the_settings_of_matplotlib_as_they_are(tmp_path):
    for kind in ("png", "svg"):
        with mpl.rc_context({"svg.hashsalt": "mine", "lines.linewidth": 7.0}):
            before = mpl.rcParams.copy()
            draw_map(MIXED, tmp_path / f"map.{kind}", episodes=flights(MIXED, [(DEFER, UP)]))
            assert mpl.rcParams.copy() == before


@pytest.mark.parametrize(
    "settings",
    [{"savefig.bbox": "tight"}, {"figure.dpi": 200.0}, {"savefig.facecolor": "red"}],
    ids=lambda settings: next(iter(settings)),
)
def test_the_settings_of_matplotlib_do_not_change_the_picture(tmp_path, settings):
    # Many people have these in their matplotlibrc, or set by a notebook.
    draw_map(MIXED, tmp_path / "plain.png")
    plain = pixels(draw_map(MIXED))
    with mpl.rc_context(settings):
        draw_map(MIXED, tmp_path / "set.png")
        np.testing.assert_array_equal(pixels(draw_map(MIXED)), plain)
    assert same_file(tmp_path / "set.png", tmp_path / "plain.png")


def test_without_matplotlib_one_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    told = refused(tmp_path, MIXED, tmp_path / "map.png")
    assert "matplotlib" in told
    assert "pip install 'counsel[draw]'" in told


@pytest.mark.slow
def test_without_matplotlib_everything_else_works():
    code = """
import json, sys

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Nothing())
import counsel.worlds
states = counsel.worlds.make("flappy-bird/greedy").n_states
try:
    counsel.drawing.draw_map("budget", "/nowhere/map.png")
except counsel.CounselError as fault:
    print(json.dumps([states, str(fault)]))
"""
    states, told = run(code)
    assert states == 141
    assert "counsel[draw]" in told
    assert "\n" not in told


@pytest.mark.slow
def test_the_pictures_in_the_docs_are_what_the_script_draws(tmp_path):
    if mpl.__version_info__ < (3, 11, 2):
        pytest.skip("older Matplotlib cuts a row of dots off")
    run = [sys.executable, ROOT / "tools/pictures.py", tmp_path]
    subprocess.run(run, check=True, timeout=120)
    kept = ROOT / "docs/images"
    assert sorted(os.listdir(tmp_path)) == sorted(os.listdir(kept))
    for name in os.listdir(kept):
        drawn, stored = (np.asarray(Image.open(f / name).convert("RGB")) for f in (tmp_path, kept))
        assert drawn.shape == stored.shape
        # Another version of matplotlib may smooth a letter otherwise.
        assert (drawn != stored).any(axis=-1).mean() < 0.02
