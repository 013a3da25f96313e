"""Runs in parallel: in local processes or on a Dask cluster, through the same executor interface.

Each worker has one run at a time. Rows return to the calling process, which alone writes files, so
workers need no shared disk. Results do not depend on the workers or on the order, because rows
depend on the run alone. A process that dies (killed, out of memory) breaks the pool; a new pool
then takes the remaining runs, up to three times. A cluster retries by itself. Processes exit when
their parent is gone.
"""

import multiprocessing
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from typing import Any

from counsel.errors import CounselError
from counsel.experiments.experiment import Run
from counsel.experiments.store import RunResult
from counsel.runs.manifest import versions

TRIES = 3  # the number of pools tried before giving up
WAIT = 10.0  # seconds to wait for a cluster to answer
ADDRESS = re.compile(r"[a-z]+://(?P<host>\[[0-9a-f:]+\]|[^:/\[\]]+):(?P<port>\d{1,5})")

OnStart = Callable[[Run], None]
Results = Iterator[tuple[Run, RunResult]]


def execute(run: Run) -> RunResult:
    """Run, and measure the time; workers call this function."""
    begin = time.perf_counter()
    rows = run.rows()
    return RunResult(rows, time.perf_counter() - begin, versions())


@contextmanager
def open_workers(
    workers: int, cluster: str | None
) -> Iterator[Callable[[Sequence[Run], OnStart], Results]]:
    """Yield a function that executes runs and yields the result of each as it finishes.

    Runs are executed in local processes, or by the Dask scheduler at the address ``cluster``.
    """
    if cluster is None:
        yield lambda runs, on_start: _run_locally(list(runs), workers, on_start)
        return
    with _connect(cluster) as client:
        yield lambda runs, on_start: _run_on_cluster(list(runs), client, cluster, on_start)


def _run_locally(left: list[Run], workers: int, on_start: OnStart) -> Results:
    """Execute runs in local processes, or in this process if there is only one worker."""
    if workers == 1:
        for run in left:
            on_start(run)
            yield run, execute(run)
        return
    for _ in range(TRIES):
        with fresh_processes(min(workers, max(1, len(left)))) as executor:
            try:
                yield from _dispatch(executor, left, lambda: workers, on_start)
            except BrokenProcessPool:
                continue
        return
    names = ", ".join(run.id for run in left[:workers])
    raise CounselError(
        f"a worker died {TRIES} times during one of {names}; try fewer workers (out of memory?)"
    )


def _run_on_cluster(
    left: list[Run],
    client: Any,  # noqa: ANN401 (Dask's)
    address: str,
    on_start: OnStart,
) -> Results:
    """Execute runs on a cluster, which may grow and shrink meanwhile."""
    try:
        client.wait_for_workers(1, timeout=WAIT)
    except TimeoutError:
        raise CounselError(
            f"the scheduler at {address} has no workers; start some: dask worker {address}"
        ) from None
    executor = client.get_executor(pure=False, retries=TRIES)

    def threads() -> int:
        return max(1, sum(int(count) for count in client.nthreads().values()))

    try:
        yield from _dispatch(executor, left, threads, on_start)
    except (CancelledError, OSError) as fault:
        raise CounselError(f"the cluster at {address} was lost: {_reason(fault)}") from None
    except ImportError as fault:
        raise CounselError(f"a worker of {address} lacks a package: {fault}") from None
    except Exception as fault:
        if not type(fault).__module__.startswith("distributed"):
            raise
        raise CounselError(f"the cluster at {address} gave up: {_reason(fault)}") from None


def _dispatch(
    executor: Executor, left: list[Run], workers: Callable[[], int], on_start: OnStart
) -> Results:
    """Keep all workers busy; remove finished runs from ``left``."""
    waiting, active = list(left), dict[Future[RunResult], Run]()
    try:
        while waiting or active:
            while waiting and len(active) < workers():
                run = waiting.pop(0)
                on_start(run)
                active[executor.submit(execute, run)] = run
            for future in wait(active, timeout=5.0, return_when=FIRST_COMPLETED).done:
                run = active.pop(future)
                result = future.result()
                left.remove(run)
                yield run, result
    finally:
        for future in active:
            future.cancel()


@contextmanager
def fresh_processes(workers: int) -> Iterator[Executor]:
    """Yield a pool of new processes; an exception stops those at work."""
    spawn = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(workers, mp_context=spawn, initializer=_prepare_worker)
    try:
        yield executor
    except BaseException:
        processes = list((executor._processes or {}).values())
        executor.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()
        raise
    executor.shutdown()


def _prepare_worker() -> None:
    """Leave Ctrl-C to the parent, which stops its workers; exit when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _connect(address: str) -> Iterator[Any]:
    """Yield a client of the Dask scheduler at an address."""
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise CounselError(
            "a cluster needs dask.distributed; install it with: pip install 'counsel[cluster]'"
        ) from None
    parts = ADDRESS.fullmatch(address)
    if parts is None:
        raise CounselError(f"cluster is {address!r}; give an address such as tcp://host:8786")
    try:
        host, port = parts["host"].strip("[]"), int(parts["port"])
        socket.create_connection((host, port), timeout=WAIT).close()
    except (OSError, OverflowError) as fault:
        raise CounselError(f"no Dask scheduler answers at {address}: {_reason(fault)}") from None
    clients: list[Any] = []

    def connect() -> None:
        with suppress(OSError, ValueError, TypeError):
            clients.append(Client(address, timeout=WAIT, set_as_default=False))  # type: ignore[no-untyped-call]

    # In a thread: a server that accepts connections but never answers would block for ever.
    caller = threading.Thread(target=connect, daemon=True)
    caller.start()
    caller.join(2.0 * WAIT)
    if not clients:
        raise CounselError(f"the server at {address} is not a Dask scheduler: it does not answer")
    try:
        yield clients[0]
    finally:
        with suppress(Exception):
            clients[0].close(timeout=WAIT)


def _reason(fault: BaseException) -> str:
    return str(fault).splitlines()[0] if str(fault) else type(fault).__name__
