"""The runs of the experiment ``scaling``: learners in drawn worlds, and explorations that stop."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from counsel.experiments.experiment import Run, Size
from counsel.experiments.exponents import Counts
from counsel.experiments.paper.scaling_worlds import EXTRA_STATES, gates_problem
from counsel.experiments.paper.stopping import RULES, Stopping
from counsel.experiments.rows import Rows, RowsByRun, seeds_of
from counsel.planning.evaluate import evaluate
from counsel.planning.solve import solve
from counsel.runs.spec import Spec
from counsel.simulate.simulator import Simulator

AXES = ("H", "S", "1/ε")
MOST, MOST_EXPLORED = 160_000, 250_000
GROWTH = 0.1  # learners plan whenever the episodes have grown by this share
SEEDS = 20  # medians need fewer seeds than shares of runs
FEWER_SEEDS = 12
"""The seeds of stopping times, which hardly differ, and of Q-learning with its own constants, which
is almost never ε-optimal within a run."""


class Dimensions(NamedTuple):
    """The horizon, the states (all of them) and ε of a problem."""

    H: int
    S: int
    epsilon: float

    def along(self, axis: str) -> float:
        """Return the size along an axis."""
        return {"H": float(self.H), "S": float(self.S), "1/ε": 1.0 / self.epsilon}[axis]

    @property
    def name(self) -> str:
        return f"h{self.H}-s{self.S}-e{self.epsilon:g}"


Grid = dict[str, tuple[Dimensions, ...]]

GATES: Grid = {
    "H": tuple(Dimensions(H, 9, 0.63) for H in (8, 12, 16, 24)),
    "S": tuple(Dimensions(8, S, 0.63) for S in (7, 9, 13, 19)),
    "1/ε": tuple(Dimensions(8, 9, e) for e in (1.0, 0.63, 0.4, 0.25)),
}
MIXING: Grid = {
    "H": tuple(Dimensions(H, 4, 1.0) for H in (4, 5, 6, 8, 12)),
    "S": tuple(Dimensions(4, S, 1.0) for S in (4, 6, 8, 12, 16)),
    "1/ε": tuple(Dimensions(4, 4, e) for e in (1.0, 0.7, 0.5, 0.35, 0.25)),
}


class Entry(NamedTuple):
    """A learner: its label, its settings, and the powers of H, S and 1/ε in its theorem."""

    label: str
    settings: dict[str, Any]
    powers: tuple[int, int, int]


LEARNERS = {
    "ucb-ad": Entry(
        "UCB-AD (Theorem 1)", {"algorithm": "ucb-ad", "bound": "theory", "delta": 0.1}, (2, 2, 2)
    ),
    "ucb-ad-kl": Entry("UCB-AD (KL)", {"algorithm": "ucb-ad", "delta": 0.1}, (2, 2, 2)),
    "ucfh": Entry("UCFH", {"algorithm": "ucfh"}, (3, 2, 2)),
    "ucfh-0.1": Entry("UCFH (a tenth)", {"algorithm": "ucfh", "scale": 0.1}, (3, 2, 2)),
    "q-learning": Entry("Q-learning", {"algorithm": "q-learning"}, (4, 1, 2)),
    "q-learning-0.1": Entry(
        "Q-learning (a tenth)", {"algorithm": "q-learning", "scale": 0.1}, (4, 1, 2)
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GateLearning:
    """One learner in one drawn world: the episodes of each block, and its policy's value gap."""

    id: str
    learner: str
    horizon: int
    states: int
    epsilon: float
    episodes: int
    seed: int

    def rows(self) -> Rows:
        gates = self.states - EXTRA_STATES
        problem = gates_problem(self.horizon, gates, self.epsilon, self.seed)
        settings = dict(LEARNERS[self.learner].settings)
        if settings["algorithm"] == "ucfh":
            settings["epsilon"] = self.epsilon
        spec = Spec(world="gates", episodes=self.episodes, seed=self.seed, **settings)
        learner, rng = spec.build(problem)
        simulator, best = Simulator(problem), solve(problem).value
        played, last_late, lines = 0, 0, list[tuple[float, float]]()
        while played < self.episodes:
            policy = learner.policy
            gap = best - evaluate(problem, policy).value
            if gap <= self.epsilon and played >= max(self.episodes // 10, 2 * last_late):
                break
            block = min(max(1, int(GROWTH * played)), self.episodes - played)
            learner.update(simulator.play(policy, episodes=block, rng=rng))
            played += block
            last_late = played if gap > self.epsilon else last_late
            lines.append((block, gap))
        block_n, gap_n = np.array(lines).T.copy()
        return {"block": block_n, "value_gap": gap_n}


def runs(size: Size) -> tuple[Run, ...]:
    """Return every learner in every world, and the explorations."""
    few = size.at_most(FEWER_SEEDS).repeats
    return (
        *(run for seed in size.repeats for run in _gate_runs(size, seed)),
        *(run for seed in few for run in _stopping_runs(size, seed)),
    )


def _gate_runs(size: Size, seed: int) -> Iterator[Run]:
    for name in LEARNERS:
        if name == "q-learning" and seed not in size.at_most(FEWER_SEEDS).repeats:
            continue
        for world in worlds_of(GATES):
            yield GateLearning(
                id=f"scaling/{name}-{world.name}#{seed}",
                learner=name,
                horizon=world.H,
                states=world.S,
                epsilon=world.epsilon,
                episodes=size.episodes(MOST),
                seed=seed,
            )


def _stopping_runs(size: Size, seed: int) -> Iterator[Run]:
    for world in worlds_of(MIXING):
        yield Stopping(
            id=f"scaling/rfe-{world.name}#{seed}",
            horizon=world.H,
            states=world.S,
            epsilon=world.epsilon,
            episodes=size.episodes(MOST_EXPLORED),
            seed=seed,
        )


def worlds_of(grid: Grid) -> list[Dimensions]:
    """Return every size of a grid once."""
    return sorted({world for along in grid.values() for world in along})


def count_late(run: Rows, epsilon: float) -> tuple[float, bool]:
    """Return the number of episodes whose policy is not ε-optimal, and whether it is censored."""
    late = run["value_gap"] > epsilon
    end = np.cumsum(run["block"])
    last = float(end[late][-1]) if late.any() else 0.0
    return float(run["block"][late].sum()), last > 0.75 * float(end[-1])


def counts_of(rows: RowsByRun, learner: str, axis: str) -> list[Counts]:
    """Return the counts of a learner along an axis, or the stopping times of a rule."""
    along = []
    for world in (MIXING if learner in RULES else GATES)[axis]:
        if learner in RULES:
            runs = seeds_of(rows, f"scaling/rfe-{world.name}")
            count = np.array([float(run[learner][0]) for run in runs])
            censored = np.isnan(count)
        else:
            runs = seeds_of(rows, f"scaling/{learner}-{world.name}")
            pairs = [count_late(run, world.epsilon) for run in runs]
            count, censored = (np.array(column) for column in zip(*pairs, strict=True))
        along.append(Counts(world.along(axis), count, censored))
    return along
