"""API keys: ids, expiry, rotation, last use, and what is refused."""

import time

import pytest
import sqlalchemy as sa

from counsel import CounselError
from counsel.service.db import api_keys
from counsel.service.db.api_keys import (
    add_key,
    any_key,
    holder_of,
    list_keys,
    note_use,
    read_duration,
    read_expiry,
    revoke_key,
    revoke_key_by_id,
    rotate_key,
)
from counsel.service.db.engine import open_engine
from counsel.service.db.tables import keys

DAY = 86_400.0


@pytest.fixture
def connection(url):
    engine = open_engine(url)
    with engine.begin() as connection:
        yield connection
    engine.dispose()


def add(connection, name="k", **options):
    given = {"tenant": "clinic", "role": "advise", "name": name} | options
    return add_key(connection, **given)


def the_id(connection, key):
    return holder_of(connection, key).key


def at(monkeypatch, seconds):
    """Set the clock so many seconds ahead."""
    now = time.time() + seconds
    monkeypatch.setattr(api_keys.time, "time", lambda: now)
    return now


def test_a_key_works_until_it_expires(connection, monkeypatch):
    key = add(connection, expires=time.time() + DAY)
    assert holder_of(connection, key).role == "advise"
    assert any_key(connection)
    at(monkeypatch, DAY + 1.0)
    assert holder_of(connection, key) is None
    assert not any_key(connection)
    assert [row["state"] for row in list_keys(connection, tenant="clinic")] == ["expired"]


def test_a_rotated_key_works_until_the_overlap_ends(connection, monkeypatch):
    old = add(connection, name="ward 3")
    id_ = the_id(connection, old)
    new = rotate_key(connection, id_, overlap=DAY)
    before, after = holder_of(connection, old), holder_of(connection, new)
    assert (after.tenant, after.role) == (before.tenant, before.role)
    assert after.key != before.key
    rows = list_keys(connection, tenant="clinic")
    assert [row["name"] for row in rows] == ["ward 3", "ward 3"]
    assert [row["expires"] is None for row in rows] == [False, True]
    at(monkeypatch, DAY + 1.0)
    assert holder_of(connection, old) is None
    assert holder_of(connection, new) is not None


def test_the_new_key_lives_as_long_as_the_old_one_was_to_live(connection, monkeypatch):
    old = add(connection, expires=time.time() + 90 * DAY)
    now = at(monkeypatch, 80 * DAY)
    rotate_key(connection, the_id(connection, old), overlap=30 * DAY)
    first, second = list_keys(connection, tenant="clinic")
    assert first["expires"] == pytest.approx(now + 10 * DAY, abs=60)  # not longer than before
    assert second["expires"] == pytest.approx(now + 90 * DAY, abs=60)
    given = rotate_key(connection, second["id"], overlap=0.0, expires=now + DAY)
    assert holder_of(connection, given) is not None
    states = [row["state"] for row in list_keys(connection, tenant="clinic")]
    assert states == ["valid", "expired", "valid"]


def test_a_key_is_revoked_by_its_id_and_no_other_is(connection):
    first, second = add(connection), add(connection)
    revoke_key_by_id(connection, the_id(connection, first))
    assert holder_of(connection, first) is None
    assert revoke_key(connection, tenant="clinic", name="k") == [the_id_of_row(connection, 1)]
    assert holder_of(connection, second) is None
    states = [row["state"] for row in list_keys(connection, tenant="clinic")]
    assert states == ["revoked", "revoked"]


def the_id_of_row(connection, index):
    return list_keys(connection, tenant="clinic")[index]["id"]


def test_keys_that_cannot_be_changed_are_named(connection):
    key = add(connection)
    id_ = the_id(connection, key)
    for wrong in (id_ + 1, 0, -1, 2**70):
        with pytest.raises(CounselError, match=f"there is no key {wrong}; see counsel keys list"):
            rotate_key(connection, wrong, overlap=0.0)
        with pytest.raises(CounselError, match=f"there is no key {wrong}"):
            revoke_key_by_id(connection, wrong)
    revoke_key_by_id(connection, id_)
    with pytest.raises(CounselError, match=f"key {id_} is revoked; create another"):
        rotate_key(connection, id_, overlap=0.0)
    with pytest.raises(CounselError, match=f"key {id_} is revoked already"):
        revoke_key_by_id(connection, id_)
    with pytest.raises(CounselError, match="which is in the past"):
        add(connection, expires=time.time() - 1.0)


def test_the_last_use_is_written_once_per_minute(connection):
    id_ = the_id(connection, add(connection))
    written = []
    for second in (100.0, 101.0, 159.0, 160.0, 50.0):
        note_use(connection, id_, second)
        written.append(connection.scalar(sa.select(keys.c.last_used)))
    assert written == [100.0, 100.0, 100.0, 160.0, 160.0]


def test_when_a_key_expires_is_a_duration_or_a_date():
    assert read_expiry("90d", now=0.0) == 90 * DAY
    assert read_expiry("12h", now=5.0) == 12 * 3600.0 + 5.0
    assert read_expiry("30m", now=0.0) == 1800.0
    assert read_expiry("2w", now=0.0) == 14 * DAY
    assert read_expiry("1970-01-03", now=0.0) == 2 * DAY
    assert read_expiry("1970-01-03T02:00+02:00", now=0.0) == 2 * DAY
    assert read_duration("overlap", "0d") == 0.0


@pytest.mark.parametrize("text", ["", "soon", "90", "-1d", "1y", "٣d", "9" * 10 + "d", "40000d"])
def test_durations_that_make_no_sense_are_refused(text):
    with pytest.raises(CounselError, match="give minutes, hours, days or weeks"):
        read_duration("overlap", text)
    with pytest.raises(CounselError, match=r"give a duration .* or a date"):
        read_expiry(text, now=0.0)


def test_a_date_in_the_past_is_refused():
    with pytest.raises(CounselError, match="expires is '1999-01-01', which is in the past"):
        read_expiry("1999-01-01")
