"""People drawn at random and what they choose, alone and when advised."""

import numpy as np

from counsel.estimate.pooling import AdviceCounts, pool
from tests.support.later import Later

stats = Later("scipy.stats")


def draw_lifts(rng, pi):
    """Lifts [family, unit] that are alike in a family: a normal, cut to where they are possible."""
    out = np.empty(pi.shape)
    for f, row in enumerate(pi):
        mu, tau = rng.uniform(0.0, 0.9), rng.uniform(0.0, 0.3)
        for u, own in enumerate(row):
            floor = max(-1.0, -own / (1.0 - own))
            low, high = stats.norm.cdf([(floor - mu) / tau, (1.0 - mu) / tau])
            drawn = mu + tau * stats.norm.ppf(rng.uniform(low, high))
            out[f, u] = np.clip(drawn, floor, 1.0)
    return out


def draw_choices_of_many(rng, pi, lift, *, n, silent):
    """Counts of many cells: silent and refusing [cell, a], matched [cell, b] of n each."""
    alone = rng.multinomial(silent, pi).astype(float)
    against, matched = np.zeros(pi.shape), np.zeros(pi.shape)
    for b in range(pi.shape[1]):
        law = (1.0 - lift[:, b, None]) * pi
        law[:, b] += lift[:, b]
        acts = rng.multinomial(n, np.clip(law, 0.0, 1.0) / law.sum(axis=1, keepdims=True))
        matched[:, b] = acts[:, b]
        acts[:, b] = 0
        against += acts
    return alone, against, matched


def held(low, high, truth):
    """Return the share of intervals that hold the truth."""
    return float(np.mean((low <= truth) & (truth <= high)))


def pooled(given, matched, habits, sizes=None):
    """Pool units of one family."""
    units = len(given)
    sizes = np.full(units, np.inf) if sizes is None else np.asarray(sizes, dtype=float)
    given, matched = np.asarray(given, dtype=float), np.asarray(matched, dtype=float)
    family = np.zeros(units, dtype=np.int64)
    return pool(
        AdviceCounts(np.arange(units), family, given, matched, np.asarray(habits, float), sizes)
    )
