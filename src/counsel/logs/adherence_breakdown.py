"""How much people listen, by advice, by state and overall.

Advice was matched k times in n and would have been matched Σπ times anyway, so its lift is
(k − Σπ) / (n − Σπ). Errors are by blocks of people (``lift_errors.py``). ``listening.py`` compares
people, and times.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel.estimate.intervals import Z, wilson
from counsel.logs.bootstrap import few_blocks_factor
from counsel.logs.count import Tally
from counsel.logs.estimate import Estimates
from counsel.logs.lift_errors import (
    LiftCounts,
    decision_variances,
    fits_in_memory,
    lift_variances,
    match_variances,
)

LEAST_ROOM = 0.5
"""With fewer expected decisions against the advice than this, a lift cannot be estimated."""


@dataclass(frozen=True, slots=True, eq=False)
class AdherenceBreakdown:
    """Advice that was seen, by key; arrays are [key]."""

    keys: tuple[Any, ...]  # people, advice, states, …, in order
    given: Floats  # how often advice was seen
    matched: Floats
    known: Floats  # how often advice was seen in states where the habit is known
    anyway: Floats  # how often it would have been matched there anyway
    lift: Floats  # by the key's own data, adjusted for which advice the key received
    error: Floats  # the standard error of the lift; infinite if the lift is unknown
    design: Floats | float = 1.0  # by how much less than independent ones decisions say of matches

    @property
    def match_rate(self) -> tuple[Floats, Floats, Floats]:
        """The share of advice that was matched, with the ends of its 95 % interval."""
        ends = wilson(self.matched / self.design, self.given / self.design)
        return self.matched / np.maximum(self.given, 1.0), *ends

    @property
    def anyway_share(self) -> Floats:
        """The share that would have been matched anyway; NaN if it is unknown."""
        share: Floats = np.full(self.known.shape, np.nan)
        np.divide(self.anyway, self.known, out=share, where=self.known > 0.0)
        return share

    @property
    def is_partial(self) -> Bools:
        """Whether some advice was seen in states where the habit is unknown."""
        partial: Bools = self.known < self.given - 0.5
        return partial

    @property
    def low(self) -> Floats:
        """The lower end of the lift's 95 % interval."""
        return self.lift - Z * self.error

    @property
    def high(self) -> Floats:
        """The upper end."""
        return self.lift + Z * self.error

    @property
    def has_lift(self) -> Bools:
        """Whether the lift of each key is known."""
        return np.isfinite(self.error)

    @property
    def most_given(self) -> Ints:
        """The keys with advice, by number: those with the most advice first."""
        order = np.argsort(-self.given, kind="stable")
        return order[self.given[order] > 0.0]

    @property
    def strongest(self) -> int | None:
        """The number of the key with the largest lift; None if no lift is known."""
        lifts = np.where(self.has_lift, self.lift, -np.inf)
        return int(lifts.argmax()) if self.has_lift.any() else None


def by_advice(tally: Tally, estimates: Estimates) -> AdherenceBreakdown:
    """Return how much people listen to each advice, over all states."""
    return _sum_over(tally, estimates, tally.actions, axis=2)


def by_state(tally: Tally, estimates: Estimates) -> AdherenceBreakdown:
    """Return how much people listen in each state, over all advice."""
    return _sum_over(tally, estimates, tally.states, axis=1)


def overall(tally: Tally, estimates: Estimates) -> AdherenceBreakdown:
    """Return how much people listen to all advice together."""
    return _sum_over(tally, estimates, ("all advice",), axis=None)


@dataclass(frozen=True, slots=True, eq=False)
class ByContext:
    """How much people listen in each context, and whether contexts differ."""

    by: AdherenceBreakdown  # the keys are the contexts
    p_value: float  # of contexts in which people listen alike


def by_context(fit_of: Mapping[str, tuple[Tally, Estimates]]) -> ByContext:
    """Return how much people listen in each context, given its counts and estimates.

    The test compares lifts in units of their errors (Cochran's Q). Contexts share one habit, whose
    error they have in common, so it errs on the safe side.
    """
    from scipy.special import chdtrc

    parts = [overall(*both) for both in fit_of.values()]
    names = ("given", "matched", "known", "anyway", "lift", "error", "design")
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    by = AdherenceBreakdown(tuple(fit_of), **columns)
    some = by.has_lift
    if some.sum() < 2:
        return ByContext(by, 1.0)
    weight = 1.0 / by.error[some] ** 2
    middle = float((weight * by.lift[some]).sum() / weight.sum())
    apart = float((weight * (by.lift[some] - middle) ** 2).sum())
    return ByContext(by, float(chdtrc(some.sum() - 1.0, apart)))


def _sum_over(
    tally: Tally, estimates: Estimates, names: tuple[str, ...], axis: int | None
) -> AdherenceBreakdown:
    """Sum over all axes [layer, s, b] but one; errors are by blocks of people."""
    shape, keys = estimates.lift.shape, len(names)
    place = np.zeros(shape, dtype=np.int64) if axis is None else np.indices(shape)[axis]
    key = place.reshape(-1, shape[2])
    usable = estimates.usable.reshape(key.shape)
    given, matched = (table.reshape(key.shape) for table in (estimates.given, estimates.matched))
    counts = LiftCounts(
        np.where(usable, given, 0.0), np.where(usable, matched, 0.0), estimates.habit
    )

    def total(column: Floats) -> Floats:
        return np.bincount(key.reshape(-1), column.reshape(-1), keys).astype(np.float64)

    lift, room = counts.lifts(key, keys)
    some = room >= LEAST_ROOM
    alone = decision_variances(counts, key, keys)
    share = total(matched) / np.maximum(total(given), 1e-300)
    match_alone = share * (1.0 - share) / np.maximum(total(given), 1e-300)
    variance, design = alone * estimates.design.max(initial=1.0), np.ones(keys)
    if fits_in_memory(tally, keys):
        variance = np.fmax(lift_variances(tally, counts, key, keys), alone)
        by_block = match_variances(tally, key, keys)
        np.divide(by_block, match_alone, out=design, where=match_alone > 0.0)
    wider = few_blocks_factor(max(tally.n_blocks, 2))
    error = np.where(some, np.sqrt(variance) * wider, np.inf)
    return AdherenceBreakdown(
        *(names, total(given), total(matched), total(counts.given)),
        anyway=total(counts.given * estimates.habit.policy),
        lift=np.where(some, lift, 0.0),
        error=error,
        design=np.maximum(design, 1.0) * wider**2,
    )
