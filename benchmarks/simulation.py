"""How fast episodes are drawn, in live decisions a second on one thread.

Run with ``make bench``. Steps after the end of an episode are not counted. The peer is our own
Gymnasium environment, stepped in a plain Python loop under the same policy in the same run; the
other figures are floors of the machine, to see how far there is to go.
"""

from collections.abc import Callable, Iterator
from functools import partial

import gymnasium
import numpy as np

import counsel
from benchmarks.timing import race, verdict
from counsel.worlds import make

EPISODES = 100_000
LOOPED = 200


def main() -> None:
    """Measure and print everything."""
    for line in (
        *world("Flappy Bird", "flappy-bird/safe", "counsel/FlappyBird-v0", counted=20.0, kept=5.0),
        *world("Car Driving", "car-driving/myopic", "counsel/CarDriving-v0", counted=3.0, kept=3.0),
    ):
        print(line, flush=True)


def world(name: str, made: str, env_id: str, *, counted: float, kept: float) -> Iterator[str]:
    """Race counting, recording and a Python loop on one world under the best advice."""
    problem = make(made)
    simulator, policy = counsel.Simulator(problem), counsel.solve(problem).policy
    env = gymnasium.make(env_id, human=made.partition("/")[2]).unwrapped
    rng = np.random.default_rng
    calls: dict[str, Callable[[], object]] = {
        "counts only": lambda: simulator.count(policy, episodes=EPISODES, rng=rng(0)),
        "full records": lambda: simulator.play(policy, episodes=EPISODES, rng=rng(0)),
        "Gymnasium loop": partial(loop, env, policy),
        "random numbers alone": lambda: rng(0).random((EPISODES, simulator.draws)),
    }
    seconds = race(calls, turns=5, burst=1)
    live = simulator.count(policy, episodes=EPISODES, rng=rng(0)).live
    looped = loop(env, policy) / seconds["Gymnasium loop"]
    count, play = live / seconds["counts only"], live / seconds["full records"]
    yield verdict(f"{name}: counts only, million steps a second", count / 1e6, counted)
    yield verdict(f"{name}: full records, million steps a second", play / 1e6, kept)
    yield f"{name}: Gymnasium environment in a loop, {looped / 1e6:.3g} million steps a second"
    yield verdict(f"{name}: counts / Gymnasium loop", count / looped, 50.0)
    yield verdict(f"{name}: records / Gymnasium loop", play / looped, 50.0)
    share = seconds["random numbers alone"] / seconds["counts only"]
    yield f"{name}: drawing the random numbers alone takes {share:.0%} of counting"


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
