"""Whether the recorded probabilities of advice fit how often advice was sent.

If p is the probability with which something was said, and it is said, it stands for 1 / p
decisions. So over the decisions in a state

* silence, each time counted 1 / p, makes up all decisions;
* advice, counted so, makes up at least all decisions, if silence never had probability 1;
* both together make up at most as many as there are things to say;
* probabilities that are always the same in the state add up to 1.

Errors are clustered by person. Probabilities that fail are not used.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from counsel._arrays import Bools, Floats
from counsel.logs.clustered import FEWEST_CLUSTERS
from counsel.logs.decisions import Decisions

LIMIT = 4.0
"""Standard errors beyond which probabilities do not fit."""

ENOUGH = 20
"""What should have been said so often and never was is missing from the probabilities."""

OFF = 0.1
"""Smaller deviations are not worth a word."""


@dataclass(frozen=True, slots=True)
class Miscalibration:
    """What is wrong in a state: silence or advice stands for too many or too few decisions."""

    state: int
    what: str
    share: float
    expected: float

    @property
    def words(self) -> str:
        """What is wrong, in words."""
        return f"{self.what} {self.share:.3g} times the decisions, not {self.expected:g}"


def find_miscalibration(rows: Decisions, silence: int) -> Miscalibration | None:
    """Return where recorded probabilities are furthest off; None if they fit or there are none."""
    if not rows.recorded.size or np.isnan(rows.recorded).any():
        return None
    worst, found = LIMIT, None
    for state in np.unique(rows.state):
        here = rows.state == state
        for what, share, expected, signed in _shares(rows, here, silence):
            if signed > worst:
                worst, found = signed, Miscalibration(int(state), what, share, expected)
    return found


def _shares(
    rows: Decisions, here: Bools, silence: int
) -> Iterator[tuple[str, float, float, float]]:
    """Yield what counts for which share, what is expected, and how many errors it is off."""
    counts = 1.0 / rows.recorded[here]
    said = rows.advice[here]
    silent = said == silence
    cluster = rows.cluster[rows.episode[here]]

    def off(column: Floats, expected: float, sign: int) -> tuple[float, float, float]:
        share = float(column.mean())
        names, at = np.unique(cluster, return_inverse=True)
        sums = np.bincount(at, column - share)
        error = float(np.sqrt((sums**2).sum())) / column.size
        away = share - expected if sign > 0 else expected - share if sign < 0 else 0.0
        away = abs(share - expected) if sign == 0 else away
        is_off = names.size >= FEWEST_CLUSTERS and away > OFF
        return share, expected, away / max(error, 1e-12) if is_off else 0.0

    if silent.any():
        yield "silence stands for", *off(counts * silent, 1.0, 0)
        if (~silent).any() and (rows.recorded[here][silent] < 1.0).all():
            yield "advice stands for", *off(counts * ~silent, 1.0, -1)
    options = np.unique(said).size
    yield "what was said stands for", *off(counts, float(options), 1)
    each = [rows.recorded[here][said == one] for one in np.unique(said)]
    total = float(sum(chance[0] for chance in each))
    missing = total < 1.0 and (1.0 - total) * said.size < ENOUGH  # something was never said
    if all(np.ptp(chance) < 1e-9 for chance in each) and abs(total - 1.0) > OFF and not missing:
        yield "the probabilities of what was said make up", total, 1.0, 2.0 * LIMIT
