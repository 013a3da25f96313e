"""How fast episodes are drawn, in live decisions a second on one thread.

Run with ``make bench``, or alone with ``python -m benchmarks.simulation``. Steps after the end of
an episode are not counted. There are two peers, under the same policy in the same run: our own
Gymnasium environment stepped in a plain Python loop, and NumPy with thousands of episodes at a
time. Drawing the random numbers alone is a floor of the machine.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain

import gymnasium
import numpy as np

import counsel
from benchmarks.results import Row, against, alone, record
from benchmarks.timing import race
from benchmarks.vectors import Vectors
from counsel.worlds import make

EPISODES = 100_000
LOOPED = 200
UNIT = "million steps/s"


def main() -> None:
    """Measure, print and write everything."""
    rows = chain(
        world("Flappy Bird", "flappy-bird/safe", "counsel/FlappyBird-v0", counted=20.0, kept=5.0),
        world("Car Driving", "car-driving/myopic", "counsel/CarDriving-v0", counted=3.0, kept=3.0),
    )
    record("simulation", rows, packages=("gymnasium",))


def world(name: str, made: str, env_id: str, *, counted: float, kept: float) -> Iterator[Row]:
    """Race counting and recording against NumPy and a Python loop under the best advice."""
    problem = make(made)
    simulator, plan = counsel.Simulator(problem), counsel.solve(problem)
    policy, vectors = plan.policy, Vectors(problem, plan.policy)
    env = gymnasium.make(env_id, human=made.partition("/")[2]).unwrapped
    rng = np.random.default_rng
    check(name, vectors, plan.value)
    calls: dict[str, Callable[[], object]] = {
        "count": lambda: simulator.count(policy, episodes=EPISODES, rng=rng(0)),
        "play": lambda: simulator.play(policy, episodes=EPISODES, rng=rng(0)),
        "numpy count": lambda: vectors.count(EPISODES, rng(0)),
        "numpy play": lambda: vectors.play(EPISODES, rng(0)),
        "loop": partial(loop, env, policy),
        "random": lambda: rng(0).random((EPISODES, simulator.draws)),
    }
    seconds = race(calls, turns=9, burst=1)
    live = simulator.count(policy, episodes=EPISODES, rng=rng(0)).live / 1e6
    looped = loop(env, policy) / 1e6 / seconds["loop"]
    for what, call, least in (("counts only", "count", counted), ("full records", "play", kept)):
        ours, peer = live / seconds[call], live / seconds[f"numpy {call}"]
        yield against(
            f"{name}: {what}",
            ours,
            UNIT,
            "NumPy",
            peer,
            more=True,
            least=least,
            spread=seconds.spread(f"numpy {call}", call),
        )
        yield against(
            f"{name}: {what}", ours, UNIT, "Gymnasium loop", looped, more=True, ratio=50.0
        )
    yield alone(
        f"{name}: share of counting that drawing the random numbers takes",
        100 * seconds["random"] / seconds["count"],
        "%",
        "a floor of the machine, not a peer",
    )


def check(name: str, vectors: Vectors, value: float) -> None:
    """Refuse to race a peer that plays another game."""
    rewards = vectors.count(EPISODES, np.random.default_rng(1))[1]
    error = float(rewards.std() / np.sqrt(EPISODES))
    if abs(rewards.mean() - value) > 5 * error:
        raise AssertionError(f"{name}: NumPy draws {rewards.mean()}, the plan is worth {value}")


def loop(env: gymnasium.Env, policy: counsel.Policy) -> int:
    """Step the environment in Python; return how many steps."""
    steps = 0
    for seed in range(LOOPED):
        state, _ = env.reset(seed=seed)
        h, done = 0, False
        while not done:
            state, _, terminated, truncated, _ = env.step(policy.advice[h, state])
            done = terminated or truncated
            h += 1
        steps += h
    return steps


if __name__ == "__main__":
    main()
