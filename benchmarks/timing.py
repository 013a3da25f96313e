"""Time candidates in turns, in bursts of calls; the best burst counts.

Times drift on a shared machine, so only ratios from the same run are reported. Within a burst the
same call is repeated, as in a program that plans again and again. The times of all turns are kept:
the ratios of single turns show how much the machine wobbled.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple


class Spread(NamedTuple):
    """The ratios of single turns: the lowest, the median and the highest."""

    low: float
    median: float
    high: float


@dataclass(frozen=True, slots=True)
class Race:
    """The result of ``race``: ``race[name]`` is the least average over a burst, in seconds.

    Attributes
    ----------
    turns
        The average over the burst of each turn, in seconds, by name.
    """

    turns: Mapping[str, list[float]]

    def __getitem__(self, name: str) -> float:
        return min(self.turns[name])

    def spread(self, above: str, below: str) -> Spread:
        """Return the spread of the ratio of two times over the turns."""
        pairs = zip(self.turns[above], self.turns[below], strict=True)
        ratios = [over / under for over, under in pairs]
        return Spread(min(ratios), median(ratios), max(ratios))


def race(calls: Mapping[str, Callable[[], object]], *, turns: int, burst: int) -> Race:
    """Time every call by turns, after one call of each that is not timed."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(turns):
        for name, call in calls.items():
            begin = time.perf_counter()
            for _ in range(burst):
                call()
            times[name].append((time.perf_counter() - begin) / burst)
    return Race(times)
