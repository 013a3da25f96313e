"""Services that are killed, and several on one database: all find the same level in the record."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from counsel.model.files import save
from counsel.service.client import Client
from tests.support import services
from tests.support.tiring_people import ACTIONS, HORIZON, MEMORIES, slow_levels, tiring_problem

pytestmark = pytest.mark.slow

TRIAL = {"explore": 1.0, "schedule": {"0": {"0": 0.3, "1": 0.3, "2": 0.2}, "1": {"2": 0.5}}}


def adviser_of(client, tmp_path, name):
    """An adviser on an uploaded model, whose memory lasts, who advises at random."""
    path = tmp_path / f"{name}.npz"
    save(tiring_problem(*MEMORIES[name]), path)
    model = client.upload_model(path.read_bytes(), name)
    return client.create_adviser(name, model, penalty=0.1, memory_across="person", **TRIAL)


class Caller:
    """Somebody who writes down what was said and done, and knows the levels by slow replay."""

    def __init__(self, adviser, name, seed):
        self.adviser, self.rng = adviser, np.random.default_rng(seed)
        self.memory, self.start, self.steps = MEMORIES[name][0], None, {}
        self.episode = None

    def begin(self, client):
        if self.episode is None:
            self.start = self.memory.start
        else:
            self.start = self.levels(max(self.steps) + 1)[-1]
        self.episode, self.steps = client.start(self.adviser["id"], "ann"), {}

    def levels(self, until):
        return slow_levels(self.memory, self.episode, self.start, self.steps, until)

    def step(self, client, *others):
        """Ask for the next step, all clients at once, and report most outcomes."""
        step, state = len(self.steps), str(self.rng.integers(2))
        with ThreadPoolExecutor(1 + len(others)) as pool:
            asked = [
                pool.submit(one.advise, self.episode, step, state) for one in (client, *others)
            ]
            said, *same = [one.result() for one in asked]
        assert all(one == said for one in same)
        expected = self.levels(step)[step]
        assert said["reason"]["level"] == self.adviser["memory"]["levels"][expected]
        advice = None if said["advice"] is None else int(said["advice"])
        did = int(self.rng.integers(ACTIONS)) if self.rng.random() < 0.8 else None
        if did is not None:
            client.report(said["id"], str(did))
        self.steps[step] = (advice, did, True)


def test_a_service_killed_in_the_middle_of_an_episode_keeps_the_level(url, tmp_path):
    port = services.free_port()
    process = services.start(url, port)
    with Client(f"http://127.0.0.1:{port}") as client:
        caller = Caller(adviser_of(client, tmp_path, "random"), "random", seed=3)
        for killed_after in (1, 3):
            caller.begin(client)
            for step in range(HORIZON):
                caller.step(client)
                if step == killed_after:
                    os.kill(process.pid, signal.SIGKILL)
                    process.join()
                    process = services.start(url, port)
        shown = client.episode(caller.episode)
        names = caller.adviser["memory"]["levels"]
        now = [names[level] for level in caller.levels(HORIZON)]
        assert [one["level"] for one in shown["decisions"]] == now[:-1]
        assert shown["level"] == now[-1]
        [belief] = client.person("ann")["advisers"]
        assert belief["level"] == now[-1]
    process.kill()
    process.join()


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_two_services_on_one_database_agree_on_the_level(url, tmp_path):
    ports = [services.free_port(), services.free_port()]
    processes = [services.start(url, port) for port in ports]
    try:
        with (
            Client(f"http://127.0.0.1:{ports[0]}") as one,
            Client(f"http://127.0.0.1:{ports[1]}") as other,
        ):
            caller = Caller(adviser_of(one, tmp_path, "random"), "random", seed=5)
            for _ in range(3):
                caller.begin(other)
                for step in range(HORIZON):
                    clients = (one, other) if step % 2 else (other, one)
                    caller.step(*clients)
            assert one.episode(caller.episode) == other.episode(caller.episode)
    finally:
        for process in processes:
            process.kill()
            process.join()
