"""Several processes on one PostgreSQL database: one answer for a step, and no budget overspent."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from counsel.service.client import Client
from counsel.service.db.engine import open_engine
from counsel.service.db.tables import episodes
from tests.support import services
from tests.support.processes import started
from tests.support.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture(params=["postgresql"])
def url(request, server):
    name = f"workers_{os.getpid()}_{time.monotonic_ns()}"
    with server.connect() as database:
        database.execute(f"create database {name}")
    return server.url(database=name)


@pytest.fixture
def two(url):
    """Two processes, as they would run on two machines."""
    ports = [services.free_port(), services.free_port()]
    processes = [services.start(url, port) for port in ports]
    yield [f"http://127.0.0.1:{port}" for port in ports]
    for process in processes:
        process.kill()
        process.join()


def test_two_processes_never_overspend_and_give_one_answer(two, url):
    with Client(two[0]) as client:
        adviser = client.create_adviser("alerts", "ward", budget=2, hard=True)["id"]
        begun = [client.start(adviser, f"nurse {i}") for i in range(10)]

    def ask(address, episode, step):
        with Client(address) as client:
            return client.advise(episode, step, "deteriorating")

    spent = {}
    with ThreadPoolExecutor(12) as pool:
        for episode in begun:
            asked = {
                step: [pool.submit(ask, address, episode, step) for address in two]
                for step in range(6)
            }
            said = {step: [one.result() for one in those] for step, those in asked.items()}
            assert all(first == second for first, second in said.values())
            spent[episode] = sum(first["advice"] is not None for first, _ in said.values())
    assert set(spent.values()) <= {0, 1, 2}
    assert max(spent.values()) == 2
    engine = open_engine(url)
    with engine.connect() as connection:
        rows = connection.execute(sa.select(episodes.c.id, episodes.c.spent)).all()
    assert {row.id: row.spent for row in rows} == spent
    engine.dispose()


def test_what_one_process_learns_and_forgets_the_other_does_too(two):
    with Client(two[0]) as here, Client(two[1]) as there:
        adviser = here.create_adviser("alerts", "ward", budget=2, hard=True)["id"]
        episode = here.start(adviser, "ann")
        for step in range(4):
            said = (here, there)[step % 2].advise(episode, step, "deteriorating")
            (there, here)[step % 2].report(said["id"], "assess", reward=1.0)

        def both(decisions):
            deadline = time.monotonic() + 20
            while [one.summary(adviser)["decisions"] for one in (here, there)] != [decisions] * 2:
                assert time.monotonic() < deadline
                time.sleep(0.05)

        both(4)
        there.delete_person("ann")
        both(0)


@pytest.mark.slow
def test_the_command_serves_with_two_workers(url):
    port = services.free_port()
    command = [sys.executable, "-c", "from counsel.cli import main; main()", "serve"]
    options = ["--no-auth", "--workers", "2", "--db", url, "--port", str(port)]
    with started(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        until(lambda: services.answers(port))
        ids = set()
        for i in range(6):  # connections of their own, which either process may take
            with Client(f"http://127.0.0.1:{port}") as client:
                if not i:
                    adviser = client.create_adviser("alerts", "ward", budget=1)["id"]
                ids.add(client.start(adviser, "ann"))
        assert len(ids) == 6
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=30)
    assert "Traceback" not in told
