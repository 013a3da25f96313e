"""Files are written whole or not at all."""

import os

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

import counsel
from counsel import _tables
from tests.support import examples, oracles
from tests.support.problems import adapt
from tests.support.saved import LABELS, SURE, assert_same, refused, small


def write_to(path):
    """Write a problem or a policy, by the ending of the path."""
    if path.suffix == ".npz":
        counsel.save(small(**LABELS), path)
    else:
        counsel.save_policy(SURE, path)


@pytest.mark.parametrize("suffix", ["", ".txt", ".npy", ".json", ".npz.gz"])
def test_a_path_with_another_ending_is_refused(suffix, tmp_path):
    refused(lambda path: counsel.save(small(), path), tmp_path / f"file{suffix}")
    refused(lambda path: counsel.save_policy(SURE, path), tmp_path / f"file{suffix}")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet"])
def test_a_directory_in_the_place_of_the_file_is_kept_and_refused(suffix, tmp_path):
    place = tmp_path / f"file{suffix}"
    place.mkdir()
    refused(write_to, place)
    assert os.listdir(tmp_path) == [place.name]


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet"])
def test_a_missing_folder_is_refused(suffix, tmp_path):
    refused(write_to, tmp_path / "nowhere" / f"file{suffix}")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet"])
def test_a_file_in_the_place_of_the_folder_is_refused(suffix, tmp_path):
    (tmp_path / "file").write_bytes(b"mine")
    refused(write_to, tmp_path / "file" / f"file{suffix}")
    assert (tmp_path / "file").read_bytes() == b"mine"


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet"])
def test_a_folder_one_may_not_write_to_is_refused(suffix, tmp_path, monkeypatch):
    # Permissions do not stop root, so the system's refusal is played.
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o500)
    if os.access(folder, os.W_OK):
        really_open = os.open

        def refuse(path, *rest, **more):
            if str(path).startswith(str(folder)):
                raise PermissionError(13, "Permission denied", str(path))
            return really_open(path, *rest, **more)

        monkeypatch.setattr(os, "open", refuse)
    assert "Permission denied" in refused(write_to, folder / f"file{suffix}")
    monkeypatch.undo()
    folder.chmod(0o700)
    assert os.listdir(folder) == []


FAULTS = {
    "full disk": OSError(28, "No space left on device"),
    "nameless fault of the system": OSError("the disk went away"),
    "crash": RuntimeError("boom"),
    "interrupt": KeyboardInterrupt(),
    "no memory": MemoryError(),
}


def check_old_file_survives(path, fault, spoil):
    """Write, spoil the writing, write again: the old bytes stay and nothing lies about."""
    write_to(path)
    old = path.read_bytes()
    spoil()
    if isinstance(fault, OSError):
        message = refused(write_to, path)
        assert "None" not in message
        assert fault.args[-1] in message
    else:
        with pytest.raises(type(fault)):
            write_to(path)
    assert path.read_bytes() == old
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_an_interrupted_npz_leaves_the_old_file_and_nothing_else(fault, tmp_path, monkeypatch):
    def half(stream, **_arrays):
        stream.write(b"PK\x03\x04 half a file")
        stream.flush()
        raise fault

    check_old_file_survives(
        tmp_path / "file.npz", fault, lambda: monkeypatch.setattr(np, "savez", half)
    )


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_an_interrupted_table_leaves_the_old_file_and_nothing_else(
    fault, suffix, tmp_path, monkeypatch
):
    class Half:
        def __init__(self, stream, _schema):
            stream.write(b"half a file")

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def write_table(self, _table):
            raise fault

    def fail(_table):
        raise fault

    def spoil():
        monkeypatch.setattr(pyarrow.parquet, "ParquetWriter", Half)
        monkeypatch.setattr(_tables, "_csv_rows", fail)

    check_old_file_survives(tmp_path / f"file{suffix}", fault, spoil)


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet"])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_at_the_last_moment_leaves_the_old_file_and_nothing_else(
    call, suffix, fault, tmp_path, monkeypatch
):
    def fail(*_):
        raise fault

    check_old_file_survives(
        tmp_path / f"file{suffix}", fault, lambda: monkeypatch.setattr(os, call, fail)
    )


def test_the_new_file_appears_only_when_it_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "file.npz"
    seen = []
    really_replace = os.replace

    def watch(unfinished, place):
        seen.append(path.exists())
        assert_same(counsel.load(unfinished), small(**LABELS))
        really_replace(unfinished, place)

    monkeypatch.setattr(os, "replace", watch)
    write_to(path)
    assert seen == [False]
    assert path.exists()


def test_a_long_name_the_system_would_take_is_taken(tmp_path):
    # Found by reading: the unfinished file's name is longer than the file's.
    path = tmp_path / ("x" * 246 + ".npz")
    path.write_bytes(b"")
    counsel.save(small(), path)
    assert_same(counsel.load(path), small())


def test_the_examples_come_back(tmp_path):
    for build in (examples.silent_then_advised, examples.advice_can_wait):
        problem = adapt(build())
        counsel.save(problem, tmp_path / "example.npz")
        again = counsel.load(tmp_path / "example.npz")
        P_hsbt, r_hsb = oracles.machine(*build()[:4])
        np.testing.assert_allclose(again.machine().kernel.to_dense(), P_hsbt, atol=1e-15)
        np.testing.assert_allclose(again.machine().reward, r_hsb, atol=1e-15)


def test_a_name_that_no_file_can_have_is_refused_in_one_line(tmp_path):
    for name in ("x" * 5000 + ".npz", "a\0b.npz"):
        assert "does not exist" in refused(counsel.load, tmp_path / name)
