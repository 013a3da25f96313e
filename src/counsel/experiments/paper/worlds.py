"""Pictures of the three environments (figures 1, 5a and 6a): worlds."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from counsel.drawing.maps import draw_map
from counsel.drawing.roads import draw_road
from counsel.estimate.intervals import interval
from counsel.experiments.experiment import Claim, Experiment, Picture, Rows, Run, Size, seeds_of
from counsel.experiments.run_types import commonest, flight_of
from counsel.planning.evaluate import evaluate
from counsel.planning.solve import solve
from counsel.simulate.simulator import Simulator
from counsel.worlds.car_driving import CAR, EMPTY, STONE, state_of
from counsel.worlds.catalogue import make
from counsel.worlds.grid_map import MOVES


@dataclass(frozen=True, slots=True, kw_only=True)
class BestFlight:
    """The commonest flight under the best advice, and the advice it expects to give."""

    id: str
    world: str

    def rows(self) -> Rows:
        """Plan and fly."""
        problem = make(self.world)
        plan = solve(problem)
        played = Simulator(problem).play(plan.policy, episodes=500, rng=np.random.default_rng(0))
        part = slice(*commonest(played))
        n = part.stop - part.start
        return {
            "state": played.state[part].astype(np.int64),
            "advice": played.advice[part].astype(np.int64),
            "action": played.action[part].astype(np.int64),
            "next_state": played.next_state[part].astype(np.int64),
            "advice_count": np.full(n, evaluate(problem, plan.policy).advice_count),
        }


def runs(size: Size) -> tuple[Run, ...]:
    """Return the one run: the best flight on the budget map."""
    return (BestFlight(id="worlds/budget#0", world="flappy-bird-budget/greedy"),)


def pictures(rows: Mapping[str, Rows]) -> tuple[Picture, ...]:
    """Draw the maps and the road."""
    (run,) = seeds_of(rows, "worlds/budget")
    road = state_of(1, ((EMPTY, STONE, EMPTY), (CAR, EMPTY, STONE), (STONE, EMPTY, CAR)))
    return (
        Picture(
            "worlds-three-phases",
            draw_map("three-phases", title="Flappy Bird: stars, then walls, then both"),
            "The map of three phases. The paper's own maps are not in its source; these are ours.",
        ),
        Picture(
            "worlds-budget",
            draw_map("budget", episodes=flight_of(run), title="The budget map and its best flight"),
            "The budget map with the commonest flight of Policy Greedy under the best advice "
            f"without a limit, which expects to speak {run['advice_count'][0]:.3g} times.",
        ),
        Picture(
            "worlds-car",
            draw_road(road, None, "Car Driving", sight=True),
            "The road: the machine sees three rows, the driver the next one.",
        ),
    )


def claims(rows: Mapping[str, Rows]) -> tuple[Claim, ...]:
    """Test what the paper says of its budget map."""
    (run,) = seeds_of(rows, "worlds/budget")
    spoken = int((run["advice"] < len(MOVES)).sum())
    return (
        Claim(
            "On the budget map the best flight without a limit is advised at least twice.",
            "paper",
            f"{spoken} times on the commonest flight",
            "pieces of advice",
            interval([float(spoken)]),
            spoken >= 2,
        ),
    )


WORLDS = Experiment("worlds", "The three environments", runs, pictures, claims)
