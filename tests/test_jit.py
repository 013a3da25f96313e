"""Compiled code on disk: two processes that compile at once do not mix theirs up."""

import sys
from typing import NamedTuple

from numba.core.caching import IndexDataCacheFile

from counsel import _jit
from counsel.learning._chain_kernels import follow


def test_code_that_two_processes_keep_at_once_stays_apart(tmp_path):
    # Numba numbers what it keeps: both would write number 1, one listed under the other's key, and
    # whoever loads it crashes.
    file = IndexDataCacheFile(str(tmp_path), "loop", "stamp")
    for key in ("for floats", "for integers"):
        file._load_index = dict  # neither has seen the other's entry yet
        _jit._keep(file, key, f"code {key}")
    del file._load_index
    assert file.load("for integers") == "code for integers"
    assert file._load_data(file._data_name(_jit.stable_hash("for floats"))) == "code for floats"


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
    assert follow._cache._cache_file.save.func is _jit._keep
