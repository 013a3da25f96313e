"""Compiled loops of planning, which run backwards from the last step.

A plan maximises a first value and breaks ties by a second; each is a weight times reward minus a
price times the cost of advice (``Aim``). The loops carry the first value alone: gathering two
numbers per next state from twice the memory would take about three times as long. Where choices
tie, the second value of the choices made so far is computed as far back as the tie (``catch_up``).
Kernels trust their input: ``counsel.model`` has checked it.
"""

from typing import NamedTuple

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel._jit import as_int64, inlined, kernel, prefetch, stream
from counsel.model._kernels import cost_of, layer_of
from counsel.planning._choice_kernels import TIE, Aim, break_tie
from counsel.planning._gain_kernels import gain

FAR = 50_000
"""From this many states on, values do not fit the nearest caches, and prefetching is worthwhile."""

VALUES_AHEAD, ENTRIES_AHEAD = 64, 256
"""How many entries ahead of their use values, and the entries themselves, are asked for.

Measured on an AMD EPYC: a million states take less than half the time, mostly because entries,
which are read once per step, no longer displace values from the last cache.
"""

LINE = 8
"""Probabilities in one line of the cache."""


class Model(NamedTuple):
    """All arrays of a problem. ``l`` is a layer: one if stationary, else one per step.

    ``pull`` is the lift of advice that is permitted and moves the person, and NaN elsewhere: no
    comparison ever picks a NaN. ``cost`` has one row if it is the same in every state. ``same`` is
    an action if all actions of the person have the same row and reward there, so that no advice
    changes anything, and −1 elsewhere. For a person with a memory of M levels the last axis of
    ``lift`` has M · A entries (``_level_kernels.py``), and ``pull`` is 1 where advice is permitted.
    """

    row_lsa: Ints
    first_row_l: Ints
    indptr: Ints
    next_state: Ints
    probability: Floats
    reward_lsa: Floats
    policy_lsa: Floats
    lift_lsa: Floats
    pull_lsa: Floats
    permitted_lsa: Bools
    required_ls: Bools
    cost_lsa: Floats
    same_ls: Ints


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
def expect_row(next_state: Ints, probability: Floats, begin: int, end: int, V_s: Floats) -> float:
    """Return Σ_t p(t) V(t) of one row."""
    total: float = probability[begin] * V_s[np.uint32(next_state[begin])]
    for j in range(begin + 1, end):
        total += probability[j] * V_s[np.uint32(next_state[j])]
    return total


@inlined
def expect_far_row(
    next_state: Ints, probability: Floats, begin: int, end: int, V_s: Floats
) -> float:
    """Return Σ_t p(t) V(t) of one row; ask early for entries and values of the rows after it."""
    total, last = 0.0, next_state.size - 1
    for j in range(begin, end, LINE):
        stream(probability, j + ENTRIES_AHEAD)
        stream(next_state, j + 2 * ENTRIES_AHEAD)
    for j in range(begin, end):
        prefetch(V_s, np.uint32(next_state[min(j + VALUES_AHEAD, last)]))
        total += probability[j] * V_s[np.uint32(next_state[j])]
    return total


@inlined
def expect(model: Model, h: int, rows: tuple[int, int], V_s: Floats, E_r: Floats) -> None:
    """Fill the expectations of a run of rows; E starts at the first row of the layer."""
    offset = model.first_row_l[layer_of(model.first_row_l.size - 1, h)]
    indptr, next_state, probability = model.indptr, model.next_state, model.probability
    if V_s.size >= FAR:
        for i in range(rows[0], rows[1]):
            E_r[i - offset] = expect_far_row(next_state, probability, indptr[i], indptr[i + 1], V_s)
    else:
        for i in range(rows[0], rows[1]):
            E_r[i - offset] = expect_row(next_state, probability, indptr[i], indptr[i + 1], V_s)


@inlined
def choose(
    model: Model,
    aim: Aim,
    h: int,
    states: tuple[int, int],
    q_2a: Floats,
    E_r: Floats,
    out: tuple[Floats, Ints, Bools],
) -> int:
    """Choose the best advice in a run of states by the first value; return how many are tied.

    ``out`` are the values, the advice, and whether the cell is left to ``settle``: its best
    choices tie, or advice is required. ``E_r`` are the expectations of the step's rows. Advice is
    compared by its gain over silence, and advice without lift is never worth a piece. ``q_2a`` is
    working space.
    """
    A, (out_V_s, out_advice_s, out_tied_s) = model.policy_lsa.shape[2], out
    row_sa, reward_sa, policy_sa, _, _, required_s = step_tables(model, h)
    pull_sa = model.pull_lsa[layer_of(model.pull_lsa.shape[0], h)]
    cost_sa = model.cost_lsa[layer_of(model.cost_lsa.shape[0], h)]
    offset = model.first_row_l[layer_of(model.first_row_l.size - 1, h)]
    same_s = model.same_ls[layer_of(model.same_ls.shape[0], h)]
    weight, price = aim.weight0, aim.price0_h[layer_of(aim.price0_h.size, h)]
    near, ties = TIE * (A + 1) * aim.most0, 0
    for s in range(states[0], states[1]):
        alone, same = 0.0, same_s[s]
        if same >= 0 and not required_s[s]:
            q = E_r[row_sa[s, same] - offset] + weight * reward_sa[s, same]
            for a in range(A):
                alone += policy_sa[s, a] * q
            out_V_s[s], out_advice_s[s], out_tied_s[s] = alone, A, False
            continue
        for a in range(A):
            i = row_sa[s, a]
            if i < 0:
                continue
            q = E_r[i - offset] + weight * reward_sa[s, a]
            q_2a[0, a] = q
            alone += policy_sa[s, a] * q
        best, top, next_best = A, 0.0, -np.inf
        for a in range(A):
            net = gain(policy_sa, s, a, pull_sa[s, a], q_2a, 0, alone)
            net -= price * cost_of(cost_sa, s, a)
            # Selections, not branches: the processor cannot predict which advice is best.
            better = net > top
            loser = top if better else net
            next_best = loser if loser > next_best else next_best
            best = a if better else best
            top = net if better else top
        tied = required_s[s] or next_best >= top - near
        ties += tied
        out_tied_s[s] = tied
        out_V_s[s] = alone + top
        out_advice_s[s] = best
    return ties


@kernel
def settle(
    model: Model,
    aim: Aim,
    h: int,
    states: tuple[int, int],
    q_2a: Floats,
    next_2s: tuple[Floats, Floats],
    out: tuple[Floats, Ints, Bools],
) -> None:
    """Choose in the tied cells of a run by both values; ``next_2s`` are those of the next step."""
    A, (out_V_s, out_advice_s, tied_s) = model.policy_lsa.shape[2], out
    row_sa, reward_sa, policy_sa, _, _, required_s = step_tables(model, h)
    pull_sa = model.pull_lsa[layer_of(model.pull_lsa.shape[0], h)]
    cost_sa = model.cost_lsa[layer_of(model.cost_lsa.shape[0], h)]
    indptr, next_state, probability = model.indptr, model.next_state, model.probability
    price = aim.price0_h[layer_of(aim.price0_h.size, h)]
    next0_s, next1_s = next_2s
    for s in range(states[0], states[1]):
        if not tied_s[s]:
            continue
        alone0, alone1 = 0.0, 0.0
        for a in range(A):
            i = row_sa[s, a]
            if i < 0:
                continue
            begin, end = indptr[i], indptr[i + 1]
            q_2a[0, a] = expect_row(next_state, probability, begin, end, next0_s)
            q_2a[1, a] = expect_row(next_state, probability, begin, end, next1_s)
            q_2a[0, a] += aim.weight0 * reward_sa[s, a]
            q_2a[1, a] += aim.weight1 * reward_sa[s, a]
            alone0 += policy_sa[s, a] * q_2a[0, a]
            alone1 += policy_sa[s, a] * q_2a[1, a]
        alone = (alone0, alone1)
        best, top, _ = break_tie(
            policy_sa, pull_sa, cost_sa, s, q_2a, alone, aim, price, required_s[s]
        )
        out_V_s[s] = alone0 + top
        out_advice_s[s] = best


@inlined
def follow(
    model: Model,
    terms: tuple[float, float],
    h: int,
    states: tuple[int, int],
    q_2a: Floats,
    advice_s: Ints,
    E_r: Floats,
    out_s: Floats,
) -> None:
    """Evaluate fixed advice one step back: weight · reward − price · cost, for ``terms`` of both.

    ``E_r`` are the expectations of the step's rows.
    """
    A, (weight, price) = model.policy_lsa.shape[2], terms
    row_sa, reward_sa, policy_sa, lift_sa, _, _ = step_tables(model, h)
    cost_sa = model.cost_lsa[layer_of(model.cost_lsa.shape[0], h)]
    offset = model.first_row_l[layer_of(model.first_row_l.size - 1, h)]
    for s in range(states[0], states[1]):
        alone = 0.0
        for a in range(A):
            i = row_sa[s, a]
            if i < 0:
                continue
            q = E_r[i - offset] + weight * reward_sa[s, a]
            q_2a[0, a] = q
            alone += policy_sa[s, a] * q
        a = as_int64(advice_s[s])
        if a < A:
            net = gain(policy_sa, s, a, lift_sa[s, a], q_2a, 0, alone)
            alone += net - price * cost_of(cost_sa, s, a)
        out_s[s] = alone


@kernel
def catch_up(
    model: Model,
    terms: tuple[float, float],
    steps: tuple[int, int],
    advice_hs: Ints,
    E_r: Floats,
    V_js: Floats,
) -> None:
    """Evaluate fixed advice from one step back to another; step h is in ``V_js[h % 2]``."""
    S, q_2a = advice_hs.shape[1], np.zeros((2, model.policy_lsa.shape[2]))
    for h in range(steps[0] - 1, steps[1] - 1, -1):
        now_s, then_s = V_js[h % 2], V_js[(h + 1) % 2]
        expect(model, h, rows_of(model, h), then_s, E_r)
        follow(model, terms, h, (as_int64(0), S), q_2a, advice_hs[h], E_r, now_s)


@kernel
def plan_back(
    model: Model,
    free: Aim,
    most_cost: float,
    price_nh: Floats,
    start_s: Floats,
    out: tuple[Floats, Ints, Floats],
    with_second: bool,
) -> None:
    """Plan all steps, for each of several prices anew; ``free`` is the aim at a price of 0.

    ``out`` are the values and the advice of the last plan and, of every plan, the first value at
    the start and, if wanted, the second.
    """
    V_hs, advice_hs, start_n2 = out
    H, S = advice_hs.shape
    q_2a = np.zeros((2, model.policy_lsa.shape[2]))
    E_r, second_js, tied_s = np.empty(most_rows(model)), np.zeros((2, 0)), np.empty(S, np.bool_)
    for n in range(price_nh.shape[0]):
        aim = priced(free, most_cost, price_nh[n], H)
        second_from, terms = H, (aim.weight1, aim.price1)
        for s in range(S):
            V_hs[H, s] = 0.0
        for s in range(second_js.shape[1]):
            second_js[H % 2, s] = 0.0
        for h in range(H - 1, -1, -1):
            expect(model, h, rows_of(model, h), V_hs[h + 1], E_r)
            cells = (V_hs[h], advice_hs[h], tied_s)
            ties = choose(model, aim, h, (as_int64(0), S), q_2a, E_r, cells)
            if second_js.size == 0 and (ties > 0 or (with_second and h == 0)):
                second_js = np.zeros((2, S))
            if ties > 0:
                catch_up(model, terms, (second_from, h + 1), advice_hs, E_r, second_js)
                second_from = h + 1
                next_2s = (V_hs[h + 1], second_js[(h + 1) % 2])
                settle(model, aim, h, (as_int64(0), S), q_2a, next_2s, cells)
        start_n2[n, 0] = expect_start(start_s, V_hs[0])
        if with_second:
            catch_up(model, terms, (second_from, as_int64(0)), advice_hs, E_r, second_js)
            start_n2[n, 1] = expect_start(start_s, second_js[0])


@inlined
def priced(free: Aim, most_cost: float, price_h: Floats, horizon: int) -> Aim:
    """Return the aim at a price: one for all steps, or one for each."""
    top = 0.0
    for h in range(price_h.size):
        top = max(top, price_h[h])
    dearest = most_cost * top
    size0, most0 = free.size0 + dearest, free.most0 + (horizon + 1) * dearest
    return Aim(free.weight0, price_h, size0, most0, free.weight1, free.price1, free.size1)


@kernel
def expect_start(start_s: Floats, V_s: Floats) -> float:
    """Return the expected value at the start."""
    total = 0.0
    for s in range(start_s.size):
        if start_s[s] > 0.0:
            total += start_s[s] * V_s[s]
    return total


@inlined
def rows_of(model: Model, h: int) -> tuple[int, int]:
    """Return the first row of a step and the end of its rows."""
    n = layer_of(model.first_row_l.size - 1, h)
    return model.first_row_l[n], model.first_row_l[n + 1]


@inlined
def most_rows(model: Model) -> int:
    """Return the largest number of rows of a layer."""
    rows = 0
    for n in range(model.first_row_l.size - 1):
        rows = max(rows, model.first_row_l[n + 1] - model.first_row_l[n])
    return rows


@kernel
def find_same(
    row_lsa: Ints, reward_lsa: Floats, policy_lsa: Floats, permitted_lsa: Bools, same_ls: Ints
) -> None:
    """Fill ``same_ls``: an action where all that the person may take are alike, −1 elsewhere."""
    L, S = same_ls.shape
    for h in range(L):
        row_sa = row_lsa[layer_of(row_lsa.shape[0], h)]
        reward_sa = reward_lsa[layer_of(reward_lsa.shape[0], h)]
        policy_sa = policy_lsa[layer_of(policy_lsa.shape[0], h)]
        permitted_sa = permitted_lsa[layer_of(permitted_lsa.shape[0], h)]
        for s in range(S):
            same, alike = -1, True
            for a in range(policy_sa.shape[1]):
                if policy_sa[s, a] > 0.0 or permitted_sa[s, a]:
                    if same < 0:
                        same = a
                    elif row_sa[s, a] != row_sa[s, same] or reward_sa[s, a] != reward_sa[s, same]:
                        alike = False
            same_ls[h, s] = same if alike else -1


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


@kernel
def list_repelled(advice_s: Ints, lift_sa: Floats, out: Ints) -> int:
    """List the states whose advice has a lift below 0; return how many there are."""
    n, A = 0, lift_sa.shape[1]
    for s in range(advice_s.size):
        a = advice_s[s]
        if a < A and lift_sa[s, a] < 0.0:
            out[n] = s
            n += 1
    return n
