"""The journal on disk: nothing appended is lost, whatever dies in the middle."""

import multiprocessing
import os
import stat
import sys

import pytest

from counsel.service.journal import Journal, Progress, locked


@pytest.fixture
def journal(tmp_path):
    return Journal(tmp_path)


def entries(*numbers):
    return [{"number": number} for number in numbers]


def test_what_is_appended_is_read_in_order(journal, tmp_path):
    assert journal.is_empty
    assert journal.entries() == []
    journal.append(entries(1, 2))
    journal.append(entries(3))
    assert journal.entries() == Journal(tmp_path).entries() == entries(1, 2, 3)
    name, begin, lines = journal.read()
    assert [line.entry for line in lines] == entries(1, 2, 3)
    assert len(name) == 32
    assert begin < lines[0].end
    assert not journal.is_empty


def test_it_is_emptied_only_when_all_of_it_was_read(journal):
    journal.append(entries(1))
    _, _, lines = journal.read()
    journal.append(entries(2))
    assert journal.empty(lines[-1].end) is None
    assert journal.entries() == entries(1, 2)
    assert journal.empty(journal.read()[2][-1].end) is None
    assert journal.is_empty
    assert journal.entries() == []
    journal.append(entries(4, 5, 6))
    assert journal.entries() == entries(4, 5, 6), "a file of another name is read from its start"


def test_a_line_that_was_not_completed_harms_no_other(journal):
    journal.append(entries(1))
    with journal.path.open("ab") as stream:
        stream.write(b'{"number": 2')  # its process dies
    assert journal.entries() == entries(1)
    journal.append(entries(3))
    assert journal.entries() == entries(1, 3)
    assert [line.entry for line in journal.read()[2]] == [{"number": 1}, None, {"number": 3}]


def test_an_incomplete_last_line_is_returned_when_the_rest_is_done(journal):
    journal.append(entries(1))
    end = journal.read()[2][-1].end
    with journal.path.open("ab") as stream:
        stream.write(b'{"number": 2')
    assert journal.empty(end).text == '{"number": 2'
    assert journal.is_empty


@pytest.mark.parametrize("content", [b"", b"{", b'{"journal": "a', b"\x00\xff\n", b"[]\n{}\n"])
def test_a_damaged_beginning_loses_nothing_that_follows(journal, content):
    journal.path.write_bytes(content)
    journal.append(entries(7))
    assert journal.entries()[-1] == {"number": 7}
    assert journal.read()[2][-1].entry == {"number": 7}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_disk_that_is_full_is_an_error_and_leaves_no_part_of_a_line(tmp_path):
    journal = Journal(tmp_path)
    journal.path.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        journal.append(entries(1))


def test_a_part_that_was_written_before_the_disk_was_full_is_taken_back(journal, monkeypatch):
    journal.append(entries(1))
    write = os.write

    def fill(place, content):
        if len(content) > 5:
            return write(place, content[:5])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fill)
        with pytest.raises(OSError, match="No space"):
            journal.append(entries(2))
    journal.append(entries(3))
    assert journal.entries() == entries(1, 3)
    assert [line.entry for line in journal.read()[2]] == entries(1, 3)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_only_the_owner_reads_it(journal, tmp_path):
    journal.append(entries(1))
    Progress(tmp_path).save()
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_a_lock_keeps_others_out_and_is_released(tmp_path):
    path = tmp_path / "lock"
    with locked(path, 0.0) as first, locked(path, 0.0) as second:
        assert (first, second) == (True, False)
    with locked(path, 0.0) as third:
        assert third


def test_progress_is_loaded_again_and_damage_is_as_good_as_none(tmp_path):
    progress = Progress(tmp_path)
    progress.begin("a", 10)
    progress.episodes["offline-1"], progress.conflicts["x-0"] = "x", "unseen"
    progress.save()
    other = Progress(tmp_path)
    other.load()
    assert (other.file, other.end, other.episodes) == ("a", 10, {"offline-1": "x"})
    assert other.conflicts == {"x-0": "unseen"}
    progress.path.write_text("{")
    other.load()
    assert (other.file, other.end) == ("", 0)
    assert other.episodes == {"offline-1": "x"}, "what is known is not forgotten"


def _append(folder, who):
    journal = Journal(folder)
    for number in range(50):
        journal.append([{"who": who, "number": number}])


@pytest.mark.slow
def test_processes_append_at_once_and_nothing_is_lost(tmp_path):
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_append, args=(tmp_path, who)) for who in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    kept = Journal(tmp_path).entries()
    for who in range(3):
        assert [one["number"] for one in kept if one["who"] == who] == list(range(50))
