"""Draw the pictures of the documentation: ``python tools/pictures.py [FOLDER]``."""

import sys
from pathlib import Path

import numpy as np

import counsel
from counsel.drawing import draw_map
from counsel.drawing.canvas import save
from counsel.drawing.roads import draw_road
from counsel.worlds import make
from counsel.worlds.car_driving import state_of

PHASES = {"phase 1: stars": 0, "phase 2: walls": 7, "phase 3: both": 14}


def main(folder: Path) -> None:
    """Write all pictures."""
    for person in ("greedy", "safe"):
        problem = make(f"flappy-bird/{person}")
        policy = counsel.solve(problem, penalty=0.3).policy
        rng = np.random.default_rng(3)
        draw_map(
            "three-phases",
            folder / f"flappy-bird-{person}.png",
            episodes=counsel.Simulator(problem).play(policy, episodes=200, rng=rng),
            title=f"Policy {person.title()}, 200 flights at a penalty of 0.3 per piece of advice",
            phases=PHASES,
        )
    draw_map(
        "three-phases",
        folder / "criticality-safe.png",
        criticality=counsel.criticality(make("flappy-bird/safe")),
        title="Policy Safe: the largest penalty at which advice still pays in each cell",
        phases=PHASES,
    )
    problem = make("flappy-bird-budget/greedy")
    policy = counsel.solve(problem).policy
    draw_map(
        "budget",
        folder / "budget-map.png",
        episodes=counsel.Simulator(problem).play(policy, episodes=1, rng=np.random.default_rng(0)),
        title="Two pieces of advice for three stars",
    )
    road = state_of(1, [[0, 0, 1], [2, 0, 1], [0, 1, 2]])
    save(draw_road(road, None, "What each side sees", sight=True), folder / "car-driving.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "images"))
