"""Confidence bounds of an adherence θ from k matches in n pieces of advice, p = k / n.

A bound is a value: it says how wide an interval is, and everything else (how many groups share an
adherence, how long an episode is, how many have gone by) is told when it is asked.

* ``Theory``: the paper's set for Theorem 1 (appendix A.2), with L = log(12 G T H / δ), G groups,
  T episodes of H steps: every θ in [0, 1] with

      |θ − p| ≤ 2 √(L / n),    |θ − p| ≤ √(2 p (1 − p) L / n) + 7 L / (3 (n − 1)),
      √(θ (1 − θ)) ≥ √(p (1 − p)) − √(2 log(G T H / δ) / (n − 1)),

  and [0, 1] for n ≤ 1. All hold at once for all groups, counts and episodes with probability 1 − δ.
  (As the third line has no 12, adding up the constants gives 4 δ / 3; enumerated, it fails with
  probability below 1e-8 at δ = 0.5.)
  Deviates: the paper prints √(1 + 4 x²) where the third line needs √(1 − 4 x²) (with the printed
  sign it never binds), 3 n − 1 for 3 (n − 1), T where counts run to T H, and in its set leaves out
  a square root.
* ``PaperBonus``: what the paper's experiments use, p ± c √(2 log n / n) with c = 0.4, and [0, 1]
  until n = 2. No guarantee: where the first two pieces of advice are refused it may never try again
  (at n = 1 the printed bonus is even 0). Made for updates in batches.
* ``KL()``: n kl(p, θ) ≤ log(1 + t) at episode t, where t is held at the last power of two, so that
  between them a bound only moves where something was seen. The practical choice; no δ.
* ``KL(delta=δ)``: n kl(p, θ) ≤ log(G (n + 1) / δ). Two-sided, for all groups and all n at once with
  probability 1 − δ (a mixture martingale, the beta-binomial one: its ratio to the likelihood of
  any θ is at least exp(n kl(p, θ)) / (n + 1), and exceeds G / δ ever with probability δ / G).
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from counsel._arrays import Floats, Ints, real, whole
from counsel.errors import CounselError
from counsel.estimate._kernels import (
    KL_EVERY,
    KL_LEVEL,
    PAPER,
    THEORY,
    Rule,
    fill_bounds,
)


class Bound(Protocol):
    """A way to bound adherence."""

    def rule(self, *, groups: int, horizon: int) -> Rule:
        """Return the bound in numbers for so many groups and steps in an episode."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Theory:
    """The paper's bound, valid with probability 1 − ``delta`` over ``episodes`` episodes."""

    delta: float
    episodes: int

    def __post_init__(self) -> None:
        _check_delta(self.delta)
        whole("episodes", self.episodes, least=1)

    def rule(self, *, groups: int, horizon: int) -> Rule:
        """Return the two logarithms."""
        union = math.log(groups) + math.log(self.episodes) + math.log(horizon)
        union -= math.log(self.delta)
        return Rule(THEORY, union + math.log(12.0), union)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperBonus:
    """The paper's practical bonus; ``scale`` is its 0.4."""

    scale: float = 0.4

    def __post_init__(self) -> None:
        if not 0.0 < real("scale", self.scale) < math.inf:
            raise CounselError(f"scale is {self.scale}; it must be above 0 and finite")

    def rule(self, *, groups: int, horizon: int) -> Rule:
        """Return the scale."""
        return Rule(PAPER, float(self.scale), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class KL:
    """The Kullback–Leibler bound: practical, or valid with probability 1 − ``delta``."""

    delta: float | None = None

    def __post_init__(self) -> None:
        if self.delta is not None:
            _check_delta(self.delta)

    def rule(self, *, groups: int, horizon: int) -> Rule:
        """Return log(G / δ), or nothing: the level then comes with the episode."""
        if self.delta is None:
            return Rule(KL_LEVEL, 0.0, 0.0)
        return Rule(KL_EVERY, math.log(groups) - math.log(self.delta), 0.0)


def interval(  # noqa: PLR0913 (counts, and what a bound depends on)
    bound: Bound, matched: Ints, given: Ints, *, groups: int, horizon: int, episode: int
) -> tuple[Floats, Floats]:
    """Return the lower and upper ends for each count.

    Parameters
    ----------
    bound
        How to bound.
    matched, given
        How often the action equalled the advice, and how often it was given.
    groups, horizon
        How many adherences are bounded at once, and how many steps an episode has.
    episode
        How many episodes have gone by.
    """
    matched, given = np.asarray(matched, dtype=np.int64), np.asarray(given, dtype=np.int64)
    low, high = np.empty(given.shape), np.empty(given.shape)
    rule = bound.rule(groups=groups, horizon=horizon)
    level = level_at(episode)
    fill_bounds(rule, matched.reshape(-1), given.reshape(-1), level, low.ravel(), high.ravel())
    return low, high


def level_at(episode: int) -> float:
    """Return log(1 + t), t the last power of two up to ``episode``."""
    return math.log1p(2 ** (int(episode).bit_length() - 1)) if episode > 0 else 0.0


def _check_delta(delta: object) -> None:
    if not 0.0 < real("delta", delta) < 1.0:
        raise CounselError(f"delta is {delta}; it must lie between 0 and 1")
