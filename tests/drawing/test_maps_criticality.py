"""Criticality on a map: shades and numbers."""

import numpy as np

import counsel
from counsel.drawing import draw_map
from counsel.drawing.canvas import pixels
from counsel.drawing.palette import ADVICE, INK
from counsel.worlds import GridMap, make_flappy_bird
from tests.support.map_pictures import (
    MIXED,
    OPEN,
    WHITE,
    colour_at,
    heat_of,
    luminance,
    pixel_of,
    rgb,
)

# Criticality.


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
