"""Compiled passes over the steps of a crowd: gains backwards, people forwards (``crowd.py``).

Kernels trust their input: ``counsel.model`` has checked it.
"""

import numpy as np

from counsel._arrays import Floats, Ints
from counsel._jit import kernel
from counsel.model._kernels import layer_of
from counsel.planning._backward_kernels import Model, step_tables
from counsel.planning._forward_kernels import push_cell
from counsel.planning._gain_kernels import gain_of_match
from counsel.planning._level_kernels import Levels, Space, expect_levels, fill_actions

TOO_MANY = 1.0 + 1e-12
"""More people than this times the pieces of a step are more than there are pieces."""


@kernel
def fill_best_gains(
    model: Model,
    levels: Levels,
    h: int,
    then_ms: Floats,
    space: Space,
    out: tuple[Floats, Floats, Ints],
) -> None:
    """Fill the value of silence, the best gain and its advice in every cell of a step.

    ``then_ms`` are the values at the next step. Where no advice is permitted the gain is −∞.
    """
    silent_ms, gain_ms, advice_ms = out
    row_sa, reward_sa, policy_sa, lift_sb, permitted_sa, _ = step_tables(model, h)
    offset = model.first_row_l[layer_of(model.first_row_l.size - 1, h)]
    expect_levels(model, levels, h, 0, then_ms, space.V_sd, space.E_jrd)
    E_rd, q_2a, A, tables = (
        space.E_jrd[0],
        space.q_2a,
        policy_sa.shape[1],
        (
            row_sa,
            reward_sa,
            policy_sa,
        ),
    )
    for m in range(silent_ms.shape[0]):
        quiet, match, refusal = levels.after_cm[0, m], levels.after_cm[1, m], levels.after_cm[2, m]
        for s in range(silent_ms.shape[1]):
            alone = fill_actions(tables, s, offset, 1.0, E_rd, quiet, q_2a[0])
            own = alone
            if refusal != quiet:
                own = fill_actions(tables, s, offset, 1.0, E_rd, refusal, q_2a[0])
            best, advice = -np.inf, A
            for b in range(A):
                if not permitted_sa[s, b]:
                    continue
                matched = reward_sa[s, b] + E_rd[row_sa[s, b] - offset, match]
                said = own + policy_sa[s, b] * (matched - q_2a[0, b])
                lift = lift_sb[s, m * A + b]
                gain = gain_of_match(policy_sa, s, b, lift, matched, q_2a, 0, said) + (said - alone)
                if gain > best:
                    best, advice = gain, b
            silent_ms[m, s], gain_ms[m, s], advice_ms[m, s] = alone, best, advice


@kernel
def settle_step(
    gain_x: Floats, silent_x: Floats, marginal: int, price: float, value_x: Floats
) -> float:
    """Fill the values of a step after its price, and return the price.

    It is the gain of the marginal cell; ``price`` where there is none.
    """
    if marginal >= 0:
        price = max(gain_x[marginal], 0.0)
    for x in range(value_x.size):
        value_x[x] = silent_x[x] + max(gain_x[x] - price, 0.0)
    return price


@kernel
def settle_steps(
    model: Model,
    levels: Levels,
    space: Space,
    marginal_h: Ints,
    price_h: Floats,
    value_ms: Floats,
    out: tuple[Floats, Ints],
) -> None:
    """Fill gains, advice and prices of all steps, for people of one kind.

    ``value_ms`` starts at 0 and receives the values of the first step.
    """
    gain_hx, advice_hx = out
    silent_ms = np.empty(value_ms.shape)
    for h in range(price_h.size - 1, -1, -1):
        gain_ms, advice_ms = (
            gain_hx[h].reshape(value_ms.shape),
            advice_hx[h].reshape(value_ms.shape),
        )
        fill_best_gains(model, levels, h, value_ms, space, (silent_ms, gain_ms, advice_ms))
        price_h[h] = settle_step(
            gain_hx[h], silent_ms.ravel(), marginal_h[h], price_h[h], value_ms.ravel()
        )


@kernel
def serve_cells(
    gain_x: Floats, order_x: Ints, now_x: Floats, k: int, least: float, now_2x: Floats
) -> int:
    """Serve the people of a step in the order of their gains; return the marginal cell.

    It is the first cell that is not served as a whole, −1 if there is none. ``now_2x`` receives
    the people left alone and the people served. The marginal cell shares what is left with cells of
    the same gain, within ``least``: all get the same part.
    """
    X, used, marginal = order_x.size, 0.0, -1
    for n in range(X):
        x = order_x[n]
        now_2x[0, x], now_2x[1, x] = now_x[x], 0.0
        if marginal < 0 and gain_x[x] > least:
            used += now_x[x]
            if used > TOO_MANY * k:
                marginal = x
    above, tied = 0.0, 0.0
    for x in range(X):
        if gain_x[x] > least and marginal >= 0:
            if abs(gain_x[x] - gain_x[marginal]) <= least:
                tied += now_x[x]
            elif gain_x[x] > gain_x[marginal]:
                above += now_x[x]
    part = 0.0 if marginal < 0 else max(k - above, 0.0) / tied
    for x in range(X):
        if gain_x[x] > least:
            share = 1.0
            if marginal >= 0 and abs(gain_x[x] - gain_x[marginal]) <= least:
                share = part
            elif marginal >= 0 and gain_x[x] < gain_x[marginal]:
                share = 0.0
            now_2x[1, x] = share * now_x[x]
            now_2x[0, x] = now_x[x] - now_2x[1, x]
    return marginal


@kernel
def move_crowd(
    model: Model,
    levels: Levels,
    h: int,
    now_2ms: Floats,
    advice_ms: Ints,
    mass_dr: Floats,
    then_ms: Floats,
) -> float:
    """Move the people of a step to the next one; return what they earn.

    ``now_2ms`` are the people left alone and the people advised. ``then_ms`` starts at 0, and
    ``mass_dr`` is working space of zeros for each row of levels.
    """
    _, M, S = now_2ms.shape
    A, earned = model.policy_lsa.shape[2], 0.0
    n = layer_of(model.first_row_l.size - 1, h)
    row, row_end = model.first_row_l[n], model.first_row_l[n + 1]
    for m in range(M):
        quiet, match, refusal = levels.after_cm[0, m], levels.after_cm[1, m], levels.after_cm[2, m]
        for s in range(S):
            if now_2ms[0, m, s] > 0.0:
                masses = (mass_dr[quiet], mass_dr[quiet])
                earned += push_cell(model, h, s, (A, A), now_2ms[0, m, s], masses, row)
            if now_2ms[1, m, s] > 0.0:
                advice = int(advice_ms[m, s])
                said, masses = (advice, m * A + advice), (mass_dr[match], mass_dr[refusal])
                earned += push_cell(model, h, s, said, now_2ms[1, m, s], masses, row)
    for d in range(mass_dr.shape[0]):
        for i in range(row, row_end):
            mass = mass_dr[d, i - row]
            if mass > 0.0:
                mass_dr[d, i - row] = 0.0
                for e in range(levels.indptr[d], levels.indptr[d + 1]):
                    then_s, part = then_ms[levels.level[e]], mass * levels.weight[e]
                    for j in range(model.indptr[i], model.indptr[i + 1]):
                        then_s[model.next_state[j]] += part * model.probability[j]
    return earned


@kernel
def serve_steps(
    model: Model,
    levels: Levels,
    k: int,
    least: float,
    tables: tuple[Floats, Ints, Ints],
    mass_dr: Floats,
    first_ms: Floats,
    out: tuple[Ints, Floats],
) -> float:
    """Serve people of one kind at all steps; return what they earn.

    ``first_ms`` are the people at the first step. ``tables`` has gains, their order and advice,
    ``out`` receives the marginal cells and the people left alone and served.
    """
    (gain_hx, order_hx, advice_hx), (marginal_h, now_h2x), (M, S) = tables, out, first_ms.shape
    now_ms, then_ms, earned = first_ms.copy(), np.empty((M, S)), 0.0
    for h in range(marginal_h.size):
        marginal_h[h] = serve_cells(gain_hx[h], order_hx[h], now_ms.ravel(), k, least, now_h2x[h])
        then_ms[:] = 0.0
        now_2ms, advice_ms = now_h2x[h].reshape((2, M, S)), advice_hx[h].reshape((M, S))
        earned += move_crowd(model, levels, h, now_2ms, advice_ms, mass_dr, then_ms)
        now_ms, then_ms = then_ms, now_ms
    return earned
