"""Deletions that somebody holds up are finished later, by the same service or by the next."""

import sqlite3

import pytest
import sqlalchemy as sa

from counsel.service.client import Client
from counsel.service.core import deletion, finisher, management
from counsel.service.core.erasure import erase_person, finish_erasures
from counsel.service.core.finisher import Finisher
from counsel.service.core.listings import list_people, page_of_advisers, page_of_models
from counsel.service.core.problem_sources import add_model
from counsel.service.core.settings import AdviserSettings
from counsel.service.db import old_rows
from counsel.service.db.api_keys import KeyHolder
from tests.support import services
from tests.support.erased_people import NAME, counts, folder_of, lived, reader_of, traces
from tests.support.services import open_desk
from tests.support.waiting import until

AGAIN = "the service tries again every 5 s"
ADMIN = KeyHolder(1, "admin")


@pytest.fixture(autouse=True)
def no_patience(monkeypatch):
    monkeypatch.setattr(old_rows, "PATIENCE", 0.0)
    monkeypatch.setattr(finisher, "RETRY_SECONDS", 0.02)


@pytest.fixture
def desk(url):
    with open_desk(url) as found:
        yield found


@pytest.fixture
def adviser(desk):
    return desk.create(1, "alerts", AdviserSettings(source="ward", budget=1.0, hard=True))


@pytest.fixture
def finishing(desk):
    """A service that finishes deletions."""
    found = Finisher(desk)
    yield found
    found.close(60.0)


def test_old_rows_go_when_their_reader_has_ended(desk, adviser, finishing, caplog):
    """SQLite's log kept the name until the service stopped, PostgreSQL until the next erasure."""
    caplog.set_level("INFO", "counsel.service")
    lived(desk, adviser, "ann", comment=None)
    lived(desk, adviser, NAME)
    with reader_of(desk):
        (held,) = erase_person(desk, 1, NAME)
        assert held.endswith(AGAIN)
        assert traces(folder_of(desk)), "for the reader"
        assert [row["name"] for row in list_people(desk, 1, None, 10)] == ["ann"]
    until(lambda: counts(desk) == [1, 3, 18, 18, 0])
    assert traces(folder_of(desk)) == []
    until(lambda: "deletions that were held up are finished" in caplog.text)


@pytest.mark.slow
def test_a_service_that_runs_removes_old_rows_when_their_reader_has_ended(tmp_path):
    path = tmp_path / "counsel.db"
    with services.serving(path) as address, Client(address) as client:
        adviser = client.create_adviser("alerts", "ward", budget=2)["id"]
        client.start(adviser, NAME)
        with sqlite3.connect(path, isolation_level=None) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM people").fetchall()
            assert len(client.delete_person(NAME)) == 1
            reader.execute("ROLLBACK")
        reader.close()
        until(lambda: traces(tmp_path) == [])


def test_old_rows_that_a_reader_kept_are_removed_by_the_next_start(url):
    with open_desk(url) as desk:
        adviser = desk.create(1, "alerts", AdviserSettings(source="ward", budget=1.0, hard=True))
        lived(desk, adviser, NAME)
        with reader_of(desk):
            assert len(erase_person(desk, 1, NAME)) == 1
    with open_desk(url) as desk:
        finish_erasures(desk)
        assert counts(desk) == [0, 0, 0, 0, 0]
        assert traces(folder_of(desk)) == []


def test_an_adviser_that_is_being_deleted_is_not_there_for_anybody(desk, finishing):
    model = desk.committer.submit(lambda c: add_model(c, ADMIN, "fitted", b"")).result()
    problem = desk.problems
    desk.problems = lambda tenant, source: problem(tenant, "ward")
    adviser = desk.create(1, "alerts", AdviserSettings(source=model, budget=1.0))
    lived(desk, adviser, "bob", comment=None)
    management.archive_adviser(desk, ADMIN, adviser)
    with reader_of(desk):
        assert len(management.delete_adviser(desk, ADMIN, adviser, "alerts")) == 1
        assert len(management.delete_adviser(desk, ADMIN, adviser, "alerts")) == 1, "as before"
        assert page_of_advisers(desk, 1, None, 10, archived=True) == []
        assert [row["advisers"] for row in page_of_models(desk, 1, None, 10)] == [0]
        management.delete_model(desk, ADMIN, model)
    advisers = sa.text("SELECT count(*) FROM advisers")

    def is_gone():
        with desk.engine.connect() as connection:
            return connection.scalar(advisers) == 0

    until(is_gone)


def test_a_deletion_that_failed_is_finished_later(desk, adviser, finishing, monkeypatch, caplog):
    lived(desk, adviser, NAME)
    plain, faults = deletion.scrub, [RuntimeError("first"), sa.exc.TimeoutError("second")]

    def scrub(engine):
        if faults:
            raise faults.pop(0)
        return plain(engine)

    monkeypatch.setattr(deletion, "scrub", scrub)
    with pytest.raises(RuntimeError):
        erase_person(desk, 1, NAME)
    until(lambda: counts(desk) == [0, 0, 0, 0, 0])
    assert "a deletion is not finished: 'second'" in caplog.text
