"""Episodes of the two games as pictures, pixel by pixel."""

import gymnasium
import numpy as np
import pytest

from counsel.drawing.palette import ADVICE, GOLD, HARM, INK, PAPER, SILENCE, STONES
from counsel.worlds import GridMap, Uniform
from tests.support.later import Later
from tests.support.played_games import (
    DEFER,
    FLAPPY,
    LEFT,
    MAP,
    STRAIGHT,
    UP,
    UP_UP,
    drive,
    flight,
    rows_of,
)

# Seen as a picture.

colors = Later("matplotlib.colors")


def where(frame, colour):
    """Tell which pixels have exactly this colour [y, x]."""
    return (frame == np.rint(255 * np.array(colors.to_rgb(colour)))).all(axis=2)


class Board:
    """The cells of a picture: only they have pure white, the sheet around them is off-white."""

    def __init__(self, frame, rows, columns):
        self.frame, (ys, xs) = frame, np.nonzero(where(frame, "white"))
        self.top, self.left = ys.min(), xs.min()
        self.height, self.width = (np.ptp(ys) + 1) / rows, (np.ptp(xs) + 1) / columns

    def point(self, row, column):
        """The pixel of a place; whole numbers are the centres of cells."""
        y, x = self.top + (row + 0.5) * self.height, self.left + (column + 0.5) * self.width
        return int(y), int(x)

    def colour(self, row, column):
        return tuple(int(part) for part in self.frame[self.point(row, column)])

    def between(self, begin, end):
        """Tell which points on the middle half of a line between two cells are white."""
        shares = np.linspace(0.25, 0.75, 40)[:, None]
        points = np.array(begin) * (1 - shares) + np.array(end) * shares
        white = where(self.frame, "white")
        return np.array([white[self.point(*point)] for point in points])

    def cells(self, colour):
        """Return the cells that have a pixel of this colour."""
        ys, xs = np.nonzero(where(self.frame, colour))
        rows, columns = (ys - self.top) // self.height, (xs - self.left) // self.width
        return set(zip(rows.astype(int).tolist(), columns.astype(int).tolist(), strict=True))


def bytes_of(colour):
    return tuple(int(part) for part in np.rint(255 * np.array(colors.to_rgb(colour))))


def cells_like(sign):
    lines = str(MAP).splitlines()
    return {(row, column) for row in range(5) for column in range(6) if lines[row][column] == sign}


def test_pictures_are_bytes_of_one_size():
    frames = flight([UP, UP, DEFER, DEFER, UP], adherence=1.0, mode="rgb_array")
    frames += flight([UP, UP_UP, DEFER], adherence=0.0, mode="rgb_array")
    assert {(frame.dtype, frame.ndim, frame.shape) for frame in frames} == {
        (np.dtype(np.uint8), 3, frames[0].shape)
    }
    assert frames[0].shape[2] == 3
    roads, _ = drive([LEFT, DEFER, LEFT], mode="rgb_array")
    assert {(road.dtype, road.shape) for road in roads} == {(np.dtype(np.uint8), roads[0].shape)}


def test_a_picture_is_its_own():
    env = gymnasium.make(FLAPPY, map=MAP, render_mode="rgb_array").unwrapped
    env.reset(seed=0)
    one = env.render()
    before = one.copy()
    one[:] = 0
    np.testing.assert_array_equal(env.render(), before)


def test_walls_stars_and_empty_cells_are_where_the_map_has_them():
    board = Board(flight([], adherence=1.0, mode="rgb_array")[0], 5, 6)
    for cell in cells_like("#"):
        assert board.colour(*cell) == bytes_of(INK)
    for cell in cells_like("*"):
        assert board.colour(*cell) == bytes_of(GOLD)
    for cell in cells_like(".") - {(2, 0)}:
        assert board.colour(*cell) == bytes_of("white")
    assert board.colour(2, 0) == bytes_of(GOLD)  # the bird
    assert board.cells(GOLD) == cells_like("*") | {(2, 0)}


def test_the_shipped_map_is_drawn_cell_by_cell():
    env = gymnasium.make(FLAPPY, render_mode="rgb_array").unwrapped
    env.reset(seed=0)
    lines = str(GridMap.named("three-phases")).splitlines()
    board = Board(env.render(), 7, 20)
    golden = board.cells(GOLD)
    for row, line in enumerate(lines):
        for column, sign in enumerate(line):
            bird = (row, column) == (3, 0)
            assert ((row, column) in golden) == (sign == "*" or bird)
            if sign != "*" and not bird:
                assert board.colour(row, column) == bytes_of({".": "white", "#": INK}[sign])


def test_green_appears_with_advice_and_only_where_it_was_given():
    before, once, twice = flight([UP, UP], adherence=1.0, mode="rgb_array")
    assert not where(before, ADVICE).any()
    # From (2, 0) to (1, 1), past the corner that they share with two other cells.
    board = Board(once, 5, 6)
    assert (2, 0) in board.cells(ADVICE)
    assert board.cells(ADVICE) <= {(2, 0), (1, 1), (1, 0), (2, 1)}
    assert board.colour(2, 0) == bytes_of(ADVICE)
    board = Board(twice, 5, 6)
    assert board.colour(2, 0) == board.colour(1, 1) == bytes_of(ADVICE)
    assert board.cells(ADVICE) <= {(r, c) for r in range(3) for c in range(3)} - {(0, 0), (2, 2)}
    for frame in flight([DEFER, DEFER], adherence=1.0, mode="rgb_array"):
        assert not where(frame, ADVICE).any()


def test_grey_appears_with_silence_and_only_where_nothing_was_said():
    before, silent, over = flight([DEFER, UP], adherence=1.0, mode="rgb_array")
    assert Board(before, 5, 6).cells(SILENCE) == set()
    board = Board(silent, 5, 6)
    assert board.colour(2, 0) == bytes_of(SILENCE)
    assert board.cells(SILENCE) <= {(2, 0), (3, 1), (2, 1), (3, 0)}
    # Up from (3, 1) is into the wall: a cross there, green as it was advised, and no bird any more.
    board = Board(over, 5, 6)
    assert board.colour(2, 0) == bytes_of(SILENCE)
    assert board.colour(3, 1) == board.colour(2, 2) == bytes_of(ADVICE)
    assert board.cells(GOLD) == cells_like("*")
    for frame in flight([UP, UP], adherence=1.0, mode="rgb_array")[1:]:
        assert Board(frame, 5, 6).cells(SILENCE) == set()


def test_pictures_can_be_read_without_colour():
    # Advice: a solid line. Silence: a dashed one.
    board = Board(flight([UP, UP, DEFER], adherence=1.0, mode="rgb_array")[-1], 5, 6)
    assert not board.between((2, 0), (1, 1)).any()
    gaps = board.between((0, 2), (1, 3))
    assert gaps.any()
    assert not gaps.all()

    def near(board, row, column):
        """Tell which pixels at the heart of a mark are white."""
        y, x = board.point(row, column)
        return where(board.frame, "white")[y - 1 : y + 3, x - 1 : x + 2]

    # Taken: a full triangle. Not taken: a hollow one, with its rim.
    taken = Board(flight([UP, UP], adherence=1.0, mode="rgb_array")[-1], 5, 6)
    refused = Board(flight([UP, UP], adherence=0.0, mode="rgb_array")[-1], 5, 6)
    assert taken.colour(2, 0) == bytes_of(ADVICE)
    assert not near(taken, 2, 0).any()
    assert near(refused, 2, 0).any()
    assert {(2, 0), (3, 1)} <= refused.cells(ADVICE)

    # A triangle is narrow above and wide below; a disc is as wide above as below.
    def widths(board, row, column, colour):
        y, x = board.point(row, column)
        mark = where(board.frame, colour)[y - 6 : y + 7, x - 7 : x + 8].sum(axis=1)
        return mark[mark > 0]

    alone = Board(flight([DEFER], adherence=1.0, mode="rgb_array")[-1], 5, 6)
    disc = widths(alone, 2, 0, SILENCE)
    assert disc[1] >= 3
    triangle = widths(taken, 1, 1, ADVICE)
    assert triangle[-2] > triangle[1]


@pytest.mark.parametrize(
    "options",
    [
        {"map": "three-phases"},
        {"map": "budget"},
        {"map": GridMap.parse(".....\n.....\n.....\n.....\n.....")},
    ],
    ids=["20 columns", "8 columns", "5 columns"],
)
def test_the_caption_of_a_flight_is_not_cut_off(options):
    env = gymnasium.make(
        FLAPPY, human=Uniform(), adherence=1.0, render_mode="rgb_array", **options
    ).unwrapped
    env.reset(seed=0)
    env.step(UP_UP)
    frame = env.render()
    assert "▲ advised Up-Up, did Up-Up" in env.unwrapped._caption()
    above = frame[: Board(frame, env.view.grid.rows, env.view.grid.columns).top - 3]
    assert not where(above, PAPER).all()
    assert where(above, PAPER)[:, -2:].all()


def test_the_caption_of_a_drive_is_not_cut_off():
    # Stones pay a half: this is as long as a caption gets.
    frames, _ = drive([STRAIGHT] * 10, mode="rgb_array", chances=(0.0, 1.0, 0.0))
    above = frames[9][: Board(frames[9], 3, 3).top - 3]
    assert not where(above, PAPER).all()
    assert where(above, PAPER)[:, -2:].all()


ROAD = "#EFEBE3"


def test_a_road_is_drawn_cell_by_cell():
    kinds = set()
    for seed in range(8):
        frames, states = drive([], mode="rgb_array", chances=(0.4, 0.3, 0.3), seed=seed)
        board = Board(frames[0], 3, 3)
        lane, rows = rows_of(states[0])
        stones = board.cells(STONES)
        for depth, row in enumerate(rows):
            for column, kind in enumerate(row):
                y = 2 - depth  # the driver's own row is at the bottom
                if (y, column) == (2, lane):
                    assert board.colour(2.1, lane) == bytes_of(GOLD)  # below the windscreen
                    continue
                kinds.add(kind)
                assert ((y, column) in stones) == (kind == "o")
                if kind != "o":
                    assert board.colour(y, column) == bytes_of({".": ROAD, "#": INK}[kind])
        assert board.cells(GOLD) == {(2, lane)}
        assert not where(frames[0], ADVICE).any()
        assert not where(frames[0], SILENCE).any()
    assert kinds == set(".o#")


def test_a_drive_is_marked_teal_for_advice_and_grey_for_silence():
    (before, spoken, silent, lost), _ = drive([LEFT, DEFER, LEFT], mode="rgb_array")
    has = [
        (bool(where(frame, ADVICE).any()), bool(where(frame, SILENCE).any()))
        for frame in (before, spoken, silent)
    ]
    assert has == [(False, False), (True, False), (False, True)]
    assert Board(spoken, 3, 3).cells(GOLD) == {(2, 0)}
    # A crash is crossed out in vermilion; what was said last stays.
    assert not where(silent, HARM).any()
    assert where(lost, HARM).any()
    assert where(lost, ADVICE).any()
    # Not taken: hollow.
    (_, refused), _ = drive([LEFT], adherence=0.0, mode="rgb_array")
    assert 0 < where(refused, ADVICE).sum() < where(spoken, ADVICE).sum()
