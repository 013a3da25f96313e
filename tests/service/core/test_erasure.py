"""Erasing a person: nothing is left in any file, and nobody waits for it."""

from contextlib import suppress
from pathlib import Path

import pytest
import sqlalchemy as sa

from counsel.service.core import deletion, erasure
from counsel.service.core.erasure import erase_person, finish_erasures
from counsel.service.core.outcomes import Outcome
from counsel.service.core.settings import AdviserSettings
from counsel.service.db.tables import decisions, episodes, outcomes, people, remarks
from tests.support.services import open_desk

NAME, COMMENT = "Zacharias Quillfeather", "peculiar-words-of-theirs"


@pytest.fixture
def desk(url):
    with open_desk(url) as found:
        yield found


def lived(desk, adviser, person, episodes_=3, comment=COMMENT):
    for _ in range(episodes_):
        episode = desk.start(1, adviser, person)
        for step in range(6):
            decision = desk.advise(1, episode.id, step, 2)
            said = {"comment": comment, "reason_code": comment[:8]} if comment else {}
            desk.report(1, [Outcome(decision.id, step % 3, 0.5, **said)])


def traces(folder):
    """Files in which the person can be found."""
    words = (NAME.encode(), COMMENT.encode(), COMMENT[:8].encode() + b"\n")
    found = []
    for path in Path(folder).rglob("*"):
        with suppress(FileNotFoundError):  # PostgreSQL removes files meanwhile
            if path.is_file() and any(word in path.read_bytes() for word in words):
                found.append(path.name)
    return found


def counts(desk):
    with desk.engine.connect() as connection:
        return [
            connection.scalar(sa.select(sa.func.count()).select_from(table))
            for table in (people, episodes, decisions, outcomes, remarks)
        ]


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_nothing_of_an_erased_person_is_in_any_file_of_sqlite(desk, url):
    folder = Path(url.removeprefix("sqlite:///")).parent
    adviser = desk.create(1, "alerts", AdviserSettings(source="ward", budget=1.0, hard=True))
    lived(desk, adviser, "ann", comment=None)
    lived(desk, adviser, NAME)
    desk.save_snapshot().result()
    assert traces(folder), "they are found before"
    assert erase_person(desk, 1, NAME) == []
    assert traces(folder) == []
    assert counts(desk) == [1, 3, 18, 18, 0]


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_nothing_of_an_erased_person_is_in_the_tables_of_postgresql(desk, server):
    adviser = desk.create(1, "alerts", AdviserSettings(source="ward", budget=1.0, hard=True))
    lived(desk, adviser, "ann", comment=None)
    lived(desk, adviser, NAME)
    with desk.engine.begin() as connection:
        connection.exec_driver_sql("CHECKPOINT")
        base = connection.scalar(sa.text("SELECT current_setting('data_directory')"))
    assert traces(Path(base) / "base"), "they are found before"
    assert erase_person(desk, 1, NAME) == []
    assert traces(Path(base) / "base") == []
    assert counts(desk) == [1, 3, 18, 18, 0]


def test_an_interrupted_erasure_is_finished_by_the_next_start(desk, url, monkeypatch):
    adviser = desk.create(1, "alerts", AdviserSettings(source="ward", budget=1.0, hard=True))
    lived(desk, adviser, NAME)
    lived(desk, adviser, "ann")
    number = desk.person(1, NAME)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(erasure, "_delete", killed)
        with pytest.raises(KeyboardInterrupt):
            erase_person(desk, 1, NAME)
    assert counts(desk)[:2] == [2, 6], "the rows are still there"
    desk.catch_up()
    assert number not in desk.learnt.of(adviser).people, "but nothing that was learnt"
    with open_desk(url) as again:
        assert number not in again.learnt.of(adviser).people
        finish_erasures(again)
    assert counts(desk) == [1, 3, 18, 18, 18]


def test_files_are_scrubbed_by_the_next_start_if_a_crash_came_before(desk, url, monkeypatch):
    """The rows of the person were gone then, and nothing told the next start of the traces."""
    adviser = desk.create(1, "alerts", AdviserSettings(source="ward", budget=1.0, hard=True))
    lived(desk, adviser, NAME)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(deletion, "scrub", killed)
        with pytest.raises(KeyboardInterrupt):
            erase_person(desk, 1, NAME)
    scrubbed = []
    monkeypatch.setattr(deletion, "scrub", lambda engine: scrubbed.append(engine) or [])
    with open_desk(url) as again:
        finish_erasures(again)
        assert scrubbed == [again.engine]
        finish_erasures(again)
        assert len(scrubbed) == 1, "once"
    assert counts(desk) == [0, 0, 0, 0, 0]


def test_erasing_somebody_recounts_nobody_else(desk, monkeypatch):
    """With 600,000 outcomes on record a recount stopped all advice for seconds."""
    adviser = desk.create(1, "alerts", AdviserSettings(source="ward", budget=1.0, hard=True))
    lived(desk, adviser, "ann")
    lived(desk, adviser, NAME)  # the last outcomes on record are theirs
    monkeypatch.setattr(desk.learnt, "recount", lambda _: pytest.fail("everything is recounted"))
    before = dict(desk.learnt.of(adviser).people[desk.person(1, "ann")].cells)
    erase_person(desk, 1, NAME)
    desk.committer.submit(desk.follower.take_over_changes).result()
    assert dict(desk.learnt.of(adviser).everybody.cells) == before
    lived(desk, adviser, "bob", 1)
    assert desk.learnt.of(adviser).everybody.decisions == 24


def test_outcomes_that_arrive_while_a_person_is_erased_teach_nothing(desk, monkeypatch):
    adviser = desk.create(1, "alerts", AdviserSettings(source="ward", budget=1.0, hard=True))
    episode = desk.start(1, adviser, NAME)
    decision = desk.advise(1, episode.id, 0, 2)
    plain = erasure._delete

    def late(desk, number):
        desk.report(1, [Outcome(decision.id, 1)])
        plain(desk, number)

    monkeypatch.setattr(erasure, "_delete", late)
    erase_person(desk, 1, NAME)
    desk.catch_up()
    assert desk.learnt.of(adviser).everybody.decisions == 0
    assert counts(desk) == [0, 0, 0, 0, 0]
