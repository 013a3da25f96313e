"""How often confidence sequences ever miss the truth, and how wide they are.

    python tools/sequence_study.py              1,000 runs, looks 10 to 20,000 (an hour on a core)
    python tools/sequence_study.py 200 2000     200 runs, looks 10 to 2,000

Every run is looked at after every outcome or episode. The table is for
``docs/explanation/looking-every-day.md``; the runs are in ``tests/support/sequence_coverage.py``.
"""

import math
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.sequence_coverage import cases, covered, horizon, widths

SIZES = (100, 1_000, 10_000)


def count_covered(name: str, runs: int, looks: int) -> tuple[str, int, int]:
    """Return a case, its last look, and the runs that are covered at every look."""
    last = horizon(name, looks)
    return name, last, covered(name, runs, last, seed=0)


def number(ratio: float) -> str:
    """Return a ratio as text, or a dash where a sequence says nothing yet."""
    return f"{ratio:.2f}" if math.isfinite(ratio) else "–"


def main(arguments: list[str]) -> None:
    """Print how many runs are covered in each case, and then relative widths."""
    runs, looks = (int(number) for number in (arguments + ["1000", "20000"][len(arguments) :])[:2])
    print(f"| of {runs:,} runs | last look | covered at every look |\n|---|---:|---:|")
    with ProcessPoolExecutor() as pool:
        study = partial(count_covered, runs=runs, looks=looks)
        for name, last, times in pool.map(study, cases()):
            print(f"| {name} | {last:,} | {100.0 * times / runs:.1f} % |", flush=True)
    print(
        "\n| width relative to one planned look | " + " | ".join(f"n = {n:,}" for n in SIZES) + " |"
    )
    print("|---|" + "---:|" * len(SIZES))
    tables = [widths(n) for n in SIZES]
    for name in tables[0]:
        print(f"| {name} | " + " | ".join(number(table[name]) for table in tables) + " |")


if __name__ == "__main__":
    main(sys.argv[1:])
