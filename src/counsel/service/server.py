"""How the app is served: uvicorn with limits of connections, and an end that comes in time."""

import faulthandler
import inspect
import logging
import math
import multiprocessing
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from counsel.service.open_files import raise_limit
from counsel.service.settings import ServiceSettings

LOG = logging.getLogger("counsel.service")

PROTOCOL = "counsel.service.api.connection_limits:LimitedConnection"
"""The class of connections, by name: a worker answers its first health check before it imports."""

HEALTH_SECONDS = 30
"""Seconds in which a worker process answers a health check, before another takes its place."""

BACKLOG = 2048
"""Connections that may wait to be accepted, at most."""

AFTER = 1.0
"""Seconds after ``stop_seconds`` at which a process that still runs is ended."""


LATEST, LEAVE_SECONDS = 2.0, 0.5
"""Seconds after ``stop_seconds`` at which worker processes that still run are killed, and those
that the main process has from then on to notice."""


def server_options(settings: ServiceSettings) -> dict[str, Any]:
    """Return the options of ``uvicorn.run`` and ``uvicorn.Config``; raises the limit of files."""
    options: dict[str, Any] = {
        "http": PROTOCOL,
        "ws": "none",
        "backlog": min(BACKLOG, raise_limit() // 4),
        "timeout_graceful_shutdown": math.ceil(settings.stop_seconds),
        "log_config": None,  # each process configures its own
        "server_header": False,
        "proxy_headers": False,
        "access_log": False,
    }
    if "timeout_worker_healthcheck" in inspect.signature(uvicorn.Config).parameters:
        options["timeout_worker_healthcheck"] = HEALTH_SECONDS
    return options


def run(
    app: FastAPI | str, settings: ServiceSettings, *, host: str, port: int, workers: int = 1
) -> None:
    """Serve an app, or the app that a named function returns in each of several processes."""
    is_one = workers == 1
    with nullcontext() if is_one else _workers_end_in_time(settings.stop_seconds + LATEST):
        uvicorn.run(
            app,
            factory=isinstance(app, str),
            host=host,
            port=port,
            workers=None if is_one else workers,
            **server_options(settings),
        )


def end_in_time(settings: ServiceSettings) -> None:
    """Arrange that the process ends soon after SIGTERM, whatever it does then.

    What was acknowledged is on disk, so nothing is lost. Where the process does not end by itself,
    the stacks of its threads are written to standard error. Calling it again changes nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        return  # a service inside another program, which has its own way to end
    for number in (signal.SIGTERM, signal.SIGINT):
        handler = signal.getsignal(number)
        if callable(handler) and not isinstance(handler, _Ending):
            signal.signal(number, _Ending(handler, settings.stop_seconds + AFTER))


class _Ending:
    """Handles a signal as before, and sets the latest time of the end."""

    def __init__(self, handler: Callable[[int, FrameType | None], Any], seconds: float) -> None:
        self._handler, self._seconds = handler, seconds
        if getattr(getattr(handler, "__self__", None), "should_exit", False):
            self._set_end()  # the signal came while the program was being imported

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self._set_end()
        self._handler(number, frame)

    def _set_end(self) -> None:
        stderr = sys.__stderr__ or sys.stderr
        faulthandler.dump_traceback_later(self._seconds, exit=True, file=stderr)


@contextmanager
def _workers_end_in_time(seconds: float) -> Iterator[None]:
    """Arrange that all worker processes are gone so many seconds after SIGTERM.

    One that is frozen does not end by itself. uvicorn waits for its end, or even for a sign of life
    before it looks at the signal, so a thread is told of the signal, too, and ends that waiting.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or sys.platform == "win32":  # which has no signal that ends waiting
        yield
        return
    hearing, told = socket.socketpair()
    told.settimeout(0.0)
    over = threading.Event()
    handler, wakeup = signal.signal(signal.SIGALRM, _leave), signal.set_wakeup_fd(told.fileno())
    threading.Thread(target=_kill_workers, args=(hearing, over, seconds), daemon=True).start()
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)  # one that comes now comes too late
        over.set()
        signal.set_wakeup_fd(wakeup)
        told.close()
        signal.signal(signal.SIGALRM, handler)


def _leave(_number: int, _frame: FrameType | None) -> None:
    """End the main thread, whatever it waits for."""
    raise SystemExit(1)


def _kill_workers(hearing: socket.socket, over: threading.Event, seconds: float) -> None:
    """Wait for SIGTERM; kill all workers that are there so many seconds later, then leave."""
    with hearing:
        while (heard := hearing.recv(1)) and heard[0] not in (signal.SIGTERM, signal.SIGINT):
            pass
        if over.wait(seconds):
            return
        for worker in multiprocessing.active_children():
            LOG.warning("the worker process %s does not end and is killed", worker.pid)
            worker.kill()
        main = threading.main_thread().ident
        if not over.wait(LEAVE_SECONDS) and main is not None and sys.platform != "win32":
            signal.pthread_kill(main, signal.SIGALRM)
            over.wait()
