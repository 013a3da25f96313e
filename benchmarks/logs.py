"""How long fitting a log takes, how much memory, and how both grow.

Run with ``make bench``, or alone with ``python -m benchmarks.logs``. Logs of the ward are drawn in
bulk: 1, 5 and 20 million decisions as Parquet, 1 million as CSV. Each is fitted by ``counsel fit``
in a process of its own, from the shell's prompt to the file written. Beside it two plain scripts,
one in pandas and one in SQL on DuckDB, only count what a fit needs (actions by state and advice,
rewards, what followed, pieces of advice so far): they check nothing and estimate nothing, so they
have less to do. The floor is reading the file's columns once with DuckDB.
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
from benchmarks.results import Row, against, alone, record
from counsel.worlds import make

SIZES = ((1, "parquet"), (5, "parquet"), (20, "parquet"), (1, "csv"))
"""Millions of decisions, and the form they are in."""

PANDAS_UP_TO = 5
"""Millions that pandas is given: it holds every row in memory."""

ASKED = {(20, "parquet"): {"ratio": 0.5}, (1, "csv"): {"most": 10.0}}
"""Targets: at most twice the time of DuckDB's counts alone, or at most so many seconds."""

ROUNDS = 2
"""Counsel and its peers take turns; the fastest run of each counts."""

PEAK = """
import atexit, os, pathlib
status = pathlib.Path("/proc/self/status")
atexit.register(lambda: pathlib.Path(os.environ["STATUS"]).write_text(status.read_text()))
"""

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

SQL = """
import duckdb, sys
rows = duckdb.connect()
rows.execute(f'''create temp table decisions as select episode, step, state, advice, action, reward,
    lead(state) over (partition by episode order by step) as later,
    count(advice) over (partition by episode order by step) as earlier from '{sys.argv[1]}' ''')
for keys, more in (("state, advice, action", ", sum(reward)"), ("state, action, later", ""),
                   ("earlier, state, advice", ""), ("episode, step", "")):
    rows.execute(f"create temp table counted as select {keys}, count(*){more} from decisions "
                 f"group by {keys}")
    rows.execute("drop table counted")
"""


def main() -> None:
    """Measure, print and write everything."""
    record("logs", measured(), packages=("pandas", "duckdb", "ibis-framework"))


def measured() -> Iterator[Row]:
    """Yield rows for each log, then how time and memory grow."""
    fitted: dict[tuple[int, str], float] = {}
    peak = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for millions, ending in SIZES:
            path = Path(folder) / f"log.{ending}"
            write(path, millions * 1_000_000)
            model = str(Path(folder) / "model.npz")
            scripts = {"DuckDB, counts only": SQL}
            if millions <= PANDAS_UP_TO:
                scripts["pandas, counts only"] = PANDAS
            commands = {"Counsel": (COUNSEL, "fit", str(path), "-o", model)}
            commands |= {peer: (code, str(path)) for peer, code in scripts.items()}
            fastest = {name: (float("inf"), 0.0) for name in commands}
            for _ in range(ROUNDS):
                for name, command in commands.items():
                    fastest[name] = min(fastest[name], run(*command))
            spent, used = fastest["Counsel"]
            floor, _ = run(FLOOR, str(path))
            form = {"parquet": "Parquet", "csv": "CSV"}[ending]
            what = f"{millions} million decisions, {form}: fit"
            note = f"Reading the columns once takes {floor:.2f} s."
            for peer in scripts:
                theirs, much = fastest[peer]
                asked = ASKED.get((millions, ending), {}) if peer.startswith("DuckDB") else {}
                yield against(
                    what, spent, "s", peer, theirs,
                    memory=used, peer_memory=much, note=note, **asked,
                )  # fmt: skip
            fitted[millions, ending] = spent
            peak = max(peak, used)
            path.unlink()
    why = "it is asked of Counsel alone"
    yield alone("Peak memory of a fit, largest of all", peak, "GB", why, most=3.0, memory=peak)
    growth = (fitted[20, "parquet"] - fitted[5, "parquet"]) / 15.0
    growth /= max((fitted[5, "parquet"] - fitted[1, "parquet"]) / 4.0, 1e-9)
    what = "Each further million from 5 to 20, against each from 1 to 5: time"
    yield alone(what, growth, "times", why, most=1.5)


def run(code: str, *arguments: str) -> tuple[float, float]:
    """Return the seconds and the peak memory (GB) of a program.

    The program itself says how much memory it had at most: what the system reports of a child
    counts from before it began, when it was a copy of this process.
    """
    with tempfile.NamedTemporaryFile() as status_file:
        begin = time.perf_counter()
        command = [sys.executable, "-c", PEAK + code, *arguments]
        place = os.environ | {"STATUS": status_file.name}
        done = subprocess.run(command, stdout=subprocess.DEVNULL, env=place, check=False)
        spent = time.perf_counter() - begin
        if done.returncode:
            raise SystemExit(f"failed: {arguments}")
        status = Path(status_file.name).read_text(encoding="utf-8")
    (peak,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return spent, int(peak) / 2**20


def write(path: Path, decisions: int) -> None:
    """Write about so many decisions of the ward, advice and silence at random."""
    problem = make("ward")
    shape = (problem.horizon, problem.n_states, problem.n_actions + 1)
    policy = counsel.Policy.from_probabilities(np.full(shape, 1.0 / shape[2]))
    simulator, rng = counsel.Simulator(problem), np.random.default_rng(0)
    episodes = round(decisions / problem.horizon * 1.005)  # some end before their last step

    def batches() -> Iterator[counsel.simulate.Episodes]:
        for first in range(0, episodes, 50_000):
            yield simulator.play(policy, episodes=min(50_000, episodes - first), rng=rng)

    counsel.save_log(batches(), path, problem=problem)


if __name__ == "__main__":
    main()
