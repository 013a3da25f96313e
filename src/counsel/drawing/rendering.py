"""The two games as pictures, and their Gymnasium environments, which show them."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counsel.drawing.canvas import pixels
from counsel.drawing.maps import draw_bird
from counsel.drawing.roads import draw_road
from counsel.worlds.advice_env import AdviceEnv
from counsel.worlds.car_driving import OVER, SIGNS, TURNS, road_of
from counsel.worlds.catalogue import make
from counsel.worlds.flappy_bird import read_map
from counsel.worlds.grid_map import MOVES, GridMap
from counsel.worlds.views import Leg, sign_of


@dataclass(frozen=True, slots=True)
class Flight:
    """A bird on its map."""

    grid: GridMap

    def text(self, moves: Sequence[Leg], state: int, caption: str) -> str:
        """Return the map with the way so far."""
        board = [list(line) for line in str(self.grid).splitlines()]
        for move in moves:
            if move.state < self.grid.rows * self.grid.columns:
                column, row = divmod(move.state, self.grid.rows)
                board[row][column] = sign_of(move, defer=len(MOVES))
        if state < self.grid.rows * self.grid.columns:
            column, row = divmod(state, self.grid.rows)
            board[row][column] = ">"
        return caption + "\n" + "\n".join("".join(line) for line in board) + "\n"

    def frame(self, moves: Sequence[Leg], state: int, caption: str) -> NDArray[np.uint8]:
        """Return the map with the way so far."""
        return pixels(draw_bird(self.grid, moves, state, caption))


@dataclass(frozen=True, slots=True)
class Road:
    """Three lanes: the driver's row at the bottom, the next two above it."""

    def text(self, moves: Sequence[Leg], state: int, caption: str) -> str:
        """Return three rows; ``^`` is the driver, ``x`` where they crashed."""
        lane, rows = road_of(_last_road(moves, state))
        lines = ["".join(SIGNS[kind] for kind in row) for row in rows[::-1]]
        lines[-1] = lines[-1][:lane] + ("x" if state == OVER else "^") + lines[-1][lane + 1 :]
        sign = sign_of(moves[-1], defer=len(TURNS)) if moves else ""
        return caption + "\n" + "\n".join([*lines[:-1], f"{lines[-1]} {sign}".rstrip()]) + "\n"

    def frame(self, moves: Sequence[Leg], state: int, caption: str) -> NDArray[np.uint8]:
        """Return three rows."""
        last = moves[-1] if moves else None
        return pixels(draw_road(_last_road(moves, state), last, caption, over=state == OVER))


def _last_road(moves: Sequence[Leg], state: int) -> int:
    """Return the last state that has a road: an episode that is over shows where it ended."""
    if state != OVER:
        return state
    return next((move.state for move in reversed(moves) if move.state != OVER), 0)


def flappy_bird_env(
    *,
    render_mode: str | None = None,
    penalty: float = 0.0,
    map: str | os.PathLike[str] | GridMap = "three-phases",
    **overrides: object,
) -> AdviceEnv:
    """Return Flappy Bird; ``overrides`` are those of ``flappy_bird``."""
    grid = read_map(map)
    problem = make("flappy-bird/greedy", map=grid, **overrides)
    return AdviceEnv(problem, penalty=penalty, render_mode=render_mode, view=Flight(grid))


def car_driving_env(
    *, render_mode: str | None = None, penalty: float = 0.0, **overrides: object
) -> AdviceEnv:
    """Return Car Driving; ``overrides`` are those of ``car_driving``."""
    problem = make("car-driving/myopic", **overrides)
    return AdviceEnv(problem, penalty=penalty, render_mode=render_mode, view=Road())
