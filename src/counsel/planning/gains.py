"""Advantage and gain of every piece of advice under the values of a plan.

advantage_h(s, b) = Q_h(s, b) − Σ_a π_h(a | s) Q_h(s, a),     gain = lift × advantage

Explanations, the service, the report and the playground use these functions. Compiled loops use
``_gain_kernels.py``.
"""

from typing import NamedTuple

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel.model.human import advantages, gain_of
from counsel.model.problem import AdviceProblem
from counsel.planning._backward_kernels import action_values
from counsel.planning.plan import Plan
from counsel.planning.prepared_problem import model_of


class CellGains(NamedTuple):
    """Advantage and gain of each advice [a] in one cell, and the price of each piece there."""

    advantage: Floats
    gain: Floats
    price: Floats


def gains(problem: AdviceProblem, values: Floats) -> tuple[Floats, Floats]:
    """Return advantages and gains [h, s, a]; NaN and 0 for actions that are not allowed.

    ``values`` [h, s] have one row after the last step, e.g. ``plan.values``.
    """
    H, S, A = problem.horizon, problem.n_states, problem.n_actions
    model = model_of(problem)
    advantage, gain = np.empty((H, S, A)), np.empty((H, S, A))
    states, q_sa = np.arange(S), np.empty((S, A))
    for h in range(H):
        action_values(model, h, values[h + 1], states, q_sa)
        advantage[h], gain[h] = _gains(problem, h, states, q_sa)
    return advantage, gain


def gains_at(
    problem: AdviceProblem, plan: Plan, step: int, state: int, pieces_left: int | None = None
) -> CellGains:
    """Return the gains in one cell under the values of ``plan``.

    Under a hard budget with k left, advantage and gain of advice that costs c assume k − c left
    after this step, and its price is what these c add later if they are not spent here (∞ if there
    are fewer).
    """
    plane, A = plan.policy.plane_of(pieces_left), problem.n_actions
    model, cost_a = model_of(problem, plan.constraints), problem.cost[step, state]
    q_ka = np.empty((len(plan.value_planes), A))
    for k, values_hs in enumerate(plan.value_planes):
        action_values(model, step, values_hs[step + 1], np.array([state]), q_ka[k : k + 1])
    if pieces_left is None:
        advantage, gain = _gains(problem, step, state, q_ka[0])
        return CellGains(advantage, gain, plan.price_at(step) * cost_a)
    own_a = problem.policy[step, state]
    taken = own_a > 0.0
    alone_k = q_ka[:, taken] @ own_a[taken]
    advantage_a, gain_a, price_a = np.full(A, np.nan), np.zeros(A), np.full(A, np.inf)
    for a in range(A):
        after = max(plane - int(cost_a[a]), 0)
        advantages_a, gains_a = _gains(problem, step, state, q_ka[after])
        advantage_a[a], gain_a[a] = advantages_a[a], gains_a[a]
        if cost_a[a] <= plane and alone_k[after] > -np.inf:
            price_a[a] = alone_k[plane] - alone_k[after]
    return CellGains(advantage_a, gain_a, price_a)


def nearest_advice(gain_a: Floats, price_a: Floats, permitted_a: Bools) -> int:
    """Return the advice whose gain exceeds its price by most, or falls short of it by least."""
    affordable = permitted_a & (price_a < np.inf)
    if not affordable.any():
        return int(np.where(permitted_a, gain_a, -np.inf).argmax())
    net_a = np.full(gain_a.size, -np.inf)
    net_a[affordable] = gain_a[affordable] - price_a[affordable]
    return int(net_a.argmax())


def _gains(
    problem: AdviceProblem, step: int, states: Ints | int, q: Floats
) -> tuple[Floats, Floats]:
    """Return advantage and gain for the action values ``q`` of some states."""
    allowed = problem.mdp.allowed[step, states]
    advantage = np.where(allowed, advantages(problem.policy[step, states], q), np.nan)
    return advantage, np.where(allowed, gain_of(problem.lift[step, states], advantage), 0.0)
