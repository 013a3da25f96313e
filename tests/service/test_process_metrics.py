"""Two workers of one service: metrics that add up, and logs that are JSON in every process."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

import pytest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.parser import text_string_to_metric_families

from counsel.service.client import Client
from tests.support import services
from tests.support.processes import started
from tests.support.waiting import until

pytestmark = pytest.mark.slow

COUNSEL = [sys.executable, "-c", "from counsel.cli import main; main()"]


@pytest.fixture
def url(server):
    name = f"metrics_{os.getpid()}_{time.monotonic_ns()}"
    with server.connect() as database:
        database.execute(f"create database {name}")
    return server.url(database=name)


def numbers(port):
    """Return the samples of /metrics, over a new connection, which either worker may take."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def processes(folder, pattern):
    return {int(file.stem.rpartition("_")[2]) for file in folder.glob(f"*/{pattern}")}


def test_metrics_sum_over_workers_and_survive_the_death_of_one(url, tmp_path):
    port = services.free_port()
    options = ["--no-auth", "--workers", "2", "--access-log", "--db", url, "--port", str(port)]
    with started(
        [*COUNSEL, "serve", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path), "COUNSEL_REQUEST_SECONDS": "60"},
    ) as process:
        until(lambda: services.answers(port))
        until(lambda: len(processes(tmp_path, "gauge_livesum_*.db")) == 2)
        asked = 0

        def ask():
            nonlocal asked
            with Client(f"http://127.0.0.1:{port}") as client:
                episode = client.start(adviser, f"nurse {asked}")
                decision = client.advise(episode, 0, "deteriorating")
                client.report(decision["id"], "assess", reward=1.0)
            asked += 1

        def counted():
            samples = numbers(port)
            kinds = ("advice", "must", "silence")
            return sum(samples["counsel_advice_total", ("kind", kind)] for kind in kinds)

        with Client(f"http://127.0.0.1:{port}") as client:
            adviser = client.create_adviser("alerts", "ward", budget=1)["id"]
        until(lambda: ask() or (asked >= 10 and are_both_busy(tmp_path)))
        route = (("method", "POST"), ("route", "/v1/episodes/{episode}/advice"))
        for _ in range(6):
            assert counted() == asked
            samples = numbers(port)
            assert samples["counsel_outcomes_total",] == asked
            assert samples["counsel_request_seconds_count", *route] == asked
            assert samples["counsel_commit_items_sum",] >= 3 * asked
            assert not any("pid" in dict(labels) for _, *labels in samples)

        killed = min(processes(tmp_path, "gauge_livesum_*.db"))
        os.kill(killed, signal.SIGKILL)
        until(lambda: len(processes(tmp_path, "gauge_livesum_*.db") - {killed}) == 2)
        until(lambda: services.answers(port))
        assert counted() == asked
        assert killed not in processes(tmp_path, "gauge_livesum_*.db")
        ask()
        assert counted() == asked

        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=60)
    assert list(tmp_path.glob("counsel-metrics-*")) == []
    lines = [json.loads(line) for line in told.splitlines()]
    answered = [line for line in lines if line["message"] == "answered"]
    routes = [line["route"] for line in answered]
    assert routes.count("/v1/episodes/{episode}/advice") == asked
    assert len({line["request"] for line in answered}) == len(answered)
    assert all(line["time"].endswith("Z") and line["logger"] for line in lines)
    assert "nurse" not in told


def are_both_busy(folder):
    """Whether each worker has counted advice."""
    busy = 0
    for file in folder.glob("*/counter_*.db"):
        metrics = MultiProcessCollector.merge([str(file)])
        busy += any(
            sample.value > 0
            for metric in metrics
            if metric.name == "counsel_advice"
            for sample in metric.samples
        )
    return busy >= 2
