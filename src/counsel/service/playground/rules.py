"""The rules of the game: its maps and players, the moves of the bird, and the advisers to choose.

What a player does when left alone is learnt. The prior is a person who dodges walls, and moves at
random a third of the time. An adviser may take people to *tire*: right after a piece of advice they
hardly listen, and it takes three silent moves until they listen as well as before.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from counsel.errors import CounselError
from counsel.learning.population import Limit
from counsel.model.human import Human
from counsel.model.memory import Memory
from counsel.model.problem import AdviceProblem
from counsel.worlds.flappy_bird import greedy, make_flappy_bird, next_states, safe
from counsel.worlds.grid_map import MOVES, STAR, WALL, GridMap, map_names
from counsel.worlds.people import Noisy

SOURCE, TIRING_SOURCE = "play/", "play-tiring/"
"""The prefixes of the playground's sources, the second for advisers who take people to tire; the
rest is the name of the map."""

REST, FADING = Memory.since(3), (0.25, 0.5, 0.75, 1.0)
"""How people tire, and how well they listen right after advice and 1, 2, 3 silent moves later."""

FIXED_LIMITS = {"always": Limit(always=True), "never": Limit(budget=0.0, hard=True)}
"""What advice may cost with the advisers that are aware of nothing."""


@dataclass(frozen=True, slots=True)
class SimulatedPerson:
    """A simulated person to watch: the habit, and the lift of each advice.

    Somebody who ``tires`` has that lift when rested.
    """

    title: str
    about: str
    habit: str
    lift: tuple[float, float, float]
    tires: bool = False


PEOPLE: Mapping[str, SimulatedPerson] = {
    "greedy": SimulatedPerson(
        "Policy Greedy", "Chases the nearest star, even into walls.", "greedy", (0.9, 0.5, 0.9)
    ),
    "safe": SimulatedPerson(
        "Policy Safe", "Dodges walls and flies past stars.", "safe", (0.8, 0.6, 0.8)
    ),
    "deaf": SimulatedPerson(
        "Hardly listens", "Chases stars and takes one piece of advice in six.", "greedy",
        (0.15, 0.1, 0.2),
    ),
    "tiring": SimulatedPerson(
        "Policy Weary",
        "Dodges walls. Hardly listens right after advice; three silent moves restore it fully.",
        "safe", (0.8, 0.6, 0.8), tires=True,
    ),
}  # fmt: skip


def player_problem(name: str) -> AdviceProblem:
    """Return the problem of a map with a player at the controls."""
    if name not in map_names():
        raise CounselError(f"map is {name[:40]!r}; it must be one of {', '.join(map_names())}")
    grid = GridMap.named(name)
    return make_flappy_bird(map=grid, human=Noisy(safe(grid), 0.3), adherence=1.0)


def tiring_player_problem(name: str) -> AdviceProblem:
    """Return the problem of a map with a player at the controls who tires."""
    problem = player_problem(name)
    return AdviceProblem(problem.mdp, problem.human.with_memory(REST, FADING))


def playground_options() -> dict[str, Any]:
    """Return the maps, the moves, and the simulated people to watch."""
    maps = [(name, GridMap.named(name)) for name in reversed(map_names())]
    return {
        "maps": [
            {"name": name, "rows": str(grid).splitlines(), "start": [grid.start_row, 0]}
            for name, grid in maps
        ],
        "moves": [{"label": label, "rows": rows} for label, rows in MOVES.items()],
        "people": [
            {
                "name": name,
                "title": person.title,
                "about": person.about,
                "tires": person.tires,
            }
            for name, person in PEOPLE.items()
        ],
    }


@cache
def simulated_problem(map_: str, name: str) -> AdviceProblem:
    """Return the problem of a map with a simulated person at the controls."""
    person, grid = PEOPLE[name], GridMap.named(map_)
    habit = greedy(grid) if person.habit == "greedy" else safe(grid)
    human = Human(habit, lift=np.array(person.lift))
    if person.tires:
        human = human.with_memory(REST, FADING)
    return AdviceProblem(player_problem(map_).mdp, human)


PROBLEMS_BY_PREFIX = {SOURCE: player_problem, TIRING_SOURCE: tiring_player_problem}
"""The problems that advisers of the playground take as their source."""


def limit_of(kind: str, budget: int | None, penalty: float | None) -> Limit:
    """Return what advice may cost with an adviser; an aware one takes a budget or a penalty."""
    if kind in FIXED_LIMITS:
        return FIXED_LIMITS[kind]
    if (budget is None) == (penalty is None):
        raise CounselError("give either a budget or a penalty")
    return Limit(penalty, None if budget is None else float(budget), hard=budget is not None)


def kind_of(limit: Limit) -> str:
    """Return the adviser that was chosen: "aware", "always" or "never"."""
    return next((kind for kind, fixed in FIXED_LIMITS.items() if fixed == limit), "aware")


@dataclass(frozen=True, slots=True)
class Move:
    """A move that was made, or is next where ``action`` is None.

    ``heard`` is the advice that was shown and seen. Silence is None. ``level`` says how rested the
    adviser took the player to be, if it takes people to tire.
    """

    step: int
    state: int
    advice: int | None
    reason: Mapping[str, Any]
    action: int | None
    reward: float
    heard: int | None
    level: int | None = None


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
