"""What the ward does when the service is down: said without it, and on record afterwards."""

import csv
import json
import multiprocessing
import sqlite3
import stat
import sys
import threading
import time
from contextlib import closing

import pytest
import uvicorn

from counsel import CounselError
from counsel.service.client import Client, ServiceError
from counsel.service.fallback import FallbackClient
from counsel.service.process import ServiceProcess
from tests.support import services
from tests.support.doors import door_to
from tests.support.waiting import until

MUST_SAY = {"critical": "call doctor"}
REASONS = "SELECT reason FROM decisions"


@pytest.fixture
def service(address):
    """A client that always reaches the service."""
    with Client(address) as client:
        yield client


def _is_warm(service, adviser):
    """Whether episodes can be started: the first one may wait for the compiler."""
    try:
        service.start(adviser, "somebody")
    except ServiceError:
        return False
    return True


@pytest.fixture
def adviser(service):
    other = service.create_adviser("other", "ward", budget=1, hard=True, must_say=MUST_SAY)["id"]
    until(lambda: _is_warm(service, other))
    return service.create_adviser("alerts", "ward", budget=1, hard=True, must_say=MUST_SAY)["id"]


@pytest.fixture
def door(address):
    with door_to(address) as opened:
        yield opened


@pytest.fixture
def ward(door, adviser, tmp_path):
    """A client of the ward; nothing happens in the background, and every call tries the service."""
    with _ward(door.address, adviser, tmp_path) as client:
        yield client


def _ward(address, adviser, folder, **options):
    options = {"timeout": 5.0, "retry": 1e-9, "background": False} | options
    return FallbackClient(address, adviser, folder / "ward", **options)


def logged(service, adviser):
    """Return the rows of the exported log."""
    return list(csv.DictReader(service.log(adviser).decode().splitlines()))


def recent(service, adviser):
    """Return the decisions on record, the oldest first."""
    return service.summary(adviser)["recent"][::-1]


def files(folder):
    return {path.name: path for path in folder.rglob("*") if path.is_file()}


def set_aside(folder):
    path = files(folder).get("refused.jsonl")
    return [] if path is None else [json.loads(line) for line in path.read_text().splitlines()]


def test_with_the_service_it_is_an_ordinary_client(ward, service, adviser, tmp_path):
    episode = ward.start("ann")
    decision = ward.advise(episode, 0, "critical")
    assert decision["advice"] == "call doctor"
    assert decision["fallback"] is False
    ward.report(decision["id"], "call doctor", reward=1.0)
    ward.end(episode)
    assert ward.pending == 0
    assert ward.fault == ""
    assert len(logged(service, adviser)) == 1
    with pytest.raises(ServiceError, match="has ended"):
        ward.advise(episode, 1, "stable")
    assert set(files(tmp_path / "ward")) == {"must_say.json"}


def test_without_it_what_must_be_said_is_said_and_goes_on_record(ward, door, service, adviser):
    begun = ward.start("ann")
    door.turn("shut")
    started = ward.start("bob")
    assert started.startswith("offline-")
    for episode in (begun, started):
        said = ward.advise(episode, 0, "critical")
        assert (said["advice"], said["fallback"], said["probability"]) == ("call doctor", True, 1)
        assert said["reason"]["why"].startswith("said without the service, by must-say advice")
        silent = ward.advise(episode, 1, "deteriorating")
        assert (silent["advice"], silent["fallback"]) == (None, True)
        assert "does not answer" in silent["reason"]["why"]
        ward.report(said["id"], "call doctor", reward=1.0)
        ward.report(silent["id"], "assess", reward=0.5, comment="busy")
        ward.end(episode)
    assert ward.pending == 11
    assert ward.deliver() == 11, "nobody is there"
    assert service.summary(adviser)["decisions"] == 0
    door.turn("open")
    assert ward.deliver() == 0
    rows = logged(service, adviser)
    shown = [(row["person"], row["advice"], row["action"], row["comment"]) for row in rows]
    assert shown == [
        ("ann", "call doctor", "call doctor", ""),
        ("ann", "", "assess", "busy"),
        ("bob", "call doctor", "call doctor", ""),
        ("bob", "", "assess", "busy"),
    ]
    assert {float(row["advice_probability"]) for row in rows} == {1.0}
    reasons = [decision["reason"]["why"] for decision in recent(service, adviser)]
    assert reasons == ["said without the service", "silent without the service"] * 2
    assert [decision["must"] for decision in recent(service, adviser)] == [True, False] * 2
    assert set_aside(ward._folder) == []
    assert ward.deliver() == 0
    assert len(logged(service, adviser)) == 4


def test_an_episode_continues_when_the_service_is_back(ward, door, service, adviser):
    door.turn("shut")
    episode = ward.start("ann")
    first = ward.advise(episode, 0, "critical")
    door.turn("open")
    second = ward.advise(episode, 1, "critical")
    assert second["fallback"], "its start is not delivered yet"
    assert "waits to be delivered" in second["reason"]["why"]
    ward.report(first["id"], "call doctor")
    assert ward.deliver() == 0
    third = ward.advise(episode, 2, "critical")
    assert third["fallback"] is False
    ward.report(third["id"], "call doctor")
    ward.report(second["id"], "assess")
    ward.end(episode)
    assert ward.pending == 0
    assert [row["action"] for row in logged(service, adviser)] == [
        "call doctor",
        "assess",
        "call doctor",
    ]


def test_a_step_is_decided_once(ward, door):
    episode = ward.start("ann")
    door.turn("shut")
    said = ward.advise(episode, 0, "critical")
    assert ward.advise(episode, 0, "critical")["advice"] == said["advice"]
    with pytest.raises(CounselError, match="decided with another state"):
        ward.advise(episode, 0, "stable")
    door.turn("open")
    assert ward.advise(episode, 0, "critical")["fallback"], "it waits to be delivered"
    assert ward.deliver() == 0
    again = ward.advise(episode, 0, "critical")
    assert (again["advice"], again["reason"]["why"]) == ("call doctor", "said without the service")


def test_advice_whose_answer_was_lost_is_on_record_as_not_seen(ward, door, service, adviser):
    episode = ward.start("ann")
    door.turn("deaf")
    ward._client._connection.timeout = 0.3
    silent = ward.advise(episode, 0, "deteriorating")
    assert silent["advice"] is None
    until(lambda: service.advise(episode, 0, "deteriorating")["advice"] is not None)
    ward.report(silent["id"], "assess")
    door.turn("open")
    assert ward.deliver() == 0
    (row,) = logged(service, adviser)
    assert (row["advice"], row["seen"].lower(), row["action"]) == ("call doctor", "false", "assess")
    assert set_aside(ward._folder) == []
    ward.report(silent["id"], "carry on")  # a correction, without the journal
    (row,) = logged(service, adviser)
    assert (row["seen"].lower(), row["action"], row["version"]) == ("false", "carry on", "2")


def test_what_contradicts_the_record_is_set_aside_with_its_outcome(ward, door, service, adviser):
    episode = ward.start("ann")
    service.set_mode(adviser, "off")
    assert service.advise(episode, 0, "critical")["advice"] is None
    door.turn("shut")
    said = ward.advise(episode, 0, "critical")
    assert said["advice"] == "call doctor"
    ward.report(said["id"], "call doctor")
    door.turn("open")
    assert ward.deliver() == 0
    assert [note["entry"]["kind"] for note in set_aside(ward._folder)] == ["decision", "outcome"]
    assert "another state or advice" in set_aside(ward._folder)[0]["reason"]
    assert logged(service, adviser) == [], "no action is put down to silence that was not kept"
    with pytest.raises(ServiceError, match="something else than what was shown"):
        ward.report(said["id"], "call doctor")


def test_a_start_whose_answer_was_lost_is_one_episode(ward, door, service, adviser):
    door.turn("deaf")
    ward._client._connection.timeout = 0.3
    episode = ward.start("ann")
    assert episode.startswith("offline-")
    until(lambda: service.summary(adviser)["episodes"] == 1)
    door.turn("open")
    ward.advise(episode, 0, "stable")
    assert ward.deliver() == 0
    assert service.summary(adviser)["episodes"] == 1


def test_after_a_failure_the_service_is_left_alone_for_a_while(door, adviser, tmp_path):
    with _ward(door.address, adviser, tmp_path, retry=3600.0) as ward:
        episode = ward.start("ann")
        door.turn("silent")
        ward._client._connection.timeout = 0.1
        ward.advise(episode, 0, "critical")
        before = door.callers
        for step in range(1, 5):
            assert ward.advise(episode, step, "critical")["advice"] == "call doctor"
            ward.report(f"{episode}-{step}", "call doctor")
        assert door.callers == before


def test_a_key_that_expired_does_not_silence_what_must_be_said(ward, tmp_path):
    """The service on this database needs a key, which the ward does not have."""
    port = services.free_port()
    app = ServiceProcess(str(tmp_path / "counsel.db")).app()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    until(lambda: server.started)
    ward._client.close()
    ward._client = Client(f"http://127.0.0.1:{port}", "counsel_expired")
    decision = ward.advise("an episode", 0, "critical")
    server.should_exit = True
    thread.join()
    assert decision["advice"] == "call doctor"
    assert "give a valid key" in decision["reason"]["why"]


def test_an_adviser_that_is_not_live_is_silent(ward, door, service, adviser):
    episode = ward.start("ann")
    service.set_mode(adviser, "shadow")
    ward.refresh()
    door.turn("shut")
    decision = ward.advise(episode, 0, "critical")
    assert decision["advice"] is None
    assert "when the adviser was in mode shadow" in decision["reason"]["why"]


def test_what_the_service_would_refuse_is_refused_without_it(ward, door):
    episode = ward.start("ann")
    door.turn("shut")
    with pytest.raises(CounselError, match="state is 'fine'; it must be one of stable"):
        ward.advise(episode, 0, "fine")
    with pytest.raises(CounselError, match="step is 99"):
        ward.advise(episode, 99, "stable")
    with pytest.raises(CounselError, match="action is 'pray'"):
        ward.report(f"{episode}-0", "pray")
    with pytest.raises(CounselError, match="next_state is 'fine'"):
        ward.report(f"{episode}-0", "assess", next_state="fine")
    with pytest.raises(CounselError, match="as JSON"):
        ward.report(f"{episode}-0", "assess", reward={1})
    for person in ("", "a\x00", "a" * 201):
        with pytest.raises(CounselError, match="1 to 200 characters"):
            ward.start(person)
    assert ward.pending == 0


def test_must_say_advice_is_kept_for_a_client_that_starts_without_the_service(
    ward, door, adviser, tmp_path
):
    door.turn("shut")
    with _ward(door.address, adviser, tmp_path) as other:
        assert other.advise(other.start("ann"), 0, "critical")["advice"] == "call doctor"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"at": 1}', "\x00"])
def test_stored_advice_that_is_damaged_is_told_and_renewed(door, adviser, tmp_path, content):
    folder = tmp_path / "ward"
    with _ward(door.address, adviser, tmp_path):
        files(folder)["must_say.json"].write_text(content)
    door.turn("shut")
    with _ward(door.address, adviser, tmp_path) as ward:
        decision = ward.advise(ward.start("ann"), 0, "critical")
        assert decision["advice"] is None
        assert "must-say advice cannot be read from" in decision["reason"]["why"]
    door.turn("open")
    with _ward(door.address, adviser, tmp_path):
        assert json.loads(files(folder)["must_say.json"].read_text())["must_say"] == MUST_SAY


def test_nothing_was_ever_stored(tmp_path):
    with _ward("http://127.0.0.1:9", "alerts", tmp_path) as ward:
        decision = ward.advise(ward.start("ann"), 0, "critical")
    assert decision["advice"] is None
    assert "must-say advice was never stored here" in decision["reason"]["why"]
    assert "nobody answers" in decision["reason"]["why"]


def test_a_disk_that_takes_nothing_silences_nothing_and_is_told(ward, door, service, adviser):
    episode = ward.start("ann")
    door.turn("shut")
    ward._journal.path.mkdir()  # whose place nothing can be written to
    said = ward.advise(episode, 0, "critical")
    assert said["advice"] == "call doctor"
    assert "; it is not on disk yet: " in said["reason"]["why"]
    ward.report(said["id"], "call doctor")
    assert ward.pending == 2
    assert ward.deliver() == 2
    ward._journal.path.rmdir()
    door.turn("open")
    assert ward.deliver() == 0
    assert len(logged(service, adviser)) == 1


def test_a_damaged_line_is_set_aside_and_the_rest_delivered(ward, door, service, adviser):
    episode = ward.start("ann")
    door.turn("shut")
    ward.advise(episode, 0, "critical")
    with ward._journal.path.open("ab") as stream:
        stream.write(b'{"kind": "decision"}\nnonsense\n{"kind": "other"}\n{"torn')
    ward.report(f"{episode}-0", "call doctor")
    with ward._journal.path.open("ab") as stream:
        stream.write(b'{"torn')
    door.turn("open")
    assert ward.deliver() == 0
    assert len(logged(service, adviser)) == 1
    assert len(set_aside(ward._folder)) == 5


def test_an_episode_that_cannot_be_started_is_set_aside_whole(ward, door, tmp_path):
    door.turn("shut")
    episode = ward.start("ann")
    ward.advise(episode, 0, "critical")
    ward.report(f"{episode}-0", "call doctor")
    ward.end(episode)
    ward.adviser = "atlantis"
    door.turn("open")
    assert ward.deliver() == 0
    reasons = [note["reason"] for note in set_aside(ward._folder)]
    assert len(reasons) == 4
    assert "there is no adviser" in reasons[0]
    assert "could not be started" in reasons[1]


def test_processes_share_a_folder(ward, door, service, adviser, tmp_path):
    door.turn("shut")
    episode = ward.start("ann")
    with _ward(door.address, adviser, tmp_path) as other:
        said = other.advise(episode, 0, "critical")
        assert ward.advise(episode, 0, "critical")["advice"] == said["advice"]
        ward.report(said["id"], "call doctor")
        door.turn("open")
        assert other.deliver() == 0
        assert ward.pending == 0
        assert ward.advise(episode, 1, "critical")["fallback"] is False
    assert len(logged(service, adviser)) == 1


def test_only_the_last_outcome_of_a_decision_is_delivered(ward, door, service, adviser):
    episode = ward.start("ann")
    door.turn("shut")
    ward.advise(episode, 0, "critical")
    ward.report(f"{episode}-0", "assess")
    ward.report(f"{episode}-0", "call doctor")
    door.turn("open")
    assert ward.deliver() == 0
    (row,) = logged(service, adviser)
    assert (row["action"], row["version"]) == ("call doctor", "1")


def test_a_delivery_that_is_repeated_from_the_start_changes_nothing(
    ward, door, service, adviser, tmp_path
):
    """As after a crash that lost the place reached."""
    door.turn("shut")
    episode = ward.start("ann")
    for step in range(3):
        ward.advise(episode, step, "critical")
        ward.report(f"{episode}-{step}", "call doctor")
    ward.end(episode)
    kept = ward._journal.path.read_bytes()
    door.turn("open")
    assert ward.deliver() == 0
    before = service.log(adviser)
    files(tmp_path / "ward")["progress.json"].unlink()
    ward._journal.path.write_bytes(kept)
    assert ward.deliver() == 0
    assert service.log(adviser) == before
    assert service.summary(adviser)["episodes"] == 1
    assert set_aside(ward._folder) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_only_the_owner_reads_what_is_kept(ward, door):
    door.turn("shut")
    ward.advise(ward.start("ann"), 0, "stable")
    assert stat.S_IMODE(ward._folder.stat().st_mode) == 0o700
    for path in ward._folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


@pytest.mark.parametrize("name", ["timeout", "retry", "refresh"])
def test_times_that_make_no_sense_are_refused(tmp_path, name):
    for seconds in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(CounselError, match=f"{name} is"):
            FallbackClient("http://127.0.0.1:9", "a", tmp_path, **{name: seconds})


def test_an_adviser_that_does_not_exist_is_told_at_once(door, tmp_path):
    with pytest.raises(ServiceError, match="there is no adviser"):
        _ward(door.address, "atlantis", tmp_path)


# Processes that are killed.


def _nurse(address, adviser, folder, shown):
    """Work a shift until killed; what was shown is counted."""
    with _ward(address, adviser, folder, timeout=2.0, retry=0.2, background=True) as ward:
        while True:
            episode = ward.start("ann")
            for step in range(4):
                decision = ward.advise(episode, step, ("critical", "stable")[step % 2])
                with shown.get_lock():
                    shown.value += 1
                ward.report(decision["id"], "assess", reward=1.0)
            ward.end(episode)
            time.sleep(0.01)


@pytest.mark.slow
def test_services_and_clients_are_killed_and_everything_shown_is_on_record(tmp_path):
    """Two nurses share a folder; the service is killed twice, then both nurses, then a new client
    delivers what they left."""
    database, port = str(tmp_path / "counsel.db"), services.free_port()
    address = f"http://127.0.0.1:{port}"
    process = services.start(database, port)
    with Client(address) as client:
        adviser = client.create_adviser("a", "ward", budget=1, hard=True, must_say=MUST_SAY)["id"]
    context = multiprocessing.get_context("spawn")
    counts = [context.Value("i", 0) for _ in range(2)]
    nurses = [
        context.Process(target=_nurse, args=(address, adviser, tmp_path, count), daemon=True)
        for count in counts
    ]
    for nurse in nurses:
        nurse.start()

    def work(more):
        marks = [count.value + more for count in counts]
        until(lambda: all(count.value >= mark for count, mark in zip(counts, marks, strict=True)))

    try:
        for _ in range(2):
            work(20)
            process.kill()
            process.join()
            work(20)
            process = services.start(database, port)
        work(20)
        process.kill()
        process.join()
        work(20)
    finally:
        for nurse in nurses:
            nurse.kill()
            nurse.join()
    shown = sum(count.value for count in counts)
    process = services.start(database, port)
    try:
        with Client(address) as client:
            with _ward(address, adviser, tmp_path, retry=0.1, background=True) as ward:
                until(lambda: ward.pending == 0)
            rows = logged(client, adviser)
            refused = set_aside(tmp_path / "ward")
            assert [note for note in refused if isinstance(note["entry"], dict)] == []
            # What a nurse was shown when killed may have no outcome; nothing else is missing.
            assert shown - 2 <= len(rows) <= shown + 2
            assert len({(row["episode"], row["step"]) for row in rows}) == len(rows)
            for row in rows:
                heard = row["advice"] if row["seen"].lower() != "false" else ""
                assert row["state"] != "critical" or heard == "call doctor", row
    finally:
        process.kill()
        process.join()
    with closing(sqlite3.connect(database)) as connection:
        reasons = [json.loads(row[0])["why"] for row in connection.execute(REASONS)]
    without = [why for why in reasons if why.endswith("without the service")]
    assert 0 < len(without) < len(reasons), "both happened"
