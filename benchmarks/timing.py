"""Time candidates in turns, in bursts of calls; the best burst counts.

Times drift on a shared machine, so only ratios from the same run are reported. Within a burst the
same call is repeated, as in a program that plans again and again.
"""

import time
from collections.abc import Callable, Mapping


def race(calls: Mapping[str, Callable[[], object]], *, turns: int, burst: int) -> dict[str, float]:
    """Return the seconds of each call: the least average over a burst."""
    best = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        call()
    for _ in range(turns):
        for name, call in calls.items():
            begin = time.perf_counter()
            for _ in range(burst):
                call()
            best[name] = min(best[name], (time.perf_counter() - begin) / burst)
    return best
