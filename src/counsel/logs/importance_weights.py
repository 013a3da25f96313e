"""Importance weights: how much likelier a policy makes the advice of a logged episode.

The ratio of a decision is the probability of its advice (or silence) under the policy, given the
advice before it, over its probability in the log. The weight of an episode up to a step is the
product of the ratios so far. Under a hard budget the pieces left, each counted by its cost, are
part of the state; a policy without one has a single plane.

The effective sample size says how many episodes' worth of evidence is left. By the weights W of
complete episodes it is (Σ W)² / Σ W². Weights of many steps multiply, so it shrinks fast with the
horizon. If a few rare episodes should carry most of the weight and none of them happened to occur,
the weights alone look better than they are; so n / E W² is computed in the model too,

    E W² = Σ_s start(s) u_0(s),   u_h(s) = Σ_b e(b | s)² / μ(b | s) Σ_t p^M(t | s, b) u_{h+1}(t)

for a policy e and a log that gives advice b with probability μ, and the smaller of the two counts.
(On the ward, with silence in a crisis once in ten times, intervals for "never advise" covered 48 %
of the time at a sample of 168 by weights alone; the model puts it below 1.)
"""

import numpy as np

from counsel._arrays import Floats, Ints, one_type
from counsel.logs.decisions import Decisions
from counsel.model.human import advantages, gain_of
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.planning._backward_kernels import Model, action_values
from counsel.planning.prepared_problem import model_of


def logged_chances(rows: Decisions, problem: AdviceProblem) -> tuple[Floats, bool]:
    """Return the probability of the logged advice, and whether it is recorded.

    Unless every decision records it, it is estimated as a share by state and step.
    """
    if rows.recorded.size and not np.isnan(rows.recorded).any():
        return rows.recorded, True
    S, B = problem.n_states, problem.n_actions + 1
    cell = rows.place * S + rows.state
    of = np.bincount(cell, minlength=rows.horizon * S)
    times = np.bincount(cell * B + rows.advice, minlength=rows.horizon * S * B)
    return times[cell * B + rows.advice] / np.maximum(of[cell], 1), False


def policy_chances(policy: Policy, rows: Decisions) -> Floats:
    """Return the probability of the logged advice under a policy, given the advice before it."""
    plane = _planes_of(policy, rows)
    chance = np.empty(rows.place.size)
    for h in range(rows.horizon):
        here = np.flatnonzero(rows.place == h)
        chance[here] = _advice_chances(policy, h)[plane[here], rows.state[here], rows.advice[here]]
    if policy.budget is not None:
        chance[rows.earlier > policy.budget] = 0.0
    return chance


def importance_weights(policy: Policy, rows: Decisions, chance: Floats) -> Floats:
    """Return the weight of each episode up to each step [episode, h]."""
    weight: Floats = np.ones((rows.n_episodes, rows.horizon))
    weight[rows.episode, rows.place] = policy_chances(policy, rows) / chance
    np.cumprod(weight, axis=1, out=weight)
    return weight


def effective_sample_size(
    weight: Floats, policy: Policy, problem: AdviceProblem, rows: Decisions, chance: Floats
) -> float:
    """Return the effective sample size, in episodes; 0 if no episode has a weight.

    ``weight`` is [episode, h], ``chance`` the probability of each decision's advice in the log.
    """
    final = weight[:, -1]
    if not final.any():
        return 0.0
    expected = rows.n_episodes / second_moment(policy, problem, rows, chance)
    return min(float(final.sum() ** 2 / (final**2).sum()), expected)


def second_moment(policy: Policy, problem: AdviceProblem, rows: Decisions, chance: Floats) -> float:
    """Return E W² in the model; advice that was never given where it is needed counts once."""
    H, S, B = problem.horizon, problem.n_states, problem.n_actions + 1
    cell = (rows.place * S + rows.state) * B + rows.advice
    times = np.bincount(cell, minlength=H * S * B)
    likely = np.bincount(cell, chance, H * S * B) / np.maximum(times, 1)
    visits = times.reshape(H, S, B).sum(axis=2, keepdims=True)
    mu = np.maximum(likely.reshape(H, S, B), 1.0 / np.maximum(visits, 1.0))
    model = _model(problem)
    nothing = np.zeros_like(model.reward_lsa)  # weights earn no reward
    model = one_type(model._replace(reward_lsa=nothing))
    u_ks = np.ones((len(policy.planes), S))
    for h in range(H - 1, -1, -1):
        q_ksb = _ahead(problem, model, policy, h, u_ks)
        u_ks = (_advice_chances(policy, h) ** 2 / mu[h] * q_ksb).sum(axis=2)
        u_ks[:, problem.mdp.over[h]] = 1.0
    return float(problem.mdp.start @ u_ks[-1])


def policy_values(problem: AdviceProblem, policy: Policy, rows: Decisions) -> tuple[Floats, Floats]:
    """Return Q(state, advice) and V(state) of each decision under the policy, in the model."""
    model, plane = _model(problem), _planes_of(policy, rows)
    q, v = np.empty(rows.place.size), np.empty(rows.place.size)
    v_ks = np.zeros((len(policy.planes), problem.n_states))
    for h in range(problem.horizon - 1, -1, -1):
        q_ksb = _ahead(problem, model, policy, h, v_ks)
        v_ks = (_advice_chances(policy, h) * q_ksb).sum(axis=2)
        here = np.flatnonzero(rows.place == h)
        k, s = plane[here], rows.state[here]
        q[here], v[here] = q_ksb[k, s, rows.advice[here]], v_ks[k, s]
    return q, v


def _model(problem: AdviceProblem) -> Model:
    return model_of(problem)


def _planes_of(policy: Policy, rows: Decisions) -> Ints:
    """Return the plane of the policy that applies at each decision."""
    plane: Ints = np.maximum(len(policy.planes) - 1 - rows.earlier, 0)
    return plane


def _advice_chances(policy: Policy, h: int) -> Floats:
    """Return the probability of each advice at a step [plane, s, b], silence last."""
    chance_ksb: Floats = np.eye(policy.n_actions + 1)[policy.planes[:, h]]
    k, step, s = np.unravel_index(policy.random.cell_of_entry, policy.planes.shape)
    here = step == h
    chance_ksb[k[here], s[here]] = 0.0
    chance_ksb[k[here], s[here], policy.random.advice[here]] = policy.random.probability[here]
    return chance_ksb


def _ahead(
    problem: AdviceProblem, model: Model, policy: Policy, h: int, values_ks: Floats
) -> Floats:
    """Return r^M(s, b) + Σ_t p^M(t | s, b) values(t) as [plane, s, b], silence last."""
    A, states = problem.n_actions, np.arange(problem.n_states)
    q_ksb = np.empty((len(values_ks), states.size, A + 1))
    q_sa = np.empty((states.size, A))
    for k, values in enumerate(values_ks):
        action_values(model, h, values, states, q_sa)
        known = np.where(np.isinf(q_sa), 0.0, q_sa)
        alone = (problem.policy[h] * known).sum(axis=1, keepdims=True)
        gain = gain_of(problem.lift[h], advantages(problem.policy[h], known))
        q_ksb[k, :, :A], q_ksb[k, :, A:] = alone + gain, alone
    if policy.budget is not None:
        # Advice that costs c leads from k to k − c; with less than c left it is not possible.
        left_k = np.arange(len(values_ks))
        after = left_k[:, None, None] - problem.cost[h].astype(np.int64)
        later = np.take_along_axis(q_ksb[:, :, :A], np.maximum(after, 0), axis=0)
        q_ksb[:, :, :A] = np.where(after >= 0, later, 0.0)
    return q_ksb
