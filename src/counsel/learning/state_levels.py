"""Pairs of a state and a level of memory as the states of a larger shape.

The pair of state s and level m has number s · M + m. A learner that knows nothing but a shape
learns on the pairs as on any states: what the level becomes is learnt with everything else.
"""

from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from counsel._arrays import index_in, layers, unlayered
from counsel.learning.levels import check_level, levels_of
from counsel.model.advice_costs import given_cost
from counsel.model.memory import Memory
from counsel.model.policy import Policy
from counsel.model.setting import Shape
from counsel.simulate.episodes import Episodes

_T = TypeVar("_T", bound=np.generic)


def pair_shape(shape: Shape) -> Shape:
    """Return the shape whose states are pairs, without a memory; as it is if there is none."""
    memory = shape.memory
    if memory is None:
        return shape
    M, cost = memory.n_levels, given_cost(shape.cost)
    return replace(
        shape,
        n_states=shape.n_states * M,
        allowed=unlayered(pair_rows(layers(shape.allowed), M)),
        start=None if shape.start is None else shape.start * M + memory.start,
        cost=cost if cost.ndim < 2 else np.repeat(cost, M, axis=-2),
        memory=None,
    )


def pair_of(state: int, level: int | None, pairs: int, memory: Memory) -> int:
    """Return the number of the pair of a state and a level; raise if one is out of range."""
    M = memory.n_levels
    return index_in("state", state, pairs // M) * M + check_level(level, memory)


def pair_rows(table_lsx: NDArray[_T], n_levels: int) -> NDArray[_T]:
    """Return a table [layer, pair, x] from [layer, s, x]: the same on every level."""
    return np.repeat(table_lsx, n_levels, axis=1)


def pair_episodes(batch: Episodes, memory: Memory) -> Episodes:
    """Return the same episodes in states that are pairs.

    The level after the last decision of an episode is not recorded: the likeliest is taken. Nothing
    depends on it: the episode is over, or its horizon is reached.
    """
    level, M = levels_of(batch, memory), memory.n_levels
    outcome = np.where(batch.advice == batch.defer, 0, np.where(batch.matched, 1, 2))
    next_level = memory.after[outcome, level].argmax(axis=-1)
    follows = np.flatnonzero(batch.episode[1:] == batch.episode[:-1])
    next_level[follows] = level[follows + 1]
    return replace(
        batch,
        state=(batch.state * M + level).astype(np.int32),
        next_state=(batch.next_state * M + next_level).astype(np.int32),
        level=None,
    )


def policy_by_level(policy: Policy, n_levels: int) -> Policy:
    """Return a policy with a plane for each level from one whose states are pairs."""
    *planes, pairs = policy.advice.shape
    sizes = (*planes, pairs // n_levels, n_levels)
    if not policy.random.cell.size:
        advice = np.moveaxis(policy.advice.reshape(sizes), -1, -3)
        return Policy.trusted(advice.copy(), n_actions=policy.n_actions, levels=n_levels)
    chances = policy.probabilities().reshape(*sizes, -1)
    return Policy.from_probabilities(np.moveaxis(chances, -2, -4), levels=n_levels)
