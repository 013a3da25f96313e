"""Compiled likeliest habit of one state, for learners that update it after every decision.

The likelihood is that of ``habit.py``, which handles many cells at once and adds intervals.
"""

import numpy as np

from counsel._arrays import Floats, Ints
from counsel._jit import as_int64, inlined, kernel

ROUNDS = 50
"""The most rounds of Newton's method."""


@kernel
def settle_habit(actions_ba: Ints, own_a: Floats) -> None:
    """Set π̂ of one state to the maximum likelihood estimate from silence and refusals.

    An action in silence is a draw from π, a refusal of advice b a draw from π without b. In
    x = log π the likelihood Σ w(a) x(a) − Σ_C n_C log Σ_{a∈C} exp x(a), over the sets C of choices,
    is concave; Newton's steps, shortened where they overshoot, find its maximum. If there is no
    maximum inside, because some action lost whenever it could be compared, π̂ of that action becomes
    practically 0. Without any free choice π̂ is uniform over the actions seen.
    """
    A = own_a.size
    chosen_a, refused_b = np.zeros(A), np.zeros(A)
    silent, total, kinds = 0.0, 0.0, as_int64(0)
    for a in range(A):
        silent += actions_ba[A, a]
        chosen_a[a] += actions_ba[A, a]
        for b in range(A):
            if b != a:
                chosen_a[a] += actions_ba[b, a]
                refused_b[b] += actions_ba[b, a]
        total += chosen_a[a]
        kinds += chosen_a[a] > 0.0
    if total == 0.0:
        for a in range(A):
            kinds += actions_ba[a, a] > 0
        for a in range(A):
            own_a[a] = 1.0 / kinds if actions_ba[a, a] > 0 else 0.0
        return
    for a in range(A):
        own_a[a] = chosen_a[a] / total
    if kinds > 1 and silent < total:
        climb(chosen_a, refused_b, silent, kinds, own_a)


@kernel
def climb(chosen_a: Floats, refused_b: Floats, silent: float, kinds: int, own_a: Floats) -> None:
    """Climb to the likeliest π from a first guess; actions never chosen freely stay at 0."""
    A, K = own_a.size, 0
    which_k = np.empty(kinds, np.int64)
    for a in range(A):
        if chosen_a[a] > 0.0:
            which_k[K] = a
            K += 1
    x_k, slope_k, trial_a = np.empty(K), np.empty(K), np.empty(A)
    bend_kk = np.empty((K, K))
    here = likelihood(chosen_a, refused_b, silent, own_a)
    for _ in range(ROUNDS):
        for i in range(K):
            slope_k[i] = chosen_a[which_k[i]]
            for j in range(K):
                bend_kk[i, j] = 1e-12 * (chosen_a[which_k[i]] + 1e-300) if i == j else 0.0
        for b in range(-1, A):  # −1 stands for silence
            n, rest = silent if b < 0 else refused_b[b], 0.0
            for i in range(K):
                if which_k[i] != b:
                    rest += own_a[which_k[i]]
            if n == 0.0 or rest <= 0.0:
                continue
            for i in range(K):
                if which_k[i] == b:
                    continue
                p = own_a[which_k[i]] / rest
                slope_k[i] -= n * p
                bend_kk[i, i] += n * p
                for j in range(K):
                    if which_k[j] != b:
                        bend_kk[i, j] -= n * p * own_a[which_k[j]] / rest
        for i in range(1, K):
            x_k[i] = slope_k[i]
        x_k[0] = 0.0  # only differences of x count
        solve_inside(bend_kk, x_k)
        gain, far = 0.0, 0.0
        for i in range(1, K):
            gain += x_k[i] * slope_k[i]
            far = max(far, abs(x_k[i]))
        if gain < 1e-18:
            break
        shrink = min(1.0, 2.0 / far)  # beyond, the curve has nothing to do with the one here
        while True:
            top = -np.inf
            for i in range(K):
                move = np.log(own_a[which_k[i]]) + shrink * x_k[i]
                top = max(top, move)
            whole = 0.0
            for a in range(A):
                trial_a[a] = 0.0
            for i in range(K):
                move = np.log(own_a[which_k[i]]) + shrink * x_k[i] - top
                trial_a[which_k[i]] = np.exp(max(move, -600.0))
                whole += trial_a[which_k[i]]
            for i in range(K):
                trial_a[which_k[i]] = max(trial_a[which_k[i]] / whole, 1e-250)
            there = likelihood(chosen_a, refused_b, silent, trial_a)
            # Close to the maximum rounding hides the differences, and steps are safe.
            if there >= here + 0.1 * shrink * gain or gain < 1e-8 or shrink < 1e-9:
                break
            shrink *= 0.5
        if there <= here and gain >= 1e-8:
            break
        here = there
        for a in range(own_a.size):  # a copy of a slice takes three seconds more to compile
            own_a[a] = trial_a[a]


@inlined
def likelihood(chosen_a: Floats, refused_b: Floats, silent: float, own_a: Floats) -> float:
    """Return the logarithm of the likelihood of free choices."""
    value, whole = 0.0, 0.0
    for a in range(own_a.size):
        whole += own_a[a]
        if chosen_a[a] > 0.0:
            value += chosen_a[a] * np.log(own_a[a])
    value -= silent * np.log(whole)
    for b in range(own_a.size):
        if refused_b[b] > 0.0:
            rest = 0.0
            for a in range(own_a.size):
                if a != b:
                    rest += own_a[a]
            value -= refused_b[b] * np.log(rest)
    return float(value)


@kernel
def solve_inside(matrix_kk: Floats, x_k: Floats) -> None:
    """Solve for all but the first unknown of a symmetric positive system, in place."""
    K = x_k.size
    for i in range(1, K):
        for j in range(i + 1, K):
            factor = matrix_kk[j, i] / matrix_kk[i, i]
            for k in range(i, K):
                matrix_kk[j, k] -= factor * matrix_kk[i, k]
            x_k[j] -= factor * x_k[i]
    for i in range(K - 1, 0, -1):
        for j in range(i + 1, K):
            x_k[i] -= matrix_kk[i, j] * x_k[j]
        x_k[i] /= matrix_kk[i, i]
