"""Run all tests that must hold for any seed with new seeds, for a given time.

``python tools/fuzz.py --minutes 5`` draws a seed, runs the tests marked ``fuzzed`` with it (more
Hypothesis examples, other random problems through every planner and learner), and draws the next.
It prints each failing test with the seed and the command that repeats it. Turn each failure into
an ``@example`` or a named test.
"""

import argparse
import os
import re
import secrets
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


def run(seed: int, paths: list[str], workers: int) -> tuple[list[str], str]:
    """Run the fuzzed tests with one seed; return the failed tests and the output of pytest."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "fuzzed and not docs", *paths]
    if workers > 1:
        command += ["-n", str(workers), "--dist", "worksteal"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"COUNSEL_FUZZ_SEED": str(seed)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        sys.exit(done.stdout + done.stderr)
    return FAILED.findall(done.stdout), done.stdout


def main() -> None:
    """Fuzz for the given time; exit with 1 if anything failed."""
    parser = argparse.ArgumentParser(description="Run the fuzzed tests with new seeds.")
    parser.add_argument("--minutes", type=float, default=5.0, help="start no round after this time")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument(
        "--seed", type=int, help="run one round with this seed, e.g. one that failed"
    )
    parser.add_argument("paths", nargs="*", help="test files or folders; default: all")
    arguments = parser.parse_args()
    if arguments.minutes <= 0:
        parser.error(f"--minutes is {arguments.minutes:g}; it must be more than 0")
    end, rounds, failures = time.monotonic() + 60 * arguments.minutes, 0, 0
    while rounds == 0 or (arguments.seed is None and time.monotonic() < end):
        seed = secrets.randbelow(2**31) if arguments.seed is None else arguments.seed
        failed, output = run(seed, arguments.paths, arguments.workers)
        rounds, failures = rounds + 1, failures + len(failed)
        print(f"seed {seed}: {output.strip().splitlines()[-1]}", flush=True)
        for test in failed:
            print(f"  COUNSEL_FUZZ_SEED={seed} {Path(sys.executable).name} -m pytest '{test}'")
        if failed:
            print(output)
    print(f"{rounds} rounds, {failures} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
