"""Maps of what a policy says in each cell."""

import numpy as np
import pytest

import counsel
from counsel.drawing import draw_map
from counsel.drawing.canvas import pixels
from counsel.drawing.palette import ADVICE, SILENCE
from counsel.model.policy import Policy
from counsel.worlds import GridMap, make
from counsel.worlds.flappy_bird import make_flappy_bird

GRID = GridMap.parse(".....\n.....\n.....\n.....\n.....")
UP, UP_UP, DOWN, DEFER = range(4)


def colour_near(figure, row, column):
    """Which of our colours are drawn in a cell."""
    image = pixels(figure)
    box = figure.axes[0].get_window_extent()
    top = image.shape[0] - box.y1
    height, width = box.height / GRID.rows, box.width / GRID.columns
    part = image[
        int(top + row * height) : int(top + (row + 1) * height),
        int(box.x0 + column * width) : int(box.x0 + (column + 1) * width),
    ]

    def has(colour):
        wanted = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
        return bool((np.abs(part.astype(int) - wanted).max(axis=-1) < 3).any())

    return {name for name, colour in (("said", ADVICE), ("silent", SILENCE)) if has(colour)}


def says(advice):
    """The evaluation of a player who always goes Up, and who hears this in the start cell."""
    habit = np.tile([1.0, 0.0, 0.0], (GRID.rows * GRID.columns + 1, 1))
    problem = make_flappy_bird(map=GRID, human=habit, adherence=1.0)
    policy = np.full((problem.horizon, problem.n_states), DEFER)
    policy[0, GRID.start_row] = advice
    return counsel.evaluate(problem, Policy(policy, n_actions=3))


@pytest.mark.parametrize("advice", [UP, UP_UP, DOWN])
def test_advice_is_an_arrow_and_silence_a_disc(advice):
    figure = draw_map(GRID, evaluation=says(advice))
    row, landing = GRID.start_row, GRID.start_row + (-1, -2, 1)[advice]
    assert colour_near(figure, row, 0) == {"said"}
    assert colour_near(figure, landing, 1) == {"silent"}
    assert colour_near(figure, 4 if landing < row else 0, 0) == set()  # never met
    heads = [text for text in figure.axes[0].texts if text.arrow_patch is not None]
    assert len(heads) == (4 if advice == UP_UP else 2)  # each with a white rim


def test_an_evaluation_of_another_world_is_refused():
    other = counsel.evaluate(make("night-shift"), counsel.solve(make("night-shift")).policy)
    with pytest.raises(counsel.CounselError, match="evaluation belongs to a world with 4 states"):
        draw_map(GRID, evaluation=other)
    with pytest.raises(counsel.CounselError, match=r"evaluation is .*give Evaluation"):
        draw_map(GRID, evaluation="best")


def test_the_legend_can_be_left_out():
    problem = make("flappy-bird-budget/greedy")
    policy = counsel.solve(problem).policy
    flights = counsel.Simulator(problem).play(policy, episodes=3, rng=np.random.default_rng(0))
    with_legend = draw_map("budget", episodes=flights)
    without = draw_map("budget", episodes=flights, legend=False)
    assert len(with_legend.axes[0].texts) == 3
    assert len(without.axes[0].texts) == 0
    assert without.get_figheight() < with_legend.get_figheight()
