"""A test of the adherence law: that people who refuse do what they would have done anyway.

By the law a refusal of b is a draw from π without b. With three actions or more the data can
contradict that: the actions after refusals of b and those in silence are then not of one π. The
test compares, in every cell, the counts of each kind with what the one likeliest π expects of them:

    G = 2 Σ n log(n / expected)         over silence and over the refusals of each advice

Many cells hold few decisions, so G has no χ² distribution to be looked up; it is compared with its
value in counts drawn from the fitted law, fitted again each time.
"""

from dataclasses import dataclass

import numpy as np

from counsel._arrays import Floats
from counsel.estimate.habit import likeliest_habit
from counsel.logs.count import Tally

DRAWS = 199
"""Draws of the counts under the law; the smallest p-value is 1 / 200."""

MOST_COUNTS = 60_000
"""Counts that are tested: cells × sets × actions, those cells with the most refusals."""


@dataclass(frozen=True, slots=True)
class LawTest:
    """Whether refusals fit what people do alone.

    Attributes
    ----------
    p_value
        How likely counts as odd as these are under the law.
    refusals
        How many refusals were looked at.
    cells
        In how many cells they were.
    state
        Where the counts fit worst.
    advice
        What those people refused there.
    action
        What they took instead.
    share
        How often they took it.
    expected
        How often the law expects that.
    """

    p_value: float
    refusals: int
    cells: int
    state: str
    advice: str
    action: str
    share: float
    expected: float

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against the law at the 1 % level."""
        return self.p_value > 0.01


def examine_law(tally: Tally, rng: np.random.Generator) -> LawTest | None:
    """Examine the law; None where the counts could not contradict it."""
    counts, cells = _choices(tally)
    if not len(cells):
        return None
    expected = _expected(counts)
    if expected is None:
        return None
    seen = _deviance(counts, expected)
    totals = counts.sum(axis=2).astype(np.int64)
    shares = expected / np.maximum(expected.sum(axis=2, keepdims=True), 1e-300)
    # A set nothing was drawn from has no shares; any will do for no draws.
    shares[totals == 0] = 1.0 / counts.shape[2]
    beyond = 0
    for _ in range(DRAWS):
        drawn = rng.multinomial(totals, shares).astype(np.float64)
        again = _expected(drawn)
        beyond += again is None or _deviance(drawn, again) >= seen
    apart = (counts - expected) / np.sqrt(np.maximum(expected, 1.0))
    cell, b, a = np.unravel_index(int(np.abs(apart[:, :-1]).argmax()), apart[:, :-1].shape)
    of = max(float(counts[cell, b].sum()), 1.0)
    return LawTest(
        p_value=(1 + beyond) / (1 + DRAWS),
        refusals=int(counts[:, :-1].sum()),
        cells=len(cells),
        state=tally.states[int(cells[cell]) % len(tally.states)],
        advice=tally.actions[int(b)],
        action=tally.actions[int(a)],
        share=float(counts[cell, b, a]) / of,
        expected=float(expected[cell, b, a]) / of,
    )


def _choices(tally: Tally) -> tuple[Floats, np.ndarray]:
    """Return free choices [cell, set, a], the set "all but b" or, last, "all"; and which cells.

    Only cells that can contradict the law: two kinds of sets with something in common.
    """
    S, A = len(tally.states), len(tally.actions)
    L = tally.horizon if tally.by_step else 1
    free = tally.heard != tally.action
    key = (((tally.step * S + tally.state) * (A + 1) + tally.heard) * A + tally.action)[free]
    found, where = np.unique(key, return_inverse=True)
    times = np.bincount(where, tally.times[free], found.size)
    cell = found // (A * (A + 1))
    refusals = np.bincount(cell, times * (found // A % (A + 1) < A), L * S)
    kinds = np.bincount(np.unique(found // A) // (A + 1), minlength=L * S)
    seen = np.bincount(np.unique(cell * A + found % A) // A, minlength=L * S)
    able = (refusals > 0) & (kinds > 1) & (seen > 2)
    cells = np.flatnonzero(able)[np.argsort(-refusals[able], kind="stable")]
    cells = cells[: MOST_COUNTS // (A * (A + 1))]
    place = np.full(L * S, -1)
    place[cells] = np.arange(cells.size)
    kept = place[cell] >= 0
    counts = np.zeros((cells.size, A + 1, A))
    counts[place[cell[kept]], found[kept] // A % (A + 1), found[kept] % A] = times[kept]
    return counts, cells


def _expected(counts: Floats) -> Floats | None:
    """Return what the likeliest habit expects of each set; None where it is told nowhere."""
    silent, refusals = counts[:, -1], counts[:, :-1]
    own, told = likeliest_habit(
        silent, refusals.sum(axis=1), refusals.sum(axis=2), counts.sum(axis=1)
    )
    if not told.any():
        return None
    A = silent.shape[1]
    within = np.repeat(own[:, None, :], A + 1, axis=1)
    within[:, np.arange(A), np.arange(A)] = 0.0
    total = within.sum(axis=2, keepdims=True)
    within = np.divide(within, total, out=np.zeros_like(within), where=total > 0.0)
    expected: Floats = within * counts.sum(axis=2, keepdims=True)
    expected[~told] = counts[~told]
    return expected


def _deviance(counts: Floats, expected: Floats) -> float:
    some = (counts > 0.0) & (expected > 0.0)
    return float(2.0 * (counts[some] * np.log(counts[some] / expected[some])).sum())
