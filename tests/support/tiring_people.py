"""People who tire, in the smallest world that shows it, and a slow replay of their levels.

``slow_levels`` is written from the documentation (``docs/how-to/service.md``), not from the code.
"""

import hashlib

import numpy as np

from counsel import MDP, AdviceProblem, Human, Memory

HORIZON, STATES, ACTIONS = 5, 2, 3

RANDOM = Memory(
    [[0.6, 0.4, 0.0], [0.3, 0.5, 0.2], [0.0, 0.5, 0.5]],
    [[0.9, 0.1, 0.0], [0.4, 0.4, 0.2], [0.1, 0.2, 0.7]],
    [[0.1, 0.5, 0.4], [0.0, 0.3, 0.7], [0.0, 0.0, 1.0]],
    start=1,
    labels=["fresh", "so-so", "weary"],
)
"""A memory whose levels are drawn."""

MEMORIES = {
    "pieces": (Memory.pieces(3), (1.0, 0.7, 0.5, 0.35)),
    "since": (Memory.since(2), (0.2, 0.6, 1.0)),
    "refusals": (Memory.refusals(2), (1.0, 0.5, 0.1)),
    "dose": (Memory.dose(0.5, 4), (1.0, 0.8, 0.5, 0.3)),
    "carried": (Memory.pieces(3).starting_at(3), (1.0, 0.7, 0.5, 0.35)),
    "random": (RANDOM, (1.0, 0.6, 0.2)),
    "joined": (Memory.refusals(1) * Memory.since(1), (0.7, 1.0, 0.2, 0.4)),
}
"""Memories with their fading, by the name of their source."""


def tiring_problem(memory, fading, horizon=HORIZON):
    """A person who hardly ever does what pays, and listens well when rested."""
    move = np.zeros((STATES, ACTIONS, STATES))
    move[:, :, 0] = [[0.5, 0.2, 0.8], [0.9, 0.4, 0.3]]
    move[:, :, 1] = 1.0 - move[:, :, 0]
    mdp = MDP(move, [[0.0, 1.0, 0.2], [0.1, 0.5, 1.5]], horizon=horizon, start=0)
    human = Human([[0.8, 0.1, 0.1], [0.7, 0.1, 0.2]], lift=0.8, memory=memory, fading=fading)
    return AdviceProblem(mdp, human)


def tiring_source(_, name):
    """The problem of a source, as a desk asks for it; a number after the name is its horizon."""
    name, _, horizon = name.partition(" ")
    if name == "plain":
        return tiring_problem(None, None)
    return tiring_problem(*MEMORIES[name], horizon=int(horizon or HORIZON))


def slow_levels(memory, episode, start, steps, until):
    """The level before each step up to ``until``, one step after the other.

    ``steps`` has what was shown (None is silence), what the person did (None if that is not
    reported), and whether they saw it, for each step that was decided.
    """
    levels = [start]
    for step in range(until):
        said, did, seen = steps.get(step, (None, None, True))
        matrix = memory.after_silence
        if said is not None and seen:
            matrix = memory.after_match if did == said else memory.after_refusal
        chances = matrix[levels[-1]]
        digest = hashlib.sha256(f"level {episode}-{step}".encode()).hexdigest()
        drawn = (int(digest[:16], 16) >> 11) / 2**53
        levels.append(int(np.searchsorted(np.cumsum(chances), drawn, side="right")))
    return levels
