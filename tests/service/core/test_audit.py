"""The audit trail: each change has its row, in the same transaction, without names of people."""

import pytest
import sqlalchemy as sa

from counsel.service.core.audit import last_of_audit, page_of_audit, record
from counsel.service.core.erasure import erase_person
from counsel.service.core.problem_sources import add_model
from counsel.service.core.settings import AdviserSettings
from counsel.service.db.api_keys import KeyHolder
from counsel.service.db.engine import write_transaction
from counsel.service.db.tables import audit
from tests.support.services import open_desk

ADMIN = KeyHolder(1, "admin", 7)


@pytest.fixture
def desk(url):
    with open_desk(url) as desk:
        yield desk


def rows(desk):
    with desk.engine.connect() as connection:
        return page_of_audit(connection, 1, 0, 100)


def test_every_change_has_its_row(desk):
    settings = AdviserSettings(source="ward", budget=1.0)
    adviser = desk.create(1, "alerts", settings, holder=ADMIN)
    desk.set_mode(1, adviser, "shadow", holder=ADMIN)
    desk.set_mode(1, adviser, "shadow", holder=ADMIN)  # which changes nothing
    model = desk.committer.submit(lambda c: add_model(c, ADMIN, "fitted", b"12345")).result()
    person = desk.start(1, adviser, "Ann Smith").person
    erase_person(desk, 1, "Ann Smith", ADMIN)
    assert [(row["action"], row["target"], row["details"]) for row in rows(desk)] == [
        ("adviser created", adviser, {"name": "alerts", "source": "ward", "mode": "live"}),
        ("adviser switched", adviser, {"before": "live", "after": "shadow"}),
        ("model uploaded", model, {"name": "fitted", "bytes": 5}),
        ("person erased", str(person), None),
    ]
    assert {row["key"] for row in rows(desk)} == {7}
    assert "Ann" not in str(rows(desk))


def test_what_the_service_does_itself_has_no_key(desk):
    settings = AdviserSettings(source="ward", budget=1.0)
    for _ in range(2):  # the second one exists already
        desk.create(1, "alerts", settings, "own")
    assert [(row["action"], row["key"]) for row in rows(desk)] == [("adviser created", None)]


def test_a_change_that_fails_leaves_no_row(desk):
    def fail(connection):
        record(connection, ADMIN, "adviser deleted", "x")
        raise RuntimeError("as when the power goes")

    with pytest.raises(RuntimeError):
        desk.committer.submit(fail).result()
    assert rows(desk) == []


def test_pages_follow_one_another_and_belong_to_one_tenant(desk):
    with write_transaction(desk.engine) as connection:
        for number in range(10):
            holder = KeyHolder(1 + number % 2, "admin")
            record(connection, holder, "model deleted", number, {"name": "ä"})
    with desk.engine.connect() as connection:
        first = page_of_audit(connection, 1, 0, 3)
        second = page_of_audit(connection, 1, first[-1]["seq"], 3)
        assert [row["target"] for row in first + second] == ["0", "2", "4", "6", "8"]
        assert [row["target"] for row in last_of_audit(connection, None, 3)] == ["7", "8", "9"]
        assert [row["target"] for row in last_of_audit(connection, "local", 2)] == ["6", "8"]
        assert last_of_audit(connection, "nobody", 2) == []
        stored = connection.scalar(sa.select(audit.c.details).limit(1))
    assert stored == '{"name": "ä"}'
