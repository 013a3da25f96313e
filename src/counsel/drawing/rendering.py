"""Views of the two games, as text and pictures, and their Gymnasium environments."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counsel.drawing.canvas import pixels
from counsel.drawing.maps import draw_bird
from counsel.drawing.roads import draw_road
from counsel.worlds.advice_env import AdviceEnv
from counsel.worlds.car_driving import OVER, SIGNS, TURNS, road_of
from counsel.worlds.catalogue import make
from counsel.worlds.flappy_bird import read_map
from counsel.worlds.grid_map import MOVES, GridMap
from counsel.worlds.views import Decision, coloured_sign


@dataclass(frozen=True, slots=True)
class MapView:
    """The map of Flappy Bird with the flight so far."""

    grid: GridMap

    def text(self, decisions: Sequence[Decision], state: int, caption: str) -> str:
        board = [list(line) for line in str(self.grid).splitlines()]
        for decision in decisions:
            if decision.state < self.grid.rows * self.grid.columns:
                column, row = divmod(decision.state, self.grid.rows)
                board[row][column] = coloured_sign(decision, defer=len(MOVES))
        if state < self.grid.rows * self.grid.columns:
            column, row = divmod(state, self.grid.rows)
            board[row][column] = ">"
        return caption + "\n" + "\n".join("".join(line) for line in board) + "\n"

    def frame(self, decisions: Sequence[Decision], state: int, caption: str) -> NDArray[np.uint8]:
        return pixels(draw_bird(self.grid, decisions, state, caption))


@dataclass(frozen=True, slots=True)
class RoadView:
    """The road of Car Driving: the driver's row at the bottom, the next two above it."""

    def text(self, decisions: Sequence[Decision], state: int, caption: str) -> str:
        """Return three rows; ``^`` is the driver, ``x`` a driver who has crashed."""
        lane, rows = road_of(_last_road(decisions, state))
        lines = ["".join(SIGNS[kind] for kind in row) for row in rows[::-1]]
        lines[-1] = lines[-1][:lane] + ("x" if state == OVER else "^") + lines[-1][lane + 1 :]
        sign = coloured_sign(decisions[-1], defer=len(TURNS)) if decisions else ""
        return caption + "\n" + "\n".join([*lines[:-1], f"{lines[-1]} {sign}".rstrip()]) + "\n"

    def frame(self, decisions: Sequence[Decision], state: int, caption: str) -> NDArray[np.uint8]:
        last = decisions[-1] if decisions else None
        return pixels(draw_road(_last_road(decisions, state), last, caption, over=state == OVER))


def _last_road(decisions: Sequence[Decision], state: int) -> int:
    """Return the last state with a road; an episode that is over shows where it ended."""
    if state != OVER:
        return state
    return next((decision.state for decision in reversed(decisions) if decision.state != OVER), 0)


def flappy_bird_env(
    *,
    render_mode: str | None = None,
    penalty: ArrayLike = 0.0,
    map: str | os.PathLike[str] | GridMap = "three-phases",
    **overrides: object,
) -> AdviceEnv:
    """Return the environment of Flappy Bird; ``overrides`` go to ``make_flappy_bird``."""
    grid = read_map(map)
    problem = make("flappy-bird/greedy", map=grid, **overrides)
    return AdviceEnv(problem, penalty=penalty, render_mode=render_mode, view=MapView(grid))


def car_driving_env(
    *, render_mode: str | None = None, penalty: ArrayLike = 0.0, **overrides: object
) -> AdviceEnv:
    """Return the environment of Car Driving; ``overrides`` go to ``make_car_driving``."""
    problem = make("car-driving/myopic", **overrides)
    return AdviceEnv(problem, penalty=penalty, render_mode=render_mode, view=RoadView())
