"""How many answers the service gives in a second, how fast, and whether it loses any.

Run with ``make bench``, or alone with ``python -m benchmarks.service``. Fifty callers on Flappy
Bird ask for advice and report what came of it, over raw sockets on this machine. The service runs
as ``counsel serve`` starts it: one process on SQLite for 60 s, then two for 20 s on a PostgreSQL
server that waits for its disk, and two again for 60 s with a limit that all episodes share, in
turns with half as many seconds without. Afterwards every acknowledged outcome is looked for in the
database. The peer is a plain FastAPI service that puts the same two rows on record, each in a
transaction of its own, for 15 s. A restart is timed on a record of a million outcomes, with the
snapshot and without. Then ten callers are timed for 5 s each (on PostgreSQL 3 s) while one and four
hostile callers, or 1,100 idle ones, do what ``tests/support/attacks.py`` says. Last come long
lists, and advice while people are erased (``benchmarks/service_lists.py``), on both databases.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

from benchmarks.callers import Load, call
from benchmarks.results import FOLDER, Row, against, alone, record
from benchmarks.service_lists import erasing, fill_lists, list_pages
from benchmarks.service_shared import SHARED, shared_limit
from counsel.service.core.desk import Desk
from counsel.service.core.problem_sources import ProblemSources
from counsel.service.db.engine import open_engine
from counsel.service.db.tables import episodes, outcomes
from tests.support import postgres
from tests.support.attacks import attack
from tests.support.long_records import fill
from tests.support.services import free_port

ROOT = Path(__file__).parents[1]
CALLERS, CALLERS_UNDER_ATTACK = 50, 10
LEAST_RATE, MOST_MS = 1000.0, 50.0
"""What is asked of each: round trips per second, and milliseconds of 99 of 100 answers."""

MILLION, ERASED_AMONG = 1_000_000, 600_000
WORLD = {"name": "birds", "source": "flappy-bird/safe", "budget": 2, "hard": True}

ONE, TWO = "One process on SQLite", "Two processes on PostgreSQL"

COUNSEL = "from counsel.cli import main; main()"


def main() -> None:
    """Measure, print and write everything."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="how long callers call; only 60 is written down"
    )
    seconds = parser.parse_args().seconds
    packages = ("fastapi", "uvicorn", "sqlalchemy", "httptools", "uvloop")
    folder = FOLDER if seconds == 60.0 else None
    record("service", measured(seconds), packages=packages, folder=folder)


def measured(seconds: float) -> Iterator[Row]:
    """Yield what was measured: on SQLite beside a plain service, restarts, on PostgreSQL."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'one.db'}"
        with serving(url) as (port, process):
            one, memory = loaded(port, process, seconds)
        lost = one.before + one.acknowledged - kept(url)
        plain = peer(str(Path(folder) / "peer.db"), min(seconds, 15.0))
        yield from on_sqlite(one, plain, lost, memory)
        yield from restarts(f"sqlite:///{Path(folder) / 'million.db'}")
        yield from under_attack(
            f"sqlite:///{Path(folder) / 'attacked.db'}", ONE, min(seconds / 2, 5.0)
        )
        yield from long_record(f"sqlite:///{Path(folder) / 'long.db'}", ONE)
    yield from on_postgres(min(seconds, 20.0), seconds)


def on_sqlite(one: Load, plain: Load, lost: int, memory: list[tuple[int, float]]) -> Iterator[Row]:
    """Put one process on SQLite beside the plain service."""
    name, where = "plain FastAPI", ONE
    what, unit = f"{where}: pieces of advice with their outcomes", "round trips/s"
    yield against(
        what, one.rate, unit, name, plain.rate,
        more=True, least=LEAST_RATE, note=f"{one.acknowledged:,} in {one.seconds:.0f} s.",
    )  # fmt: skip
    for share, most in ((0.5, None), (0.99, MOST_MS)):
        what = f"{where}: {share:.0%} of answers within"
        mine, theirs = one.percentile(share), plain.percentile(share)
        yield against(what, mine, "ms", name, theirs, most=most)
    why = "it is asked of Counsel alone"
    yield alone(f"{where}: errors", float(len(one.faults)), "answers", why, most=0.0)
    yield alone(f"{where}: events lost", float(lost), "events", why, most=0.0)
    (early, before), (late, after) = memory[3], memory[-1]
    growth = (after - before) * 200_000 / max(late - early, 1)
    sizes = ", ".join(f"{mb:.0f} MB after {events:,}" for events, mb in memory)
    what = f"{where}: growth of memory over 200,000 events"
    yield alone(
        what,
        growth,
        "MB",
        why,
        most=20.0,
        memory=max(mb for _, mb in memory) / 1e3,
        note=f"{sizes}.",
    )


def restarts(stored: str) -> Iterator[Row]:
    """Time starts on a million outcomes until the first piece of advice."""
    fill(stored, WORLD, MILLION)
    without = restart(stored)
    engine = open_engine(stored)
    Desk(engine, ProblemSources(engine, {}), np.random.default_rng(0)).save_snapshot().result()
    engine.dispose()
    yield alone(
        "Start on a million outcomes until the first advice",
        restart(stored),
        "s",
        "the plain service learns nothing that it would have to know again",
        most=10.0,
        note=f"Without the snapshot {without:.1f} s.",
    )


ATTACKS = {
    "headers without end": "endless",
    "headers at a byte per second": "slow",
    "exports that nobody reads": "unread",
    "500 requests at once": "pipelined",
}


def under_attack(url: str, where: str, seconds: float, *options: str) -> Iterator[Row]:
    """Time advice while others attack."""
    log = f"/v1/advisers/{fill(url, WORLD, 40_000)}/log"
    attacks = [(name, kind, count) for name, kind in ATTACKS.items() for count in (1, 4)]
    why = "it is asked of Counsel alone"
    before, acknowledged = kept(url), 0
    with serving(url, *options) as (port, process):
        adviser = made(port)
        acknowledged += call(port, adviser, callers=CALLERS_UNDER_ATTACK, seconds=2.0).acknowledged
        for name, kind, count in [*attacks, ("idle connections", "idle", 1100)]:
            path = log if kind == "unread" else "/healthz"
            with attack(kind, port, count, path) as report:
                load = call(port, adviser, callers=CALLERS_UNDER_ATTACK, seconds=seconds)
            acknowledged += load.acknowledged
            plural = "" if count == 1 else "s"
            yield alone(
                f"{where}, attack by {count:,} caller{plural} ({name}): 99% of answers within",
                load.percentile(0.99),
                "ms",
                why,
                most=250.0,
                memory=resident(process.pid) / 1e3,
                note=f"{load.acknowledged:,} round trips, {len(load.faults)} errors; "
                f"{report.closed:,} of {report.opened:,} hostile connections were closed.",
            )
        with attack("unread", port, 4, log), attack("idle", port, 100):
            time.sleep(1.0)
            began = time.perf_counter()
            process.terminate()
            process.wait(timeout=60)
            took = time.perf_counter() - began
    what = f"{where}, under attack: from SIGTERM to the end"
    yield alone(what, took, "s", why, most=10.0)
    wrong = float(abs(before + acknowledged - kept(url)))
    what = f"{where}, under attack: outcomes lost or doubled"
    yield alone(what, wrong, "outcomes", why, most=0.0, note=f"Of {acknowledged:,}.")


def on_postgres(seconds: float, shared_seconds: float) -> Iterator[Row]:
    """Let two processes serve from PostgreSQL, where a server can be run."""
    try:
        postgres.programs()
        postgres.other_user()
    except postgres.NoServerError as fault:
        print(f"PostgreSQL is left out: {fault}", flush=True)
        return
    with postgres.running(durable=True) as server:
        url = server.url()
        with serving(url, "--workers", "2") as (port, process):
            two, _ = loaded(port, process, seconds)
        lost = two.before + two.acknowledged - kept(url)
        why = "the plain service keeps its record in SQLite"
        yield alone(
            f"{TWO}: pieces of advice with their outcomes",
            two.rate,
            "round trips/s",
            why,
            least=LEAST_RATE,
            note=f"{two.acknowledged:,} in {two.seconds:.0f} s. The server shares the cores.",
        )
        p99 = two.percentile(0.99)
        yield alone(f"{TWO}: 99% of answers within", p99, "ms", why, most=MOST_MS)
        wrong = float(len(two.faults) + abs(lost))
        yield alone(f"{TWO}: errors, and events lost", wrong, "events", why, most=0.0)
        with server.connect() as database:
            for name in ("attacked", "shared", "long"):
                database.execute(f"create database {name}")
        url = server.url(database="attacked")
        yield from under_attack(url, TWO, min(seconds / 2, 3.0), "--workers", "2")
        url = server.url(database="shared")
        with serving(url, "--workers", "2") as (port, _):
            advisers = made(port, shared_limit=SHARED), made(port)
            yield from shared_limit(url, port, advisers, CALLERS, shared_seconds)
        url = server.url(database="long")
        yield from long_record(url, TWO, "--workers", "2")


def long_record(url: str, where: str, *options: str) -> Iterator[Row]:
    """Time lists of much, and advice while people with many outcomes are erased."""
    fill(url, WORLD, ERASED_AMONG)
    fill_lists(url)
    with serving(url, *options) as (port, _):
        yield from list_pages(port, where)
        yield from erasing(port, made(port), where, ERASED_AMONG)


@contextmanager
def serving(url: str, *options: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Run the service as a user would and wait until it is ready."""
    port = free_port()
    command = [sys.executable, "-c", COUNSEL, "serve", "--no-auth", "--db", url]
    with subprocess.Popen(
        [*command, "--port", str(port), *options], stdout=subprocess.DEVNULL
    ) as process:
        try:
            wait(port, "/readyz")
            yield port, process
        finally:
            process.terminate()
            process.wait(timeout=60)


def wait(port: int, path: str = "/healthz") -> None:
    """Wait until a service answers a path with success; one that compiles is not ready."""
    for _ in range(2400):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60):
                return
        except OSError:
            time.sleep(0.05)
    raise SystemExit("the service did not start")


def made(port: int, **more: Any) -> str:
    """Make an adviser, with more settings than the usual ones, and return its id."""
    content, kind = json.dumps(WORLD | more).encode(), {"Content-Type": "application/json"}
    address = f"http://127.0.0.1:{port}/v1/advisers"
    with urllib.request.urlopen(urllib.request.Request(address, content, kind)) as answer:
        return str(json.load(answer)["id"])


def loaded(
    port: int, process: subprocess.Popen[bytes], seconds: float
) -> tuple[Load, list[tuple[int, float]]]:
    """Let callers call in six parts; return what they saw, and the memory after each."""
    adviser, whole, memory = made(port), Load(), list[tuple[int, float]]()
    whole.before = call(port, adviser, callers=CALLERS, seconds=2.0).acknowledged
    memory.append((0, resident(process.pid)))
    for _ in range(6):
        part = call(port, adviser, callers=CALLERS, seconds=seconds / 6)
        whole.seconds += part.seconds
        whole.latencies += part.latencies
        whole.acknowledged += part.acknowledged
        whole.faults += part.faults
        memory.append((2 * whole.acknowledged, resident(process.pid)))
    return whole, memory


def resident(pid: int) -> float:
    """Return the memory of a process in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def kept(url: str) -> int:
    """Return how many outcomes are on record."""
    engine = open_engine(url)
    with engine.connect() as connection:
        count = connection.scalar(sa.select(sa.func.count()).select_from(outcomes))
    engine.dispose()
    return int(count or 0)


def peer(path: str, seconds: float) -> Load:
    """Let callers call a plain service."""
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.service_peer", path, str(port)]
    with subprocess.Popen(command, cwd=ROOT) as process:
        wait(port)
        load = call(port, made(port), callers=CALLERS, seconds=seconds)
        process.kill()
    return load


def restart(url: str) -> float:
    """Return how long a start takes until the first piece of advice."""
    engine = open_engine(url)
    with engine.connect() as connection:
        adviser = connection.scalar(sa.select(episodes.c.adviser).limit(1))
    engine.dispose()
    began = time.perf_counter()
    with serving(url) as (port, _):
        body = json.dumps({"person": "p1"}).encode()
        address, kind = f"http://127.0.0.1:{port}/v1", {"Content-Type": "application/json"}
        asked = urllib.request.Request(f"{address}/advisers/{adviser}/episodes", body, kind)
        with urllib.request.urlopen(asked) as answer:
            episode = json.load(answer)["id"]
        body = json.dumps({"step": 0, "state": "c0r3"}).encode()
        asked = urllib.request.Request(f"{address}/episodes/{episode}/advice", body, kind)
        urllib.request.urlopen(asked).close()
        return time.perf_counter() - began


if __name__ == "__main__":
    main()
