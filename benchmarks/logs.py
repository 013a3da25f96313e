"""How long fitting a log takes, how much memory, and how both grow.

Logs of the ward are drawn in bulk: 1, 5 and 20 million decisions as Parquet, 1 million as CSV. Each
is fitted by `counsel fit` in a process of its own, as a user would. Beside it a plain pandas script
counts what a fit needs (actions by state and advice, rewards, what followed), and the floor is
reading the file's columns once with DuckDB.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import counsel
from benchmarks.timing import verdict
from counsel.worlds import make

SIZES = ((1, "parquet"), (5, "parquet"), (20, "parquet"), (1, "csv"))
"""Millions of decisions, and the form they are in."""

PANDAS_UP_TO = 5
"""Millions that pandas is given: it holds every row in memory."""

COUNSEL = "from counsel.cli import main; main()"

FLOOR = """
import duckdb, sys
names = "episode, step, state, advice, action, reward, next_state, terminated, truncated"
counts = ", ".join(f"count({name})" for name in names.split(", "))
duckdb.connect().execute(f"select {counts} from '{sys.argv[1]}'").fetchall()
"""

PANDAS = """
import pandas as pd, sys
path = sys.argv[1]
rows = pd.read_parquet(path) if path.endswith("parquet") else pd.read_csv(path)
rows["advice"] = rows.advice.fillna("")
rows = rows.sort_values(["episode", "step"])
rows["then"] = rows.groupby("episode").state.shift(-1)
rows["earlier"] = (rows.advice != "").groupby(rows.episode).cumsum()
rows.groupby(["state", "advice", "action"]).reward.agg(["count", "sum"])
rows.groupby(["state", "action", "then"]).size()
rows.groupby(["earlier", "state", "advice"]).size()
rows.groupby(["episode", "step"]).size()
"""


def main() -> None:
    """Measure and print everything."""
    for line in lines():
        print(line, flush=True)


def lines() -> Iterator[str]:
    """Yield one line for each log, then what was asked."""
    fitted: dict[tuple[int, str], float] = {}
    peak = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for millions, ending in SIZES:
            path = Path(folder) / f"log.{ending}"
            write(path, millions * 1_000_000)
            model = str(Path(folder) / "model.npz")
            spent, used = run(COUNSEL, "fit", str(path), "-o", model)
            floor, _ = run(FLOOR, str(path))
            told = f"{millions} M {ending}: {spent:.1f} s, {used:.2f} GB; read once {floor:.1f} s"
            if millions <= PANDAS_UP_TO:
                peer, much = run(PANDAS, str(path))
                told += f"; pandas only counts in {peer:.1f} s, {much:.2f} GB"
            yield told
            fitted[millions, ending] = spent
            peak = max(peak, used)
            path.unlink()
    yield verdict("20 M decisions of Parquet, seconds", fitted[20, "parquet"], 60.0, most=True)
    yield verdict("peak memory, GB", peak, 4.0, most=True)
    yield verdict("1 M decisions of CSV, seconds", fitted[1, "csv"], 10.0, most=True)
    growth = (fitted[20, "parquet"] - fitted[5, "parquet"]) / 15.0
    growth /= max((fitted[5, "parquet"] - fitted[1, "parquet"]) / 4.0, 1e-9)
    yield verdict("each further million, from 5 to 20 M against 1 to 5 M", growth, 1.5, most=True)


def run(code: str, *arguments: str) -> tuple[float, float]:
    """Return the seconds and the peak memory (GB) of a program."""
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"failed: {arguments}")
    return time.perf_counter() - begin, used.ru_maxrss / 2**20


def write(path: Path, decisions: int) -> None:
    """Write about so many decisions of the ward, advice and silence at random."""
    problem = make("ward")
    shape = (problem.horizon, problem.n_states, problem.n_actions + 1)
    policy = counsel.Policy.from_probabilities(np.full(shape, 1.0 / shape[2]))
    simulator, rng = counsel.Simulator(problem), np.random.default_rng(0)
    episodes = round(decisions / problem.horizon * 1.005)  # some end before their last step

    def batches() -> Iterator[counsel.Episodes]:
        for first in range(0, episodes, 50_000):
            yield simulator.play(policy, episodes=min(50_000, episodes - first), rng=rng)

    counsel.save_log(batches(), path, problem=problem)


if __name__ == "__main__":
    main()
