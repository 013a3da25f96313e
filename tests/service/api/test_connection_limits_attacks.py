"""Attacks over real sockets: callers are advised meanwhile, and hostile connections are closed."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import ExitStack, contextmanager

import psutil
import pytest

from counsel.errors import CounselError
from counsel.service.client import Client
from tests.support import services
from tests.support.attacks import attack
from tests.support.long_records import fill
from tests.support.processes import started
from tests.support.waiting import until

pytestmark = pytest.mark.slow

LIMITS = {
    "COUNSEL_CONNECTIONS": "300",
    "COUNSEL_HEADER_SECONDS": "2",
    "COUNSEL_BODY_SECONDS": "2",
    "COUNSEL_IDLE_SECONDS": "30",
    "COUNSEL_SEND_SECONDS": "2",
}
WORLD = {"name": "birds", "source": "flappy-bird/safe", "budget": 2, "hard": True}
SERVE = [sys.executable, "-c", "from counsel.cli import main; main()", "serve", "--no-auth"]
CALLERS, STEPS = 4, 20


@contextmanager
def served(database, *options, **limits):
    """Serve as a user would; yields the port and the process."""
    port = services.free_port()
    command = [*SERVE, "--db", str(database), "--port", str(port), *options]
    variables = {**os.environ, **LIMITS, **limits}
    with started(command, env=variables, stdout=subprocess.DEVNULL) as process:
        until(lambda: services.answers(port))
        with Client(f"http://127.0.0.1:{port}") as client:  # compiles the planner
            adviser = client.create_adviser("first", "flappy-bird/safe", budget=2, hard=True)["id"]
            until(lambda: advised(client, adviser))
        yield port, psutil.Process(process.pid)


def advised(client, adviser):
    """Whether the service is ready to advise at once."""
    try:
        client.advise(client.start(adviser, "first"), 0, "c0r3")
    except CounselError:  # it says to try again
        return False
    return True


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """A database with a log of several megabytes, and its adviser."""
    database = tmp_path_factory.mktemp("edge") / "edge.db"
    return database, fill(f"sqlite:///{database}", WORLD, 40_000)


@pytest.fixture(scope="module")
def service(record):
    with served(record[0]) as (port, process):
        yield port, process


def call(port, adviser, number, answers):
    """Play some episodes; each answer is put down with the seconds that it took."""
    for episode_number in range(3):
        with Client(f"http://127.0.0.1:{port}") as client:
            episode = client.start(adviser, f"caller {number}")
            for step in range(STEPS):
                began = time.monotonic()
                decision = client.advise(episode, step, f"c{step}r{(step + number) % 7}")
                answers.append((episode_number, decision["id"], time.monotonic() - began))
                client.report(decision["id"], "Up", reward=1.0)
            client.end(episode)


def call_all(port, adviser):
    """Let everybody play at once; return all answers, none of which may be missing or doubled."""
    answers = []
    threads = [
        threading.Thread(target=call, args=(port, adviser, number, answers), daemon=True)
        for number in range(CALLERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(answers) == CALLERS * 3 * STEPS, "somebody was not answered"
    assert len({id_ for _, id_, _ in answers}) == len(answers)
    slowest = sorted(seconds for *_, seconds in answers)[int(0.99 * len(answers))]
    assert slowest < 5.0, "the machine may be busy, but not so busy"
    return answers


def adviser_of(port):
    with Client(f"http://127.0.0.1:{port}") as client:
        return client.create_adviser("birds", "flappy-bird/safe", budget=2, hard=True)["id"]


def open_sockets(process):
    return sum(part.status == "ESTABLISHED" for part in process.net_connections("tcp"))


def metric(port, name):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    (value,) = [line.split()[-1] for line in lines if line.startswith(f"counsel_{name} ")]
    return float(value)


@pytest.mark.parametrize("count", [1, 4])
def test_headers_without_end(service, count):
    port, process = service
    before = process.memory_info().rss
    with attack("endless", port, count, least=count) as report:
        call_all(port, adviser_of(port))
    assert report.closed >= count
    assert set(report.statuses) <= {"431", ""}
    assert process.memory_info().rss - before < 100e6


def test_headers_byte_by_byte(service):
    port, _ = service
    with attack("slow", port, 50, least=50) as report:
        call_all(port, adviser_of(port))
    assert report.closed >= 50
    assert report.statuses["408"] >= 50
    assert metric(port, 'refused_connections_total{reason="slow"}') >= 50


def test_more_idle_connections_than_may_be_open(service):
    port, process = service
    with attack("idle", port, 1100, least=800) as report:
        call_all(port, adviser_of(port))
        assert open_sockets(process) <= 300 + 1
    assert report.opened >= 1100
    assert report.closed >= 800


def test_answers_that_nobody_reads(service, record):
    port, _ = service
    with attack("unread", port, 4, f"/v1/advisers/{record[1]}/log", least=4) as report:
        call_all(port, adviser_of(port))
    assert report.closed >= 4


@pytest.mark.parametrize("count", [1, 4])
def test_requests_before_answers(service, count):
    port, _ = service
    with attack("pipelined", port, count, least=count) as report:
        call_all(port, adviser_of(port))
    assert report.closed >= count, "500 requests at once are too many"


def test_all_at_once(service, record):
    port, process = service
    kinds = (
        *(("endless", 2, "/"), ("slow", 50, "/"), ("idle", 400, "/"), ("pipelined", 2, "/healthz")),
        ("unread", 4, f"/v1/advisers/{record[1]}/log"),
    )
    with ExitStack() as stack:
        reports = [
            stack.enter_context(attack(kind, port, count, path, least=1))
            for kind, count, path in kinds
        ]
        call_all(port, adviser_of(port))
        assert open_sockets(process) <= 300 + 1
        assert 0 < metric(port, "connections") <= 300
    assert all(report.closed for report in reports)
    assert metric(port, 'refused_connections_total{reason="crowded"}') > 0


def test_idle_connections_are_closed_in_the_end(record):
    with served(record[0], COUNSEL_IDLE_SECONDS="1") as (port, process):
        quiet, asked = (socket.create_connection(("127.0.0.1", port)) for _ in range(2))
        with quiet, asked:
            asked.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            for caller in (quiet, asked):
                caller.settimeout(30)
                while caller.recv(1000):
                    pass
        until(lambda: open_sockets(process) == 0)


@pytest.mark.parametrize("with_keys", [False, True], ids=["no-auth", "keys"])
def test_requests_that_are_not_valid_are_refused_at_once(tmp_path, with_keys):
    head, address = b" HTTP/1.1\r\nHost: localhost\r\n", b"GET /v1/people?limit=1"
    bad = {
        "zeros": address + head + b"Content-Length: " + b"0" * 5000 + b"\r\n\r\n",
        "nines": address + head + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
        "not a number": address + head + b"Content-Length: \xb2\r\n\r\n",
        "two lengths": address + head + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "host": address + b" HTTP/1.1\r\nHost: [\r\n\r\n",
        "two hosts": address + b" HTTP/1.1\r\nHost: elsewhere\r\nHost: localhost\r\n\r\n",
        "host of bytes": address + b" HTTP/1.1\r\nHost: \xff\xfe\r\n\r\n",
        "bytes": bytes(range(128, 256)) * 50,
        "bytes in the path": b"GET /v1/\xff\xfe" + head + b"\r\n",
        "bytes in a name": address + head + b"X-\xff: a\r\n\r\n",
        "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 500,
        "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "tunnel": b"CONNECT localhost:80" + head + b"\r\n",
    }
    port = services.free_port()
    command = [part for part in SERVE if not (with_keys and part == "--no-auth")]
    command += ["--db", str(tmp_path / "a.db"), "--port", str(port)]
    with started(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        until(lambda: services.answers(port))
        for name, content in bad.items():
            with socket.create_connection(("127.0.0.1", port), timeout=30) as caller:
                caller.sendall(content)
                assert caller.recv(1000).startswith(b"HTTP/1.1 400 "), name
        authorised = b"Authorization: Bearer \xff\xfe\r\n\r\n"
        with socket.create_connection(("127.0.0.1", port), timeout=30) as caller:
            caller.sendall(address + head + authorised)
            assert caller.recv(1000).startswith(b"HTTP/1.1 401 " if with_keys else b"HTTP/1.1 200 ")
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=30)
    lines = [json.loads(line) for line in log.splitlines()]
    warnings = [
        line["message"]
        for line in lines
        if line["level"] != "info" and line.get("status", 500) >= 500  # others may answer slowly
    ]
    assert warnings == ["a key from 127.0.0.1 is not valid"] * with_keys, "nothing else is logged"
    about_requests = [line for line in lines if "route" in line and line["level"] == "info"]
    assert about_requests == [], "nobody fills the log from outside"


@pytest.mark.parametrize("kind", ["all", "body"])
def test_the_service_stops_in_time_whatever_callers_do(record, kind):
    slow = {"COUNSEL_BODY_SECONDS": "60", "COUNSEL_SEND_SECONDS": "60"}
    with served(record[0], **slow) as (port, process), ExitStack() as stack:
        if kind == "all":
            for hostile, n in (("endless", 2), ("slow", 20), ("idle", 100), ("pipelined", 2)):
                stack.enter_context(attack(hostile, port, n))
            stack.enter_context(attack("unread", port, 4, f"/v1/advisers/{record[1]}/log"))
        for _ in range(5):
            caller = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            caller.sendall(b"POST /v1/outcomes HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n{")
        time.sleep(1)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        assert time.monotonic() - began < 10.0
