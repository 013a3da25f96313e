"""What people do when left alone, from silence and from refusals.

In silence the person draws an action from π. A refusal of advice b is a draw from π conditioned on
not b (the adherence law). With N_a the free choices of a of either kind, n the silent decisions and
m_b the refusals of b, the likelihood is

    Π_a π_a^{N_a}  Π_b (1 − π_b)^{−m_b}

that of Luce's choice model with the sets "all" and "all but b". Hunter's (2004) iteration climbs it

    π_a ← N_a / (n + Σ_{b≠a} m_b / (1 − π_b))        and is scaled to sum to one.

π is *told* where there was silence, or where two different pieces of advice were refused and there
are three actions or more: then the sets overlap and together hold every action. With refusals of
one advice only, nothing says how often that advice would have been taken anyway.

The information of the likelihood gives each π_a a variance, and so the number of silent decisions
that would have told as much; intervals are Wilson's on that number.
"""

from dataclasses import dataclass

import numpy as np

from counsel._arrays import Bools, Floats
from counsel.estimate.rates import wilson

ROUNDS = 2000
"""Iterations after which the rest is left: each changes π by less than the last."""

CLOSE = 1e-12
"""π is taken to have arrived when no entry changes by more."""


@dataclass(frozen=True, slots=True, eq=False)
class Habit:
    """The likeliest π of each cell, and how well it is known.

    Attributes
    ----------
    policy
        [cell, a]; all decisions there taken together where π is not told.
    told
        [cell]: whether the data say what π is.
    size
        [cell, a]: the number of silent decisions that would have told π_a as well.
    low, high
        [cell, a]: 95 % intervals.
    """

    policy: Floats
    told: Bools
    size: Floats
    low: Floats
    high: Floats


def habit_of(silent: Floats, refusing: Floats, refused: Floats, taken: Floats) -> Habit:
    """Return the likeliest habits.

    Parameters
    ----------
    silent
        [cell, a]: how often a was taken in silence.
    refusing
        [cell, a]: how often a was taken against advice.
    refused
        [cell, b]: how often advice b was refused.
    taken
        [cell, a]: how often a was taken at all; the habit is that where nothing else is told.
    """
    n = silent.sum(axis=-1)
    free = silent + refusing
    A = silent.shape[-1]
    told = (n > 0.0) | (((refused > 0.0).sum(axis=-1) > 1) & (A > 2))
    policy = np.where(told[:, None], free, taken)
    total = policy.sum(axis=-1, keepdims=True)
    policy = np.divide(policy, total, out=np.full(policy.shape, 1.0 / A), where=total > 0.0)
    moving = told & (refused.sum(axis=-1) > 0.0)
    policy[moving] = _climb(policy[moving], free[moving], n[moving], refused[moving])
    size = _sizes(policy, n, refused)
    size[~told] = 0.0
    low, high = wilson(size * policy, size)
    return Habit(policy=policy, told=told, size=size, low=low, high=high)


def _climb(policy: Floats, free: Floats, n: Floats, refused: Floats) -> Floats:
    """Iterate until nothing moves; cells that have arrived are left out."""
    policy = policy.copy()
    live = np.arange(len(policy))
    for _ in range(ROUNDS):
        now = policy[live]
        others = np.maximum(1.0 - now, 1e-300)
        per_set = np.where(refused[live] > 0.0, refused[live] / others, 0.0)
        within = n[live, None] + per_set.sum(axis=-1, keepdims=True) - per_set
        new = np.where(free[live] > 0.0, free[live] / np.maximum(within, 1e-300), 0.0)
        new /= new.sum(axis=-1, keepdims=True)
        policy[live] = new
        live = live[np.abs(new - now).max(axis=-1) > CLOSE]
        if not live.size:
            break
    return policy


def _sizes(policy: Floats, n: Floats, refused: Floats) -> Floats:
    """Return π_a (1 − π_a) / var(π_a), the variance by the inverse information.

    With logits x_a of π the information is Σ_C m_C (diag(q) − q qᵀ), q = π restricted to C; the
    logits are known up to a constant, which the pseudo-inverse leaves out.
    """
    A = policy.shape[1]
    size = np.repeat(n[:, None], A, axis=1)
    moving = np.flatnonzero(refused.sum(axis=-1) > 0.0)
    if not moving.size:
        return size
    pi = policy[moving]
    info = n[moving, None, None] * _spread(pi)
    for b in range(A):
        m = refused[moving, b]
        without = np.where(np.arange(A) == b, 0.0, pi)
        total = without.sum(axis=-1, keepdims=True)
        q = np.divide(without, total, out=np.zeros_like(without), where=total > 0.0)
        info += m[:, None, None] * _spread(q)
    slope = _spread(pi)  # ∂π / ∂x
    variance = np.einsum("cij,cjk,cik->ci", slope, np.linalg.pinv(info, hermitian=True), slope)
    shares = pi * (1.0 - pi)
    known = (variance > 0.0) & (shares > 0.0)
    found = np.divide(shares, variance, out=np.zeros_like(shares), where=known)
    # At 0 and 1 the variance vanishes: there, all the free choices that could have been a count.
    chances = n[moving, None] + refused[moving].sum(axis=-1, keepdims=True) - refused[moving]
    size[moving] = np.where(known, found, chances)
    return size


def _spread(q: Floats) -> Floats:
    """Return diag(q) − q qᵀ for each row."""
    outer = -q[:, :, None] * q[:, None, :]
    index = np.arange(q.shape[1])
    outer[:, index, index] += q
    return outer
