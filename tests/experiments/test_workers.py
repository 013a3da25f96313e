"""Reproductions by processes and clusters that differ, are killed, or are not there."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading

import psutil
import pytest

import counsel
from counsel.experiments import reproduce as whole
from counsel.experiments import workers as pool
from counsel.experiments.experiment import Size
from tests.support.processes import started
from tests.support.reproductions import QUICK, TINY, hashes
from tests.support.waiting import PATIENCE, until, until_it_worked

pytestmark = pytest.mark.slow

COUNSEL = [sys.executable, "-c", "from counsel.cli import main; main()"]


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """The rows of some quick experiments, made in this process."""
    folder = tmp_path_factory.mktemp("straight")
    whole.reproduce(QUICK, TINY, folder, workers=1)
    return hashes(folder)


@pytest.fixture
def cluster():
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
    ) as made:
        yield made


def test_rows_do_not_depend_on_the_cluster_and_a_killed_worker_loses_nothing(
    straight, cluster, tmp_path
):
    killed = threading.Event()

    class Killer(whole.Progress):
        def end(self, run, result):
            if not killed.is_set():
                killed.set()
                victim = next(iter(cluster.workers.values()))
                os.kill(victim.process.process.pid, signal.SIGKILL)

    outcome = whole.reproduce(
        QUICK, TINY, tmp_path / "few", cluster=cluster.scheduler_address, progress=Killer()
    )
    assert killed.is_set()
    assert (outcome.done, outcome.skipped) == (len(straight), 0)
    assert hashes(tmp_path / "few") == straight


def test_a_process_that_is_killed_loses_nothing(straight, tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "_prepare_worker", _die_once)
    monkeypatch.setenv("COUNSEL_TEST_ONCE", str(tmp_path / "died"))
    whole.reproduce(["budget-learning"], TINY, tmp_path / "few", workers=2)
    assert (tmp_path / "died").exists()
    few = {key: rows for key, rows in straight.items() if key.startswith("budget-learning/")}
    assert hashes(tmp_path / "few") == few


def _die_once():
    """Kill the first process of a pool a moment after it began."""
    mark = os.environ["COUNSEL_TEST_ONCE"]
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()


def test_a_reproduction_killed_in_the_middle_goes_on_and_ends_alike(command, tmp_path):
    words = ["reproduce", "regret-safe", "budget-learning", "--scale", "0.02", "--seeds", "2"]
    straight = command(*words, "--workers", "1", "-o", "straight", cwd=tmp_path)
    assert straight.returncode == 0, straight.stderr
    assert "claims of the paper hold" in straight.stdout
    assert straight.stdout.splitlines()[-1].startswith("Next: open ")
    files = tmp_path / "broken" / "runs"
    with started(
        [*COUNSEL, *words, "--workers", "2", "-o", "broken"],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    ) as begun:  # fmt: skip
        until(lambda: bool(list(files.rglob("*.parquet"))))
        os.killpg(begun.pid, signal.SIGKILL)
        begun.wait()
    done = len(list(files.rglob("*.parquet")))
    assert not (tmp_path / "broken" / "report.html").exists() or done == 16
    again = command(*words, "--workers", "2", "-o", "broken", "--json", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["skipped"] == done
    assert hashes(tmp_path / "broken") == hashes(tmp_path / "straight")
    assert (tmp_path / "broken" / "claims.json").read_text() == (
        tmp_path / "straight" / "claims.json"
    ).read_text()


def test_ctrl_c_stops_at_once_and_leaves_what_is_done(tmp_path):
    # Many short runs: the first file is there soon, and the rest would still take a while.
    words = ["reproduce", "regret-safe", "--scale", "0.1", "--seeds", "15", "--workers", "2"]
    with started(
        [*COUNSEL, *words, "-o", "out"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as begun:  # fmt: skip
        until(lambda: bool(list((tmp_path / "out" / "runs").rglob("*.parquet"))))
        begun.send_signal(signal.SIGINT)
        _, told = begun.communicate(timeout=PATIENCE)
    assert begun.returncode == 130
    assert "Traceback" not in told
    assert "the same command resumes" in told
    assert hashes(tmp_path / "out")


# Workers that are not there, or go.


def test_workers_go_when_their_parent_is_killed(tmp_path):
    words = ["reproduce", "car-regret", "--seeds", "2", "--workers", "2", "-o", "out"]  # minutes
    with started(
        [*COUNSEL, *words], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as begun:
        parent = psutil.Process(begun.pid)

        def at_work():
            return [p for p in parent.children() if "spawn_main" in " ".join(p.cmdline())]

        until(lambda: len(at_work()) == 2)
        for worker in at_work():
            until_it_worked(worker, 2.0)  # in the middle of a run
        workers = parent.children()
        assert len(workers) >= 2
        begun.kill()
        begun.wait()
        _, alive = psutil.wait_procs(workers, timeout=PATIENCE)
        for process in alive:
            process.kill()
    assert not alive


def test_a_scheduler_without_workers_is_refused(tmp_path, monkeypatch):
    from distributed import LocalCluster

    monkeypatch.setattr(pool, "WAIT", 2.0)
    with LocalCluster(n_workers=0, processes=True, dashboard_address="127.0.0.1:0") as empty:
        address = empty.scheduler_address
        with pytest.raises(counsel.CounselError, match="has no workers; start some"):
            whole.reproduce(["worlds"], TINY, tmp_path / "out", cluster=address)


def test_what_listens_and_never_speaks_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "WAIT", 1.0)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        address = f"tcp://127.0.0.1:{deaf.getsockname()[1]}"
        with pytest.raises(counsel.CounselError, match="is not a Dask scheduler: it does not"):
            whole.reproduce(["worlds"], TINY, tmp_path / "out", cluster=address)
    assert not (tmp_path / "out").exists()


def test_a_cluster_that_is_lost_is_one_sentence(tmp_path):
    from distributed import LocalCluster

    lost = LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
    )

    class Closer(whole.Progress):
        def start(self, run):
            threading.Timer(1.0, lost.close).start()

    try:
        with pytest.raises(counsel.CounselError, match="the cluster at tcp"):
            whole.reproduce(
                ["regret-safe"],
                Size(0.2, 2),
                tmp_path,
                cluster=lost.scheduler_address,
                progress=Closer(),
            )
    finally:
        lost.close()
