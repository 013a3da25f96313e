"""The playground's worlds: a map with a stranger at the controls, or with somebody simulated.

Whoever plays is a stranger: what they do when left alone is learnt. Beforehand they are taken for
somebody who dodges walls, and does anything a third of the time.
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
"""What sources of the playground begin with; the rest is the map."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """Somebody to watch: what they do alone, and the share of each advice that moves them."""

    title: str
    about: str
    habit: str
    lift: tuple[float, float, float]


PEOPLE: Mapping[str, Simulated] = {
    "greedy": Simulated(
        "Policy Greedy", "Chases the nearest star, even into walls.", "greedy", (0.9, 0.5, 0.9)
    ),
    "safe": Simulated(
        "Policy Safe", "Dodges walls and flies past stars.", "safe", (0.8, 0.6, 0.8)
    ),
    "deaf": Simulated(
        "Hardly listens", "Chases stars and takes one piece of advice in six.", "greedy",
        (0.15, 0.1, 0.2),
    ),
}  # fmt: skip


def play_world(name: str) -> AdviceProblem:
    """Return the world of a map with a stranger in it."""
    if name not in map_names():
        raise CounselError(f"map is {name[:40]!r}; it must be one of {', '.join(map_names())}")
    grid = GridMap.named(name)
    return make_flappy_bird(map=grid, human=Noisy(safe(grid), 0.3), adherence=1.0)


def offered() -> dict[str, Any]:
    """Return what can be played, and who can be watched."""
    maps = [(name, GridMap.named(name)) for name in reversed(map_names())]
    return {
        "maps": [
            {"name": name, "rows": str(grid).splitlines(), "start": [grid.start_row, 0]}
            for name, grid in maps
        ],
        "moves": [{"label": label, "rows": rows} for label, rows in MOVES.items()],
        "people": [
            {"name": name, "title": one.title, "about": one.about} for name, one in PEOPLE.items()
        ],
    }


@cache
def simulated_problem(map_: str, person: str) -> AdviceProblem:
    """Return a map with somebody simulated at the controls."""
    one, grid = PEOPLE[person], GridMap.named(map_)
    habit = greedy(grid) if one.habit == "greedy" else safe(grid)
    world = play_world(map_)
    return AdviceProblem(world.mdp, Human(habit, lift=np.array(one.lift)))
