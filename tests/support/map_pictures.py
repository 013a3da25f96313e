"""Pictures of maps: flights to draw, and the colours at places of the map."""

import os

import numpy as np
import pytest
from PIL import Image

from counsel import CounselError
from counsel.drawing import draw_map
from counsel.planning import Criticality
from counsel.simulate import Episodes
from counsel.worlds import GridMap

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
    height = figure.get_size_inches()[1] * figure.dpi
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
