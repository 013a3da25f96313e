"""Maps and flights over them, pixel by pixel."""

import numpy as np
import pytest

from counsel import CounselError
from counsel.drawing import draw_map
from counsel.drawing.canvas import CELL, DOTS, PRINT_DOTS, pixels
from counsel.drawing.palette import ADVICE, GOLD, INK, SILENCE
from counsel.worlds import GridMap, generate_map
from tests.support.each import each
from tests.support.later import Later
from tests.support.map_pictures import (
    DEFER,
    DOWN,
    MIXED,
    OPEN,
    UP,
    UP_UP,
    WHITE,
    colour_at,
    flights,
    inside_the_map,
    is_colour,
    luminance,
    pixel_of,
    read_png,
    rgb,
)

figures = Later("matplotlib.figure")
ROWS_DOWN = (-1, -2, 1)


# The bare map.


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
    # A frame of 0.12 inches on each side; a part of a dot is cut off.
    assert width == pytest.approx((columns * CELL + 0.24) * PRINT_DOTS, abs=1)
    assert height == pytest.approx((rows * CELL + 0.24) * PRINT_DOTS, abs=1)
    cell = CELL * DOTS
    assert cell == 45.0
    top, left = pixel_of(figure, -0.5, -0.5)
    bottom, right = pixel_of(figure, rows - 0.5, columns - 0.5)
    assert (bottom - top, right - left) == pytest.approx((rows * cell, columns * cell), abs=1)
    assert pixels(figure).shape == pytest.approx((height / 2, width / 2, 3), abs=1)


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
        figure.set_dpi(PRINT_DOTS)
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


# One flight.

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


# Many flights.


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


# Phases.


def test_phases_are_named_above_the_map_and_separated_by_lines():
    bare, figure = draw_map(OPEN), draw_map(OPEN, phases={"stars": 0, "walls": 5, "both": 9})
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.texts] == ["stars", "walls", "both"]
    bounds = [line.get_xdata()[0] for line in axes.lines if not line.get_clip_on()]
    assert bounds == [4.5, 8.5]
    image = pixels(figure)
    top = pixel_of(figure, -0.5, 0)[0]
    for text in axes.texts:
        box = text.get_window_extent()
        assert image.shape[0] - box.y0 <= top  # above the map
        assert box.y1 <= image.shape[0]
    # The map itself has the same size as without phases.
    assert image.shape[1] == pixels(bare).shape[1]
    assert image.shape[0] - pixels(bare).shape[0] == pytest.approx(0.22 * DOTS, abs=1)


@pytest.mark.parametrize(
    ("phases", "fault"),
    [
        ({"late": 12}, r"phases\['late'\] is 12; it runs from 0 to 11"),
        ({"half": 1.5}, r"phases\['half'\] must be a whole number, not 1.5"),
        ([0, 5], r"phases is \[0, 5\]; give Mapping"),
    ],
)
def test_phases_that_are_not_columns_are_refused(phases, fault):
    with pytest.raises(CounselError, match=fault):
        draw_map(OPEN, phases=phases)
