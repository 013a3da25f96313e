"""How often ``counsel fit --memory auto`` is right, on logs of the ward whose truth is known.

    python tools/memory_study.py                    1,000 logs without a memory, 200 with one
    python tools/memory_study.py 100 20 600         fewer, at most 600 seconds of processor time

Without a memory it prints the share of logs in which one is claimed (at most 5 % is wanted); with a
fading of 0.8 per piece the share in which the right kind is chosen (at least 90 %), and for each
level the share of logs whose 95 % interval holds the truth (93 to 97 %).
"""

import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from tests.support.memory_logs import verdict

EPISODES = 5000
FADING = 0.8


def study(fading: float, logs: int, until: float) -> list:
    """Return the verdicts on so many logs, or on as many as the processor time allows."""
    found = []
    for seed in range(logs):
        if time.process_time() > until:
            break
        found.append(verdict(fading, EPISODES, seed))
        if len(found) % 50 == 0:
            print(f"{len(found)} logs: {_choices(found)}", file=sys.stderr, flush=True)
    return found


def _choices(found: list) -> str:
    counts = Counter(one.choice for one in found)
    return ", ".join(f"{name} {times / len(found):.1%}" for name, times in counts.most_common())


def main(arguments: list[str]) -> None:
    """Print both tables."""
    without, with_one, seconds = [*map(int, arguments), *(1000, 200, 10_000)[len(arguments) :]]
    spent = time.process_time()
    if without:
        found = study(1.0, without, spent + seconds)
        print(f"without a memory, {len(found)} logs of {EPISODES:,} episodes: {_choices(found)}")
    spent = time.process_time()
    if not with_one:
        return
    found = study(FADING, with_one, spent + seconds)
    print(f"fading {FADING} per piece, {len(found)} logs: {_choices(found)}")
    truth = FADING ** np.arange(6)
    low, high = (np.array([getattr(one, end) for one in found]) for end in ("low", "high"))
    known = np.isfinite(high)
    held = (low <= truth) & (truth <= high)
    for level in range(1, 6):
        some = known[:, level]
        share = held[some, level].mean() if some.any() else np.nan
        print(
            f"level {level}: the interval holds {truth[level]:.3f} in {share:.1%} of {some.sum()}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
