"""How often a confidence sequence ever misses the truth, in simulated runs whose truth is known.

A run is looked at after every outcome or episode. It is covered if no look misses: the truth of
each look is computed from the chances that the run was drawn with, not by the sequences.

Most looks need no sequence to be computed. A mixture is at most the largest likelihood ratio, whose
logarithm is n kl(p̂, p) ≤ χ² = n (p̂ − p)² / (p (1 − p)): where χ² ≤ log(1/α), p is covered. Where
the usual interval of a mean covers, so does a sequence, which is wider. With
``screen=False`` every look is computed.
"""

import numpy as np

from counsel.estimate.confidence_sequences import (
    AdviceCounts,
    Sums,
    bounded_mean_sequence,
    constant_share_sequence,
    difference_sequence,
    lift_sequence,
    share_sequence,
    weighted_difference_sequence,
)
from counsel.estimate.intervals import student, wilson

Z = 1.959963984540054
LEVEL = np.log(1.0 / 0.05)
FIRST = 10
"""Looks start at this outcome or episode."""


def share(p, sequence, drift=0.0, screen=True):
    """Outcomes with chance p, which swings by ``drift`` with the share of the hits before."""

    def play(rng, looks):
        draws, chances = rng.random(looks), np.full(looks, p)
        if drift:
            hits = 0
            for i in range(looks):
                chances[i] = p + drift * np.sign(hits / i - p) if i else p
                hits += draws[i] < chances[i]
        n, hits = np.arange(1.0, looks + 1.0), np.cumsum(draws < chances)
        truth = np.cumsum(chances) / n
        doubt = np.flatnonzero(square_distance(hits, n, truth) > (LEVEL if screen else -1.0))
        low, high = sequence(hits[doubt], n[doubt])
        return cover(looks, doubt, low, truth[doubt], high)

    return play


def square_distance(hits, of, p):
    """Return χ² of counts against chances; 0 for no outcomes."""
    return np.where(of > 0.0, (hits - of * p) ** 2 / np.maximum(of * p * (1.0 - p), 1e-300), 0.0)


def cover(looks, doubt, low, truth, high):
    """Return whether each look covers the truth: those in doubt by their interval."""
    is_covered = np.ones(looks, dtype=bool)
    is_covered[doubt] = (low <= truth) & (truth <= high)
    return is_covered


HABITS = np.array([-0.1, 0.0, 0.1])


def lift(habit, moved, known=False, screen=True):
    """Decisions in three states whose habits differ; advice is given where it was matched least.

    Half of the decisions are silent; whom advice moves does not depend on the state.
    """

    def play(rng, looks):
        pi = np.clip(habit + HABITS, 0.0, 1.0)
        theta = pi + moved * (1.0 - pi)
        state = rng.choice(3, size=looks, p=[0.5, 0.3, 0.2])
        # A mix of states that moves: the second half is advised mostly in the last state.
        later = np.arange(looks) >= looks // 2
        is_advised = rng.random(looks) < np.where(later & (state == 0), 0.1, 0.5)
        acts = rng.random(looks) < np.where(is_advised, theta[state], pi[state])
        at = state[:, None] == np.arange(3)
        count = [
            np.cumsum(at & which[:, None], axis=0)
            for which in (is_advised, is_advised & acts, ~is_advised, ~is_advised & acts)
        ]
        given, matched, silent, hits = count
        pieces = given.sum(axis=1)
        mean = (given @ theta) / np.maximum(pieces, 1)
        level = LEVEL if known else LEVEL + np.log(2.0)
        distance = square_distance(matched.sum(axis=1), pieces, np.where(pieces, mean, 0.5))
        is_doubtful = distance > level
        if not known:
            is_doubtful |= square_distance(hits, silent, pi).sum(axis=1) > LEVEL + np.log(4.0)
        doubt = np.flatnonzero(is_doubtful) if screen else np.arange(looks)
        counts = (part[doubt] for part in (given, matched, silent, hits))
        low, high = lift_sequence(AdviceCounts(*counts), pi if known else None)
        return cover(looks, doubt, low, moved, high)

    return play


REWARDS = {
    "normal": lambda rng, size: rng.normal(2.0, 1.0, size),
    "exponential": lambda rng, size: rng.exponential(1.0, size),
    "lognormal": lambda rng, size: rng.lognormal(0.0, 1.0, size),
    "bounded": lambda rng, size: rng.beta(0.5, 2.0, size),
    "rare": lambda rng, size: (rng.random(size) < 0.05).astype(np.float64),
}


def worth(reward, held_out, sequence, adds=0.3):
    """Episodes that are kept silent at random; advice adds ``adds`` to each of the others."""

    def play(rng, looks):
        is_silent = rng.random(looks) < held_out
        rewards = REWARDS[reward](rng, looks) * (1.0 - adds * (reward in ("bounded", "rare")))
        rewards = rewards + np.where(is_silent, 0.0, adds)
        kinds = [
            Sums(*(np.cumsum(which * rewards**power) for power in (0, 1, 2)))
            for which in (~is_silent, is_silent)
        ]
        low, high = sequence(*kinds)
        return (low <= adds) & (adds <= high)

    return play


def bounded_mean(reward):
    def play(rng, looks):
        rewards = REWARDS[reward](rng, looks)
        sums = Sums(np.arange(1.0, looks + 1.0), np.cumsum(rewards), np.cumsum(rewards**2))
        truth = {"bounded": 0.2, "rare": 0.05}[reward]
        low, high = student(*sums.arrays())
        doubt = np.flatnonzero((low > truth) | (truth > high))
        low, high = bounded_mean_sequence(Sums(*(part[doubt] for part in sums.arrays())), 0.0, 1.0)
        return cover(looks, doubt, low, truth, high)

    return play


def usual_difference(advised, silent):
    parts = []
    for sums in (advised, silent):
        n, total, squares = sums.arrays()
        size = np.maximum(n, 2.0)
        mean = total / size
        parts.append((mean, np.maximum(squares - size * mean**2, 0.0) / (size - 1.0) / size))
    (mean1, error1), (mean0, error0) = parts
    half = np.where(np.minimum(advised.arrays()[0], silent.arrays()[0]) >= 2.0, Z, np.inf)
    half = half * np.sqrt(np.maximum(error1 + error0, 1e-12))
    return mean1 - mean0 - half, mean1 - mean0 + half


def weighted(held_out):
    def sequence(advised, silent):
        return weighted_difference_sequence(advised, silent, held_out, (0.0, 1.0))

    return sequence


def cases():
    """Return every kind of run of the study, by name; those named "usual" are for comparison."""
    listed = {"usual: share 0.5": share(0.5, wilson)}
    for p in (0.03, 0.5, 0.97):
        listed[f"share {p}"] = share(p, share_sequence)
        listed[f"constant share {p}"] = share(p, constant_share_sequence)
    listed["share that depends on the past"] = share(0.5, share_sequence, drift=0.3)
    for habit in (0.2, 0.5):
        for moved in (0.0, 0.3):
            listed[f"lift {moved}, habit {habit}"] = lift(habit, moved)
    listed["lift 0.3, habit 0.5 known"] = lift(0.5, 0.3, known=True)
    for reward in ("bounded", "rare"):
        listed[f"bounded mean, {reward}"] = bounded_mean(reward)
    listed["usual: worth, normal, 0.1 silent"] = worth("normal", 0.1, usual_difference)
    for held_out in (0.1, 0.5):
        for reward in REWARDS:
            name = f"worth, {reward}, {held_out} silent"
            listed[name] = worth(reward, held_out, difference_sequence)
        name = f"weighted worth, bounded, {held_out} silent"
        listed[name] = worth("bounded", held_out, weighted(held_out))
    return listed


def horizon(name, looks):
    """Return the last look of a case; a look at a lift or a weighted mean takes longest."""
    is_slow = name.startswith(("lift", "weighted")) and not name.endswith("known")
    return min(looks, 5_000) if is_slow else looks


def covered(name, runs, looks, seed):
    """Return in how many runs of a case every look from ``FIRST`` on covers the truth."""
    rng, play = np.random.default_rng(seed), cases()[name]
    return sum(bool(play(rng, looks)[FIRST - 1 :].all()) for _ in range(runs))


def widths(n):
    """Return the widths of sequences relative to the usual intervals of the same n outcomes.

    For worth, n is the number of episodes, a tenth of them silent, with rewards of variance 1.
    """

    def width(ends):
        return float(ends[1] - ends[0])

    ratios = {}
    for p in (0.03, 0.5, 0.97):
        usual = width(wilson(p * n, n))
        ratios[f"share {p}"] = width(share_sequence(p * n, n)) / usual
        ratios[f"constant share {p}"] = width(constant_share_sequence(p * n, n)) / usual
    theta, pi = 0.65, 0.5  # half of the decisions are silent
    half = n / 2.0
    spread = np.hypot(
        np.sqrt(theta * (1 - theta) / half) / (1 - pi),
        (1 - theta) / (1 - pi) ** 2 * np.sqrt(pi * (1 - pi) / half),
    )
    counts = ([half], [theta * half], [half], [pi * half])
    ratios["lift 0.3, habit 0.5, one state"] = width(lift_sequence(AdviceCounts(*counts))) / (
        2 * Z * spread
    )
    counts = [np.full(4, part[0] / 4.0) for part in counts]
    ratios["lift 0.3, habit 0.5, four states"] = width(lift_sequence(AdviceCounts(*counts))) / (
        2 * Z * spread
    )
    for held_out in (0.1, 0.5):
        parts = [Sums(m, 0.0, max(m - 1.0, 0.0)) for m in ((1 - held_out) * n, held_out * n)]
        ratio = width(difference_sequence(*parts)) / width(usual_difference(*parts))
        ratios[f"worth, {held_out} silent"] = ratio
        exact = [
            Sums(m, 0.5 * m, 0.25 * m + (m - 1.0) / 25.0)
            for m in ((1 - held_out) * n, held_out * n)
        ]
        ratio = width(weighted(held_out)(*exact)) / width(usual_difference(*exact))
        ratios[f"weighted worth, {held_out} silent"] = ratio
    return ratios
