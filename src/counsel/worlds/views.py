"""How an episode looks while it goes on: as text, and for the two games as a picture.

In text a cell where advice was given shows ▲ (△ where it was not taken), one where the machine was
silent ●, and the bird >. Colours repeat what the signs say.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from counsel.model.problem import AdviceProblem
from counsel.worlds.canvas import Leg, pixels
from counsel.worlds.car_driving import OVER, SIGNS, TURNS, road_of
from counsel.worlds.draw import draw_bird
from counsel.worlds.draw_road import draw_road
from counsel.worlds.grid_map import MOVES, GridMap

GREEN, RED, PLAIN = "\033[32m", "\033[31m", "\033[0m"


class View(Protocol):
    """Shows the decisions so far and the state they led to."""

    def text(self, moves: Sequence[Leg], state: int, caption: str) -> str:
        """Return it as text."""
        ...


@runtime_checkable
class Picture(View, Protocol):
    """A view that can also be drawn."""

    def frame(self, moves: Sequence[Leg], state: int, caption: str) -> NDArray[np.uint8]:
        """Return it as pixels [height, width, 3]."""
        ...


@dataclass(frozen=True, slots=True)
class Words:
    """Any problem, in words."""

    problem: AdviceProblem

    def text(self, moves: Sequence[Leg], state: int, caption: str) -> str:
        """Return the caption and the state."""
        return f"{caption}\n{self.problem.mdp.state_name(state)}\n"


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


def sign_of(move: Leg, *, defer: int) -> str:
    """Return ▲ for advice, △ for advice that was not taken, ● for silence, coloured."""
    if move.advice == defer:
        return f"{RED}●{PLAIN}"
    return f"{GREEN}{'▲' if move.advice == move.action else '△'}{PLAIN}"
