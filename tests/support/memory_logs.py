"""Logs of the ward with and without a memory, and how ``--memory auto`` does on them."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

import counsel
from counsel.logs.count import count_log
from counsel.logs.estimate import Sharing, estimate
from counsel.logs.memory_tests import compare_memories
from counsel.logs.read import read_log
from counsel.model.memory import Memory
from counsel.worlds.ward import _ALERTS, ward


def alerts(problem):
    """The randomised rule by which the ward sends alerts."""
    chance = np.zeros((problem.horizon, problem.n_states, problem.n_actions + 1))
    chance[:, :4], chance[:, 4, -1] = _ALERTS, 1.0
    return counsel.Policy.from_probabilities(chance)


def ward_rows(problem, episodes, seed, nurses=40):
    """A log of shifts, each by one of the nurses, in the order of their numbers."""
    rng = np.random.default_rng(seed)
    batch = counsel.Simulator(problem).play(alerts(problem), episodes=episodes, rng=rng)
    states = np.array(problem.mdp.state_labels)
    actions = np.array([*problem.mdp.action_labels, None], dtype=object)
    nurse = np.array([f"nurse {i}" for i in range(nurses)])[rng.integers(nurses, size=episodes)]
    last = np.zeros(batch.state.size, dtype=bool)
    last[batch.first[1:] - 1] = True
    ended = batch.terminated[batch.episode]
    return pa.table(
        {
            "episode": batch.episode.astype(np.int64),
            "step": batch.step.astype(np.int64),
            "person": nurse[batch.episode],
            "state": states[batch.state],
            "advice": actions[batch.advice].tolist(),
            "action": actions[batch.action].tolist(),
            "reward": batch.reward,
            "next_state": states[batch.next_state],
            "terminated": last & ended,
            "truncated": last & ~ended,
        }
    )


def tiring_ward(fading):
    """The ward whose nurses listen so much as well with every piece of a shift."""
    return ward(memory=Memory.pieces(5), fading=[fading**m for m in range(6)])


class Verdict(NamedTuple):
    """What ``auto`` says about one log, and the fading of pieces with its interval.

    A log of nurses who do not tire has no interval.
    """

    choice: str
    alike: tuple[str, ...]
    fading: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


def verdict(fading, episodes, seed):
    """Draw a log, 1.0 without a memory, and choose a memory for it, as ``counsel fit`` does."""
    problem = ward() if fading == 1.0 else tiring_ward(fading)
    rows = ward_rows(problem, episodes, seed)
    log = read_log(rows)
    tally = count_log(log)
    found = compare_memories(log, tally, estimate(tally, Sharing()), "episode", np.inf)
    choice = "none" if found.choice is None else found.choice.name
    alike = tuple(test.kind.name for test in found.alike)
    if fading == 1.0:
        return Verdict(choice, alike)
    own = counsel.fit(rows, memory="pieces=5").fading
    fading, low, high = (tuple(part.tolist()) for part in (own.factor, own.low, own.high))
    return Verdict(choice, alike, fading, low, high)
