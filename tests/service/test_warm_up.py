"""The planner is compiled when a process starts, and no request compiles anything afterwards."""

import gc
import logging
import os
import subprocess
import sys
import threading
import time

import pytest

from counsel.service import warm_up
from counsel.service.client import Client
from counsel.service.warm_up import WarmUp
from tests.support import services
from tests.support.processes import started
from tests.support.waiting import until

PLANS_OF_EVERY_KIND = """
import sys, tempfile
from pathlib import Path
import numpy as np
from numba.core.dispatcher import Dispatcher
import counsel
from counsel.learning.population import NOBODY, Limit, Population
from counsel.planning.gains import gains_at
from counsel.service.core.explained_plan import explain_plan
from counsel.service.core.problem_sources import read_model
from counsel.service.warm_up import compile_planner
from counsel.worlds.catalogue import list_worlds

def kernels():
    modules = [module for name, module in sys.modules.items() if name.startswith("counsel")]
    return {
        f"{found.py_func.__module__}.{found.py_func.__name__}{signature}"
        for module in modules
        for found in vars(module).values()
        if isinstance(found, Dispatcher)
        for signature in found.signatures
    }

def uploaded(problem):
    path = Path(tempfile.mkdtemp()) / "model.npz"
    counsel.save(problem, path)
    return read_model(path.read_bytes())

def changing(problem):
    # The same world with rewards, masks and a habit that differ from step to step.
    rng, mdp = np.random.default_rng(0), problem.mdp
    shape = (mdp.horizon, mdp.n_states, mdp.n_actions)
    moves = rng.dirichlet(np.ones(mdp.n_states), size=shape)
    allowed = rng.random(shape) < 0.7
    allowed[:, :, 0] = True
    habit = np.where(allowed, rng.random(shape), 0.0)
    habit /= habit.sum(axis=2, keepdims=True)
    other = counsel.MDP(
        moves, rng.random(shape), horizon=mdp.horizon, start=mdp.start, allowed=allowed
    )
    human = counsel.Human(
        habit, lift=0.5, memory=problem.memory, fading=problem.human.fading
    )
    return counsel.AdviceProblem(other, human, cost=2.0)

built = {name: world.build() for name, world in list_worlds().items()}
worlds = {name: problem for name, problem in built.items() if problem.discount is None}
worlds |= {f"changing {name}": changing(worlds[name]) for name in ("ward", "ward/tiring")}
worlds |= {f"uploaded {name}": uploaded(world) for name, world in worlds.items()}
compile_planner()
known, late = kernels(), {}
for name, world in worlds.items():
    for algorithm in ("ucb-ad", "thompson"):
        for must_say in ({}, {0: 0}):
            for limit in (
                Limit(), Limit(penalty=0.1), Limit(budget=1.0), Limit(budget=2.0, hard=True),
                Limit(always=True),
            ):
                if world.n_states > 1000 and (algorithm == "thompson" or must_say):
                    continue  # it takes long, and the kernels are the same
                population = Population(
                    world.without_adherence(), algorithm, False, must_say,
                    fading=world.human.fading,
                )
                for person, cell in ((NOBODY, None), (1, (0, 0, 0)), (2, (0, None, 0))):
                    if cell is not None:
                        level = None if world.memory is None else 0
                        population.counts.add(person, cell, 3, level)
                plan = population.plan(1, limit, np.random.default_rng(0))
                explain_plan(population, plan)
                left = plan.plan.policy.left_after(0)
                gains_at(plan.problem, plan.plan, 0, 0, left, world.n_levels - 1)
                for kernel in kernels() - known:
                    late[kernel] = (name, algorithm, must_say, limit)
                known = kernels()
print(f"{len(known)} kernels")
for kernel, when in late.items():
    print(kernel, when, file=sys.stderr)
sys.exit(bool(late))
"""


@pytest.mark.slow
def test_no_plan_compiles_anything_after_the_warm_up():
    finished = subprocess.run(
        [sys.executable, "-c", PLANS_OF_EVERY_KIND], capture_output=True, text=True
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    assert "kernels" in finished.stdout


def test_a_process_is_compiling_until_it_is_done():
    compiles = threading.Event()
    mine = WarmUp(prepare=compiles.wait)
    mine.start()
    assert mine.fault() == "compiling the planner"
    compiles.set()
    until(lambda: mine.is_done)
    assert mine.fault() is None


def test_a_planner_that_cannot_be_compiled_is_named_and_holds_nobody_back(caplog):
    def fail():
        raise OSError("no compiler")

    mine = WarmUp(prepare=fail)
    with caplog.at_level(logging.ERROR, "counsel.service"):
        mine.run()
    assert mine.is_done
    assert mine.fault() == "the planner cannot be compiled: 'no compiler'"
    assert "the planner cannot be compiled" in caplog.text


def test_a_single_worker_that_compiles_for_long_has_helpers(tmp_path, monkeypatch):
    done = tmp_path / "done"
    program = (
        f"import os, sys; os.mkdir({str(done)!r} + {{!r}}.replace('/', '-')); sys.stdin.read()"
    )
    monkeypatch.setattr(warm_up, "HELPER", program)
    monkeypatch.setattr(warm_up, "HELP_SECONDS", 0.0)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(gc, "set_threshold", lambda *_: None)
    compiled, names = [], [f"done{world.replace('/', '-')}" for world in warm_up.WORLDS]

    def compile_world(world):
        compiled.append(world)
        until(lambda: len(list(tmp_path.iterdir())) == 2)

    monkeypatch.setattr(warm_up, "compile_world", compile_world)
    warm_up.compile_planner()
    assert tuple(compiled) == warm_up.WORLDS
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[1:])


def test_one_of_several_workers_has_no_helpers_and_a_beginning_of_its_own(monkeypatch):
    compiled = []
    monkeypatch.setattr(warm_up, "compile_world", compiled.append)
    monkeypatch.setattr(warm_up, "HELP_SECONDS", 0.0)
    monkeypatch.setattr(warm_up, "HELPER", "this is no program: {}")
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(gc, "set_threshold", lambda *_: None)
    for process in range(3):
        monkeypatch.setattr(os, "getpid", lambda process=process: process)
        warm_up.compile_planner(is_alone=False)
    assert [sorted(compiled[i : i + 3]) for i in (0, 3, 6)] == [sorted(warm_up.WORLDS)] * 3
    assert tuple(compiled[::3]) == warm_up.WORLDS


def test_a_helper_ends_with_the_process_that_started_it():
    program = "\n".join(
        [
            "import time",
            "from counsel.service import warm_up",
            "warm_up.compile_world = lambda _: (print(flush=True), time.sleep(600))",
            "warm_up.help_to_compile('ward')",
        ]
    )
    command = [sys.executable, "-c", program]
    with started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as helper:
        helper.stdout.readline()
        helper.stdin.close()
        assert helper.wait(60) == 0


def test_no_worker_is_ready_before_all_are(tmp_path):
    mine = WarmUp(2, tmp_path, prepare=lambda: None)
    mine.run()
    assert mine.fault() == "compiling the planner: 1 of 2 workers are ready"
    with started([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        (tmp_path / str(other.pid)).touch()
        assert mine.fault() is None
        other.kill()
        other.wait()
    assert mine.fault() == "compiling the planner: 1 of 2 workers are ready"
    mine.close()
    assert not (tmp_path / str(os.getpid())).exists()


@pytest.mark.slow
def test_workers_of_a_service_are_ready_together_and_answer_at_once(server, tmp_path):
    name = f"warm_{os.getpid()}_{time.monotonic_ns()}"
    with server.connect() as database:
        database.execute(f"create database {name}")
    port = services.free_port()
    command = [sys.executable, "-c", "from counsel.cli import main; main()", "serve", "--no-auth"]
    options = ["--workers", "2", "--db", server.url(database=name), "--port", str(port)]
    with started([*command, *options], stdout=subprocess.DEVNULL):
        until(lambda: services.answers(port, "/readyz"))
        for i in range(6):  # connections of their own, which either worker may take
            with Client(f"http://127.0.0.1:{port}") as client:
                if not i:
                    adviser = client.create_adviser("alerts", "ward", budget=1)["id"]
                assert client.start(adviser, "ann")
