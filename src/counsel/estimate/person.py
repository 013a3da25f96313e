"""What is believed of one person among many: the habit, the lift of each advice, and its bound.

*Habit.* Where the person's own policy is not known, it is the likeliest one given silence and
refusals (``habit.py``), with the population's habit added as ``PRIOR_WEIGHT`` silent decisions in
every state, and a stated prior added to the population's in the same way.

*Lift.* The states of one advice share one lift λ. With n pieces seen, k matches and Σπ matches
expected without advice, e = n − Σπ pieces could have moved the person and x = k − Σπ did. The
estimate of one person leans on everybody's:

    λ̂ = (x + κ λ_all) / (e + κ),     λ_all = (Σ x + 1/2) / (Σ e + 1),      κ = POPULATION_WEIGHT

so a new person starts as everybody and drifts to their own lift. *UCB-AD* plans with the largest λ
that satisfies (e + κ) kl(λ̂, λ) ≤ log(1 + t) after t pieces of advice to anybody, *Thompson* with a
draw from Beta(x + κ λ_all + 1/2, …).

A person with a memory has one lift, which the fading of each level multiplies: ``faded_lift.py``.
Levels that are all alike make no difference.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from counsel._arrays import Bools, Floats
from counsel.errors import CounselError
from counsel.estimate._bound_kernels import kl_above
from counsel.estimate.faded_lift import (
    FadedPieces,
    LevelCounts,
    drawn_lift,
    exposure_of,
    faded_pieces,
    lift_quantiles,
    likeliest_lift,
    upper_faded_lift,
)
from counsel.estimate.habit import likeliest_habit
from counsel.estimate.people_counts import DecisionCounts

PRIOR_WEIGHT = 5.0  # silent decisions in each state that a prior habit counts for

POPULATION_WEIGHT = 5.0
"""Pieces of advice that the lift of everybody counts for in the estimate of one person."""

ALGORITHMS = ("ucb-ad", "thompson")

COVERAGE = 0.95
"""The probability of an interval."""


@dataclass(frozen=True, slots=True, eq=False)
class PersonEstimate:
    """The habit [s, a] of one person, and the lift [b] of each advice.

    ``exposure`` [b] is how many pieces could have moved the person, ``planned_lift`` [b] the lift
    that plans are made with: an upper bound, or a draw.
    """

    habit: Floats
    lift: Floats
    exposure: Floats
    planned_lift: Floats


@dataclass(frozen=True, slots=True, eq=False)
class PersonModel:
    """Estimates one person from their own counts and everybody's.

    ``prior`` [s, a] is the habit before anything was observed, and with ``knows_habit`` the habit
    of every person. "ucb-ad" plans with an upper bound of each lift, "thompson" with a draw.
    ``fading`` [m] multiplies the lift on each level of a memory; then pieces are counted by level.
    """

    prior: Floats
    knows_habit: bool = False
    algorithm: str = "ucb-ad"
    fading: Floats | None = None

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise CounselError(
                f"algorithm is {self.algorithm!r}; it must be one of {', '.join(ALGORITHMS)}"
            )

    def estimate(
        self,
        own: DecisionCounts,
        everybody: DecisionCounts,
        rng: Generator | None = None,
        levels: tuple[LevelCounts, LevelCounts] | None = None,
    ) -> PersonEstimate:
        """Return what is believed of a person; Thompson sampling draws from ``rng``.

        ``levels`` are the pieces by level of the person and of everybody, where there is a memory.
        """
        common = self.common_habit(everybody)
        habit = self.prior if self.knows_habit else _habit(own, common)
        bound = np.log1p(float(everybody.given.sum()))
        is_drawn = self.algorithm == "thompson"
        if is_drawn and rng is None:
            raise CounselError("Thompson sampling draws lifts; give rng")
        if self.fades and levels is not None:
            pieces = self._faded(levels, habit, common)
            lift, exposure = likeliest_lift(pieces), exposure_of(pieces)
            if is_drawn and rng is not None:
                return PersonEstimate(habit, lift, exposure, drawn_lift(pieces, rng))
            return PersonEstimate(habit, lift, exposure, upper_faded_lift(pieces, lift, bound))
        population_lift, _ = _population_lift(everybody, common)
        moved, exposure = _moved(own, habit)
        weight = exposure + POPULATION_WEIGHT
        lift = np.clip((moved + POPULATION_WEIGHT * population_lift) / weight, 0.0, 1.0)
        if is_drawn and rng is not None:
            planned = rng.beta(weight * lift + 0.5, weight * (1.0 - lift) + 0.5)
        else:
            # Everybody's pieces narrow what one person may be like only as far as people are alike.
            planned = upper_lift(lift, weight, bound)
        return PersonEstimate(habit, lift, exposure, planned)

    @property
    def fades(self) -> bool:
        """Whether the levels of a memory differ."""
        return self.fading is not None and bool((self.fading != 1.0).any())

    def common_habit(self, everybody: DecisionCounts) -> Floats:
        """Return the habit [s, a] of the population."""
        return self.prior if self.knows_habit else _habit(everybody, self.prior)

    def population_lift(
        self, everybody: DecisionCounts, levels: LevelCounts | None = None
    ) -> tuple[Floats, Floats]:
        """Return the lift [b] of each advice over all people, and its exposure [b]."""
        habit = self.common_habit(everybody)
        if self.fades and levels is not None:
            pieces = self._faded_of_all(levels, habit)
            return likeliest_lift(pieces), exposure_of(pieces)
        return _population_lift(everybody, habit)

    def faded_interval(
        self,
        own: DecisionCounts | None,
        everybody: DecisionCounts,
        levels: tuple[LevelCounts, LevelCounts],
    ) -> tuple[Floats, Floats]:
        """Return the ends [b] of the interval of a person's lift, or of everybody's if None.

        For a memory whose levels differ: elsewhere an interval follows from lift and exposure.
        """
        common = self.common_habit(everybody)
        pieces = self._faded_of_all(levels[1], common)
        if own is not None:
            habit = self.prior if self.knows_habit else _habit(own, common)
            pieces = self._faded(levels, habit, common)
        tail = (1.0 - COVERAGE) / 2.0
        return lift_quantiles(pieces, tail), lift_quantiles(pieces, 1.0 - tail)

    def _faded_of_all(self, levels: LevelCounts, habit: Floats) -> FadedPieces:
        half = np.full(self.prior.shape[1], 0.5)
        return faded_pieces(levels, habit, self._factors, half, half)

    def _faded(
        self, levels: tuple[LevelCounts, LevelCounts], habit: Floats, common: Floats
    ) -> FadedPieces:
        """Return the pieces of a person with a prior that leans on everybody's."""
        all_lift = likeliest_lift(self._faded_of_all(levels[1], common))
        hits, misses = POPULATION_WEIGHT * all_lift, POPULATION_WEIGHT * (1.0 - all_lift)
        return faded_pieces(levels[0], habit, self._factors, hits, misses)

    @property
    def _factors(self) -> Floats:
        return np.ones(1) if self.fading is None else self.fading


def upper_lift(lift: Floats, weight: Floats, level: float) -> Floats:
    """Return the largest λ with weight · kl(lift, λ) ≤ level, for each advice."""
    return np.array([kl_above(p, level / n) for p, n in zip(lift, weight, strict=True)])


def _habit(counts: DecisionCounts, prior: Floats) -> Floats:
    """Return the likeliest habit with a prior worth ``PRIOR_WEIGHT`` silent decisions."""
    refused = (counts.given - counts.matched).astype(np.float64)
    silent = counts.silent + PRIOR_WEIGHT * prior
    habit, _ = likeliest_habit(silent, counts.refusing.astype(np.float64), refused, silent)
    return habit


def _population_lift(everybody: DecisionCounts, habit: Floats) -> tuple[Floats, Floats]:
    moved, exposure = _moved(everybody, habit)
    return np.clip((moved + 0.5) / (exposure + 1.0), 0.0, 1.0), exposure


def _moved(counts: DecisionCounts, habit: Floats) -> tuple[Floats, Floats]:
    """Return how many pieces of each advice moved somebody, and how many could have, [b]."""
    informative: Bools = habit < 1.0
    given = np.where(informative, counts.given, 0)
    matched = np.where(informative, counts.matched, 0)
    anyway = given * habit
    return (matched - anyway).sum(axis=0), (given - anyway).sum(axis=0)
