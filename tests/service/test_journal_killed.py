"""A client without its service that dies at any write to disk: nothing acknowledged is lost."""

import json
import os
from pathlib import Path

import pytest

from counsel.service.courier import Courier
from counsel.service.journal import Journal
from tests.support.crashes import KILLED, forking

pytestmark = pytest.mark.slow

ENTRIES = [
    {"kind": "start", "episode": "offline-1", "person": "ann", "request": "r1"},
    {"kind": "decision", "episode": "offline-1", "step": 0, "state": "s", "advice": "a", "at": 1.0},
    {"kind": "outcome", "advice_id": "offline-1-0", "action": "a"},
    {"kind": "end", "episode": "offline-1", "terminated": True},
    {"kind": "start", "episode": "offline-2", "person": "bob", "request": "r2"},
    {"kind": "decision", "episode": "nobody", "step": 0, "state": "s", "advice": None, "at": 1.0},
]


class Record:
    """A service that keeps in a file what is put on record; repeated requests change nothing."""

    def __init__(self, folder):
        self.path = Path(folder) / "record.jsonl"

    def put(self, *row):
        rows = self.rows()
        if list(row) not in rows:
            self.path.write_text(json.dumps([*rows, row]))

    def rows(self):
        return json.loads(self.path.read_text()) if self.path.exists() else []

    def start(self, adviser, person, request):
        self.put("start", person, request)
        return f"real-{request}"

    def report_decisions(self, episode, decisions):
        if episode == "nobody":
            from counsel.service.client import ServiceError

            raise ServiceError(404, "there is no episode 'nobody'")
        for decision in decisions:
            self.put("decision", episode, decision["step"], decision["advice"])

    def report_all(self, outcomes):
        for outcome in outcomes:
            self.put("outcome", outcome["advice_id"], outcome["action"])

    def end(self, episode, terminated):
        self.put("end", episode, terminated)


EXPECTED = [
    ["start", "ann", "r1"],
    ["decision", "real-r1", 0, "a"],
    ["outcome", "real-r1-0", "a"],
    ["end", "real-r1", True],
    ["start", "bob", "r2"],
]


def _work(folder, fatal, calls):
    """Write and deliver a journal; die at a call that changes the disk, half of a write done."""
    count = 0

    def counted(name, plain):
        def call(*arguments, **named):
            nonlocal count
            count += 1
            if count == fatal:
                if name == "write":
                    plain(arguments[0], arguments[1][: len(arguments[1]) // 2])
                os._exit(KILLED)
            return plain(*arguments, **named)

        return call

    for name in ("write", "fsync", "replace", "truncate"):
        setattr(os, name, counted(name, getattr(os, name)))
    journal, acknowledged = Journal(Path(folder)), Path(folder) / "acknowledged"
    done = int(acknowledged.read_text()) if acknowledged.exists() else 0
    for number in range(done, len(ENTRIES)):
        journal.append([ENTRIES[number]])
        acknowledged.write_text(str(number + 1))
    Courier(Record(folder), "adviser", Path(folder)).deliver()
    calls.value = count
    os._exit(0)


def run(folder, fatal=0):
    """Return the exit code, and how many calls changed the disk."""
    context = forking()
    calls = context.Value("i", 0)
    process = context.Process(target=_work, args=(str(folder), fatal, calls))
    process.start()
    process.join(120)
    return process.exitcode, calls.value


def test_a_client_that_dies_at_any_write_delivers_everything_once(tmp_path):
    whole = tmp_path / "whole"
    whole.mkdir()
    code, calls = run(whole)
    assert (code, Record(whole).rows()) == (0, EXPECTED)
    assert calls > 2 * len(ENTRIES)
    for fatal in range(1, calls + 1):
        folder = tmp_path / str(fatal)
        folder.mkdir()
        assert run(folder, fatal)[0] == KILLED
        assert run(folder)[0] == 0
        assert Record(folder).rows() == EXPECTED, fatal
        assert Journal(folder).is_empty
        refused = (folder / "refused.jsonl").read_text().splitlines()
        assert any("there is no episode" in line for line in refused)
