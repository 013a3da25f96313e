"""Compiled loops of planning, which run backwards from the last step.

Two values are carried together, in the last axis of every array named ``…2``: the value to maximise
and the value that breaks ties. Each is a weight times reward minus a cost times pieces of advice
(``Aim``). Kernels trust their input: ``counsel.model`` has checked it.
"""

from typing import NamedTuple

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel._jit import as_int64, inlined, kernel
from counsel.model._kernels import layer_of
from counsel.planning._gain_kernels import gain

Pair = tuple[float, float]

TIE = 1e-12
"""Values within this share of their size are tied: rounding must not decide the advice."""

NO_MASS = 1e-12
"""An adherence below this share of the habit is rounding: the advice is never matched."""


class Model(NamedTuple):
    """All arrays of a problem. ``l`` is a layer: one if stationary, else one per step.

    ``pull`` is the lift of advice that is permitted and moves the person, and NaN elsewhere: no
    comparison ever picks a NaN.
    """

    row_lsa: Ints
    first_row_l: Ints
    indptr: Ints
    next_state: Ints
    probability: Floats
    shared_l: Bools
    reward_lsa: Floats
    policy_lsa: Floats
    lift_lsa: Floats
    pull_lsa: Floats
    permitted_lsa: Bools
    required_ls: Bools


class Aim(NamedTuple):
    """Maximise weight0 · reward − cost0 · pieces; break ties by weight1 · reward − cost1 · pieces.

    ``size0`` and ``size1`` are added to the size of the values in a cell when ties are detected:
    values that cancel do not show what earlier sums have lost to rounding. No value exceeds
    ``most0``.
    """

    weight0: float
    cost0: float
    size0: float
    most0: float
    weight1: float
    cost1: float
    size1: float


StepTables = tuple[Ints, Floats, Floats, Floats, Bools, Bools]


@inlined
def step_tables(model: Model, h: int) -> StepTables:
    """Return the rows, rewards, habit and lift [s, a], permitted advice and required cells."""
    return (
        model.row_lsa[layer_of(model.row_lsa.shape[0], h)],
        model.reward_lsa[layer_of(model.reward_lsa.shape[0], h)],
        model.policy_lsa[layer_of(model.policy_lsa.shape[0], h)],
        model.lift_lsa[layer_of(model.lift_lsa.shape[0], h)],
        model.permitted_lsa[layer_of(model.permitted_lsa.shape[0], h)],
        model.required_ls[layer_of(model.required_ls.shape[0], h)],
    )


@inlined
def expect_row(
    next_state: Ints, probability: Floats, begin: int, end: int, V_s2: Floats
) -> tuple[float, float]:
    """Return Σ_t p(t) V(t) of one row for both values."""
    t, p = np.uint32(next_state[begin]), probability[begin]
    e0, e1 = p * V_s2[t, 0], p * V_s2[t, 1]
    for j in range(begin + 1, end):
        t, p = np.uint32(next_state[j]), probability[j]
        e0 += p * V_s2[t, 0]
        e1 += p * V_s2[t, 1]
    return e0, e1


@kernel
def expect(model: Model, h: int, row: int, end: int, V_s2: Floats, E_r2: Floats) -> None:
    """Fill the expectations of rows ``row`` to ``end``; E starts at the first row of the layer."""
    offset = model.first_row_l[layer_of(model.first_row_l.size - 1, h)]
    indptr, next_state, probability = model.indptr, model.next_state, model.probability
    for i in range(row, end):
        e0, e1 = expect_row(next_state, probability, indptr[i], indptr[i + 1], V_s2)
        E_r2[i - offset, 0], E_r2[i - offset, 1] = e0, e1


@kernel
def advised(
    policy_sa: Floats, s: int, a: int, lift: float, q_2a: Floats, c: int, alone: float
) -> float:
    """Return the value of advising ``a``, also if some action is infeasible (−∞).

    Then the law is summed in full, so that an infeasible action of probability 0 does not count.
    """
    if alone > -np.inf and q_2a[c, a] > -np.inf:
        return alone + gain(policy_sa, s, a, lift, q_2a, c, alone)
    total, theta = 0.0, policy_sa[s, a]
    for b in range(q_2a.shape[1]):
        if b != a and policy_sa[s, b] > 0.0:
            theta += lift * policy_sa[s, b]
            if lift < 1.0:
                total += (1.0 - lift) * policy_sa[s, b] * q_2a[c, b]
    if theta > NO_MASS * policy_sa[s, a]:
        total += theta * q_2a[c, a]
    return total


@kernel
def decide(
    tables: tuple[Floats, Floats, Bools], s: int, q_2a: Floats, quiet: Pair, alone: Pair, aim: Aim
) -> tuple[int, float, float]:
    """Return the best advice in one cell and its two values.

    ``tables`` are habit, lift and permitted advice. ``quiet`` is the value of silence (−∞ where
    advice is required), ``alone`` the person's own value after a piece was spent. Among the advice
    whose first value ties with the best, take the best second value, then silence, then the lowest
    index.
    """
    A = q_2a.shape[1]
    policy_sa, lift_sa, permitted_sa = tables
    top, size0, size1 = quiet[0], aim.size0, aim.size1
    for a in range(A):
        if policy_sa[s, a] > 0.0 or permitted_sa[s, a]:
            if q_2a[0, a] > -np.inf:
                size0 += abs(q_2a[0, a])
                size1 += abs(q_2a[1, a])
            if permitted_sa[s, a]:
                value = advised(policy_sa, s, a, lift_sa[s, a], q_2a, 0, alone[0]) - aim.cost0
                top = max(top, value)
    if top == -np.inf:
        return A, top, quiet[1]
    tied = top - TIE * size0
    best, best0, best1 = A, quiet[0], quiet[1]
    if quiet[0] < tied:
        best0, best1 = -np.inf, -np.inf
    for a in range(A):
        if permitted_sa[s, a]:
            value = advised(policy_sa, s, a, lift_sa[s, a], q_2a, 0, alone[0]) - aim.cost0
            if value >= tied:
                second = advised(policy_sa, s, a, lift_sa[s, a], q_2a, 1, alone[1]) - aim.cost1
                if second > best1 + TIE * size1:
                    best, best0, best1 = a, value, second
    return best, best0, best1


@kernel
def break_tie(
    policy_sa: Floats, pull_sa: Floats, s: int, q_2a: Floats, alone: Pair, aim: Aim, top: float
) -> tuple[int, float, float]:
    """Choose between pieces of advice that may tie: return one and its two gains over silence."""
    A = q_2a.shape[1]
    size0, size1 = aim.size0, aim.size1
    for a in range(A):
        if policy_sa[s, a] > 0.0 or pull_sa[s, a] == pull_sa[s, a]:
            size0 += abs(q_2a[0, a])
            size1 += abs(q_2a[1, a])
    tied = top - TIE * size0
    best, best0, best1 = A, 0.0, 0.0 if tied <= 0.0 else -np.inf
    for a in range(A):
        pull = pull_sa[s, a]
        if pull == pull:
            net = gain(policy_sa, s, a, pull, q_2a, 0, alone[0]) - aim.cost0
            if net >= tied:
                second = gain(policy_sa, s, a, pull, q_2a, 1, alone[1]) - aim.cost1
                if second > best1 + TIE * size1:
                    best, best0, best1 = a, net, second
    return best, best0, best1


@kernel
def choose(
    model: Model,
    aim: Aim,
    h: int,
    states: tuple[int, int],
    next_s2: Floats,
    E_r2: Floats,
    out: tuple[Floats, Floats, Ints],
) -> None:
    """Choose the best advice in a run of states; ``out`` are both values, the first, and advice.

    If the layer shares its rows, their expectations are in ``E_r2``; otherwise they are computed
    here. The rule is that of ``decide`` with a shortcut for a clear winner: advice is compared by
    its gain over silence, and advice without lift is never worth a piece.
    """
    A, (out_s2, out_V_s, out_advice_s) = model.policy_lsa.shape[2], out
    row_sa, reward_sa, policy_sa, lift_sa, permitted_sa, required_s = step_tables(model, h)
    pull_sa = model.pull_lsa[layer_of(model.pull_lsa.shape[0], h)]
    n = layer_of(model.first_row_l.size - 1, h)
    offset, shared = model.first_row_l[n], model.shared_l[n]
    indptr, next_state, probability = model.indptr, model.next_state, model.probability
    weight0, cost0, weight1, cost1 = aim.weight0, aim.cost0, aim.weight1, aim.cost1
    near = TIE * (A + 1) * aim.most0
    q_2a = np.zeros((2, A))
    for s in range(states[0], states[1]):
        alone0, alone1 = 0.0, 0.0
        for a in range(A):
            i = row_sa[s, a]
            if i < 0:
                continue
            if shared:
                e0, e1 = E_r2[i - offset, 0], E_r2[i - offset, 1]
            else:
                e0, e1 = expect_row(next_state, probability, indptr[i], indptr[i + 1], next_s2)
            e0 += weight0 * reward_sa[s, a]
            e1 += weight1 * reward_sa[s, a]
            q_2a[0, a] = e0
            q_2a[1, a] = e1
            alone0 += policy_sa[s, a] * e0
            alone1 += policy_sa[s, a] * e1
        best, top, second, next_best = A, 0.0, 0.0, -np.inf
        if required_s[s]:
            tables, quiet = (policy_sa, lift_sa, permitted_sa), (-np.inf, alone1)
            best, value0, value1 = decide(tables, s, q_2a, quiet, (alone0, alone1), aim)
            top, second = value0 - alone0, value1 - alone1
        else:
            for a in range(A):
                pull = pull_sa[s, a]
                net = gain(policy_sa, s, a, pull, q_2a, 0, alone0) - cost0
                # Selections, not branches: the processor cannot predict which advice is best.
                better = net > top
                loser = top if better else net
                next_best = loser if loser > next_best else next_best
                best = a if better else best
                top = net if better else top
            if next_best >= top - near:
                alone = (alone0, alone1)
                best, top, second = break_tie(policy_sa, pull_sa, s, q_2a, alone, aim, top)
            elif best < A:
                second = gain(policy_sa, s, best, pull_sa[s, best], q_2a, 1, alone1) - cost1
        out_s2[s, 0] = alone0 + top
        out_s2[s, 1] = alone1 + second
        out_V_s[s] = alone0 + top
        out_advice_s[s] = best


@kernel
def choose_hard(
    model: Model,
    aim: Aim,
    h: int,
    quiet_r2: Floats,
    after_r2: Floats,
    pieces: int,
    out_s2: Floats,
    out_advice_s: Ints,
) -> None:
    """Choose the best advice in every state with ``pieces`` left.

    ``quiet_r2`` are the expectations after silence, ``after_r2`` those with one piece less. With no
    piece left there is only silence, and a cell that requires advice is infeasible (−∞).
    """
    A = model.policy_lsa.shape[2]
    row_sa, reward_sa, policy_sa, lift_sa, permitted_sa, required_s = step_tables(model, h)
    offset = model.first_row_l[layer_of(model.first_row_l.size - 1, h)]
    q_2a = np.zeros((2, A))
    for s in range(out_advice_s.size):
        quiet0, quiet1, alone0, alone1 = 0.0, 0.0, 0.0, 0.0
        for a in range(A):
            if row_sa[s, a] < 0:
                continue
            i, r, own = row_sa[s, a] - offset, reward_sa[s, a], policy_sa[s, a]
            if pieces > 0:
                q_2a[0, a] = aim.weight0 * r + after_r2[i, 0]
                q_2a[1, a] = aim.weight1 * r + after_r2[i, 1]
            if own > 0.0:
                quiet0 += own * (aim.weight0 * r + quiet_r2[i, 0])
                quiet1 += own * (aim.weight1 * r + quiet_r2[i, 1])
                alone0 += own * q_2a[0, a]
                alone1 += own * q_2a[1, a]
        if required_s[s]:
            quiet0 = -np.inf
        best, value0, value1 = A, quiet0, quiet1
        if pieces > 0:
            tables = (policy_sa, lift_sa, permitted_sa)
            best, value0, value1 = decide(tables, s, q_2a, (quiet0, quiet1), (alone0, alone1), aim)
        out_s2[s, 0] = value0
        out_s2[s, 1] = value1
        out_advice_s[s] = best


@kernel
def plan_back(
    model: Model, aim: Aim, E_r2: Floats, V_hs: Floats, both_s2: Floats, advice_hs: Ints
) -> None:
    """Plan all steps; ``both_s2[0]`` receives the two values at the first step.

    ``E_r2`` is working space for the expectations of shared rows.
    """
    H, S = advice_hs.shape
    both_s2[:] = 0.0
    V_hs[H] = 0.0
    for h in range(H - 1, -1, -1):
        then_s2, now_s2 = both_s2[(h + 1) % 2], both_s2[h % 2]
        n = layer_of(model.first_row_l.size - 1, h)
        if model.shared_l[n]:
            expect(model, h, model.first_row_l[n], model.first_row_l[n + 1], then_s2, E_r2)
        out = (now_s2, V_hs[h], advice_hs[h])
        choose(model, aim, h, (as_int64(0), S), then_s2, E_r2, out)


@kernel
def plan_back_hard(
    model: Model, aim: Aim, E_jr2: Floats, V_khs: Floats, both_ks2: Floats, advice_khs: Ints
) -> None:
    """Plan all steps for every number k of pieces left; advice leads to k − 1.

    ``E_jr2`` is working space for the expectations with k and with k − 1 pieces left.
    """
    K, H, S = advice_khs.shape
    both_ks2[:] = 0.0
    V_khs[:, H] = 0.0
    for h in range(H - 1, -1, -1):
        n = layer_of(model.first_row_l.size - 1, h)
        row, row_end = model.first_row_l[n], model.first_row_l[n + 1]
        for k in range(K):
            quiet, after = E_jr2[k % 2], E_jr2[(k + 1) % 2]
            expect(model, h, row, row_end, both_ks2[(h + 1) % 2, k], quiet)
            out_s2 = both_ks2[h % 2, k]
            choose_hard(model, aim, h, quiet, after, k, out_s2, advice_khs[k, h])
            for s in range(S):
                V_khs[k, h, s] = out_s2[s, 0]


@kernel
def under_advice(
    model: Model, h: int, advice_s: Ints, next_s2: Floats, E_r2: Floats, out_s2: Floats
) -> None:
    """Evaluate fixed advice one step back: reward and pieces of advice to the end."""
    A = model.policy_lsa.shape[2]
    row_sa, reward_sa, policy_sa, lift_sa, _, _ = step_tables(model, h)
    n = layer_of(model.first_row_l.size - 1, h)
    offset = model.first_row_l[n]
    expect(model, h, offset, model.first_row_l[n + 1], next_s2, E_r2)
    q_2a = np.zeros((2, A))
    for s in range(advice_s.size):
        alone0, alone1 = 0.0, 0.0
        for a in range(A):
            i = row_sa[s, a]
            if i < 0:
                continue
            q_2a[0, a] = reward_sa[s, a] + E_r2[i - offset, 0]
            q_2a[1, a] = E_r2[i - offset, 1]
            if policy_sa[s, a] > 0.0:
                alone0 += policy_sa[s, a] * q_2a[0, a]
                alone1 += policy_sa[s, a] * q_2a[1, a]
        out_s2[s, 0] = alone0
        out_s2[s, 1] = alone1
        a = advice_s[s]
        if a < A:
            out_s2[s, 0] = advised(policy_sa, s, a, lift_sa[s, a], q_2a, 0, alone0)
            out_s2[s, 1] = advised(policy_sa, s, a, lift_sa[s, a], q_2a, 1, alone1) + 1.0


@kernel
def action_values(model: Model, h: int, next_s: Floats, states: Ints, q_na: Floats) -> None:
    """Fill Q_h(s, a) = r + Σ p V for a list of states; −∞ for actions without a row."""
    row_sa = model.row_lsa[layer_of(model.row_lsa.shape[0], h)]
    reward_sa = model.reward_lsa[layer_of(model.reward_lsa.shape[0], h)]
    for n in range(states.size):
        s = states[n]
        for a in range(q_na.shape[1]):
            i = row_sa[s, a]
            q_na[n, a] = -np.inf
            if i >= 0:
                q = 0.0
                for j in range(model.indptr[i], model.indptr[i + 1]):
                    q += model.probability[j] * next_s[model.next_state[j]]
                q_na[n, a] = reward_sa[s, a] + q
