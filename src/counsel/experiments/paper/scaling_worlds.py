"""Drawn worlds of a given size, for the experiment ``scaling``.

``gates_problem`` follows the worlds in which Dann and Brunskill (2015) prove their lower bound. A
person waits, comes to one of several gates at a random step of the first half, and behind the gate
is rewarded with 1 per step or with nothing until the end. At each gate one action, the habit, leads
nowhere and three lead to the reward; advice for one of the three moves the person more than advice
for the other two. The differences between these lifts are so small that wrong advice at all gates
costs ``WRONG`` ε: half of the gates must be right before a policy is ε-optimal. Every gate is thus
a choice between lifts that differ by an amount of order ε / H, at a step that varies.

``mixing_problem`` is a world in which every state can follow every other, for exploration.
"""

import numpy as np

from counsel.model.human import Human
from counsel.model.mdp import MDP
from counsel.model.problem import AdviceProblem

ACTIONS = 4
WRONG = 2.2  # the value gap of wrong advice at every gate, in units of ε
EXTRA_STATES = 3  # besides the gates: waiting, rewarded, and not


def gates_problem(horizon: int, gates: int, epsilon: float, seed: int) -> AdviceProblem:
    """Draw the habits and lifts at the gates; the horizon must be even and at least 4."""
    rng = np.random.default_rng([seed, horizon, gates, round(1e6 * epsilon)])
    H, S, A, half = horizon, gates + EXTRA_STATES, ACTIONS, horizon // 2
    paid, unpaid, at_gate = gates + 1, gates + 2, slice(1, gates + 1)
    start = np.zeros(S)
    start[0], start[at_gate] = 1.0 - 1.0 / half, 1.0 / (half * gates)
    p_hsat = np.zeros((H, S, A, S))
    for h in range(H):  # the step at a gate is uniform over the first half
        leave = 1.0 / (half - 1 - h) if h < half - 1 else 1.0
        p_hsat[h, 0, :, 0], p_hsat[h, 0, :, at_gate] = 1.0 - leave, leave / gates
    p_hsat[:, paid, :, paid] = p_hsat[:, unpaid, :, unpaid] = 1.0
    own_sa, lift_sa = np.full((S, A), 1.0 / A), np.full((S, A), 0.5)
    share = rng.uniform(0.5, 1.5, gates)
    share /= share.mean()
    for s in range(1, gates + 1):
        habit, right, *wrong = rng.permutation(A)
        own_sa[s, habit] = rng.uniform(0.7, 0.9)
        own_sa[s, [right, *wrong]] = (1.0 - own_sa[s, habit]) / (A - 1)
        # The steps after the gate are (3 H − 2) / 4 on average, and the habit wastes them.
        worth = own_sa[s, habit] * (3.0 * H - 2.0) / 4.0
        difference = share[s - 1] * WRONG * epsilon / worth
        lift_sa[s, right], lift_sa[s, wrong] = 0.5 + difference / 2.0, 0.5 - difference / 2.0
        p_hsat[:, s, :, paid] = 1.0
        p_hsat[:, s, habit, paid], p_hsat[:, s, habit, unpaid] = 0.0, 1.0
    reward_s = np.where(np.arange(S) == paid, 1.0, 0.0)
    return AdviceProblem(MDP(p_hsat, reward_s, horizon=H, start=start), Human(own_sa, lift=lift_sa))


def mixing_problem(horizon: int, states: int, actions: int, seed: int) -> AdviceProblem:
    """Draw transitions, rewards, habits and lifts; episodes start in state 0."""
    rng = np.random.default_rng([seed, horizon, states])
    p_sat = rng.dirichlet(np.ones(states), (states, actions))
    reward_sa = rng.uniform(size=(states, actions))
    reward_sa[0, 0], reward_sa[-1, -1] = 0.0, 1.0  # the range of rewards
    own_sa = rng.dirichlet(np.ones(actions), states)
    lift_sa = rng.uniform(0.0, 0.8, (states, actions))
    return AdviceProblem(MDP(p_sat, reward_sa, horizon=horizon), Human(own_sa, lift=lift_sa))
