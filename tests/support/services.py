"""A service of our own: its desk alone, or all of it on a free loopback port.

What is served runs in this process, or in one that can be killed.
"""

import http.client
import multiprocessing
import socket
import threading
import time
from contextlib import contextmanager

import numpy as np


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def open_desk(url, settings=None):
    """A desk on a database, in which the tenant "local" has the number 1."""
    from counsel.service.core.desk import Desk
    from counsel.service.core.problem_sources import ProblemSources
    from counsel.service.db.api_keys import tenant_of
    from counsel.service.db.engine import open_engine, write_transaction
    from counsel.service.playground.rules import PROBLEMS_BY_PREFIX

    engine = open_engine(url, settings)
    with write_transaction(engine) as connection:
        assert tenant_of(connection, "local") == 1
    sources = ProblemSources(engine, PROBLEMS_BY_PREFIX)
    desk = Desk(engine, sources, np.random.default_rng(0), settings=settings)
    try:
        yield desk
    finally:
        desk.close()
        engine.dispose()


@contextmanager
def serving(database):
    """Serve without keys in a thread; yields the address."""
    import uvicorn

    from counsel.service.process import ServiceProcess
    from counsel.service.server import server_options

    port = free_port()
    process = ServiceProcess(str(database), auth=False)
    service = uvicorn.Server(
        uvicorn.Config(process.app(), port=port, **server_options(process.settings))
    )
    thread = threading.Thread(target=service.run)
    thread.start()
    while not service.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        service.should_exit = True
        thread.join()


def answers(port, path="/healthz"):
    """Whether a service answers at this port, with 200 at this path."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _run(url, port, settings):
    """Serve in this process, which was forked from one that has everything imported."""
    from counsel.service.process import ServiceProcess
    from counsel.service.server import run
    from counsel.service.settings import ServiceSettings

    process = ServiceProcess(url, auth=False, settings=ServiceSettings(**settings))
    run(process.app(), process.settings, host="127.0.0.1", port=port)


def start(url, port, **settings):
    """Serve in a process of its own and wait until it is ready."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["counsel.service.process"])
    process = context.Process(target=_run, args=(url, port, settings), daemon=True)
    process.start()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if answers(port, "/readyz"):
            return process
        time.sleep(0.02)
    process.kill()
    raise AssertionError("the service did not start")
