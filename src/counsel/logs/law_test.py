"""A test of the adherence law: people who refuse advice do what they would have done anyway.

By the law a refusal of b is a draw from π without b. With three actions or more the data can
contradict this: no single π then explains both the actions after refusals of b and those in
silence. The test compares, in every cell, the counts of each kind with their expectation under the
likeliest π:

    G = 2 Σ n log(n / expected)         over silence and over the refusals of each advice

Many cells hold few decisions, so G does not follow a χ² distribution; it is compared with its value
in counts drawn from the fitted law (a parametric bootstrap), fitted again each time.
"""

from dataclasses import dataclass

import numpy as np

from counsel._arrays import Floats
from counsel.estimate.habit import likeliest_habit
from counsel.logs.count import Tally

DRAWS = 199
"""Draws of the counts under the law; the smallest p-value is 1 / 200."""

MOST_COUNTS = 60_000
"""The most counts that are tested (cells × sets × actions): cells with the most refusals first."""


@dataclass(frozen=True, slots=True)
class LawTest:
    """Whether actions after refusals fit the habit, and where they fit worst.

    In ``state``, people who refused ``advice`` took ``action`` with this ``share``; the law expects
    another. ``p_value`` is the probability of counts at least as unusual under the law.
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
        """Whether the test does not reject the law at the 1 % level."""
        return self.p_value > 0.01


def check_adherence_law(tally: Tally, rng: np.random.Generator) -> LawTest | None:
    """Test the adherence law; None if the counts cannot contradict it."""
    counts, cells = _free_choices(tally)
    if not len(cells):
        return None
    expected = _expected(counts)
    if expected is None:
        return None
    deviance = _deviance(counts, expected)
    totals = counts.sum(axis=2).astype(np.int64)
    shares = expected / np.maximum(expected.sum(axis=2, keepdims=True), 1e-300)
    # A set without draws has no shares; any shares do.
    shares[totals == 0] = 1.0 / counts.shape[2]
    larger = 0
    for _ in range(DRAWS):
        drawn = rng.multinomial(totals, shares).astype(np.float64)
        again = _expected(drawn)
        larger += again is None or _deviance(drawn, again) >= deviance
    apart = (counts - expected) / np.sqrt(np.maximum(expected, 1.0))
    cell, b, a = np.unravel_index(int(np.abs(apart[:, :-1]).argmax()), apart[:, :-1].shape)
    of = max(float(counts[cell, b].sum()), 1.0)
    return LawTest(
        p_value=(1 + larger) / (1 + DRAWS),
        refusals=int(counts[:, :-1].sum()),
        cells=len(cells),
        state=tally.states[int(cells[cell]) % len(tally.states)],
        advice=tally.actions[int(b)],
        action=tally.actions[int(a)],
        share=float(counts[cell, b, a]) / of,
        expected=float(expected[cell, b, a]) / of,
    )


def _free_choices(tally: Tally) -> tuple[Floats, np.ndarray]:
    """Return free choices [cell, set, a], from the set "all but b" or, last, "all"; and the cells.

    Only cells that can contradict the law are kept: two kinds of sets that overlap.
    """
    S, A = len(tally.states), len(tally.actions)
    L = tally.horizon if tally.by_step else 1
    free = tally.heard != tally.action
    key = (((tally.layer * S + tally.state) * (A + 1) + tally.heard) * A + tally.action)[free]
    choice, where = np.unique(key, return_inverse=True)
    times = np.bincount(where, tally.times[free], choice.size)
    cell = choice // (A * (A + 1))
    refusals = np.bincount(cell, times * (choice // A % (A + 1) < A), L * S)
    kinds = np.bincount(np.unique(choice // A) // (A + 1), minlength=L * S)
    seen = np.bincount(np.unique(cell * A + choice % A) // A, minlength=L * S)
    able = (refusals > 0) & (kinds > 1) & (seen > 2)
    cells = np.flatnonzero(able)[np.argsort(-refusals[able], kind="stable")]
    cells = cells[: MOST_COUNTS // (A * (A + 1))]
    place = np.full(L * S, -1)
    place[cells] = np.arange(cells.size)
    kept = place[cell] >= 0
    counts = np.zeros((cells.size, A + 1, A))
    counts[place[cell[kept]], choice[kept] // A % (A + 1), choice[kept] % A] = times[kept]
    return counts, cells


def _expected(counts: Floats) -> Floats | None:
    """Return the expected counts of each set under the likeliest habit; None if it is unknown."""
    silent, refusals = counts[:, -1], counts[:, :-1]
    own, known = likeliest_habit(
        silent, refusals.sum(axis=1), refusals.sum(axis=2), counts.sum(axis=1)
    )
    if not known.any():
        return None
    A = silent.shape[1]
    within = np.repeat(own[:, None, :], A + 1, axis=1)
    within[:, np.arange(A), np.arange(A)] = 0.0
    total = within.sum(axis=2, keepdims=True)
    within = np.divide(within, total, out=np.zeros_like(within), where=total > 0.0)
    expected: Floats = within * counts.sum(axis=2, keepdims=True)
    expected[~known] = counts[~known]
    return expected


def _deviance(counts: Floats, expected: Floats) -> float:
    some = (counts > 0.0) & (expected > 0.0)
    return float(2.0 * (counts[some] * np.log(counts[some] / expected[some])).sum())
