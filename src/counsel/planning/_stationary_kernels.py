"""Compiled loops of work without end: one step of improvement, and the equations of a policy.

The model's probabilities carry the discount: the rows of ``Model`` sum to γ. Kernels trust their
input: ``counsel.model`` has checked it.
"""

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel._jit import as_int64, inlined, kernel
from counsel.model._kernels import cost_of, first_at_least
from counsel.planning._backward_kernels import Model, choose, expect, rows_of, settle
from counsel.planning._choice_kernels import Aim
from counsel.planning._forward_kernels import push_cell
from counsel.planning._level_kernels import (
    Levels,
    Rest,
    Space,
    choose_levels,
    expect_levels,
    settle_levels,
)

RandomAdvice = tuple[Ints, Ints, Ints, Floats]
"""The fields of the ``RandomCells`` of a policy."""


@kernel
def differences(V: Floats, TV: Floats) -> tuple[float, float]:
    """Return the least and the largest of TV − V."""
    low, high = np.inf, -np.inf
    for i in range(V.size):
        gap = TV[i] - V[i]
        low, high = min(low, gap), max(high, gap)
    return low, high


MANY_STEPS, TRIED = 50, 4
"""Values are iterated while fewer steps are left, as judged after some have been tried."""


@inlined
def is_slow(n: int, span: float, before: float, goal: float) -> bool:
    """Return whether to evaluate the advice after step n: values converge too slowly."""
    if n < TRIED:
        return False
    if span >= before:
        return True
    return bool(np.log(goal / span) < MANY_STEPS * np.log(span / before))


@kernel
def improve(
    model: Model,
    aim: Aim,
    next_2s: tuple[Floats, Floats],
    E_r: Floats,
    out: tuple[Floats, Ints, Bools],
    limits: tuple[float, int],
) -> tuple[int, float, float]:
    """Choose the best advice in every state, one step before two values.

    Ties of the first value are settled by the second. ``out`` are the first values, the advice,
    and where choices tied. The step is repeated, at most ``limits[1]`` times, from its own values
    while that is fast and the changes differ by more than ``limits[0]``; the first of ``next_2s``
    are then the values before the last step. Returns how many choices tie, and the least and the
    largest change of a value in the last step.
    """
    h, V_s, q_2a = as_int64(0), next_2s[0], np.zeros((2, model.policy_lsa.shape[2]))
    states, span_before = (h, as_int64(V_s.size)), np.inf
    ties, low, high = 0, 0.0, 0.0
    for n in range(limits[1]):
        if n > 0:
            V_s[:] = out[0]
        expect(model, h, rows_of(model, h), V_s, E_r)
        ties = choose(model, aim, h, states, q_2a, E_r, out)
        if ties > 0:
            settle(model, aim, h, states, q_2a, next_2s, out)
        low, high = differences(V_s, out[0])
        span = high - low
        if span <= limits[0] or is_slow(n, span, span_before, limits[0]):
            break
        span_before = span
    return ties, low, high


@kernel
def improve_levels(
    model: Model,
    levels: Levels,
    aim: Aim,
    space: Space,
    next_2ms: tuple[Floats, Floats],
    out: tuple[Floats, Ints, Bools],
    limits: tuple[float, int],
) -> tuple[int, float, float]:
    """Choose the best advice in every state on every level, as ``improve`` does."""
    h, (out_V_ms, out_advice_ms, out_tied_ms) = as_int64(0), out
    V_ms, second_ms = next_2ms
    (M, S), never = V_ms.shape, np.empty((0, 0), np.bool_)
    rest = Rest(never, never, never)
    every = (out_V_ms, out_advice_ms.reshape((M, 1, S)), out_tied_ms)
    ties, low, high, span_before = 0, 0.0, 0.0, np.inf
    for n in range(limits[1]):
        if n > 0:
            V_ms[:] = out_V_ms
        expect_levels(model, levels, h, h, V_ms, space.V_sd, space.E_jrd)
        ties = choose_levels(model, levels, aim, h, space, rest, every)
        if ties > 0:
            expect_levels(model, levels, h, h, second_ms, space.V_sd, space.followed_jrd)
            settle_levels(model, levels, aim, h, space, every)
        low, high = np.inf, -np.inf
        for m in range(V_ms.shape[0]):
            least, most = differences(V_ms[m], out_V_ms[m])
            low, high = min(low, least), max(high, most)
        span = high - low
        if span <= limits[0] or is_slow(n, span, span_before, limits[0]):
            break
        span_before = span
    return ties, low, high


@kernel
def count_entries(model: Model, levels: Levels, begin_x: Ints) -> None:
    """Fill where the entries of each cell begin, if none of its next cells were the same.

    A cell has entries for the levels after silence, after a match and after a refusal.
    """
    S, A = model.policy_lsa.shape[1:]
    total = 0
    begin_x[0] = 0
    for x in range(begin_x.size - 1):
        m = x // S
        silence, match, refusal = (
            levels.after_cm[0, m],
            levels.after_cm[1, m],
            levels.after_cm[2, m],
        )
        after = levels.indptr[silence + 1] - levels.indptr[silence]
        if match != silence:
            after += levels.indptr[match + 1] - levels.indptr[match]
        if refusal not in (silence, match):
            after += levels.indptr[refusal + 1] - levels.indptr[refusal]
        for a in range(A):
            i = model.row_lsa[0, x % S, a]
            if i >= 0:
                total += after * (model.indptr[i + 1] - model.indptr[i])
        begin_x[x + 1] = total


@inlined
def add_row(
    model: Model,
    levels: Levels,
    row: int,
    d: int,
    mass: float,
    entries: tuple[Ints, Floats, Ints],
    begin: int,
    fill: int,
) -> int:
    """Add ``mass`` times a row of next states on row ``d`` of levels; return the new end.

    ``entries`` are next cells, their weights, and where each next cell was entered last.
    """
    column, weight, slot_x = entries
    S = model.policy_lsa.shape[1]
    for n in range(levels.indptr[d], levels.indptr[d + 1]):
        part, first = mass * levels.weight[n], levels.level[n] * S
        for j in range(model.indptr[row], model.indptr[row + 1]):
            t = first + model.next_state[j]
            if slot_x[t] < begin:
                slot_x[t] = fill
                column[fill] = t
                weight[fill] = part * model.probability[j]
                fill += 1
            else:
                weight[slot_x[t]] += part * model.probability[j]
    return fill


@kernel
def write_equations(
    model: Model,
    levels: Levels,
    plane_p: Ints,
    advice_ps: Ints,
    random: RandomAdvice,
    begin_x: Ints,
    entries: tuple[Ints, Floats, Ints],
    terms: tuple[Floats, Floats, Floats],
) -> None:
    """Fill the next cells of every cell under a policy, and its rewards, costs and pieces.

    Cell x is state x % S on level x // S. On entry ``begin_x`` are upper bounds, on return they
    are where the entries of each cell begin. On level m the advice is that of plane
    ``plane_p[m]``.
    """
    slot_x = entries[2]
    reward_x, cost_x, pieces_x = terms
    random_cell, random_indptr, random_advice, random_probability = random
    S, A = model.policy_lsa.shape[1:]
    rows = model.first_row_l[1]
    matched_r, other_r = np.zeros(rows), np.zeros(rows)
    slot_x[:] = -1
    fill = 0
    for x in range(begin_x.size - 1):
        m, s = x // S, x % S
        begin_x[x] = begin = fill
        cell = plane_p[m] * S + s
        i = first_at_least(random_cell, cell) if random_cell.size > 0 else 0
        is_random = i < random_cell.size and random_cell[i] == cell
        first = random_indptr[i] if is_random else 0
        last = random_indptr[i + 1] if is_random else 1
        for n in range(first, last):
            share, b = 1.0, as_int64(advice_ps[plane_p[m], s])
            if is_random:
                share, b = random_probability[n], as_int64(random_advice[n])
            matched_d = other_d = levels.after_cm[0, m]
            if b < A:
                cost = cost_of(model.cost_lsa[0], s, b)
                matched_d, other_d = levels.after_cm[1, m], levels.after_cm[2, m]
                cost_x[x] += share * cost
                pieces_x[x] += share
            said, masses = (b, m * A + b), (matched_r, other_r)
            reward_x[x] += push_cell(model, as_int64(0), s, said, share, masses, as_int64(0))
            for a in range(A):
                row = model.row_lsa[0, s, a]
                if row < 0:
                    continue
                if matched_r[row] > 0.0:
                    mass, matched_r[row] = matched_r[row], 0.0
                    fill = add_row(model, levels, row, matched_d, mass, entries, begin, fill)
                if other_r[row] > 0.0:
                    mass, other_r[row] = other_r[row], 0.0
                    fill = add_row(model, levels, row, other_d, mass, entries, begin, fill)
    begin_x[begin_x.size - 1] = fill


@kernel
def multiply_rows(
    begin_x: Ints, column: Ints, weight: Floats, run: tuple[int, int], x: Floats, out: Floats
) -> None:
    """Fill a run of the product of a matrix, given by rows, and a vector."""
    for i in range(run[0], run[1]):
        total = 0.0
        for j in range(begin_x[i], begin_x[i + 1]):
            total += weight[j] * x[np.uint32(column[j])]
        out[i] = total


@kernel
def reach(begin_x: Ints, column: Ints, weight: Floats, is_reached: Bools) -> None:
    """Add all cells to which a path leads from the cells that are reached."""
    waiting, n = np.empty(is_reached.size, np.int64), 0
    for x in range(is_reached.size):
        if is_reached[x]:
            waiting[n] = x
            n += 1
    while n > 0:
        n -= 1
        x = waiting[n]
        for j in range(begin_x[x], begin_x[x + 1]):
            if weight[j] > 0.0 and not is_reached[column[j]]:
                is_reached[column[j]] = True
                waiting[n] = column[j]
                n += 1
