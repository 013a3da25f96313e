"""How the app is served: with limits of connections, and an end that comes in time."""

import faulthandler
import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict

import psutil
import psycopg
import pytest
import uvicorn

from counsel.service.api.connection_limits import LimitedConnection
from counsel.service.db.engine import LOCK
from counsel.service.process import ENVIRONMENT, ServiceProcess
from counsel.service.server import BACKLOG, end_in_time, server_options
from counsel.service.settings import ServiceSettings
from tests.support import services
from tests.support.processes import started
from tests.support.waiting import until


def test_uvicorn_takes_the_options():
    options = server_options(ServiceSettings(stop_seconds=2.5))
    config = uvicorn.Config(lambda *_: None, **options)
    config.load()
    assert config.http_protocol_class is LimitedConnection
    assert config.timeout_graceful_shutdown == 3
    assert 0 < config.backlog <= BACKLOG
    assert not config.access_log
    assert not config.server_header


STUCK = """
import asyncio, sys, threading, time
from contextlib import asynccontextmanager
from fastapi import FastAPI
from counsel.service.server import end_in_time, run
from counsel.service.settings import ServiceSettings

settings = ServiceSettings(stop_seconds=1.0)

@asynccontextmanager
async def lifespan(app):
    end_in_time(settings)
    yield {"settings": settings}
    time.sleep(60)  # a part that does not end

app = FastAPI(lifespan=lifespan)

@app.get("/healthz")
async def healthz():
    return {}

run(app, settings, host="127.0.0.1", port=int(sys.argv[1]))
"""


@pytest.mark.slow
def test_a_process_that_does_not_end_is_ended_and_says_where_it_was():
    port = services.free_port()
    command = [sys.executable, "-c", STUCK, str(port)]
    with started(command, stderr=subprocess.PIPE, text=True) as process:
        until(lambda: services.answers(port))
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=30)
    assert time.monotonic() - began < 10.0
    assert process.returncode == 1
    assert "Timeout" in log
    assert "in lifespan" in log


def test_a_signal_that_came_before_the_app_was_made_sets_the_latest_end(monkeypatch):
    ends = []
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda s, **_: ends.append(s))
    server = uvicorn.Server(uvicorn.Config(lambda *_: None))
    before = signal.signal(signal.SIGTERM, server.handle_exit)
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        end_in_time(ServiceSettings(stop_seconds=2.0))
        end_in_time(ServiceSettings(stop_seconds=5.0))  # changes nothing
        assert ends == []
        signal.raise_signal(signal.SIGTERM)
        assert (ends, server.should_exit) == ([3.0], True)
        signal.signal(signal.SIGTERM, server.handle_exit)
        end_in_time(ServiceSettings(stop_seconds=4.0))
        assert ends == [3.0, 5.0]
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.signal(signal.SIGINT, interrupt)


STARTING = """
import sys, uvicorn
app = "counsel.service.process:app_from_environment"
uvicorn.run(app, factory=True, port=int(sys.argv[1]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_worker_that_waits_for_the_database_at_its_start_ends_in_time(url):
    settings = ServiceSettings(stop_seconds=1.0)
    process = ServiceProcess(url, auth=False, settings=settings)
    variables = {**os.environ, ENVIRONMENT: json.dumps(asdict(process))}
    command = [sys.executable, "-c", STARTING, str(services.free_port())]
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s)", (LOCK,))
        query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory' AND "
        query += "datname = current_database()"
        with started(command, env=variables, stderr=subprocess.PIPE, text=True) as worker:
            until(lambda: other.execute(query).fetchone() == (1,))
            began = time.monotonic()
            worker.send_signal(signal.SIGTERM)
            _, log = worker.communicate(timeout=30)
    assert time.monotonic() - began < 10.0
    assert worker.returncode == 1
    assert "in open_engine" in log


@pytest.mark.slow
@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_several_workers_have_the_limits_and_stop_in_time(url):
    port = services.free_port()
    command = [sys.executable, "-c", "from counsel.cli import main; main()", "serve", "--no-auth"]
    command += ["--workers", "2", "--db", url, "--port", str(port)]
    variables = {**os.environ, "COUNSEL_HEADER_SECONDS": "1"}
    with started(command, env=variables, stdout=subprocess.DEVNULL) as process:
        until(lambda: services.answers(port))
        callers = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(8)]
        for caller in callers:
            caller.sendall(b"GET / HTTP/1.1\r\nHost: ")
        for caller in callers:
            assert caller.recv(1000).startswith(b"HTTP/1.1 408 ")
            caller.close()
        late = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(4)]
        for caller in late:
            caller.sendall(b"POST /v1/outcomes HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n")
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        assert time.monotonic() - began < 10.0
        for caller in late:
            caller.close()


@pytest.mark.slow
@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_worker_that_is_frozen_is_killed_when_the_service_stops(url):
    port = services.free_port()
    command = [sys.executable, "-c", "from counsel.cli import main; main()", "serve", "--no-auth"]
    command += ["--workers", "2", "--db", url, "--port", str(port)]
    variables = {**os.environ, "COUNSEL_STOP_SECONDS": "2"}
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with started(command, env=variables, **pipes) as process:
        until(lambda: services.answers(port, "/readyz"))
        children = psutil.Process(process.pid).children()
        workers = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
        assert len(workers) == 2
        workers[0].suspend()
        time.sleep(1.5)  # the supervisor asks it for a sign of life, and waits for the answer
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=60)
        assert time.monotonic() - began < 10.0
        psutil.wait_procs(workers, timeout=10)
        assert not any(worker.is_running() for worker in workers)
    assert f"the worker process {workers[0].pid} does not end and is killed" in log
