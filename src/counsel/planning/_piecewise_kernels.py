"""Compiled loops over functions of the penalty that are convex and piecewise linear.

A function is a run of points (penalty, value), from penalty 0 upwards, and the slope after the last
point. ``unit`` is the size of the rewards, against which rounding is judged.
"""

from typing import NamedTuple

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel._jit import as_int64, inlined, kernel
from counsel.model._kernels import cost_of, layer_of
from counsel.planning._backward_kernels import Model, StepTables, step_tables
from counsel.planning._gain_kernels import gain_by_differences
from counsel.planning._level_kernels import Levels

STRAIGHT = 1e-13
"""A point this close to the line between its neighbours, relative to its size, is not a kink."""

CLEAR = 1e-11
"""Advice beats silence only by more than this share of their size: a plateau is not a gain."""


class Functions(NamedTuple):
    """Functions, one after the other.

    Function n has the points ``begin[n]`` up to ``begin[n + 1]`` of ``at`` (penalties) and
    ``value``; ``rise`` is the slope after each point.
    """

    begin: Ints
    at: Floats
    value: Floats
    rise: Floats


class Candidates(NamedTuple):
    """Functions on a common grid of penalties: one per advice and, last, silence.

    ``y_bn`` are the values on the grid and ``rise_bn`` the slopes after each point; ``may_b`` says
    which candidates may be chosen.
    """

    grid: Floats
    y_bn: Floats
    rise_bn: Floats
    may_b: Bools


@kernel
def merge(grid: Floats, functions: Functions, n: int, unit: float) -> Floats:
    """Merge a rising run of penalties with those of function ``n``, without repetitions."""
    at, end = functions.at, functions.begin[n + 1]
    i, j, fill = 0, functions.begin[n], 0
    out = np.empty(grid.size + end - j)
    while i < grid.size or j < end:
        if j >= end or (i < grid.size and grid[i] <= at[j]):
            x = grid[i]
            i += 1
        else:
            x = at[j]
            j += 1
        if fill == 0 or x > out[fill - 1] + STRAIGHT * (unit + x):
            out[fill] = x
            fill += 1
    return out[:fill]


@kernel
def add(weight: float, functions: Functions, n: int, grid: Floats, out: Floats) -> None:
    """Add ``weight`` times function ``n`` to ``out`` at the penalties of ``grid``."""
    at, value, rise = functions.at, functions.value, functions.rise
    j, end = functions.begin[n], functions.begin[n + 1]
    for i in range(grid.size):
        x = grid[i]
        while j + 1 < end and at[j + 1] <= x:
            j += 1
        out[i] += weight * (value[j] + rise[j] * (x - at[j]))


@inlined
def last_rise(functions: Functions, n: int) -> float:
    """Return the slope of function ``n`` after its last point."""
    rise: float = functions.rise[functions.begin[n + 1] - 1]
    return rise


@kernel
def fill_rises(at: Floats, value: Floats, begin: int, end: int, last: float, rise: Floats) -> None:
    """Fill the slopes between the points ``begin`` up to ``end``, and the last one."""
    for j in range(begin, end - 1):
        rise[j] = (value[j + 1] - value[j]) / (at[j + 1] - at[j])
    rise[end - 1] = last


@kernel
def expect_function(
    model: Model, i: int, functions: Functions, unit: float
) -> tuple[Floats, Floats, float]:
    """Return Σ_t p(t) V_t of one row as a function: its penalties, values and last slope."""
    grid, last = np.zeros(1), 0.0
    for j in range(model.indptr[i], model.indptr[i + 1]):
        t = as_int64(model.next_state[j])
        if functions.begin[t + 1] - functions.begin[t] > 1:
            grid = merge(grid, functions, t, unit)
    value = np.zeros(grid.size)
    for j in range(model.indptr[i], model.indptr[i + 1]):
        t, p = as_int64(model.next_state[j]), model.probability[j]
        add(p, functions, t, grid, value)
        last += p * last_rise(functions, t)
    return grid, value, last


@kernel
def expect_functions(
    model: Model, rows: Ints, functions: Functions, limits: tuple[float, int]
) -> Functions:
    """Return the expectations of some rows; ``begin`` is empty if there are too many points."""
    (unit, most), room, fill = limits, max(16, rows.size), 0
    at, value, rise = np.empty(room), np.empty(room), np.empty(room)
    begin = np.zeros(rows.size + 1, np.int64)
    for n in range(rows.size):
        if rows[n] >= 0:
            grid, y, last = expect_function(model, rows[n], functions, unit)
            end = fill + grid.size
            if end > most:
                return Functions(begin[:0], at[:0], value[:0], rise[:0])
            if end > room:
                room = 2 * end
                at, value, rise = grown(at, room), grown(value, room), grown(rise, room)
            for k in range(grid.size):
                at[fill + k], value[fill + k] = grid[k], y[k]
            fill_rises(at, value, fill, end, last, rise)
            fill = end
        begin[n + 1] = fill
    return Functions(begin, at[:fill], value[:fill], rise[:fill])


@kernel
def grown(array: Floats, room: int) -> Floats:
    """Return a longer copy of an array."""
    longer = np.empty(room)
    for i in range(array.size):
        longer[i] = array[i]
    return longer


@kernel
def envelope(
    lines: Candidates, unit: float, out_at: Floats, out_value: Floats
) -> tuple[int, float]:
    """Compute the upper envelope of the candidates; return its length and last slope.

    Between two penalties of the grid every candidate is a straight line, so the loop moves from
    crossing to crossing.
    """
    grid, y_bn, rise_bn, may_b = lines.grid, lines.y_bn, lines.rise_bn, lines.may_b
    B = may_b.size
    fill, best_slope = 0, 0.0
    for i in range(grid.size):
        x = grid[i]
        stop = np.inf if i == grid.size - 1 else grid[i + 1]
        while True:
            best, best_y, best_slope = -1, -np.inf, -np.inf
            for b in range(B):
                if not may_b[b]:
                    continue
                rise = rise_bn[b, i]
                y = y_bn[b, i] + rise * (x - grid[i])
                near = STRAIGHT * (unit + x + abs(y))
                if best < 0 or y > best_y + near or (y >= best_y - near and rise > best_slope):
                    best, best_y, best_slope = b, y, rise
            out_at[fill] = x
            out_value[fill] = best_y
            fill += 1
            crossing = stop
            for b in range(B):
                if not may_b[b]:
                    continue
                rise = rise_bn[b, i]
                if rise > best_slope + STRAIGHT * (abs(rise) + abs(best_slope)):
                    y = y_bn[b, i] + rise * (x - grid[i])
                    meet = x + (best_y - y) / (rise - best_slope)
                    if meet > x + STRAIGHT * (unit + x) and meet < crossing:
                        crossing = meet
            if crossing >= stop - STRAIGHT * (unit + x):
                break
            x = crossing
    return fill, best_slope


@kernel
def straighten(at: Floats, value: Floats, n: int, last: float, unit: float) -> int:
    """Drop the points that are not kinks, in place; return how many remain."""
    keep = 1
    for i in range(1, n):
        left = (value[i] - value[keep - 1]) / (at[i] - at[keep - 1])
        right = (value[i + 1] - value[i]) / (at[i + 1] - at[i]) if i + 1 < n else last
        reach = at[i + 1] - at[i] if i + 1 < n else unit
        if abs(right - left) * reach > STRAIGHT * (unit + abs(value[i])):
            at[keep] = at[i]
            value[keep] = value[i]
            keep += 1
    return keep


@kernel
def supremum(lines: Candidates, unit: float) -> float:
    """Return the largest penalty below which some advice beats silence, 0 if none does."""
    grid, y_bn, rise_bn, A = lines.grid, lines.y_bn, lines.rise_bn, lines.may_b.size - 1
    top = 0.0
    for a in range(A):
        if not lines.may_b[a]:
            continue
        for i in range(grid.size - 1, -1, -1):
            near = CLEAR * (unit + abs(y_bn[A, i]))
            gap = y_bn[a, i] - y_bn[A, i]
            rise = rise_bn[a, i] - rise_bn[A, i]
            if i < grid.size - 1:
                rise = (y_bn[a, i + 1] - y_bn[A, i + 1] - gap) / (grid[i + 1] - grid[i])
            elif rise > STRAIGHT or (rise >= -STRAIGHT and gap > near):
                return np.inf
            if gap > near:
                reach = grid[i] + (gap / -rise if rise < 0.0 else 0.0)
                if i < grid.size - 1:
                    reach = min(reach, grid[i + 1])
                top = max(top, reach)
                break
    return top


@inlined
def fill_values(
    reward_a: Floats, number_a: Ints, expected: Functions, grid: Floats, q_na: Floats
) -> None:
    """Fill the value of each action at each penalty; the last row is the slope after the last."""
    N = grid.size
    for a in range(number_a.size):
        if number_a[a] >= 0:
            add(1.0, expected, number_a[a], grid, q_na[:N, a])
            for k in range(N):
                q_na[k, a] += reward_a[a]
            q_na[N, a] = last_rise(expected, number_a[a])


@inlined
def habit_values(policy_sa: Floats, s: int, q_na: Floats, out_n: Floats) -> None:
    """Fill what the person's own choice is worth at each penalty."""
    out_n[:] = 0.0
    for a in range(q_na.shape[1]):
        if policy_sa[s, a] > 0.0:
            for k in range(out_n.size):
                out_n[k] += policy_sa[s, a] * q_na[k, a]


@kernel
def candidates_at(
    tables: StepTables,
    cost_sa: Floats,
    cell: tuple[int, int],
    number_ca: Ints,
    expected: Functions,
    unit: float,
) -> Candidates:
    """Return the functions of each advice and of silence in one cell: a state and a level.

    The expectation of action a is function ``number_ca[c, a]`` of ``expected``, −1 if there is
    none: after silence for c = 0, a match for c = 1 and a refusal for c = 2. If advice leads to the
    levels that silence leads to, there is only the first.
    """
    (s, m), (_, reward_sa, policy_sa, lift_sb, permitted_sa, _) = cell, tables
    (C, A), grid = number_ca.shape, np.zeros(1)
    for c in range(C):
        for a in range(A):
            n = number_ca[c, a]
            if n < 0 or not (policy_sa[s, a] > 0.0 or permitted_sa[s, a]):
                continue
            if expected.begin[n + 1] - expected.begin[n] > 1:
                grid = merge(grid, expected, n, unit)
    N = grid.size
    q_cna, own_n = np.zeros((C, N + 1, A)), np.zeros(N + 1)
    y_bn, rise_bn = np.zeros((A + 1, N)), np.zeros((A + 1, N))
    last_b, may_b = np.zeros(A + 1), np.ones(A + 1, np.bool_)
    for c in range(C):
        fill_values(reward_sa[s], number_ca[c], expected, grid, q_cna[c])
    habit_values(policy_sa, s, q_cna[0], own_n)
    y_bn[A], last_b[A] = own_n[:N], own_n[N]
    for b in range(A):
        may_b[b] = permitted_sa[s, b]
        lift, cost, q_na = lift_sb[s, m * A + b], cost_of(cost_sa, s, b), q_cna[C - 1]
        if C > 1:  # the value of b is that after a match, all others are those after a refusal
            q_na = q_cna[2].copy()
            q_na[:, b] = q_cna[1, :, b]
            habit_values(policy_sa, s, q_na, own_n)
        more = gain_by_differences(policy_sa, s, b, lift, q_na[N, b], q_na, N)
        last_b[b] = own_n[N] + more - cost
        for k in range(N):
            more = gain_by_differences(policy_sa, s, b, lift, q_na[k, b], q_na, k)
            y_bn[b, k] = own_n[k] + more - cost * grid[k]
    for b in range(A + 1):
        fill_rises(grid, y_bn[b], as_int64(0), N, last_b[b], rise_bn[b])
    return Candidates(grid, y_bn, rise_bn, may_b)


@kernel
def step_back(
    model: Model,
    levels: Levels,
    h: int,
    states: tuple[int, int],
    functions: Functions,
    expected: Functions,
    limits: tuple[float, int],
    critical_x: Floats,
) -> Functions:
    """Return the functions of a run of states one step earlier; fill their criticality.

    States x are those of each level of memory, level by level. ``expected`` are the expectations
    of the step's rows, for each row of levels; where it is empty, they are computed here, state by
    state. ``limits`` are the unit and the largest number of points: if there are more, ``begin`` is
    empty. No functions are needed before the first step.
    """
    (_, S, A), (unit, most) = model.policy_lsa.shape, limits
    tables = step_tables(model, h)
    row_sa, required_s = tables[0], tables[5]
    cost_sa = model.cost_lsa[layer_of(model.cost_lsa.shape[0], h)]
    n_layer = layer_of(model.first_row_l.size - 1, h)
    first_row, rows = model.first_row_l[n_layer], model.first_row_l[model.first_row_l.size - 1]
    width = model.first_row_l[n_layer + 1] - first_row
    by_row, C = expected.begin.size > 0, 1 if levels.after_cm.shape[1] == 1 else 3
    number_ca, row_n = np.empty((C, A), np.int64), np.empty(C * A, np.int64)
    room, fill = 16, 0
    new_at, new_value, new_rise = np.empty(room), np.empty(room), np.empty(room)
    new_begin = np.zeros(states[1] - states[0] + 1, np.int64)
    for x in range(states[0], states[1]):
        m, s = x // S, x % S
        for c in range(C):
            d = levels.after_cm[c, m]
            for a in range(A):
                row, n = row_sa[s, a], c * A + a
                row_n[n] = d * rows + row if row >= 0 else -1
                number_ca[c, a] = d * width + row - first_row if by_row else n
                if row < 0:
                    number_ca[c, a] = -1
        if not by_row:
            expected = expect_functions(model, row_n, functions, limits)
        lines = candidates_at(tables, cost_sa, (s, m), number_ca, expected, unit)
        critical_x[x] = np.inf if required_s[s] else supremum(lines, unit)
        if h == 0:
            continue
        lines.may_b[A] = not required_s[s]
        space = lines.grid.size * (A + 1) + 1
        own_at, own_value = np.empty(space), np.empty(space)
        length, last = envelope(lines, unit, own_at, own_value)
        length = straighten(own_at, own_value, length, last, unit)
        end = fill + length
        if end > most:
            return Functions(new_begin[:0], new_at[:0], new_value[:0], new_rise[:0])
        if end > room:
            room = 2 * end
            new_at, new_value = grown(new_at, room), grown(new_value, room)
            new_rise = grown(new_rise, room)
        for k in range(length):
            new_at[fill + k], new_value[fill + k] = own_at[k], own_value[k]
        fill_rises(new_at, new_value, fill, end, last, new_rise)
        fill = end
        new_begin[x - states[0] + 1] = fill
    return Functions(new_begin, new_at[:fill], new_value[:fill], new_rise[:fill])
