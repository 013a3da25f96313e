"""The moves of the bird: where it is on the map, and what a move leads to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from counsel.worlds.flappy_bird import next_states
from counsel.worlds.grid_map import MOVES, STAR, WALL, GridMap


@dataclass(frozen=True, slots=True)
class Move:
    """A move that was made, or is next where ``action`` is None.

    ``heard`` is the advice that was shown and seen. Silence is None.
    """

    step: int
    state: int
    advice: int | None
    reason: Mapping[str, Any]
    action: int | None
    reward: float
    heard: int | None


def place_of(grid: GridMap, state: int) -> tuple[int, int]:
    """Return the row and the column of a state."""
    column, row = divmod(state, grid.rows)
    return row, column


def crash_of(grid: GridMap, state: int, action: int) -> str | None:
    """Return what a move flies into: "wall", "edge", or nothing."""
    row, column = place_of(grid, state)
    row, column = row + list(MOVES.values())[action], column + 1
    if column >= grid.columns:
        return None
    if not 0 <= row < grid.rows:
        return "edge"
    return "wall" if grid.cells[row, column] == WALL else None


def lands_on_star(grid: GridMap, state: int, action: int) -> bool:
    """Whether a move lands on a star."""
    then = int(next_states(grid)[state, action])
    return then < grid.rows * grid.columns and bool(grid.cells[place_of(grid, then)] == STAR)
