"""Compile the planner when a process starts, before the process counts as ready.

The first start on a machine compiles for some twenty seconds; later ones load the result from disk
in less than one. The process is alive meanwhile, and says what it is doing. Several processes
compile at the same time, each another part: a kernel that one is compiling the others wait for, and
load from disk. Workers begin with different worlds; a single worker starts helpers.

Of several workers on one port a caller may reach any, so none counts as ready before all have
compiled: each leaves a file named by its process id in a folder that they share.
"""

import asyncio
import gc
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from counsel._arrays import brief
from counsel.learning.population import NOBODY, Limit, Population
from counsel.planning.gains import gains_at
from counsel.service.core.explained_plan import explain_plan
from counsel.worlds.catalogue import list_worlds

LOG = logging.getLogger("counsel.service")

WORLDS = ("ward", "flappy-bird-budget/greedy", "ward/tiring")
"""Small worlds that between them use every kernel of the planner: the states of one are few,
another has states that are alike, and the people of the last have a memory."""

LIMITS = (Limit(), Limit(budget=1.0), Limit(budget=1.0, hard=True), Limit(always=True))


HELP_SECONDS = 2.0
"""Seconds after which helpers are started: a start that only loads needs none."""

HELPER = "from counsel.service.warm_up import help_to_compile; help_to_compile({!r})"
"""The program of a helper for a world."""


def compile_planner(*, is_alone: bool = True) -> None:
    """Make a plan of every kind, so that no request has to compile anything.

    A worker that ``is_alone`` has helpers. The objects that exist then stay for good. They are
    frozen, because each garbage collection through all of them would stop the service for 0.15 s.
    """
    first = 0 if is_alone else os.getpid() % len(WORLDS)
    with _helpers((os.cpu_count() or 1) - 1 if is_alone else 0):
        for world in WORLDS[first:] + WORLDS[:first]:
            compile_world(world)
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def compile_world(world: str) -> None:
    """Make a plan of every kind for one world, and explain it."""
    problem = list_worlds()[world].build()
    population = Population(problem.without_adherence(), fading=problem.human.fading)
    for limit in LIMITS:
        plan = explain_plan(population, population.plan(NOBODY, limit))
        gains_at(plan.problem, plan.plan, 0, 0, plan.plan.policy.left_after(0))


def help_to_compile(world: str) -> None:
    """Compile a world in a process of its own, which ends when the one that started it does."""

    def end_with_the_other() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=end_with_the_other, daemon=True).start()
    compile_world(world)


@contextmanager
def _helpers(most: int) -> Iterator[None]:
    """Have other processes compile the last worlds while the first ones are compiled here."""
    processes = list[subprocess.Popen[bytes]]()

    def start() -> None:
        for world in WORLDS[:0:-1][:most]:
            program = [sys.executable, "-c", HELPER.format(world)]
            processes.append(subprocess.Popen(program, stdin=subprocess.PIPE))

    timer = threading.Timer(HELP_SECONDS, start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        for process in processes:
            process.kill()
            process.communicate()


class WarmUp:
    """Prepares one of ``workers`` processes in a thread of its own.

    ``folder`` is shared by all workers; a single one needs none. ``prepare`` compiles, by default
    the planner.
    """

    def __init__(
        self,
        workers: int = 1,
        folder: str | os.PathLike[str] | None = None,
        prepare: Callable[[], None] | None = None,
    ) -> None:
        self.workers = workers
        self._prepare = prepare or partial(compile_planner, is_alone=workers == 1)
        self._folder = None if folder is None else Path(folder)
        self._fault: str | None = None
        self._done: Future[None] = Future()

    def start(self) -> None:
        """Begin to compile, without waiting."""
        threading.Thread(target=self.run, name="warm-up", daemon=True).start()

    def run(self) -> None:
        """Compile. If that fails, requests are answered as far as they need no plan."""
        began = time.monotonic()
        try:
            self._prepare()
        except Exception as fault:
            LOG.error("the planner cannot be compiled", exc_info=True)
            self._fault = f"the planner cannot be compiled: {brief(str(fault))}"
        else:
            LOG.info("the planner is compiled after %.1f s", time.monotonic() - began)
            if self._folder is not None:
                (self._folder / str(os.getpid())).touch()
        self._done.set_result(None)

    @property
    def is_done(self) -> bool:
        """Whether this process has compiled the planner, or has given up."""
        return self._done.done()

    async def wait(self, seconds: float) -> bool:
        """Wait until this process is done, for so long at most; return whether it is."""
        if not self.is_done:
            done = asyncio.wrap_future(self._done)
            await asyncio.wait({done}, timeout=seconds)
        return self.is_done

    def fault(self) -> str | None:
        """Return why requests cannot be answered yet, here or in another worker, if so."""
        if not self.is_done:
            return "compiling the planner"
        if self._fault is None and self._folder is not None:
            ready = sum(_is_alive(int(file.name)) for file in self._folder.iterdir())
            if ready < self.workers:
                return f"compiling the planner: {ready} of {self.workers} workers are ready"
        return self._fault

    def close(self) -> None:
        """Take this process off the list of those that are ready."""
        if self._folder is not None:
            (self._folder / str(os.getpid())).unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    """Whether a process of this user exists; one that was killed leaves its file behind."""
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True
