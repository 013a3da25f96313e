"""The lift of one person whose listening fades with the levels of a memory.

On level m of a memory advice moves the person with probability f_m λ: f_m, the *fading*, is known,
and λ, the lift of a person for whom f is 1, is learnt. A piece is matched with probability

    θ = π + f_m λ (1 − π),        a refusal has probability (1 − π) (1 − f_m λ),

so the likelihood of what was given (n) and matched (k) in each cell c of state and level is

    g(λ) = Σ_c [k_c log θ_c + (n_c − k_c) log(1 − f_c λ)] + a log λ + b log(1 − λ).

a and b are matches and refusals of a prior, as if given to somebody rested who would not have
acted alone. g is concave. The estimate is its maximum λ̂; the upper bound is the largest λ with
g(λ̂) − g(λ) ≤ log(1 + t) after t pieces; draws and intervals are of the density ∝ exp(g(λ)) with
Jeffreys' prior, which is flat in φ with λ = sin² φ. If nobody would have acted alone and f is 1,
all of these are those of ``person.py``.

Matches less those expected, Σ (k − n π) / Σ n f (1 − π), estimate λ without bias, too, but a piece
on a faded level says less than the share f of a piece: kl(f p, f q) ≤ f kl(p, q).
"""

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from counsel._arrays import Floats, Ints

HALVINGS = 60
"""Steps of a bisection: as many as there are digits to find."""

GRID = 1024
"""Points of the density of a lift."""

AT_ONCE = 1_000_000
"""Numbers in memory while a density is computed, about."""

LEAST = 1e-300


class LevelCounts(NamedTuple):
    """Pieces that were seen, and matches, one entry for each state, advice and level."""

    state: Ints
    advice: Ints
    level: Ints
    given: Floats
    matched: Floats


class FadedPieces(NamedTuple):
    """What the likelihood of the lift [b] of each advice is made of, one entry per cell.

    ``own`` is the chance that the person acts so anyway; ``hits`` and ``misses`` [b] are the prior.
    """

    advice: Ints
    own: Floats
    fading: Floats
    matched: Floats
    refused: Floats
    hits: Floats
    misses: Floats

    @property
    def highest(self) -> Floats:
        """The largest lift [b] at which no level has a lift above 1."""
        most = np.ones(self.hits.size)
        np.maximum.at(most, self.advice, self.fading)
        return 1.0 / most


def faded_pieces(
    counts: LevelCounts, habit: Floats, fading: Floats, hits: Floats, misses: Floats
) -> FadedPieces:
    """Return the cells that say something of a lift, for a habit [s, a] and a fading [m]."""
    own, factor = habit[counts.state, counts.advice], fading[counts.level]
    says = (own < 1.0) & (factor > 0.0)
    matched, refused = counts.matched[says], (counts.given - counts.matched)[says]
    return FadedPieces(counts.advice[says], own[says], factor[says], matched, refused, hits, misses)


def exposure_of(pieces: FadedPieces) -> Floats:
    """Return how many pieces [b] could have moved the person, each counted by its fading."""
    each = (pieces.matched + pieces.refused) * pieces.fading * (1.0 - pieces.own)
    return _by_advice(pieces, each)


def likeliest_lift(pieces: FadedPieces) -> Floats:
    """Return the lift [b] of each advice at which the likelihood is highest."""
    low, high = np.zeros(pieces.hits.size), pieces.highest
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        rises = _slope(pieces, middle) > 0.0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    return 0.5 * (low + high)


def upper_faded_lift(pieces: FadedPieces, lift: Floats, level: float) -> Floats:
    """Return the largest lift [b] whose likelihood is within ``level`` of that of ``lift``."""
    low, high = lift, pieces.highest
    least = _log_likelihood(pieces, lift) - level
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        within = _log_likelihood(pieces, middle) >= least
        low, high = np.where(within, middle, low), np.where(within, high, middle)
    return low


def drawn_lift(pieces: FadedPieces, rng: Generator) -> Floats:
    """Return a draw of the lift [b] of each advice."""
    return lift_quantiles(pieces, rng.random(pieces.hits.size))


def lift_quantiles(pieces: FadedPieces, share: Floats | float) -> Floats:
    """Return the lift [b] of each advice below which a share [b] of its density lies."""
    angle_g = (np.arange(GRID) + 0.5) / GRID
    most = pieces.highest
    lift_gb = most * np.sin(0.5 * np.pi * angle_g[:, None]) ** 2
    parts = min(GRID * max(pieces.advice.size, 1) // AT_ONCE + 1, GRID)
    height_gb = np.concatenate(
        [_log_likelihood(pieces, part) for part in np.array_split(lift_gb, parts)]
    )
    density_gb = np.exp(height_gb - height_gb.max(axis=0))
    share_gb = np.cumsum(density_gb, axis=0) / density_gb.sum(axis=0)
    wanted = np.broadcast_to(share, most.shape)
    edges = np.concatenate(([0.0], (np.arange(GRID) + 1.0) / GRID))
    at = [
        np.interp(wanted[b], np.concatenate(([0.0], share_gb[:, b])), edges)
        for b in range(most.size)
    ]
    quantiles: Floats = most * np.sin(0.5 * np.pi * np.array(at)) ** 2
    return quantiles


def _slope(pieces: FadedPieces, lift: Floats) -> Floats:
    """Return the derivative [b] of the log likelihood."""
    moved = pieces.fading * lift[pieces.advice]
    matches = pieces.matched * pieces.fading * (1.0 - pieces.own)
    each = matches / np.maximum(pieces.own + moved * (1.0 - pieces.own), LEAST)
    each -= pieces.refused * pieces.fading / np.maximum(1.0 - moved, LEAST)
    prior = pieces.hits / np.maximum(lift, LEAST) - pieces.misses / np.maximum(1.0 - lift, LEAST)
    slope: Floats = _by_advice(pieces, each) + prior
    return slope


def _log_likelihood(pieces: FadedPieces, lift: Floats) -> Floats:
    """Return the log likelihood [b], or [g, b] for lifts [g, b]."""
    moved = pieces.fading * lift[..., pieces.advice]
    each = pieces.matched * np.log(np.maximum(pieces.own + moved * (1.0 - pieces.own), LEAST))
    each += pieces.refused * np.log(np.maximum(1.0 - moved, LEAST))
    prior = pieces.hits * np.log(np.maximum(lift, LEAST))
    prior += pieces.misses * np.log(np.maximum(1.0 - lift, LEAST))
    height: Floats = _by_advice(pieces, each) + prior
    return height


def _by_advice(pieces: FadedPieces, each: Floats) -> Floats:
    """Return the sums [b] of numbers [cell], or [g, b] of [g, cell]."""
    total: Floats = each @ (pieces.advice[:, None] == np.arange(pieces.hits.size))
    return total
