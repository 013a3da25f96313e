"""Advantage and gain of every piece of advice under the values of a plan.

advantage_h(s, b) = Q_h(s, b) − Σ_a π_h(a | s) Q_h(s, a),     gain = lift × advantage

Explanations, the service, the report and the playground use these functions. Compiled loops use
``_gain_kernels.py``.
"""

from typing import NamedTuple

import numpy as np

from counsel._arrays import Floats, Ints
from counsel.model.human import advantages, gain_of
from counsel.model.problem import AdviceProblem
from counsel.planning._backward_kernels import action_values
from counsel.planning.plan import Plan
from counsel.planning.prepared_problem import model_of


class CellGains(NamedTuple):
    """Advantage and gain of each advice [a] in one cell, and the price of a piece there."""

    advantage: Floats
    gain: Floats
    price: float


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

    Under a hard budget with k pieces left, advantage and gain assume k − 1 pieces after this step,
    and the price is what the k-th piece adds later if it is not spent here.
    """
    plane = plan.policy.plane_of(pieces_left)
    after = max(plane - 1, 0)
    model = model_of(problem, plan.constraints)
    q_ka = np.empty((2, problem.n_actions))
    for i, k in enumerate((after, plane)):
        then_s = plan.value_planes[k, step + 1]
        action_values(model, step, then_s, np.array([state]), q_ka[i : i + 1])
    advantage, gain = _gains(problem, step, state, q_ka[0])
    if pieces_left is None:
        return CellGains(advantage, gain, plan.price)
    own_a = problem.policy[step, state]
    taken = own_a > 0.0
    spent, kept = (float(own_a[taken] @ q_a[taken]) for q_a in q_ka)
    return CellGains(advantage, gain, kept - spent if plane and spent > -np.inf else np.inf)


def _gains(
    problem: AdviceProblem, step: int, states: Ints | int, q: Floats
) -> tuple[Floats, Floats]:
    """Return advantage and gain for the action values ``q`` of some states."""
    allowed = problem.mdp.allowed[step, states]
    advantage = np.where(allowed, advantages(problem.policy[step, states], q), np.nan)
    return advantage, np.where(allowed, gain_of(problem.lift[step, states], advantage), 0.0)
