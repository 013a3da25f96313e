"""Families of random maps: a claim about people or learners is tested on many maps, not on one.

* ``three-phase``: 7 × 20 cells with the phases that the paper describes, as dense as on the shipped
  map: stars alone, then walls with very few stars, then both.
* ``budget``: 7 × 8 cells with few stars and walls, on which the best advice to Policy Greedy
  without a limit expects at least two pieces; so a budget of one always binds. That the best flight
  is advised twice is thus true by construction, on the shipped budget map too.

Every map can be flown from end to end. Each seed gives one map of each family.
"""

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from counsel.model.problem import AdviceProblem
from counsel.planning.solve import solve
from counsel.worlds.catalogue import make
from counsel.worlds.flappy_bird import make_flappy_bird
from counsel.worlds.grid_map import GridMap, generate_map

PHASES = {1: (0, 7), 2: (7, 14), 3: (14, 20)}
"""The columns of the phases (stars, walls, both); column and step are equal."""

STARS, WALLS = {1: 0.5, 2: 0.02, 3: 0.3}, {1: 0.0, 2: 0.35, 3: 0.15}  # as on the shipped map
ROWS, BUDGET_COLUMNS, BUDGET_STARS, BUDGET_WALLS = 7, 8, 0.1, 0.12
TWO_PIECES = 2.0


def three_phase_map(rng: Generator) -> GridMap:
    """Draw a map of three phases."""
    phase = [name for name, (first, end) in PHASES.items() for _ in range(first, end)]
    stars, walls = ([share[name] for name in phase] for share in (STARS, WALLS))
    return generate_map(ROWS, len(phase), rng=rng, stars=stars, walls=walls)


def budget_map(rng: Generator) -> GridMap:
    """Draw small maps until the best advice to Policy Greedy expects at least two pieces."""
    while True:
        grid = generate_map(ROWS, BUDGET_COLUMNS, rng=rng, stars=BUDGET_STARS, walls=BUDGET_WALLS)
        if solve(make_flappy_bird(map=grid, human="greedy")).advice_count >= TWO_PIECES:
            return grid


FAMILIES: dict[str, Callable[[Generator], GridMap]] = {
    "three-phase": three_phase_map,
    "budget": budget_map,
}


def problem_of(world: str, family: str = "", seed: int = 0, **overrides: object) -> AdviceProblem:
    """Return a world on its own map, or on the map of a family that this seed gives."""
    if family:
        rng = np.random.default_rng([seed, list(FAMILIES).index(family)])
        overrides["map"] = FAMILIES[family](rng)
    return make(world, **overrides)
