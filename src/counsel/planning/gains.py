"""Advantage and gain of every piece of advice under the values of a plan.

advantage_h(s, b) = Q_h(s, b) − Σ_a π_h(a | s) Q_h(s, a),     gain = lift × advantage

For a person with a memory, speaking also changes how they listen later: gain = lift × advantage −
burden (``level_planner.py``).

Explanations, the service, the report and the playground use these functions. Compiled loops use
``_gain_kernels.py``.
"""

from typing import NamedTuple

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel.model.human import advantages, gain_of
from counsel.model.problem import AdviceProblem
from counsel.planning._backward_kernels import action_values
from counsel.planning._choice_kernels import NO_MASS
from counsel.planning.plan import Plan
from counsel.planning.prepared_problem import model_of


class CellGains(NamedTuple):
    """Advantage and gain of each advice [a] in one cell, the price of each piece and its burden.

    The burden is 0 for a person without a memory; the gain is lift × advantage − burden. If either
    speaking or silence makes later required advice impossible, the burden is infinite, and the gain
    is the value of the advice minus that of silence.
    """

    advantage: Floats
    gain: Floats
    price: Floats
    burden: Floats


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


def gains_at(  # noqa: PLR0913 (a problem, a plan and a cell on a plane)
    problem: AdviceProblem,
    plan: Plan,
    step: int,
    state: int,
    pieces_left: int | None = None,
    level: int | None = None,
) -> CellGains:
    """Return the gains in one cell under the values of ``plan``.

    Under a hard budget with k left, advantage and gain of advice that costs c assume k − c left
    after this step, and its price is what these c add later if they are not spent here (∞ if there
    are fewer). ``level`` is the level of the person's memory, by default the start.
    """
    A, m, at = problem.n_actions, problem.level_of(level), np.array([state])
    own_a, cost_a = problem.policy[step, state], problem.cost[step, state]
    values_kms = plan.value_planes[:, step + 1].reshape(-1, problem.n_levels, problem.n_states)
    left = plan.policy.plane_of(pieces_left, m) // (plan.policy.levels or 1)
    alone_k = np.array([_alone(problem, step, values_ms, m, state) for values_ms in values_kms])
    advantage_a, gain_a, burden_a = np.full(A, np.nan), np.zeros(A), np.zeros(A)
    price_a = np.full(A, np.inf)
    for a in np.flatnonzero(problem.mdp.allowed[step, state]):
        after = left if pieces_left is None else max(left - int(cost_a[a]), 0)
        [q_a] = spoken_values(problem, step, values_kms[after], m, at, np.array([a]))
        advantage_a[a] = advantages(own_a, q_a)[a]
        gain_a[a] = gain_of(problem.level_lift[m, step, state, a], advantage_a[a])
        if problem.memory is not None:
            burden_a[a] = _loss(alone_k[after], _mean(own_a, q_a))
            if np.isfinite(burden_a[a]):
                gain_a[a] -= burden_a[a]
            else:
                advised = _advised(problem, step, state, int(a), m, q_a)
                gain_a[a] = -np.inf if advised == -np.inf else advised - alone_k[after]
        if cost_a[a] <= left and alone_k[after] > -np.inf:
            price_a[a] = alone_k[left] - alone_k[after]
    if pieces_left is None:
        price_a = plan.price_at(step) * cost_a
    return CellGains(advantage_a, gain_a, price_a, burden_a)


def _alone(problem: AdviceProblem, step: int, values_ms: Floats, level: int, state: int) -> float:
    """Return the value of silence in one cell."""
    q_1a = np.empty((1, problem.n_actions))
    values_s = _after(problem, values_ms, level, 0)
    action_values(model_of(problem), step, values_s, np.array([state]), q_1a)
    return _mean(problem.policy[step, state], q_1a[0])


def _advised(  # noqa: PLR0913 (a problem, a cell with advice, and the values that follow)
    problem: AdviceProblem, step: int, state: int, advice: int, level: int, q_a: Floats
) -> float:
    """Return the value of advice in one cell before its price, from the law in full."""
    law_a = problem.law(step, state, advice, level)
    if law_a[advice] <= NO_MASS * problem.policy[step, state, advice]:
        law_a[advice] = 0.0
    return _mean(law_a, q_a)


def _mean(probability_a: Floats, q_a: Floats) -> float:
    """Return the mean of the values of the actions that are possible."""
    possible = probability_a > 0.0
    return float(q_a[possible] @ probability_a[possible])


def _loss(before: float, after: float) -> float:
    """Return before − after; 0 if both are infeasible (−∞)."""
    return 0.0 if before == after == -np.inf else before - after


def spoken_values(  # noqa: PLR0913 (a problem, the values that follow, and cells with advice)
    problem: AdviceProblem,
    step: int,
    values_ms: Floats,
    level: int,
    states: Ints,
    advice_n: Ints,
) -> Floats:
    """Return the values of each action [n, a] once advice was given in some states.

    The advised action leads to the levels after a match, all others to those after a refusal.
    ``values_ms`` are the values at the next step on each level.
    """
    model, q_na = model_of(problem), np.empty((states.size, problem.n_actions))
    action_values(model, step, _after(problem, values_ms, level, 2), states, q_na)
    if problem.memory is not None:
        matched_na = np.empty_like(q_na)
        action_values(model, step, _after(problem, values_ms, level, 1), states, matched_na)
        rows = np.arange(states.size)
        q_na[rows, advice_n] = matched_na[rows, advice_n]
    return q_na


def _after(problem: AdviceProblem, values_ms: Floats, level: int, what: int) -> Floats:
    """Return the values [s] at the next step, expected over the level that follows."""
    if problem.memory is None:
        values_s: Floats = values_ms[0]
        return values_s
    chance_m = problem.memory.after[what, level]
    possible = chance_m > 0.0
    values_s = chance_m[possible] @ values_ms[possible]
    return values_s


def nearest_advice(gain_a: Floats, price_a: Floats, permitted_a: Bools) -> int:
    """Return the advice whose gain exceeds its price by most, or falls short of it by least."""
    affordable = permitted_a & (price_a < np.inf)
    if not affordable.any():
        possible = np.flatnonzero(permitted_a)  # their gains may all be −∞
        return int(possible[gain_a[possible].argmax()])
    possible = np.flatnonzero(affordable)
    return int(possible[(gain_a[possible] - price_a[possible]).argmax()])


def _gains(
    problem: AdviceProblem, step: int, states: Ints | int, q: Floats
) -> tuple[Floats, Floats]:
    """Return advantage and gain for the action values ``q`` of some states."""
    allowed = problem.mdp.allowed[step, states]
    advantage = np.where(allowed, advantages(problem.policy[step, states], q), np.nan)
    return advantage, np.where(allowed, gain_of(problem.lift[step, states], advantage), 0.0)
