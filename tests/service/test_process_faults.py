"""Databases that go silent, are frozen, locked or read-only: 503 in time, and then as before."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import psycopg
import pytest
import sqlalchemy as sa

from counsel.service.db.engine import open_engine
from counsel.service.db.tables import decisions, outcomes
from tests.support import services
from tests.support.processes import started
from tests.support.silent_proxy import silent_proxy
from tests.support.waiting import until

pytestmark = pytest.mark.slow

DEADLINES = {
    "request_seconds": 3.0, "lock_seconds": 2.0, "statement_seconds": 2.5,
    "transaction_seconds": 1.0, "connect_seconds": 2.0,
}  # fmt: skip
SLACK = 2.5
"""Seconds that this machine may be busy with something else."""

RECOVERY = 5.0
"""Seconds within which everything is as before once the cause is gone."""


class Caller:
    """Asks over one connection at a time, and notes how long each answer took."""

    def __init__(self, port):
        self.port, self.times, self.statuses = port, [], []

    def ask(self, verb, path, body=None):
        began = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        content = None if body is None else json.dumps(body)
        try:
            connection.request(verb, path, content, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        self.times.append(time.monotonic() - began)
        self.statuses.append(answer.status)
        return answer.status, answer.headers, json.loads(text) if text else None

    def adviser(self):
        body = {"name": "alerts", "source": "ward", "budget": 1, "hard": True}
        return self.ask("POST", "/v1/advisers", body)[2]["id"]

    def episode(self, adviser):
        status, _, answer = self.ask("POST", f"/v1/advisers/{adviser}/episodes", {"person": "ann"})
        assert status == 201
        return answer["id"]

    def advice(self, episode, step):
        path = f"/v1/episodes/{episode}/advice"
        return self.ask("POST", path, {"step": step, "state": "deteriorating"})

    def report(self, advice):
        body = {"outcomes": [{"advice_id": advice, "action": "assess", "reward": 1.0}]}
        return self.ask("POST", "/v1/outcomes", body)


@contextmanager
def serving(url, **settings):
    port = services.free_port()
    process = services.start(url, port, **(DEADLINES | settings))
    try:
        yield Caller(port), process
    finally:
        os.kill(process.pid, signal.SIGCONT)
        process.kill()
        process.join()


def recovers(caller, episode, step):
    """Wait until advice is given again, and return how long that took."""
    began = time.monotonic()
    until(lambda: caller.advice(episode, step)[0] == 200)
    return time.monotonic() - began


@pytest.fixture
def database(server):
    """A fresh database of the server: its name."""
    name = f"faults_{os.getpid()}_{time.monotonic_ns()}"
    with server.connect() as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield name
    with server.connect() as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_database_that_goes_silent_hangs_nobody_and_all_is_well_when_it_speaks(server, database):
    with silent_proxy(server.port) as proxy:
        url = f"postgresql://postgres@127.0.0.1:{proxy.port}/{database}"
        with serving(url) as (caller, _):
            adviser = caller.adviser()
            episode = caller.episode(adviser)
            status, _, answer = caller.advice(episode, 0)
            assert status == 200
            assert caller.report(answer["id"])[0] == 200
            proxy.silence()
            caller.times.clear()
            waiting = [
                threading.Thread(target=caller.advice, args=(episode, step)) for step in (1, 2, 3)
            ]
            for thread in waiting:
                thread.start()
            status, headers, answer = caller.advice(episode, 4)
            assert status == 503
            assert headers["Retry-After"] == "1"
            assert "try again" in answer["detail"]
            for thread in waiting:
                thread.join()
            assert max(caller.times) < DEADLINES["request_seconds"] + SLACK
            caller.times.clear()
            assert caller.ask("GET", "/healthz")[0] == 200, "it is alive"
            assert max(caller.times) < SLACK
            status, _, answer = caller.ask("GET", "/readyz")
            assert (status, answer["status"]) == (503, "not ready")
            proxy.speak()
            assert recovers(caller, episode, 5) < RECOVERY + SLACK
            until(lambda: caller.ask("GET", "/readyz")[0] == 200)


def test_two_workers_whose_database_is_silent_stop_in_time_and_answer_who_waits(server, database):
    port, answers = services.free_port(), []
    command = [sys.executable, "-c", "from counsel.cli import main; main()", "serve", "--no-auth"]
    with silent_proxy(server.port) as proxy:
        url = f"postgresql://postgres@127.0.0.1:{proxy.port}/{database}"
        command += ["--workers", "2", "--db", url, "--port", str(port)]
        with started(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            caller = Caller(port)
            until(lambda: services.answers(port, "/readyz"))
            adviser = caller.adviser()
            for _ in range(20):  # both workers have it in use, and connections to read
                assert caller.ask("GET", f"/v1/advisers/{adviser}/summary")[0] == 200
            proxy.silence()

            def wait():
                answers.append(caller.ask("GET", f"/v1/advisers/{adviser}/summary"))

            waiting = [threading.Thread(target=wait) for _ in range(4)]
            for thread in waiting:
                thread.start()
            time.sleep(1.0)
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=30)
            assert time.monotonic() - began < 10.0
            for thread in waiting:
                thread.join()
    assert [status for status, _, _ in answers] == [503] * 4
    assert {headers["Retry-After"] for _, headers, _ in answers} == {"1"}
    assert "the service is stopping; try again" in {answer["detail"] for _, _, answer in answers}
    assert b"Exception in ASGI application" not in log


def test_a_service_that_is_frozen_with_the_lock_stalls_the_other_no_longer_than_a_deadline(
    server, database
):
    url = server.url(database=database)
    with serving(url) as (frozen, process), serving(url) as (caller, _):
        adviser = frozen.adviser()
        stopping = threading.Event()

        def hammer():
            while not stopping.is_set():
                try:
                    frozen.episode(adviser)
                except (AssertionError, OSError, http.client.HTTPException):
                    time.sleep(0.01)

        hammering = [threading.Thread(target=hammer, daemon=True) for _ in range(4)]
        for thread in hammering:
            thread.start()
        caller.episode(adviser)
        answered = []
        for _ in range(8):
            os.kill(process.pid, signal.SIGSTOP)
            caller.times.clear()
            began = time.monotonic()
            until(lambda: caller.ask("POST", f"/v1/advisers/{adviser}/episodes",
                                     {"person": "bob"})[0] == 201)  # fmt: skip
            answered.append(time.monotonic() - began)
            assert max(caller.times) < DEADLINES["request_seconds"] + SLACK
            os.kill(process.pid, signal.SIGCONT)
            time.sleep(0.05)
        stopping.set()
        # The lock is free once the frozen transaction has idled for a second.
        assert max(answered) < DEADLINES["request_seconds"] + SLACK


def test_a_database_that_was_read_only_for_a_while_heals_without_a_restart(server, database):
    """Connections that were opened meanwhile stay read-only, and stayed in the pool."""
    url = server.url(database=database)
    with serving(url) as (caller, _):
        adviser = caller.adviser()
        episode = caller.episode(adviser)
        with server.connect() as connection:
            connection.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                (database,),
            )
        until(lambda: caller.advice(episode, 0)[0] == 503)
        for step in range(4):  # fill the pool with connections of that time
            assert caller.advice(episode, step)[0] == 503
        status, _, answer = caller.ask("GET", "/readyz")
        assert status == 503
        assert "read-only" in answer["database"]
        with server.connect() as connection:
            connection.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = off")
        assert recovers(caller, episode, 0) < RECOVERY + SLACK
        for _ in range(30):
            assert caller.ask("GET", "/readyz")[0] == 200


def test_a_database_that_others_keep_locked_is_answered_with_503(tmp_path):
    url = f"sqlite:///{tmp_path / 'counsel.db'}"
    with serving(url) as (caller, _):
        adviser = caller.adviser()
        episode = caller.episode(adviser)
        engine = open_engine(url)
        with engine.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            caller.times.clear()
            assert caller.advice(episode, 0)[0] == 503
            assert max(caller.times) < DEADLINES["request_seconds"] + SLACK
            assert caller.ask("GET", "/healthz")[0] == 200
            assert caller.ask("GET", "/v1/advisers")[0] == 200, "reading needs no lock"
            connection.rollback()
        engine.dispose()
        assert recovers(caller, episode, 0) < RECOVERY + SLACK


def test_connections_that_the_server_cuts_lose_nothing_that_was_acknowledged(server, database):
    url = server.url(database=database)
    acknowledged, stopping = [], threading.Event()
    with serving(url) as (caller, _):
        adviser = caller.adviser()

        def work(name):
            own = Caller(caller.port)
            while not stopping.is_set():
                try:
                    episode = own.episode(adviser)
                    for step in range(6):
                        status, _, answer = own.advice(episode, step)
                        if status == 200 and own.report(answer["id"])[0] == 200:
                            acknowledged.append(answer["id"])
                except (AssertionError, OSError, http.client.HTTPException):
                    time.sleep(0.01)

        working = [threading.Thread(target=work, args=(f"p{i}",)) for i in range(4)]
        for thread in working:
            thread.start()
        for _ in range(5):
            time.sleep(0.4)
            with psycopg.connect(server.url(), autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                    (database,),
                )
        until(lambda: len(acknowledged) > 50)
        stopping.set()
        for thread in working:
            thread.join()
    engine = open_engine(url)
    with engine.connect() as connection:
        rows = connection.execute(
            sa.select(outcomes.c.episode, outcomes.c.step, outcomes.c.version)
        ).all()
        decided = connection.scalar(sa.select(sa.func.count()).select_from(decisions))
    engine.dispose()
    assert len(rows) == len(set(rows)) >= len(acknowledged)
    assert decided >= len(rows)
    assert {row.version for row in rows} == {1}, "nothing was recorded twice"
