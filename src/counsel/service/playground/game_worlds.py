"""The worlds of the game: a map with a player at the controls, or a simulated person.

What a player does when left alone is learnt. The prior is a person who dodges walls, and moves at
random a third of the time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from counsel.errors import CounselError
from counsel.model.human import Human
from counsel.model.problem import AdviceProblem
from counsel.worlds.flappy_bird import greedy, make_flappy_bird, safe
from counsel.worlds.grid_map import MOVES, GridMap, map_names
from counsel.worlds.people import Noisy

SOURCE = "play/"
"""The prefix of the playground's sources; the rest is the name of the map."""


@dataclass(frozen=True, slots=True)
class SimulatedPerson:
    """A simulated person to watch: the habit, and the lift of each advice."""

    title: str
    about: str
    habit: str
    lift: tuple[float, float, float]


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
}  # fmt: skip


def player_problem(name: str) -> AdviceProblem:
    """Return the problem of a map with a player at the controls."""
    if name not in map_names():
        raise CounselError(f"map is {name[:40]!r}; it must be one of {', '.join(map_names())}")
    grid = GridMap.named(name)
    return make_flappy_bird(map=grid, human=Noisy(safe(grid), 0.3), adherence=1.0)


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
            {"name": name, "title": person.title, "about": person.about}
            for name, person in PEOPLE.items()
        ],
    }


@cache
def simulated_problem(map_: str, name: str) -> AdviceProblem:
    """Return the problem of a map with a simulated person at the controls."""
    person, grid = PEOPLE[name], GridMap.named(map_)
    habit = greedy(grid) if person.habit == "greedy" else safe(grid)
    return AdviceProblem(player_problem(map_).mdp, Human(habit, lift=np.array(person.lift)))


PROBLEMS_BY_PREFIX = {SOURCE: player_problem}
"""The problems that advisers of the playground take as their source."""
