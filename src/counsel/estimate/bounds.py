"""Confidence bounds of an adherence θ from k matches in n pieces of advice, p = k / n.

A bound is any object with a method ``rule(groups=…, horizon=…)`` that returns a function of k, n
and the level log(1 + t) at episode t: the upper end. The lower end is 1 less the upper end of the
refusals, n − k. Four bounds are built in; ``docs/how-to/learner.md`` adds another.

* ``Theory``: the paper's set for Theorem 1 (appendix A.2), with L = log(12 G T H / δ), G groups,
  T episodes of H steps: every θ in [0, 1] with

      |θ − p| ≤ 2 √(L / n),    |θ − p| ≤ √(2 p (1 − p) L / n) + 7 L / (3 (n − 1)),
      √(θ (1 − θ)) ≥ √(p (1 − p)) − √(2 log(G T H / δ) / (n − 1)),

  and [0, 1] for n ≤ 1. All hold at once for all groups, counts and episodes with probability 1 − δ.
  Deviates: the paper prints √(1 + 4 x²) where the third line needs √(1 − 4 x²), 3 n − 1 for
  3 (n − 1), T where counts run to T H, and in its set leaves out a square root.
* ``PaperBonus``: what the paper's experiments use, p ± c √(2 log n / n) with c = 0.4, and [0, 1]
  until n = 2. No guarantee: after two refusals at the start it may never try again.
* ``KL()``: n kl(p, θ) ≤ log(1 + t) at episode t, where t is held at the last power of two, so that
  between them a bound only moves where something was seen. The practical choice; no δ.
* ``KL(delta=δ)``: n kl(p, θ) ≤ log(G (n + 1) / δ). Two-sided, for all groups and all n at once with
  probability 1 − δ (a mixture martingale, the beta-binomial one: its ratio to the likelihood of
  any θ is at least exp(n kl(p, θ)) / (n + 1), and exceeds G / δ ever with probability δ / G).
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from counsel._arrays import Floats, Ints, brief, positive, whole
from counsel.errors import CounselError
from counsel.estimate._bound_kernels import KL_EVERY, KL_LEVEL, PAPER, THEORY, Rule, fill_upper


class UpperEnd(Protocol):
    """The upper end of a confidence interval, as a function of counts.

    A Python function, or one compiled by ``numba.njit``: then ``UCBAD`` runs in its compiled loop.
    """

    def __call__(self, matched: float, given: int, level: float, /) -> float:
        """Return the upper end, between 0 and 1, for so many matches in ``given`` ≥ 1 pieces.

        ``matched`` is not a whole number where rewards are bounded. ``level`` is log(1 + t), t the
        last power of two up to the number of episodes so far, and 0 before the first.
        """


class Bound(Protocol):
    """A confidence bound of adherence: ``KL``, ``Theory``, ``PaperBonus``, or one of your own.

    A bound that holds for a number of episodes only has an attribute ``episodes``, that number.

    Examples
    --------
    A bound that adds a fixed width, for a learner with known rewards:

    >>> import counsel
    >>> class Wide:
    ...     def rule(self, *, groups, horizon):
    ...         return lambda matched, given, level: min(matched / max(given, 1) + 0.3, 1.0)
    >>> setting = counsel.make("night-shift").without_adherence()
    >>> counsel.UCBAD(setting, bound=Wide()).advise(0, 1)
    1
    """

    def rule(self, *, groups: int, horizon: int) -> UpperEnd:
        """Return the upper end as a function of the counts of one group.

        Parameters
        ----------
        groups
            The number of adherences that are bounded at once.
        horizon
            The number of steps per episode.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Theory(Bound):
    """The paper's bound on adherence: valid with probability 1 − ``delta`` over all episodes.

    Parameters
    ----------
    delta
        The probability that it ever fails: between 0 and 1.
    episodes
        The number of episodes over which it holds, at least 1. ``UCBAD`` refuses to learn from
        more.

    Raises
    ------
    CounselError
        If ``delta`` is not between 0 and 1, or ``episodes`` no whole number of at least 1.

    Examples
    --------
    What the same share of matches, 80 %, leaves open after 10, 100 and 1,000 pieces of advice:

    >>> from counsel.estimate.bounds import interval
    >>> bound, sizes = Theory(delta=0.1, episodes=500), dict(groups=3, horizon=12, episode=500)
    >>> low, high = interval(bound, [8, 80, 800], [10, 100, 1000], **sizes)
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.0, 0.24, 0.7], [1.0, 1.0, 0.9])
    """

    delta: float
    episodes: int

    def __post_init__(self) -> None:
        positive("delta", self.delta, 1.0)
        whole("episodes", self.episodes, least=1)

    def rule(self, *, groups: int, horizon: int) -> Rule:
        union = math.log(groups) + math.log(self.episodes) + math.log(horizon)
        union -= math.log(self.delta)
        return Rule(THEORY, union + math.log(12.0), union)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperBonus(Bound):
    """The bonus of the paper's experiments: p ± ``scale`` √(2 log n / n), without a guarantee.

    Refusals at the start can silence an advice for good; ``KL()`` keeps trying.

    Parameters
    ----------
    scale
        The factor of the bonus, above 0; 0.4 in the paper.

    Raises
    ------
    CounselError
        If ``scale`` is not above 0 and finite.

    Examples
    --------
    After two refusals of two, how likely may a match still be?

    >>> from counsel.learning import KL
    >>> from counsel.estimate.bounds import interval
    >>> for bound in (PaperBonus(), KL()):
    ...     low, high = interval(bound, [0], [2], groups=1, horizon=12, episode=500)
    ...     print(bound, high.round(2))
    PaperBonus(scale=0.4) [0.33]
    KL(delta=None) [0.94]
    """

    scale: float = 0.4

    def __post_init__(self) -> None:
        positive("scale", self.scale)

    def rule(self, *, groups: int, horizon: int) -> Rule:
        return Rule(PAPER, float(self.scale), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class KL(Bound):
    """The Kullback–Leibler bound on adherence: practical, or valid with probability 1 − ``delta``.

    Parameters
    ----------
    delta
        The probability that it ever fails, between 0 and 1, over all groups and any number of
        episodes. None is the practical bound, whose level grows with the episodes and which has no
        guarantee: the default of ``UCBAD``.

    Raises
    ------
    CounselError
        If ``delta`` is not between 0 and 1.

    Examples
    --------
    What 8 matches in 10 and 80 in 100 leave open of the adherence:

    >>> from counsel.estimate.bounds import interval
    >>> for bound in (KL(), KL(delta=0.1)):
    ...     low, high = interval(bound, [8, 80], [10, 100], groups=3, horizon=12, episode=500)
    ...     print(low.round(2), high.round(2))
    [0.29 0.65] [0.99 0.91]
    [0.28 0.61] [1.   0.93]
    """

    delta: float | None = None

    def __post_init__(self) -> None:
        if self.delta is not None:
            positive("delta", self.delta, 1.0)

    def rule(self, *, groups: int, horizon: int) -> Rule:
        if self.delta is None:
            return Rule(KL_LEVEL, 0.0, 0.0)
        return Rule(KL_EVERY, math.log(groups) - math.log(self.delta), 0.0)


class GroupBounds:
    """A bound for a number of groups: the ends of the interval of each count."""

    def __init__(self, bound: Bound, *, groups: int, horizon: int) -> None:
        self._bound, self._groups, self._horizon = bound, groups, horizon
        if not callable(getattr(bound, "rule", None)):
            raise CounselError(
                f"bound is {brief(bound)}; give KL(), Theory(…), PaperBonus() or an object with a "
                "method rule(groups=…, horizon=…)"
            )
        self.rule = bound.rule(groups=groups, horizon=horizon)
        if not callable(self.rule):
            raise CounselError(
                f"{type(bound).__name__}.rule returned {brief(self.rule)}; it must return a "
                "function of matched, given and level"
            )
        self.upper(np.zeros(1), np.ones(1, np.int64), 0.0)

    def __reduce__(self) -> tuple[Any, ...]:  # functions such as rules return cannot be pickled
        build = partial(GroupBounds, groups=self._groups, horizon=self._horizon)
        return build, (self._bound,)

    def upper(self, total: Ints | Floats, given: Ints, level: float) -> Floats:
        """Return the upper end for each total of ``given`` numbers in [0, 1]; 1 for none."""
        high, total = np.empty(given.shape), np.asarray(total, dtype=np.float64)
        if isinstance(self.rule, Rule):
            fill_upper(self.rule, total.ravel(), given.ravel(), level, high.ravel())
            return high
        for place in np.ndindex(given.shape):
            n = int(given[place])
            k = min(max(float(total[place]), 0.0), float(n))
            high[place] = self.rule(k, n, level) if n > 0 else 1.0
            if not 0.0 <= high[place] <= 1.0:
                raise CounselError(
                    f"the bound is {high[place]} for {k:g} matches in {n}; it must be from 0 to 1"
                )
        return high

    def lower(self, matched: Ints, given: Ints, level: float) -> Floats:
        """Return the lower end for each count: every bound is the same seen from the other side."""
        low: Floats = 1.0 - self.upper(given - matched, given, level)
        return low


def interval(  # noqa: PLR0913 (counts, and what a bound depends on)
    bound: Bound, matched: Ints, given: Ints, *, groups: int, horizon: int, episode: int
) -> tuple[Floats, Floats]:
    """Return the lower and upper ends for each count, after a number of episodes."""
    matched, given = np.asarray(matched, dtype=np.int64), np.asarray(given, dtype=np.int64)
    bounds, level = GroupBounds(bound, groups=groups, horizon=horizon), level_at(episode)
    return bounds.lower(matched, given, level), bounds.upper(matched, given, level)


def level_at(episode: int) -> float:
    """Return log(1 + t), t the last power of two up to ``episode``."""
    return math.log1p(2 ** (int(episode).bit_length() - 1)) if episode > 0 else 0.0
