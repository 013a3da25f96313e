"""Flappy Bird: fly across a map from left to right, collect stars, avoid walls (section 5).

The bird is in one cell. Each action moves it one column to the right: Up one row up, Up-Up two rows
(only the cell where it lands counts), Down one row down. A star pays 1. Flying into a wall or out
of the map ends the game in the last state, "over", and so does leaving the last column. The bird
moves one column per step, so column and step are equal and the horizon is the number of columns.
The bird starts in the middle row of column 0.

There are two people, who see only the next column. Where they have no preference, both zigzag: Up
in even columns, Down in odd columns, counted from 0.

* Policy Greedy chooses uniformly among the actions that land on a star.
* Policy Safe zigzags if that avoids walls and edges, else chooses uniformly among actions that do.

Deviates: the paper counts 140 states; the end of the game is one more. The maps of the paper are
not published with it; ours, in ``maps``, have the three phases it describes.
"""

import os
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import Bools, Floats, Ints
from counsel.errors import CounselError
from counsel.model.human import Human
from counsel.model.mdp import MDP
from counsel.model.memory import Memory
from counsel.model.problem import AdviceProblem
from counsel.worlds.grid_map import MOVES, STAR, WALL, GridMap, map_names
from counsel.worlds.people import Person, adherence_named, person_named, policy_of

ADHERENCE: MappingProxyType[str, ArrayLike] = MappingProxyType(
    {"mixed": (0.9, 0.7, 0.9), "high": 0.8, "low": 0.4}
)
"""The paper's settings by name; "mixed" is 0.9, and 0.7 for the abrupt Up-Up. At "low", advice
repels where the person takes the advised action with probability 0.5 without it."""

UP, DOWN = 0, 2


def make_flappy_bird(  # noqa: PLR0913 (the map, and the person with their memory)
    *,
    map: str | os.PathLike[str] | GridMap = "three-phases",
    human: str | Person | ArrayLike = "greedy",
    adherence: str | ArrayLike = "mixed",
    groups: ArrayLike | None = None,
    horizon: int | None = None,
    memory: Memory | None = None,
    fading: ArrayLike | None = None,
) -> AdviceProblem:
    r"""Return a bird, a map, and a person at the controls.

    Parameters
    ----------
    map
        A ``GridMap``, the name of a map that comes with Counsel, or a text file.
    human
        "greedy", "safe", a policy table [s, a] or [h, s, a], or a person such as ``Uniform()``.
    adherence
        "mixed", "high", "low", or numbers as ``Human`` takes them.
    groups
        Which pairs share an adherence, as in ``Human``; ``[0, 1, 2]`` is one per advice.
    horizon
        Steps per episode; by default the number of columns.
    memory, fading
        What the person carries over from advice given, as in ``Human.with_memory``; ``groups`` are
        then left out.

    Returns
    -------
    AdviceProblem
        State ``column * rows + row`` is the bird in that cell, labelled e.g. "c3r1"; the last state
        is "over". Actions are Up, Up-Up and Down.

    Raises
    ------
    CounselError
        If there is no such map, person or adherence, or the bird starts in a wall.

    Examples
    --------
    On this map Policy Greedy goes Up to the first star and then hits the wall; the way Down leads
    to two more stars:

    >>> import counsel
    >>> from counsel.worlds import GridMap, make_flappy_bird
    >>> grid = GridMap.parse(".**.\n..#*\n....")
    >>> problem = make_flappy_bird(map=grid, human="greedy", adherence=0.9)
    >>> start = grid.state(row=1, column=0)
    >>> problem.policy[0, start].tolist()
    [1.0, 0.0, 0.0]
    >>> plan = counsel.solve(problem)
    >>> plan.policy.at(0, start)
    {2: 1.0}
    >>> round(plan.value, 3)
    1.9
    """
    grid = read_map(map)
    if grid.cells[grid.start_row, 0] == WALL:
        raise CounselError(
            f"the map has a wall in line {grid.start_row + 1}, column 1, where the bird starts; "
            "leave that cell free"
        )
    cells = [f"c{column}r{row}" for column in range(grid.columns) for row in range(grid.rows)]
    mdp = MDP(
        next_states(grid),
        np.append(grid.cells.T.reshape(-1) == STAR, 0).astype(np.float64),
        horizon=grid.columns if horizon is None else horizon,
        start=grid.state(grid.start_row, 0),
        state_labels=[*cells, "over"],
        action_labels=tuple(MOVES),
    )
    people = {"greedy": lambda _: greedy(grid), "safe": lambda _: safe(grid)}
    policy = policy_of(person_named(human, people), mdp)
    person = Human(policy, adherence_named(adherence, ADHERENCE), groups=groups)
    return AdviceProblem(mdp, person if memory is None else person.with_memory(memory, fading))


def read_map(source: str | os.PathLike[str] | GridMap) -> GridMap:
    """Return a map from the name of one of ours, a text file, or a map, which stays as it is."""
    if isinstance(source, GridMap):
        return source
    if isinstance(source, str) and source in map_names():
        return GridMap.named(source)
    if isinstance(source, str) and not os.path.exists(source):
        raise CounselError(
            f"map is {source!r}; give a text file or one of {', '.join(map_names())}"
        )
    if not isinstance(source, str | os.PathLike):
        raise CounselError(f"map must be a GridMap, a name or a file, not {type(source).__name__}")
    return GridMap.read(source)


def next_states(grid: GridMap) -> Ints:
    """Return the next state of each state and action [s, a]."""
    over = grid.rows * grid.columns
    column, row = np.divmod(np.arange(over), grid.rows)
    landing = row[:, None] + np.array(list(MOVES.values()))
    inside = (landing >= 0) & (landing < grid.rows) & (column[:, None] + 1 < grid.columns)
    clipped = landing.clip(0, grid.rows - 1), (column[:, None] + 1).clip(max=grid.columns - 1)
    free = inside & (grid.cells[clipped] != WALL) & (grid.cells[row, column] != WALL)[:, None]
    next_sa = np.where(free, (column[:, None] + 1) * grid.rows + landing, over)
    return np.append(next_sa, [[over] * len(MOVES)], axis=0)


def greedy(grid: GridMap) -> Floats:
    """Return Policy Greedy [s, a]: fly to a star in the next column, else zigzag."""
    is_star = np.append(grid.cells.T.reshape(-1) == STAR, 0)
    return _habit(grid, is_star[next_states(grid)[:-1]])


def safe(grid: GridMap) -> Floats:
    """Return Policy Safe [s, a]: zigzag, unless that ends the game and another action does not."""
    survives = next_states(grid)[:-1] != grid.rows * grid.columns
    zigzag = _zigzag(grid)
    is_safe = survives[np.arange(zigzag.size), zigzag]
    return _habit(grid, survives & ~is_safe[:, None])


def _zigzag(grid: GridMap) -> Ints:
    """Return Up in even columns and Down in odd ones [s]."""
    column = np.arange(grid.rows * grid.columns) // grid.rows
    return np.where(column % 2 == 0, UP, DOWN)


def _habit(grid: GridMap, preferred_sa: Ints) -> Floats:
    """Return a policy: uniform over preferred actions, else zigzag, and uniform when over."""
    zigzag = np.eye(len(MOVES))[_zigzag(grid)]
    weight = np.where(preferred_sa.any(axis=1, keepdims=True), preferred_sa, zigzag)
    weight = np.append(weight, np.ones((1, len(MOVES))), axis=0)
    policy: Floats = weight / weight.sum(axis=1, keepdims=True)
    return policy


def next_column(problem: AdviceProblem) -> Bools:
    """Return which states can follow which [s, t]: those of the next column, and "over".

    This is the support of a map that is known before the first flight.
    """
    names = problem.mdp.state_labels
    if names is None or names[-1] != "over":
        raise CounselError('the problem is not a map: its last state is not called "over"')
    column = np.array([int(name[1:].partition("r")[0]) for name in names[:-1]])
    support = np.zeros((len(names), len(names)), dtype=np.bool_)
    support[:-1, :-1] = column[None, :] == column[:, None] + 1
    support[:, -1] = True
    return support
