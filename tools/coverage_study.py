"""How often the intervals of a report hold the truth, on simulated clinics whose truth is known.

    python tools/coverage_study.py            every clinic, 200 logs each (30 min on two cores)
    python tools/coverage_study.py 20 nagging

For each clinic of ``tests/support/log_scenarios.py`` it prints the share of logs whose 95 %
intervals hold the truth, the share of logs that are flagged, and the share of logs without a flag
whose headline excludes the truth.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.coverage import CLINICS, summary


def main(arguments: list[str]) -> None:
    """Print a table with one line for each clinic."""
    logs = int(arguments[0]) if arguments else 200
    names = arguments[1:] or list(CLINICS)
    print("clinic,logs,lift,value,plan − today,plan − silence,significant,flagged,missed")
    with ProcessPoolExecutor() as pool:
        for name in names:
            print(summary(name, logs, pool.map), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
