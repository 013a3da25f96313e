"""Compiled loops over functions of the penalty that are convex and piecewise linear.

A function is a run of points (penalty, value), from penalty 0 upwards, and the slope after the last
one. All functions of a step lie one after the other in two long arrays, ``at`` and ``value``;
function s takes the places ``begin[s]`` up to ``begin[s + 1]``. ``unit`` is the size of the
rewards, against which rounding is judged.
"""

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel._jit import as_int64, kernel
from counsel.planning._gain_kernels import gain_by_differences

STRAIGHT = 1e-13
"""A point this close to the line between its neighbours, relative to its size, is no kink."""

CLEAR = 1e-11
"""Advice beats silence only by more than this share of their size: a plateau is not a gain."""


@kernel
def merge(a: Floats, a_end: int, at: Floats, begin: int, end: int, unit: float, out: Floats) -> int:
    """Merge two rising runs of penalties, leaving out repetitions; return the length."""
    i, j, n = 0, begin, 0
    while i < a_end or j < end:
        if j >= end or (i < a_end and a[i] <= at[j]):
            x = a[i]
            i += 1
        else:
            x = at[j]
            j += 1
        if n == 0 or x > out[n - 1] + STRAIGHT * (unit + x):
            out[n] = x
            n += 1
    return n


@kernel
def add(
    weight: float,
    at: Floats,
    value: Floats,
    begin: int,
    end: int,
    last: float,
    grid: Floats,
    n: int,
    out: Floats,
) -> None:
    """Add ``weight`` times a function to ``out`` at the penalties of ``grid``."""
    j = begin
    for i in range(n):
        x = grid[i]
        while j + 1 < end and at[j + 1] <= x:
            j += 1
        rise = (value[j + 1] - value[j]) / (at[j + 1] - at[j]) if j + 1 < end else last
        out[i] += weight * (value[j] + rise * (x - at[j]))


@kernel
def envelope(
    grid: Floats,
    n: int,
    y_bn: Floats,
    last_b: Floats,
    may_b: Bools,
    unit: float,
    out_at: Floats,
    out_value: Floats,
) -> tuple[int, float]:
    """Take the upper envelope of lines given on a grid; return its length and last slope.

    Between two penalties of the grid every candidate is a straight line, so the envelope there is
    found by walking from crossing to crossing.
    """
    B = may_b.size
    fill, end_slope = 0, 0.0
    for i in range(n):
        x, final = grid[i], i == n - 1
        stop = np.inf if final else grid[i + 1]
        while True:
            best, best_y, best_slope = -1, -np.inf, -np.inf
            for b in range(B):
                if not may_b[b]:
                    continue
                rise = last_b[b] if final else (y_bn[b, i + 1] - y_bn[b, i]) / (stop - grid[i])
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
                rise = last_b[b] if final else (y_bn[b, i + 1] - y_bn[b, i]) / (stop - grid[i])
                if rise > best_slope + STRAIGHT * (abs(rise) + abs(best_slope)):
                    y = y_bn[b, i] + rise * (x - grid[i])
                    meet = x + (best_y - y) / (rise - best_slope)
                    if meet > x + STRAIGHT * (unit + x) and meet < crossing:
                        crossing = meet
            if final:
                end_slope = best_slope
            if crossing >= stop - STRAIGHT * (unit + x):
                break
            x = crossing
    return fill, end_slope


@kernel
def straighten(at: Floats, value: Floats, n: int, last: float, unit: float) -> int:
    """Drop the points that are no kinks, in place; return how many stay."""
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
def supremum(
    grid: Floats, n: int, y_bn: Floats, last_b: Floats, may_b: Bools, unit: float
) -> float:
    """Return the largest penalty below which some advice beats silence, 0 when none does.

    The last candidate is silence.
    """
    A = may_b.size - 1
    top = 0.0
    for a in range(A):
        if not may_b[a]:
            continue
        for i in range(n - 1, -1, -1):
            near = CLEAR * (unit + abs(y_bn[A, i]))
            gap = y_bn[a, i] - y_bn[A, i]
            rise = last_b[a] - last_b[A]
            if i < n - 1:
                rise = (y_bn[a, i + 1] - y_bn[A, i + 1] - gap) / (grid[i + 1] - grid[i])
            elif rise > STRAIGHT or (rise >= -STRAIGHT and gap > near):
                return np.inf
            if gap > near:
                reach = grid[i] + (gap / -rise if rise < 0.0 else 0.0)
                if i < n - 1:
                    reach = min(reach, grid[i + 1])
                top = max(top, reach)
                break
    return top


@kernel
def step_pieces(
    row_sa: Ints,
    indptr: Ints,
    next_state: Ints,
    probability: Floats,
    reward_sa: Floats,
    policy_sa: Floats,
    lift_sa: Floats,
    speak_sa: Bools,
    must_s: Bools,
    begin: Ints,
    at: Floats,
    value: Floats,
    last: Floats,
    unit: float,
    most: int,
    new_begin: Ints,
    new_last: Floats,
    critical_s: Floats,
) -> tuple[Floats, Floats]:
    """Carry the functions of all states one step back; fill the criticality of the step.

    Returns the new points; empty when there would be more than ``most``.
    """
    S, A = policy_sa.shape
    room = max(16, 2 * at.size)
    new_at, new_value = np.empty(room), np.empty(room)
    fill = 0
    may_b = np.empty(A + 1, np.bool_)
    last_b, last_1a = np.empty(A + 1), np.empty((1, A))
    for s in range(S):
        grid, n = np.zeros(1), as_int64(1)
        for a in range(A):
            i = row_sa[s, a]
            if i < 0 or not (policy_sa[s, a] > 0.0 or speak_sa[s, a]):
                continue
            for j in range(indptr[i], indptr[i + 1]):
                t = next_state[j]
                if begin[t + 1] - begin[t] > 1:
                    wider = np.empty(n + begin[t + 1] - begin[t])
                    n = merge(grid, n, at, begin[t], begin[t + 1], unit, wider)
                    grid = wider
        q_an = np.zeros((A, n))
        for a in range(A):
            i, last_1a[0, a] = row_sa[s, a], 0.0
            if i < 0:
                continue
            for k in range(n):
                q_an[a, k] = reward_sa[s, a]
            for j in range(indptr[i], indptr[i + 1]):
                t, p = next_state[j], probability[j]
                add(p, at, value, begin[t], begin[t + 1], last[t], grid, n, q_an[a])
                last_1a[0, a] += p * last[t]
        y_bn = np.zeros((A + 1, n))
        last_b[A] = 0.0
        for a in range(A):
            if policy_sa[s, a] > 0.0:
                for k in range(n):
                    y_bn[A, k] += policy_sa[s, a] * q_an[a, k]
                last_b[A] += policy_sa[s, a] * last_1a[0, a]
        for a in range(A):
            may_b[a] = speak_sa[s, a]
            lift = lift_sa[s, a]
            rise = gain_by_differences(policy_sa, s, a, lift, last_1a, 0)
            last_b[a] = last_b[A] + rise - 1.0
            for i in range(n):
                more = gain_by_differences(policy_sa, s, a, lift, q_an.T, i)
                y_bn[a, i] = y_bn[A, i] + more - grid[i]
        may_b[A] = True
        critical_s[s] = np.inf if must_s[s] else supremum(grid, n, y_bn, last_b, may_b, unit)
        may_b[A] = not must_s[s]
        space = n * (A + 1) + 1
        own_at, own_value = np.empty(space), np.empty(space)
        length, end_slope = envelope(grid, n, y_bn, last_b, may_b, unit, own_at, own_value)
        length = straighten(own_at, own_value, length, end_slope, unit)
        new_begin[s] = fill
        new_last[s] = end_slope
        if fill + length > most:
            return np.empty(0), np.empty(0)
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
    return new_at[:fill], new_value[:fill]
