"""Runs side by side: in processes here, or on a Dask cluster, through the same executor interface.

As many runs are under way as there are workers. A run's rows come back to the process that asked,
which alone writes files, so workers need no shared disk. Which worker does what, and in what order,
changes nothing: rows depend on the run alone. A process that dies (killed, out of memory) takes the
pool with it; a new one is made and unfinished runs go on, up to three times. A cluster does that of
its own. Processes whose parent is gone go too.
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
from counsel.experiments.store import Done
from counsel.runs.manifest import versions

TRIES = 3
"""How often a pool of processes is made before giving up."""

WAIT = 10.0
"""Seconds to wait for a cluster to answer."""

ADDRESS = re.compile(r"[a-z]+://(?P<host>\[[0-9a-f:]+\]|[^:/\[\]]+):(?P<port>\d{1,5})")

Begun = Callable[[Run], None]
Served = Iterator[tuple[Run, Done]]


def do(run: Run) -> Done:
    """Run, and time it. This is what workers are sent."""
    begin = time.perf_counter()
    rows = run.rows()
    return Done(rows, time.perf_counter() - begin, versions())


@contextmanager
def workforce(
    workers: int, cluster: str | None
) -> Iterator[Callable[[Sequence[Run], Begun], Served]]:
    """Give a function that does runs and yields each as it is finished.

    Parameters
    ----------
    workers
        How many processes; a cluster has its own number.
    cluster
        The address of a Dask scheduler, or None.
    """
    if cluster is None:
        yield lambda runs, begun: _here(list(runs), workers, begun)
        return
    with _connected(cluster) as client:
        yield lambda runs, begun: _there(list(runs), client, cluster, begun)


def _here(left: list[Run], workers: int, begun: Begun) -> Served:
    """Do runs in processes of this machine; in this one where there is to be one only."""
    if workers == 1:
        for run in left:
            begun(run)
            yield run, do(run)
        return
    for _ in range(TRIES):
        with fresh_processes(min(workers, max(1, len(left)))) as executor:
            try:
                yield from _served(executor, left, lambda: workers, begun)
            except BrokenProcessPool:
                continue
        return
    names = ", ".join(run.id for run in left[:workers])
    raise CounselError(
        f"a worker died {TRIES} times while doing one of {names}; try fewer workers (memory?)"
    )


def _there(left: list[Run], client: Any, address: str, begun: Begun) -> Served:  # noqa: ANN401
    """Do runs on a cluster, which may grow and shrink meanwhile."""
    try:
        client.wait_for_workers(1, timeout=WAIT)
    except TimeoutError:
        raise CounselError(
            f"the scheduler at {address} has no workers; start some: dask worker {address}"
        ) from None
    executor = client.get_executor(pure=False, retries=TRIES)
    try:
        yield from _served(executor, left, lambda: max(1, sum(client.nthreads().values())), begun)
    except (CancelledError, OSError) as fault:
        raise CounselError(f"the cluster at {address} was lost: {_reason(fault)}") from None
    except ImportError as fault:
        raise CounselError(f"a worker of {address} lacks what it needs: {fault}") from None
    except Exception as fault:
        if not type(fault).__module__.startswith("distributed"):
            raise
        raise CounselError(f"the cluster at {address} gave up: {_reason(fault)}") from None


def _served(
    executor: Executor, left: list[Run], workers: Callable[[], int], begun: Begun
) -> Served:
    """Keep workers busy; take what is done off ``left``."""
    waiting, active = list(left), dict[Future[Done], Run]()
    try:
        while waiting or active:
            while waiting and len(active) < workers():
                run = waiting.pop(0)
                begun(run)
                active[executor.submit(do, run)] = run
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
    """Give a pool of fresh processes; when left early, those at work are stopped."""
    fresh = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(workers, mp_context=fresh, initializer=_settle)
    try:
        yield executor
    except BaseException:
        processes = list((executor._processes or {}).values())
        executor.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()
        raise
    executor.shutdown()


def _settle() -> None:
    """Leave Ctrl-C to the process that asked, which stops its workers; go when it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """Connect to a Dask scheduler."""
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise CounselError(
            "a cluster needs dask.distributed; install it with: pip install 'counsel[cluster]'"
        ) from None
    found = ADDRESS.fullmatch(address)
    if found is None:
        raise CounselError(f"cluster is {address!r}; give an address such as tcp://host:8786")
    try:
        host, port = found["host"].strip("[]"), int(found["port"])
        socket.create_connection((host, port), timeout=WAIT).close()
    except (OSError, OverflowError) as fault:
        raise CounselError(f"no Dask scheduler answers at {address}: {_reason(fault)}") from None
    made: list[Any] = []

    def connect() -> None:
        with suppress(OSError, ValueError, TypeError):
            made.append(Client(address, timeout=WAIT, set_as_default=False))  # type: ignore[no-untyped-call]

    # Something that listens and never speaks would keep us for ever.
    caller = threading.Thread(target=connect, daemon=True)
    caller.start()
    caller.join(2.0 * WAIT)
    if not made:
        raise CounselError(f"what listens at {address} is no Dask scheduler: it does not answer")
    try:
        yield made[0]
    finally:
        with suppress(Exception):
            made[0].close(timeout=WAIT)


def _reason(fault: BaseException) -> str:
    return str(fault).splitlines()[0] if str(fault) else type(fault).__name__
