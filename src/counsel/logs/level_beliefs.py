"""The level of a person's memory along the episodes of a log, as a policy knows it.

The level follows from what was said and done: after silence, a match and a refusal it moves by one
of the memory's three matrices. Advice that was not seen counts as silence. Where a matrix draws the
level (a dose does), the policy knows its level and the log does not: each episode then has a
distribution over levels. What the policy would have said says something about its level, so the
distribution is updated by the probability of the logged advice at each level (Bayes), and then
moved. The probability of the advice given the episode so far is the average over that distribution.
"""

from dataclasses import dataclass

import numpy as np

from counsel._arrays import Floats, Ints
from counsel.logs.decisions import Decisions
from counsel.model.memory import Memory
from counsel.model.policy import Policy


@dataclass(frozen=True, slots=True, eq=False)
class LevelBeliefs:
    """What is known about the level at each decision of a log; arrays are [row] and [row, m]."""

    before: Floats  # the distribution of the level
    after: Floats  # the same, given the logged advice
    chance: Floats  # the probability of the logged advice under the policy


def follow_levels(policy: Policy, rows: Decisions, memory: Memory) -> LevelBeliefs:
    """Follow the level of a memory along episodes, under a policy that may depend on it."""
    M, left = memory.n_levels, pieces_left(policy, rows)
    belief = np.zeros((rows.n_episodes, M))
    belief[:, memory.start] = 1.0
    before, after = np.zeros((2, rows.place.size, M))
    chance = np.zeros(rows.place.size)
    matched = rows.action == rows.advice
    outcome = np.where(~rows.heard, 0, np.where(matched, 1, 2))
    for h in range(rows.horizon):
        here = np.flatnonzero(rows.place == h)
        likely = level_chances(policy, h, M)[left[here], :, rows.state[here], rows.advice[here]]
        mine = belief[rows.episode[here]]
        joint = mine * likely
        total = joint.sum(axis=1)
        before[here], chance[here] = mine, total
        # An episode that the policy would not have brought about has no weight from here on.
        known = np.where(total[:, None] > 0.0, joint / np.maximum(total, 1e-300)[:, None], mine)
        after[here] = known
        belief[rows.episode[here]] = np.einsum("im,imn->in", known, memory.after[outcome[here]])
    return LevelBeliefs(before, after, chance)


def pieces_left(policy: Policy, rows: Decisions) -> Ints:
    """Return the pieces left at each decision, as the first axis of a policy's planes."""
    budgets = len(policy.planes) // (policy.levels or 1)
    left: Ints = np.maximum(budgets - 1 - rows.earlier, 0)
    return left


def level_chances(policy: Policy, h: int, levels: int) -> Floats:
    """Return the probability of each advice at a step [pieces left, m, s, b], silence last."""
    table = advice_chances(policy, h)
    own = policy.levels or 1
    table = table.reshape(-1, own, *table.shape[1:])
    return np.broadcast_to(table, (len(table), levels, *table.shape[2:]))


def advice_chances(policy: Policy, h: int) -> Floats:
    """Return the probability of each advice at a step [plane, s, b], silence last."""
    chance_psb: Floats = np.eye(policy.n_actions + 1)[policy.planes[:, h]]
    p, step, s = np.unravel_index(policy.random.cell_of_entry, policy.planes.shape)
    here = step == h
    chance_psb[p[here], s[here]] = 0.0
    chance_psb[p[here], s[here], policy.random.advice[here]] = policy.random.probability[here]
    return chance_psb
