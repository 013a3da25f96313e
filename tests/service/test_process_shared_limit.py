"""Many callers and several services share one limit, and one of the services is killed."""

import os
import signal
import threading
import time

import pytest
import sqlalchemy as sa

from counsel.errors import CounselError
from counsel.service.client import Client
from counsel.service.core.shared_limit import stretch_start
from counsel.service.db.engine import open_engine, read
from counsel.service.db.tables import decisions, stretches
from tests.support import services

pytestmark = pytest.mark.slow

CALLERS, SECONDS, PIECES = 50, 6.0, 4
STATES = ("watch", "deteriorating", "critical")


class Callers:
    """People who ask one after the other, at services that may die, until told to stop."""

    def __init__(self, ports, adviser, seconds):
        self.acknowledged, self.adviser = [], adviser
        self._until = time.monotonic() + seconds
        self._threads = [
            threading.Thread(target=self._call, args=(ports[i % len(ports)], i))
            for i in range(CALLERS)
        ]
        for thread in self._threads:
            thread.start()

    def _call(self, port, number):
        while time.monotonic() < self._until:
            try:
                with Client(f"http://127.0.0.1:{port}", timeout=10) as client:
                    self._work(client, number)
            except CounselError:  # the service was killed, and is started again
                time.sleep(0.05)

    def _work(self, client, number):
        while time.monotonic() < self._until:
            episode = client.start(self.adviser, f"person {number}")
            for step in range(6):
                decision = client.advise(episode, step, STATES[(number + step) % len(STATES)])
                self.acknowledged.append((decision["id"], decision["advice"]))
                if time.monotonic() >= self._until:
                    return

    def join(self):
        for thread in self._threads:
            thread.join()


def new_adviser(port):
    limit = {"pieces": PIECES, "per": "second"}
    with Client(f"http://127.0.0.1:{port}") as client:
        settings = {"knows_habit": True, "must_say": {"critical": "call doctor"}}
        return client.create_adviser("phone", "ward", shared_limit=limit, **settings)["id"]


def check_record(url, callers):
    """No second exceeds the limit, the accounts are those of the record, and nothing is lost."""
    engine = open_engine(url)
    said = dict[int, int]()
    rows = read(engine, sa.select(decisions))
    for row in rows:
        if row.advice is not None and row.shown and not row.must:
            start = stretch_start(row.at, 1)
            said[start] = said.get(start, 0) + 1
    accounts = {row.start: row.spent for row in read(engine, sa.select(stretches))}
    engine.dispose()
    assert max(said.values()) <= PIECES
    assert {start: spent for start, spent in accounts.items() if spent} == said
    busy = sorted(said.values())
    assert busy[len(busy) // 2] == PIECES, "the limit is used"
    assert len(callers.acknowledged) > 50 * SECONDS
    assert len(rows) >= len({id_ for id_, _ in callers.acknowledged})
    must = sum(row.must for row in rows)
    assert must > len(rows) / 5, "what must be said is said"


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_two_services_and_fifty_callers_never_exceed_the_limit_though_one_is_killed(url):
    ports = [services.free_port(), services.free_port()]
    processes = [services.start(url, port) for port in ports]
    try:
        callers = Callers(ports, new_adviser(ports[0]), SECONDS)
        time.sleep(SECONDS / 3)
        os.kill(processes[0].pid, signal.SIGKILL)
        processes[0].join()
        processes[0] = services.start(url, ports[0])
        callers.join()
        check_record(url, callers)
    finally:
        for process in processes:
            process.kill()
            process.join()


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_one_service_on_sqlite_that_is_killed_keeps_the_limit(url):
    port = services.free_port()
    process = services.start(url, port)
    try:
        callers = Callers([port], new_adviser(port), SECONDS)
        time.sleep(SECONDS / 3)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        process = services.start(url, port)
        callers.join()
        check_record(url, callers)
    finally:
        process.kill()
        process.join()
