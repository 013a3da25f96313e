"""Advantage and gain of every piece of advice under the values of a plan.

advantage_h(s, b) = Q_h(s, b) − Σ_a π_h(a | s) Q_h(s, a),     gain = lift × advantage

For a person with a memory, speaking also changes how they listen later: gain = lift × advantage −
burden (``level_planner.py``).

Explanations, the service, the report and the playground use these functions. Compiled loops use
``_gain_kernels.py``.
"""

from typing import NamedTuple

import numpy as np

from counsel._arrays import Bools, Floats, Ints, one_type
from counsel.model.advantage import advantages, gain_of
from counsel.model.problem import AdviceProblem
from counsel.planning._backward_kernels import action_values
from counsel.planning._cell_gain_kernels import fill_cell_gains
from counsel.planning._choice_kernels import NO_MASS
from counsel.planning._level_kernels import Levels
from counsel.planning.plan import Plan
from counsel.planning.prepared_problem import model_of, prepare


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
    H, S, A = problem.n_steps, problem.n_states, problem.n_actions
    model = model_of(problem)
    advantage, gain = np.empty((H, S, A)), np.empty((H, S, A))
    states, q_sa = np.arange(S), np.empty((S, A))
    for h in range(H):
        action_values(model, h, values[h + 1], states, q_sa)
        advantage[h], gain[h] = _gains(problem, h, states, q_sa)
    return advantage, gain


def level_gains(problem: AdviceProblem, values_mhs: Floats, level: int) -> tuple[Floats, Floats]:
    """Return advantages and gains [h, s, a] for a person with a memory who is on one level.

    ``values_mhs`` have one row after the last step; they are those after the step, so under a hard
    budget those of what is then left. The burden is taken off the gains; NaN and 0 for actions that
    are not allowed.
    """
    H, S, A = problem.n_steps, problem.n_states, problem.n_actions
    model, states = model_of(problem), np.arange(S)
    advantage, gain, q_csa = np.empty((H, S, A)), np.empty((H, S, A)), np.empty((3, S, A))
    for h in range(H):
        for c in range(3):
            values_s = _after(problem, values_mhs[:, h + 1], level, c)
            action_values(model, h, values_s, states, q_csa[c])
        own_sa = problem.policy[h]
        silent, matched, refused = np.where(np.isinf(q_csa), 0.0, q_csa)
        advantage[h] = level_advantages(own_sa, matched, refused)
        alone_s = (own_sa * silent).sum(axis=1)
        burden = alone_s[:, None] - (matched - advantage[h])
        gain[h] = gain_of(problem.level_lift[level, h], advantage[h]) - burden
    barred = ~np.broadcast_to(problem.mdp.allowed, gain.shape)
    advantage[barred], gain[barred] = np.nan, 0.0
    return advantage, gain


def level_advantages(own_sa: Floats, matched_sa: Floats, refused_sa: Floats) -> Floats:
    """Return Σ_{a≠b} π(a) (Q⁺(b) − Q⁻(a)) [s, b], for values after a match and after a refusal.

    It is the value of a match less that of the person's own choice once b was said; as a sum of
    differences it keeps its digits where the person is almost certain.
    """
    advantage_sb = np.empty(own_sa.shape)
    for b in range(own_sa.shape[1]):
        apart_sa = own_sa * (matched_sa[:, b, None] - refused_sa)
        apart_sa[:, b] = 0.0
        advantage_sb[:, b] = apart_sa.sum(axis=1)
    return advantage_sb


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
    m, prepared = problem.level_of(level), prepare(problem)
    left = plan.policy.plane_of(pieces_left, m) // (plan.policy.levels or 1)
    levels = Levels(*prepared.levels[:-1], is_hard=pieces_left is not None)
    (values_phs,), cells_4a = one_type((plan.value_planes,)), np.empty((4, problem.n_actions))
    place = (step, state, m, left)
    fill_cell_gains(prepared.whole.model, levels, values_phs, *place, cells_4a)
    found = CellGains(*cells_4a)
    if pieces_left is None:
        found = found._replace(price=plan.price_at(step) * problem.cost[step, state])
    if not np.isfinite(found.burden).all():
        values_kms = values_phs[:, step + 1].reshape(-1, problem.n_levels, problem.n_states)
        _value_infinite_burdens(problem, found, place, values_kms)
    return found


def _value_infinite_burdens(
    problem: AdviceProblem, found: CellGains, place: tuple[int, int, int, int], values_kms: Floats
) -> None:
    """Set the gain to the value of the advice minus that of silence where the burden is infinite.

    ``place`` is the step, the state, the level, and what is left of a hard budget.
    """
    step, state, level, left = place
    own_a = problem.policy[step, state]
    for a in np.flatnonzero(~np.isfinite(found.burden)).tolist():
        after = left
        if len(values_kms) > 1:
            after = max(left - int(problem.cost[step, state, a]), 0)
        at_1 = (np.array([state]), np.array([a]))
        q_1a = np.empty((1, problem.n_actions))
        silent_s = _after(problem, values_kms[after], level, 0)
        action_values(model_of(problem), step, silent_s, at_1[0], q_1a)
        alone = _mean(own_a, q_1a[0])
        q_a = spoken_values(problem, step, values_kms[after], level, *at_1)[0]
        advised = _advised(problem, step, state, a, level, q_a)
        found.gain[a] = -np.inf if advised == -np.inf else advised - alone


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


def nearest_advice(gain_a: Floats, price_a: Floats, permitted_a: Bools | None = None) -> int:
    """Return the advice whose gain exceeds its price by most, or falls short of it by least."""
    if permitted_a is None:
        permitted_a = np.ones(gain_a.size, dtype=np.bool_)
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
