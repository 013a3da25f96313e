"""Erasing a person: nothing is left in any file, and nobody waits for it."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from counsel.service.core import deletion, erasure
from counsel.service.core.erasure import erase_person, finish_erasures
from counsel.service.core.outcomes import Outcome
from counsel.service.core.settings import AdviserSettings
from counsel.service.db.old_rows import Remains
from tests.support.erased_people import COMMENT, NAME, counts, folder_of, lived, traces
from tests.support.services import open_desk

DONE = Remains([], [])
"""What remains of a scrub that did everything."""


@pytest.fixture
def desk(url):
    with open_desk(url) as found:
        yield found


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


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_names_that_sqlite_has_sampled_for_its_planner_are_erased(desk):
    """Only some builds of SQLite sample, but any may be asked to ANALYZE the file."""
    adviser = desk.create(1, "alerts", AdviserSettings(source="ward", budget=1.0, hard=True))
    lived(desk, adviser, NAME)
    with desk.engine.connect() as connection:
        for statement in (
            "PRAGMA writable_schema = ON",
            "CREATE TABLE sqlite_stat4 (tbl, idx, neq, nlt, ndlt, sample)",
            f"INSERT INTO sqlite_stat4 VALUES ('people', 'name', 1, 0, 0, '1{NAME}')",
            "INSERT INTO sqlite_stat4 VALUES ('outcomes', 'seq', 1, 0, 0, '1')",
            "PRAGMA writable_schema = OFF",
        ):
            connection.exec_driver_sql(statement)
    assert erase_person(desk, 1, NAME) == []
    assert traces(folder_of(desk)) == []
    with desk.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT tbl FROM sqlite_stat4").scalars().all() == [
            "outcomes"
        ]


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


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_statistics_of_an_older_version_have_nothing_of_an_erased_person(url):
    """The planner had their names and comments, and its dropped statistics had them on disk."""
    with open_desk(url) as desk:
        adviser = desk.create(1, "alerts", AdviserSettings(source="ward", budget=1.0, hard=True))
        lived(desk, adviser, "ann", comment="busy")
        lived(desk, adviser, NAME)
        with desk.engine.begin() as connection:
            for table, column in (("people", "name"), ("remarks", "comment")):
                connection.exec_driver_sql(
                    f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 100"
                )
            connection.exec_driver_sql("ANALYZE")
            known = connection.scalar(
                sa.text("SELECT string_agg(pg_stats::text, ' ') FROM pg_stats")
            )
            assert NAME in known
            assert COMMENT in known
            connection.exec_driver_sql("DROP TABLE outlines, model_pieces")  # of later versions
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0005'")
    with open_desk(url) as desk:
        assert erase_person(desk, 1, NAME) == []
        with desk.engine.begin() as connection:
            connection.exec_driver_sql("ANALYZE")
        assert traces(folder_of(desk)) == []


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
    monkeypatch.setattr(deletion, "scrub", lambda engine: scrubbed.append(engine) or DONE)
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
