"""How fast the service lists when a tenant has much, and advises while a person is erased.

Part of ``python -m benchmarks.service``, on SQLite and on PostgreSQL. Pages are of 1,000 rows, the
most that a caller can ask for, where a tenant has 10,000 advisers, 100 models and 100,000 people;
each is asked for 20 times, from the beginning and from the middle of the list.
"""

import json
import threading
import time
import urllib.request
from collections.abc import Iterator

import numpy as np
import sqlalchemy as sa

from benchmarks.callers import call
from benchmarks.results import Row, alone
from counsel.service.core.settings import AdviserSettings
from counsel.service.db.api_keys import tenant_of
from counsel.service.db.engine import open_engine, write_transaction
from counsel.service.db.tables import advisers, models, people

ADVISERS, MODELS, PEOPLE = 10_000, 100, 100_000
PEOPLE_ERASED = tuple(f"p{i}" for i in range(10, 20))
TURNS = 20
WHY = "it is asked of Counsel alone"


def fill_lists(url: str) -> None:
    """Put advisers, models and people of the tenant ``local`` on record."""
    engine = open_engine(url)
    with write_transaction(engine) as connection:
        tenant = tenant_of(connection, "local")
        row = {"tenant": tenant, "created": 1.0}
        content = np.random.default_rng(0).bytes(20_000)
        connection.execute(
            sa.insert(models),
            [
                row | {"id": f"m{i:031d}", "name": f"m{i}", "content": content}
                for i in range(MODELS)
            ],
        )
        for i in range(0, ADVISERS, 1000):
            sources = [f"m{j % (2 * MODELS):031d}" for j in range(i, i + 1000)]
            settings = [AdviserSettings(source=s, budget=1.0).model_dump_json() for s in sources]
            connection.execute(
                sa.insert(advisers),
                [
                    row | {"id": f"{i + j:032d}", "name": f"a{i + j}", "settings": text}
                    for j, text in enumerate(settings)
                ],
            )
        for i in range(0, PEOPLE, 10_000):
            rows = [row | {"name": f"person {i + j:06d}"} for j in range(10_000)]
            connection.execute(sa.insert(people), rows)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("ANALYZE")
    engine.dispose()


def list_pages(port: int, where: str) -> Iterator[Row]:
    """Time pages of lists."""
    pages = {
        "advisers": ("", f"{ADVISERS // 2:032d}"),
        "people": ("", f"person%20{PEOPLE // 2:06d}"),
        "models": ("", f"m{MODELS // 2:031d}"),
    }
    for name, places in pages.items():
        times = list[float]()
        for place in places:
            after = f"&after={place}" if place else ""
            address = f"http://127.0.0.1:{port}/v1/{name}?limit=1000{after}"
            for _ in range(TURNS):
                began = time.perf_counter()
                with urllib.request.urlopen(address) as answer:
                    json.load(answer)
                times.append(1000.0 * (time.perf_counter() - began))
        yield alone(
            f"{where}: a page of {name}",
            float(np.median(times)),
            "ms",
            WHY,
            most=100.0,
            note=f"The slowest of {len(times)} pages took {max(times):.0f} ms.",
        )


def erasing(port: int, adviser: str, where: str, count: int) -> Iterator[Row]:
    """Time advice while people with a fiftieth of all outcomes each are erased."""
    call(port, adviser, callers=10, seconds=2.0)
    took = list[float]()

    def erase() -> None:
        for person in PEOPLE_ERASED:
            began = time.perf_counter()
            address = f"http://127.0.0.1:{port}/v1/people/{person}"
            with urllib.request.urlopen(urllib.request.Request(address, method="DELETE")):
                took.append(time.perf_counter() - began)

    thread = threading.Thread(target=erase)
    thread.start()
    load = call(port, adviser, callers=10, seconds=1.0)
    while thread.is_alive():
        more = call(port, adviser, callers=10, seconds=0.5)
        load.latencies += more.latencies
        load.faults += more.faults
        load.acknowledged += more.acknowledged
    yield alone(
        f"{where}: erasing a person among {count:,} outcomes, 99% of answers within",
        load.percentile(0.99),
        "ms",
        WHY,
        most=250.0,
        note=f"{len(took)} people were erased in {min(took):.1f} to {max(took):.1f} s each; the "
        f"slowest answer took {load.percentile(1.0):.0f} ms, {len(load.faults)} errors.",
    )
