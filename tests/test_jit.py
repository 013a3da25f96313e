"""Compiled code on disk: processes that compile at once do not mix theirs up, nor all compile."""

import fcntl
import subprocess
import sys
import threading
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba.core.caching import IndexDataCacheFile

from counsel import _jit
from counsel.learning._transition_kernels import count_transition
from tests.support.processes import started


def test_code_that_two_processes_keep_at_once_stays_apart(tmp_path):
    # Numba numbers what it keeps: both would write number 1, one listed under the other's key, and
    # whoever loads it crashes.
    file = IndexDataCacheFile(str(tmp_path), "loop", "stamp")
    for key in ("for floats", "for integers"):
        file._load_index = dict  # neither has seen the other's entry yet
        _jit._save(file, key, f"code {key}")
    del file._load_index
    assert file.load("for integers") == "code for integers"
    assert file._load_data(file._data_name(_jit.stable_hash("for floats"))) == "code for floats"


@pytest.mark.parametrize("ask", [_jit.prefetch, _jit.stream], ids=["prefetch", "stream"])
def test_prefetching_beyond_the_end_of_an_array_changes_nothing(ask):
    def add_up(numbers):
        total = 0.0
        for i in range(numbers.size):
            ask(numbers, np.uint32(i + 64))
            ask(numbers, i - 64)
            total += numbers[i]
        return total

    assert numba.njit(add_up)(np.arange(100.0)) == 4950.0


class Gone(NamedTuple):
    """Stands for arrays that a kernel took before it was changed."""

    first: int


def test_an_index_of_other_kernels_is_passed_over_unread(tmp_path, monkeypatch):
    # Found by renaming such a class: Numba unpickles an index before it looks at its stamp, so that
    # every kernel that took the class failed after an upgrade.
    old, new = (IndexDataCacheFile(str(tmp_path), "loop", "stamp") for _ in range(2))
    _jit._stamp(old)
    old.save(Gone, "code")
    assert old.load(Gone) == "code"
    monkeypatch.setattr(_jit, "source_stamp", lambda: "other files")
    _jit._stamp(new)
    monkeypatch.delattr(sys.modules[__name__], "Gone")
    assert new.load("for floats") is None


def test_kernels_are_kept_so():
    assert count_transition._cache._cache_file.save.func is _jit._save


ASK = """
import numpy as np
from counsel.model._kernels import sum_others
print("ready", flush=True)
input()
sum_others(np.ones((2, 3, 4)), np.ones((2, 3, 4)))
print(sum(sum_others.stats.cache_misses.values()))
"""


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A kernel that is compiled nowhere yet, and its lock."""
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))

    @_jit.kernel
    def twice(x):
        return 2 * x

    return twice, f"{twice._cache._cache_file._index_path}.lock"


def test_a_process_waits_while_another_compiles_the_same(kernel):
    twice, path = kernel
    found = []
    waits = threading.Thread(target=lambda: found.append(twice(4)))
    with _jit._alone(path):
        waits.start()
        waits.join(0.5)
        assert waits.is_alive()
        assert not twice.overloads
    waits.join(60.0)
    assert found == [8]
    with open(path, "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # given back


def test_a_function_is_compiled_once_for_all_constants_it_is_called_with(tmp_path, monkeypatch):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))

    @_jit.inlined
    def add(x, n):
        return x + n

    @_jit.kernel
    def add_thrice(x, n):
        return add(add(add(x, 1), 2), n)

    assert add_thrice(3, 4) == 10
    assert len(add.overloads) == 1


def test_one_that_never_ends_is_not_waited_for_for_ever(kernel, monkeypatch):
    twice, path = kernel
    monkeypatch.setattr(_jit, "PATIENCE", 0.1)
    with _jit._alone(path):
        assert twice(4) == 8


def test_where_nothing_can_be_locked_it_compiles_all_the_same(kernel, tmp_path):
    (tmp_path / "file").touch()
    with _jit._alone(str(tmp_path / "file" / "below" / "lock")):
        pass
    twice, _ = kernel
    assert twice(4) == 8


@pytest.mark.slow
def test_what_two_processes_ask_for_at_once_is_compiled_by_one(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    ask = [sys.executable, "-c", ASK]
    with started(ask, **pipes) as first, started(ask, **pipes) as second:
        for process in (first, second):
            assert process.stdout.readline() == "ready\n"
        for process in (first, second):
            process.stdin.write("\n")
            process.stdin.flush()
        compiled = [process.communicate(timeout=120)[0] for process in (first, second)]
    assert sorted(compiled) == ["0\n", "1\n"]
