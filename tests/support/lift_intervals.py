"""Intervals around the true lifts of drawn problems, for tests of optimism."""

from dataclasses import replace

import numpy as np

from tests.support.memory_model import lift_at


def without_masks(P):
    """Return the problem without forbidden advice, which learners do not know of."""
    return replace(P, forbidden=np.zeros_like(P.forbidden))


def true_lifts(P):
    """Return the lifts [m, h, s, a], 0 where the person is certain."""
    lift = np.zeros(P.lift.shape)
    for m, h, s, b in np.ndindex(lift.shape):
        lift[m, h, s, b] = lift_at(P, m, h, s, b)
    return lift


def least_lifts(P):
    """Return the lowest lift that a person can have [m, h, s, a]."""
    rest = 1.0 - P.habit
    least = -P.habit / np.where(rest > 0.0, rest, 1.0)
    return np.broadcast_to(np.maximum(least, -3.0), P.lift.shape)


def draw_interval(P, rng):
    """Return low and high ends [m, h, s, a] that a person can have, with the truth between them."""
    lift = true_lifts(P)
    down, up = rng.random(lift.shape), rng.random(lift.shape)
    low = lift - down * (lift - np.minimum(least_lifts(P), lift))
    return low, lift + up * (1.0 - lift)
