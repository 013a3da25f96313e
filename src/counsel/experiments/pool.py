"""Runs side by side: in processes here, or on a Dask cluster, through the same executor interface.

As many runs are under way as there are workers. A run's rows come back to the process that asked,
which alone writes files, so workers need no shared disk. Which worker does what, and in what order,
changes nothing: rows depend on the run alone. A process that dies (killed, out of memory) takes the
pool with it; a new one is made and unfinished runs go on, up to three times. A cluster does that of
its own.
"""

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from typing import Any

from counsel.errors import CounselError
from counsel.experiments.experiment import Run
from counsel.experiments.store import Done

TRIES = 3
"""How often a pool of processes is made before giving up."""

WAIT = 10.0
"""Seconds to wait for a cluster to answer."""


def do(run: Run) -> Done:
    """Run, and time it. This is what workers are sent."""
    begin = time.perf_counter()
    rows = run.rows()
    return Done(rows, time.perf_counter() - begin)


def finished(
    runs: Sequence[Run],
    *,
    workers: int,
    cluster: str | None,
    begun: Callable[[Run], None] = lambda run: None,
) -> Iterator[tuple[Run, Done]]:
    """Yield runs as they finish; ``begun`` is told when one is handed out.

    Parameters
    ----------
    runs
        What is to be done.
    workers
        How many processes; with a cluster it says itself.
    cluster
        The address of a Dask scheduler, or None.
    """
    left = list(runs)
    if cluster is not None:
        with _on(cluster) as (executor, count):
            yield from _served(executor, left, max(1, count), begun)
        return
    if workers == 1:
        while left:
            begun(left[0])
            yield left[0], do(left[0])
            left.pop(0)
        return
    for _ in range(TRIES):
        with _processes(min(workers, max(1, len(left)))) as executor:
            try:
                yield from _served(executor, left, workers, begun)
            except BrokenProcessPool:
                continue
        return
    names = ", ".join(run.id for run in left[:workers])
    raise CounselError(
        f"a worker died {TRIES} times while doing one of {names}; try fewer workers (memory?)"
    )


def _served(
    executor: Executor, left: list[Run], workers: int, begun: Callable[[Run], None]
) -> Iterator[tuple[Run, Done]]:
    """Keep workers busy; take what is done off ``left``."""
    waiting, active = list(left), dict[Future[Done], Run]()
    try:
        while waiting or active:
            while waiting and len(active) < workers:
                run = waiting.pop(0)
                begun(run)
                active[executor.submit(do, run)] = run
            for future in wait(active, return_when=FIRST_COMPLETED).done:
                run = active.pop(future)
                result = future.result()
                left.remove(run)
                yield run, result
    finally:
        for future in active:
            future.cancel()


@contextmanager
def _processes(workers: int) -> Iterator[Executor]:
    """Give a pool of fresh processes; when left early, those at work are stopped."""
    fresh = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(workers, mp_context=fresh, initializer=_deaf)
    try:
        yield executor
    except BaseException:
        processes = list((executor._processes or {}).values())
        executor.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()
        raise
    executor.shutdown()


def _deaf() -> None:
    """Leave Ctrl-C to the process that asked, which stops its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _on(address: str) -> Iterator[tuple[Executor, int]]:
    """Connect to a Dask scheduler; give its executor and how many runs it can take at once."""
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise CounselError(
            "a cluster needs dask.distributed; install it with: pip install 'counsel[cluster]'"
        ) from None
    try:
        client: Any = Client(address, timeout=WAIT, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TypeError) as fault:
        reason = str(fault).splitlines()[0] if str(fault) else type(fault).__name__
        raise CounselError(f"no Dask scheduler answers at {address}: {reason}") from None
    try:
        yield client.get_executor(pure=False, retries=TRIES), sum(client.nthreads().values())
    finally:
        with suppress(Exception):
            client.close(timeout=WAIT)
