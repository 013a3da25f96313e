"""Compiled loops over functions of the penalty that are convex and piecewise linear.

A function is a run of points (penalty, value), from penalty 0 upwards, and the slope after the last
point. ``unit`` is the size of the rewards, against which rounding is judged.
"""

from typing import NamedTuple

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel._jit import inlined, kernel
from counsel.planning._backward_kernels import Model, StepTables, step_tables
from counsel.planning._gain_kernels import gain_by_differences

STRAIGHT = 1e-13
"""A point this close to the line between its neighbours, relative to its size, is not a kink."""

CLEAR = 1e-11
"""Advice beats silence only by more than this share of their size: a plateau is not a gain."""


class Functions(NamedTuple):
    """The functions of all states of a step, one after the other.

    Function s has the points ``begin[s]`` up to ``begin[s + 1]`` of ``at`` (penalties) and
    ``value``, and the slope ``last[s]`` after them.
    """

    begin: Ints
    at: Floats
    value: Floats
    last: Floats


class Candidates(NamedTuple):
    """Functions on a common grid of penalties: one per advice and, last, silence.

    ``y_bn`` are the values on the grid, ``last_b`` the slopes after it; ``may_b`` says which
    candidates may be chosen.
    """

    grid: Floats
    y_bn: Floats
    last_b: Floats
    may_b: Bools


@kernel
def merge(grid: Floats, functions: Functions, s: int, unit: float) -> Floats:
    """Merge a rising run of penalties with those of function ``s``, without repetitions."""
    at, end = functions.at, functions.begin[s + 1]
    i, j, n = 0, functions.begin[s], 0
    out = np.empty(grid.size + end - j)
    while i < grid.size or j < end:
        if j >= end or (i < grid.size and grid[i] <= at[j]):
            x = grid[i]
            i += 1
        else:
            x = at[j]
            j += 1
        if n == 0 or x > out[n - 1] + STRAIGHT * (unit + x):
            out[n] = x
            n += 1
    return out[:n]


@kernel
def add(weight: float, functions: Functions, s: int, grid: Floats, out: Floats) -> None:
    """Add ``weight`` times function ``s`` to ``out`` at the penalties of ``grid``."""
    at, value = functions.at, functions.value
    j, end = functions.begin[s], functions.begin[s + 1]
    for i in range(grid.size):
        x = grid[i]
        while j + 1 < end and at[j + 1] <= x:
            j += 1
        last = functions.last[s]
        rise = (value[j + 1] - value[j]) / (at[j + 1] - at[j]) if j + 1 < end else last
        out[i] += weight * (value[j] + rise * (x - at[j]))


@inlined
def rise_of(lines: Candidates, b: int, i: int) -> float:
    """Return the slope of candidate ``b`` after point ``i`` of the grid."""
    grid, y_bn = lines.grid, lines.y_bn
    if i == grid.size - 1:
        return float(lines.last_b[b])
    return float((y_bn[b, i + 1] - y_bn[b, i]) / (grid[i + 1] - grid[i]))


@kernel
def envelope(
    lines: Candidates, unit: float, out_at: Floats, out_value: Floats
) -> tuple[int, float]:
    """Compute the upper envelope of the candidates; return its length and last slope.

    Between two penalties of the grid every candidate is a straight line, so the loop moves from
    crossing to crossing.
    """
    grid, y_bn, may_b, B = lines.grid, lines.y_bn, lines.may_b, lines.may_b.size
    fill, best_slope = 0, 0.0
    for i in range(grid.size):
        x = grid[i]
        stop = np.inf if i == grid.size - 1 else grid[i + 1]
        while True:
            best, best_y, best_slope = -1, -np.inf, -np.inf
            for b in range(B):
                if not may_b[b]:
                    continue
                rise = rise_of(lines, b, i)
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
                rise = rise_of(lines, b, i)
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
    grid, y_bn, last_b, A = lines.grid, lines.y_bn, lines.last_b, lines.may_b.size - 1
    top = 0.0
    for a in range(A):
        if not lines.may_b[a]:
            continue
        for i in range(grid.size - 1, -1, -1):
            near = CLEAR * (unit + abs(y_bn[A, i]))
            gap = y_bn[a, i] - y_bn[A, i]
            rise = last_b[a] - last_b[A]
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


@kernel
def candidates_at(
    model: Model, tables: StepTables, s: int, functions: Functions, unit: float
) -> Candidates:
    """Return the functions of each advice and of silence in one cell."""
    row_sa, reward_sa, policy_sa, lift_sa, permitted_sa, _ = tables
    A, grid = policy_sa.shape[1], np.zeros(1)
    for a in range(A):
        i = row_sa[s, a]
        if i < 0 or not (policy_sa[s, a] > 0.0 or permitted_sa[s, a]):
            continue
        for j in range(model.indptr[i], model.indptr[i + 1]):
            t = model.next_state[j]
            if functions.begin[t + 1] - functions.begin[t] > 1:
                grid = merge(grid, functions, t, unit)
    n = grid.size
    q_an, last_1a = np.zeros((A, n)), np.zeros((1, A))
    y_bn, last_b, may_b = np.zeros((A + 1, n)), np.zeros(A + 1), np.ones(A + 1, np.bool_)
    for a in range(A):
        i = row_sa[s, a]
        if i < 0:
            continue
        for k in range(n):
            q_an[a, k] = reward_sa[s, a]
        for j in range(model.indptr[i], model.indptr[i + 1]):
            t, p = model.next_state[j], model.probability[j]
            add(p, functions, t, grid, q_an[a])
            last_1a[0, a] += p * functions.last[t]
    for a in range(A):
        if policy_sa[s, a] > 0.0:
            for k in range(n):
                y_bn[A, k] += policy_sa[s, a] * q_an[a, k]
            last_b[A] += policy_sa[s, a] * last_1a[0, a]
    for a in range(A):
        may_b[a] = permitted_sa[s, a]
        lift = lift_sa[s, a]
        last_b[a] = last_b[A] + gain_by_differences(policy_sa, s, a, lift, last_1a, 0) - 1.0
        for k in range(n):
            more = gain_by_differences(policy_sa, s, a, lift, q_an.T, k)
            y_bn[a, k] = y_bn[A, k] + more - grid[k]
    return Candidates(grid, y_bn, last_b, may_b)


@kernel
def step_back(
    model: Model, h: int, functions: Functions, unit: float, most: int, critical_s: Floats
) -> Functions:
    """Return the functions of all states one step earlier; fill the criticality of the step.

    Without any points if there would be more than ``most``.
    """
    S, A = model.policy_lsa.shape[1:]
    tables = step_tables(model, h)
    required_s = tables[5]
    room, fill = max(16, 2 * functions.at.size), 0
    new_at, new_value = np.empty(room), np.empty(room)
    new_begin, new_last = np.empty(S + 1, np.int64), np.empty(S)
    for s in range(S):
        lines = candidates_at(model, tables, s, functions, unit)
        critical_s[s] = np.inf if required_s[s] else supremum(lines, unit)
        lines.may_b[A] = not required_s[s]
        space = lines.grid.size * (A + 1) + 1
        own_at, own_value = np.empty(space), np.empty(space)
        length, new_last[s] = envelope(lines, unit, own_at, own_value)
        length = straighten(own_at, own_value, length, new_last[s], unit)
        new_begin[s] = fill
        if fill + length > most:
            return Functions(new_begin, np.empty(0), np.empty(0), new_last)
        if fill + length > room:
            room = 2 * (fill + length)
            bigger_at, bigger_value = np.empty(room), np.empty(room)
            for i in range(fill):
                bigger_at[i], bigger_value[i] = new_at[i], new_value[i]
            new_at, new_value = bigger_at, bigger_value
        for i in range(length):
            new_at[fill + i], new_value[fill + i] = own_at[i], own_value[i]
        fill += length
    new_begin[S] = fill
    return Functions(new_begin, new_at[:fill], new_value[:fill], new_last)
