"""Deleting for good: all tables with rows of people are cleaned, and nobody waits for it."""

import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import sqlalchemy as sa

from counsel.service.core import deletion
from counsel.service.core.erasure import erase_person
from counsel.service.core.settings import AdviserSettings
from counsel.service.db import old_rows
from counsel.service.db.tables import decisions, metadata
from counsel.service.settings import ServiceSettings
from tests.support.erased_people import NAME, counts, folder_of, lived, reader_of, traces
from tests.support.services import open_desk
from tests.support.waiting import PATIENCE, until


@pytest.fixture
def desk(url):
    with open_desk(url) as found:
        yield found


@pytest.fixture
def adviser(desk):
    return desk.create(1, "alerts", AdviserSettings(source="ward", budget=1.0, hard=True))


def test_every_table_with_rows_of_a_person_is_cleaned():
    """A table was added for levels, and nobody thought of its old rows."""
    theirs = {"people"}
    while (
        more := {
            table.name
            for table in metadata.tables.values()
            for key in table.foreign_keys
            if key.column.table.name in theirs
        }
        - theirs
    ):
        theirs |= more
    assert {"level_changes", "remarks"} < theirs
    assert theirs <= {*old_rows.WORDS, *old_rows.NUMBERS}


def test_no_transaction_deletes_many_decisions_however_long_an_episode_is(
    desk, adviser, monkeypatch
):
    """A person with long episodes kept all advice waiting for more than a second."""
    monkeypatch.setattr(deletion, "DECISIONS_AT_ONCE", 4)
    lived(desk, adviser, "ann", 1, comment=None)
    lived(desk, adviser, NAME, 3)
    left = list[int]()
    transact = desk.committer._transact

    def counting(group):
        done = transact(group)
        with desk.engine.connect() as connection:
            left.append(connection.scalar(sa.select(sa.func.count()).select_from(decisions)))
        return done

    monkeypatch.setattr(desk.committer, "_transact", counting)
    erase_person(desk, 1, NAME)
    deleted = [before - after for before, after in zip([24, *left], left, strict=False)]
    assert sum(deleted) == 18
    assert max(deleted) == 4
    assert counts(desk) == [1, 1, 6, 6, 0]


PATIENT = ServiceSettings(
    transaction_seconds=300.0,
    lock_seconds=301.0,
    statement_seconds=302.0,
    request_seconds=303.0,
)
"""Whoever waits for a lock, waits until the test has failed."""


def test_advice_gets_through_while_an_erasure_waits_for_a_reader(url, monkeypatch):
    """The erasure waited for the reader with a lock, or in a queue, that kept advice waiting."""
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        time.sleep(seconds)

    def advise(adviser):
        tries = len(pauses) + 3
        while len(pauses) < tries:
            lived(desk, adviser, "bob", 1, comment="busy")

    clock = SimpleNamespace(monotonic=lambda: 0.0, sleep=pause)  # its patience has no end
    monkeypatch.setattr(old_rows, "time", clock)
    with open_desk(url, PATIENT) as desk, ThreadPoolExecutor() as pool:
        adviser = desk.create(1, "alerts", AdviserSettings(source="ward", budget=1.0, hard=True))
        lived(desk, adviser, NAME, 1)
        with reader_of(desk, has_snapshot=False):
            erased = pool.submit(erase_person, desk, 1, NAME)
            until(lambda: len(pauses) > 0)
            pool.submit(advise, adviser).result(PATIENCE)
            assert not erased.done()
        assert erased.result() == []
        assert traces(folder_of(desk)) == []
