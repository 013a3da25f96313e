"""Pictures of the three environments (figures 1, 6a and 7a): worlds.

There is nothing to claim: that the best flight on the budget map is advised twice is true because
the map was drawn so.
"""

from dataclasses import dataclass

import numpy as np

from counsel.drawing.maps import draw_map
from counsel.drawing.roads import draw_road
from counsel.experiments.experiment import Experiment, Picture, Run, Size
from counsel.experiments.paper.penalty import PHASE_STARTS
from counsel.experiments.rows import Rows, RowsByRun, seeds_of
from counsel.experiments.run_types import flight_of, most_common_flight
from counsel.planning.evaluate import evaluate
from counsel.planning.solve import solve
from counsel.simulate.simulator import Simulator
from counsel.worlds.car_driving import CAR, EMPTY, STONE, state_of
from counsel.worlds.catalogue import make


@dataclass(frozen=True, slots=True, kw_only=True)
class BestFlight:
    """The most common flight under the best advice, and the expected pieces of advice."""

    id: str
    world: str

    def rows(self) -> Rows:
        problem = make(self.world)
        plan = solve(problem)
        flights = Simulator(problem).play(plan.policy, episodes=500, rng=np.random.default_rng(0))
        flight = most_common_flight(flights)
        advice_count = evaluate(problem, plan.policy).advice_count
        return flight | {"advice_count": np.full(flight["state"].size, advice_count)}


def runs(size: Size) -> tuple[Run, ...]:
    """Return the only run: the best flight on the budget map."""
    return (BestFlight(id="worlds/budget#0", world="flappy-bird-budget/greedy"),)


def pictures(rows: RowsByRun) -> tuple[Picture, ...]:
    """Draw the maps and the road."""
    (run,) = seeds_of(rows, "worlds/budget")
    road = state_of(1, ((EMPTY, STONE, EMPTY), (CAR, EMPTY, STONE), (STONE, EMPTY, CAR)))
    return (
        Picture(
            "worlds-three-phases",
            draw_map(
                "three-phases",
                title="Flappy Bird: stars, then walls, then both",
                phases=PHASE_STARTS,
            ),
            "The map of three phases. The paper does not publish its maps; these are ours.",
        ),
        Picture(
            "worlds-budget",
            draw_map(
                "budget",
                episodes=flight_of(run),
                title="Policy Greedy, its best flight on the budget map",
            ),
            "The budget map with the most common flight of Policy Greedy under the best advice "
            f"without a limit: {run['advice_count'][0]:.3g} expected pieces of advice. The map was "
            "drawn so that the best flight is advised twice.",
        ),
        Picture(
            "worlds-car",
            draw_road(road, None, "Car Driving, the myopic driver", sight=True),
            "The road: the machine sees three rows, the driver only the next row.",
        ),
    )


WORLDS = Experiment("worlds", "The three environments", runs, pictures, lambda _: ())
