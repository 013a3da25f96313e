"""Importance weights: how much likelier a policy makes the advice of a logged episode.

The ratio of a decision is the probability of its advice (or silence) under the policy, given the
advice before it, over its probability in the log. The weight of an episode up to a step is the
product of the ratios so far. Under a hard budget the pieces left are part of the state; a policy
without one has a single plane.

The moments of the weights and the values of the policy in a model, which the effective sample size
and the doubly robust estimate need, come from one backward pass each.
"""

import numpy as np

from counsel._arrays import Floats, one_type
from counsel.logs.decisions import Decisions
from counsel.model.human import advantages
from counsel.model.policy import HardPolicy, Policy
from counsel.model.problem import AdviceProblem
from counsel.planning._backward_kernels import Model, action_values
from counsel.planning.advice_rules import Rules
from counsel.planning.backward import model_of


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


def policy_chances(policy: Policy | HardPolicy, rows: Decisions) -> Floats:
    """Return the probability of the logged advice under a policy, given the advice before it."""
    if isinstance(policy, HardPolicy):
        left = policy.budget - rows.earlier
        said = policy.advice[np.maximum(left, 0), rows.place, rows.state]
        agrees: Floats = ((left >= 0) & (said == rows.advice)).astype(np.float64)
        return agrees
    chance: Floats = policy.probabilities()[rows.place, rows.state, rows.advice]
    return chance


def importance_weights(policy: Policy | HardPolicy, rows: Decisions, chance: Floats) -> Floats:
    """Return the weight of each episode up to each step [episode, h]."""
    weight: Floats = np.ones((rows.n_episodes, rows.horizon))
    weight[rows.episode, rows.place] = policy_chances(policy, rows) / chance
    np.cumprod(weight, axis=1, out=weight)
    return weight


def second_moment(
    policy: Policy | HardPolicy, problem: AdviceProblem, rows: Decisions, chance: Floats
) -> float:
    """Return E W² in the model; advice that was never given where it is needed counts once.

    u_h(s) = Σ_b e(b | s)² / μ(b | s) Σ_t p^M(t | s, b) u_{h+1}(t), 1 where no decision is left.
    """
    H, S, B = problem.horizon, problem.n_states, problem.n_actions + 1
    cell = (rows.place * S + rows.state) * B + rows.advice
    times = np.bincount(cell, minlength=H * S * B)
    likely = np.bincount(cell, chance, H * S * B) / np.maximum(times, 1)
    visits = times.reshape(H, S, B).sum(axis=2, keepdims=True)
    mu = np.maximum(likely.reshape(H, S, B), 1.0 / np.maximum(visits, 1.0))
    model = _model(problem)
    nothing = np.zeros_like(model.reward_lsa)  # weights earn no reward
    model = one_type(model._replace(reward_lsa=nothing))
    u_ks = np.ones((_planes(policy), S))
    for h in range(H - 1, -1, -1):
        q_ksb = _ahead(problem, model, policy, h, u_ks)
        u_ks = (_said(policy, h) ** 2 / mu[h] * q_ksb).sum(axis=2)
        u_ks[:, problem.mdp.over[h]] = 1.0
    return float(problem.mdp.start @ u_ks[-1])


def policy_values(
    problem: AdviceProblem, policy: Policy | HardPolicy, rows: Decisions
) -> tuple[Floats, Floats]:
    """Return Q(state, advice) and V(state) of each decision under the policy, in the model."""
    K, model = _planes(policy), _model(problem)
    left = np.maximum(K - 1 - rows.earlier, 0) if K > 1 else np.zeros(rows.place.size, np.int64)
    q, v = np.empty(rows.place.size), np.empty(rows.place.size)
    v_ks = np.zeros((K, problem.n_states))
    for h in range(problem.horizon - 1, -1, -1):
        q_ksb = _ahead(problem, model, policy, h, v_ks)
        v_ks = (_said(policy, h) * q_ksb).sum(axis=2)
        here = np.flatnonzero(rows.place == h)
        k, s = left[here], rows.state[here]
        q[here], v[here] = q_ksb[k, s, rows.advice[here]], v_ks[k, s]
    return q, v


def _model(problem: AdviceProblem) -> Model:
    rules = Rules.read(problem, forbidden=None, required=None, allow_reverse=True)
    return model_of(problem, rules)


def _planes(policy: Policy | HardPolicy) -> int:
    """Return the number of planes: one per number of pieces left."""
    return policy.budget + 1 if isinstance(policy, HardPolicy) else 1


def _said(policy: Policy | HardPolicy, h: int) -> Floats:
    """Return the probability of each advice at a step [pieces left, s, b], silence last."""
    if isinstance(policy, HardPolicy):
        chosen: Floats = np.eye(policy.n_actions + 1)[policy.advice[:, h]]
        return chosen
    said = np.eye(policy.n_actions + 1)[policy.advice[h]]
    S = policy.advice.shape[1]
    for s in np.unique(policy.random.cell[policy.random.cell // S == h] % S):
        said[s] = 0.0
        for advice, chance in policy.at(h, int(s)).items():
            said[s, advice] = chance
    table: Floats = said[None]
    return table


def _ahead(
    problem: AdviceProblem, model: Model, policy: Policy | HardPolicy, h: int, values_ks: Floats
) -> Floats:
    """Return r^M(s, b) + Σ_t p^M(t | s, b) values(t) as [pieces left, s, b], silence last."""
    A, states = problem.n_actions, np.arange(problem.n_states)
    q_ksb = np.empty((len(values_ks), states.size, A + 1))
    q_sa = np.empty((states.size, A))
    for k, values in enumerate(values_ks):
        action_values(model, h, values, states, q_sa)
        known = np.where(np.isinf(q_sa), 0.0, q_sa)
        alone = (problem.policy[h] * known).sum(axis=1, keepdims=True)
        gain = problem.lift[h] * advantages(problem.policy[h], known)
        q_ksb[k, :, :A], q_ksb[k, :, A:] = alone + gain, alone
    if isinstance(policy, HardPolicy):
        # A piece of advice leads to one piece less; with none left no advice is possible.
        q_ksb[1:, :, :A] = q_ksb[:-1, :, :A].copy()
        q_ksb[0, :, :A] = 0.0
    return q_ksb
