"""Importance weights: how much likelier a policy makes the advice of a logged episode.

The ratio of a decision is the probability of its advice (or silence) under the policy, given the
advice before it, over its probability in the log. The weight of an episode up to a step is the
product of the ratios so far. Under a hard budget the pieces left, each counted by its cost, are
part of the state; a policy without one has a single plane. If the person has a memory, so is its
level, which follows from what was said and done; where a memory draws its level, the policy's
probabilities are averaged over the levels that the episode so far leaves possible
(``level_beliefs.py``).

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
from counsel.logs.level_beliefs import (
    advice_chances,
    follow_levels,
    level_chances,
    pieces_left,
)
from counsel.logs.recorded_probabilities import find_miscalibration
from counsel.model.advantage import advantages, gain_of
from counsel.model.memory import Memory
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.planning._backward_kernels import Model, action_values
from counsel.planning.gains import level_advantages
from counsel.planning.prepared_problem import model_of

UNITS = ("decision", "episode", "person")
"""What a log's advice was assigned to: each decision, or all decisions of an episode or person."""

ROUNDS = 200
"""The most rounds in which the shares of the arms are estimated."""


def logged_chances(rows: Decisions, problem: AdviceProblem) -> tuple[Floats, bool]:
    """Return the probability of the logged advice, and whether it is recorded.

    Unless every decision records it, and in accordance with what was said, it is estimated as a
    share by state and step.
    """
    is_recorded = rows.recorded.size and not np.isnan(rows.recorded).any()
    if is_recorded and find_miscalibration(rows, problem.n_actions) is None:
        return rows.recorded, True
    return _shares(rows, problem, np.ones(rows.place.size)), False


def _shares(rows: Decisions, problem: AdviceProblem, weight: Floats) -> Floats:
    """Return the weighted share of the logged advice in its state and step."""
    S, B = problem.n_states, problem.n_actions + 1
    cell = rows.place * S + rows.state
    of = np.bincount(cell, weight, rows.horizon * S)
    times = np.bincount(cell * B + rows.advice, weight, rows.horizon * S * B)
    share: Floats = times[cell * B + rows.advice] / np.maximum(of[cell], 1e-300)
    return share


def logged_paths(
    rows: Decisions, problem: AdviceProblem, unit: str = "decision"
) -> tuple[Floats, bool]:
    """Return the probability of an episode's advice up to each step [episode, h].

    Also return whether it is recorded. If advice was assigned to decisions, it is a product over
    decisions. If it was assigned to episodes or people, some of them form an *arm* without any
    advice: then a path is as likely as in both arms together, and the share of the silent arm and
    the chances in the other are estimated in turns, since an episode without advice may belong to
    either.
    """
    if unit == "decision":
        chance, is_recorded = logged_chances(rows, problem)
        return _product(rows, chance), is_recorded
    arm = np.arange(rows.n_episodes) if unit == "episode" else rows.cluster
    spoken = rows.advice < problem.n_actions
    arms = int(arm.max()) + 1
    silent = np.bincount(arm[rows.episode], spoken, arms) == 0
    mine = silent.astype(np.float64)  # how likely each belongs to the silent arm
    for _ in range(ROUNDS):
        share = mine.mean()
        chance = _shares(rows, problem, 1.0 - mine[arm[rows.episode]])
        log = np.log(np.maximum(chance, 1e-300))
        other = (1.0 - share) * np.exp(np.bincount(arm[rows.episode], log, arms))
        before, mine = mine, np.where(silent, share / np.maximum(share + other, 1e-300), 0.0)
        if np.abs(mine - before).max() < 1e-9:
            break
    quiet = _product(rows, np.where(spoken, 0.0, 1.0))
    paths: Floats = mine.mean() * quiet + (1.0 - mine.mean()) * _product(rows, chance)
    return paths, False


def _product(rows: Decisions, chance: Floats) -> Floats:
    """Return products of a number of each decision up to each step [episode, h]."""
    path: Floats = np.ones((rows.n_episodes, rows.horizon))
    path[rows.episode, rows.place] = chance
    np.cumprod(path, axis=1, out=path)
    return path


def censoring_weights(rows: Decisions) -> Floats:
    """Return what each episode counts at each step for those that were cut before [episode, h].

    An episode that is still observed stands for all that would have come so far: its weight is one
    over the chance to be observed, the product over steps of the share of episodes that went on of
    those not cut. An episode that has ended keeps the weight of its last step, one that was cut has
    none. Cuts may depend on the step and on nothing else.
    """
    H, last = rows.horizon, rows.last
    at_risk = np.bincount(rows.place, minlength=H).astype(np.float64)
    at_risk -= np.bincount(last[rows.complete], minlength=H)  # what ends cannot be cut
    cuts = np.bincount(last[~rows.complete], minlength=H)
    kept = 1.0 - np.divide(cuts, at_risk, out=np.zeros(H), where=at_risk > 0.0)
    observed = np.concatenate(([1.0], np.cumprod(kept[:-1])))
    step = np.arange(H)
    weight: Floats = 1.0 / np.maximum(observed, 1e-300)[np.minimum(step, last[:, None])]
    return np.where(rows.complete[:, None] | (step <= last[:, None]), weight, 0.0)


def policy_chances(policy: Policy, rows: Decisions, memory: Memory | None = None) -> Floats:
    """Return the probability of the logged advice under a policy, given the episode before it."""
    plane = _planes_of(policy, rows)
    chance = np.empty(rows.place.size)
    if policy.levels is not None and memory is not None:
        chance = follow_levels(policy, rows, memory).chance
        if policy.budget is not None:
            chance[rows.earlier > policy.budget] = 0.0
        return chance
    for h in range(rows.horizon):
        here = np.flatnonzero(rows.place == h)
        chance[here] = advice_chances(policy, h)[plane[here], rows.state[here], rows.advice[here]]
    if policy.budget is not None:
        chance[rows.earlier > policy.budget] = 0.0
    return chance


def importance_weights(
    policy: Policy, rows: Decisions, paths: Floats, memory: Memory | None = None
) -> Floats:
    """Return the weight of each episode up to each step [episode, h].

    ``paths`` is the result of ``logged_paths``, ``memory`` the person's.
    """
    weight: Floats = _product(rows, policy_chances(policy, rows, memory)) / paths
    return weight


def effective_sample_size(
    weight: Floats, policy: Policy, problem: AdviceProblem, rows: Decisions, chance: Floats | None
) -> float:
    """Return the effective sample size, in episodes; 0 if no episode has a weight.

    ``weight`` is [episode, h], ``chance`` the probability of each decision's advice in the log,
    None if advice was not assigned to decisions: then the model does not say what to expect.
    """
    final = weight[:, -1]
    if not final.any():
        return 0.0
    found = float(final.sum() ** 2 / (final**2).sum())
    if chance is None:
        return found
    return min(found, rows.n_episodes / second_moment(policy, problem, rows, chance))


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
    K = len(policy.planes) // (policy.levels or 1)
    u_kms = np.ones((K, problem.n_levels, S))
    for h in range(H - 1, -1, -1):
        q_kmsb = _ahead(problem, model, policy, h, u_kms)
        u_kms = (level_chances(policy, h, problem.n_levels) ** 2 / mu[h] * q_kmsb).sum(axis=3)
        u_kms[..., problem.mdp.over[h]] = 1.0
    return float(problem.mdp.start @ u_kms[-1, problem.level_of(None)])


def policy_values(problem: AdviceProblem, policy: Policy, rows: Decisions) -> tuple[Floats, Floats]:
    """Return Q(state, advice) and V(state) of each decision under the policy, in the model."""
    model, left = _model(problem), pieces_left(policy, rows)
    q, v = np.empty(rows.place.size), np.empty(rows.place.size)
    K = len(policy.planes) // (policy.levels or 1)
    beliefs = None
    if problem.memory is not None:
        beliefs = follow_levels(policy, rows, problem.memory)
    v_kms = np.zeros((K, problem.n_levels, problem.n_states))
    for h in range(problem.horizon - 1, -1, -1):
        q_kmsb = _ahead(problem, model, policy, h, v_kms)
        v_kms = (level_chances(policy, h, problem.n_levels) * q_kmsb).sum(axis=3)
        here = np.flatnonzero(rows.place == h)
        k, s, b = left[here], rows.state[here], rows.advice[here]
        if beliefs is None:
            q[here], v[here] = q_kmsb[k, 0, s, b], v_kms[k, 0, s]
        else:
            q[here] = (beliefs.after[here] * q_kmsb[k, :, s, b]).sum(axis=1)
            v[here] = (beliefs.before[here] * v_kms[k, :, s]).sum(axis=1)
    return q, v


def _model(problem: AdviceProblem) -> Model:
    return model_of(problem)


def _planes_of(policy: Policy, rows: Decisions) -> Ints:
    """Return the plane of the policy that applies at each decision."""
    return pieces_left(policy, rows) * (policy.levels or 1)


def _ahead(
    problem: AdviceProblem, model: Model, policy: Policy, h: int, values_kms: Floats
) -> Floats:
    """Return r^M(s, b) + Σ_t p^M(t | s, b) values(t) as [pieces left, m, s, b], silence last."""
    A, K = problem.n_actions, len(values_kms)
    q_kmsb = np.empty((*values_kms.shape, A + 1))
    for k, values_ms in enumerate(values_kms):
        if problem.memory is None:
            q_kmsb[k, 0] = _values_of_advice(problem, model, h, values_ms[0])
        else:
            q_kmsb[k] = _values_with_memory(problem, model, h, values_ms)
    if policy.budget is not None:
        # Advice that costs c leads from k to k − c; with less than c left it is not possible.
        after = np.arange(K)[:, None, None, None] - problem.cost[h].astype(np.int64)
        after = np.broadcast_to(after, (*values_kms.shape, A))
        later = np.take_along_axis(q_kmsb[..., :A], np.maximum(after, 0), axis=0)
        q_kmsb[..., :A] = np.where(after >= 0, later, 0.0)
    return q_kmsb


def _values_of_advice(problem: AdviceProblem, model: Model, h: int, values: Floats) -> Floats:
    """Return the value of each advice [s, b] without a memory, silence last."""
    q_sa = np.empty((problem.n_states, problem.n_actions))
    action_values(model, h, values, np.arange(problem.n_states), q_sa)
    known = np.where(np.isinf(q_sa), 0.0, q_sa)
    alone = (problem.policy[h] * known).sum(axis=1, keepdims=True)
    gain = gain_of(problem.lift[h], advantages(problem.policy[h], known))
    return np.concatenate((alone + gain, alone), axis=1)


def _values_with_memory(problem: AdviceProblem, model: Model, h: int, values_ms: Floats) -> Floats:
    """Return the value of each advice [m, s, b] at each level of a memory, silence last.

    What follows depends on the level after silence, a match or a refusal. With Q⁺ the value of a
    match, advice is worth Q⁺ − (1 − λ) advantage.
    """
    memory, own_sa = problem.memory, problem.policy[h]
    if memory is None:
        raise TypeError("the problem has no memory")
    states, q_sa = np.arange(problem.n_states), np.empty(own_sa.shape)
    q_msb = np.empty((*values_ms.shape, problem.n_actions + 1))
    for m, lift_sa in enumerate(problem.level_lift[:, h]):
        q = []
        for chance_m in memory.after[:, m]:
            action_values(model, h, chance_m @ values_ms, states, q_sa)
            q.append(np.where(np.isinf(q_sa), 0.0, q_sa))
        silent, matched, refused = q
        q_msb[m, :, :-1] = matched - (1.0 - lift_sa) * level_advantages(own_sa, matched, refused)
        q_msb[m, :, -1] = (own_sa * silent).sum(axis=1)
    return q_msb


def values_of_rule(problem: AdviceProblem, policy: Policy) -> tuple[Floats, Floats]:
    """Return V [h, s] and Q [h, s, a] of a policy in the model; V has one row after the last."""
    model, states = _model(problem), np.arange(problem.n_states)
    v_hs = np.zeros((problem.horizon + 1, states.size))
    q_hsa = np.zeros((problem.horizon, states.size, problem.n_actions))
    for h in range(problem.horizon - 1, -1, -1):
        action_values(model, h, v_hs[h + 1], states, q_hsa[h])
        q_hsb = _ahead(problem, model, policy, h, v_hs[h + 1][None, None])[0, 0]
        v_hs[h] = (advice_chances(policy, h)[0] * q_hsb).sum(axis=1)
    return v_hs, np.where(np.isinf(q_hsa), 0.0, q_hsa)
