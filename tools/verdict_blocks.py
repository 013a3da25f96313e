"""Reproduce experiments in four blocks of seeds: ``python tools/verdict_blocks.py DIR [NAME]...``.

DIR receives a whole reproduction for each block and ``verdicts.json``, the verdicts that all blocks
share. The same command resumes. ``python tools/claims.py DIR`` then writes README and pages.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from counsel.experiments.blocks import VERDICTS, reproduce_blocks
from counsel.experiments.claim import Verdict
from counsel.experiments.experiment import Run, Size
from counsel.experiments.reproduce import Progress


class Blocks(Progress):
    """Prints how many runs each block has left."""

    def plan(self, left: Sequence[Run], runs: Sequence[Run]) -> None:
        print(f"{len(left)} of {len(runs)} runs left", flush=True)


def main() -> None:
    """Run all blocks, and print how many claims have which verdict."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--workers", type=int)
    given = parser.parse_args()
    begin = time.perf_counter()
    size = Size(given.scale, given.seeds)
    records = reproduce_blocks(
        given.names, size, given.folder, workers=given.workers, progress=Blocks()
    )
    for verdict in Verdict:
        print(f"{sum(record['verdict'] == verdict for record in records)} {verdict}")
    print(f"Wrote {given.folder / VERDICTS} in {time.perf_counter() - begin:,.0f} seconds.")


if __name__ == "__main__":
    main()
