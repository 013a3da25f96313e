"""How often ``counsel fit --memory auto`` is right, on logs of the ward whose truth is known.

    python tools/memory_study.py verdicts.jsonl              1,000 logs without a memory, 200 with
    python tools/memory_study.py verdicts.jsonl 100 20 600   fewer, at most 600 seconds of processor

Without a memory it prints the share of logs in which one is claimed (at most 5 % is wanted); with a
fading of 0.8 per piece the share in which the right kind is chosen (at least 90 %), and for each
level the share of logs whose 95 % interval holds the truth (93 to 97 %).

Each verdict is appended to the file as one line. A log whose verdict is in the file is not drawn
again, so a study that was stopped continues; delete the file after changing what is tested.
"""

import json
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from tests.support.memory_logs import Verdict, verdict

EPISODES = 5000
FADING = 0.8


class Study:
    """Verdicts by fading and seed, kept in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.verdicts: dict[tuple[float, int], Verdict] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                self.verdicts[row.pop("truth"), row.pop("seed")] = Verdict(**row)

    def run(self, without: int, with_one: int, seconds: float) -> None:
        """Draw the logs that are missing, both kinds by turns, while the time lasts."""
        both = [((i + 0.5) / without, 1.0, i) for i in range(without)]
        both += [((i + 0.5) / with_one, FADING, i) for i in range(with_one)]
        until = time.process_time() + seconds
        with self.path.open("a", encoding="utf-8") as file:
            for _, truth, seed in sorted(both):
                if (truth, seed) in self.verdicts:
                    continue
                if time.process_time() > until:
                    return
                found = verdict(truth, EPISODES, seed)
                self.verdicts[truth, seed] = found
                row = {"truth": truth, "seed": seed} | found._asdict()
                print(json.dumps(row), file=file, flush=True)

    def of(self, truth: float) -> list[Verdict]:
        """Return the verdicts on logs with this fading."""
        return [found for (fading, _), found in self.verdicts.items() if fading == truth]


def choices(found: list[Verdict]) -> str:
    """Return how often each kind was chosen."""
    counts = Counter(one.choice for one in found).most_common()
    return ", ".join(f"{name} {times} ({times / len(found):.1%})" for name, times in counts)


def main(path: str, *numbers: str) -> None:
    """Print both tables."""
    without, with_one, seconds = [*map(int, numbers), *(1000, 200, 10_000)[len(numbers) :]]
    study = Study(Path(path))
    study.run(without, with_one, seconds)
    if found := study.of(1.0):
        print(f"without a memory, {len(found)} logs of {EPISODES:,} episodes: {choices(found)}")
    if not (found := study.of(FADING)):
        return
    print(f"fading {FADING} per piece, {len(found)} logs: {choices(found)}")
    truth = FADING ** np.arange(6)
    low, high = (np.array([getattr(one, end) for one in found]) for end in ("low", "high"))
    known, held = np.isfinite(high), (low <= truth) & (truth <= high)
    for level in range(1, 6):
        some = known[:, level]
        share = held[some, level].mean() if some.any() else np.nan
        print(
            f"level {level}: the interval holds {truth[level]:.3f} in {share:.1%} of {some.sum()}"
        )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python tools/memory_study.py VERDICTS [WITHOUT WITH SECONDS]")
    main(*sys.argv[1:])
