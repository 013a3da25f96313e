"""The check of keys: expiry, last use, and guessing that is slow while valid keys are not."""

import asyncio
import logging
import time

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from counsel.service.api import auth
from counsel.service.api.app import make_app
from counsel.service.api.failed_logins import FREE, MOST_DELAYED
from counsel.service.db.api_keys import add_key
from counsel.service.db.engine import write_transaction
from counsel.service.db.tables import keys
from tests.support.services import open_desk


@pytest.fixture
def desk(tmp_path):
    with open_desk(str(tmp_path / "counsel.db")) as desk:
        yield desk


@pytest.fixture
def client(desk):
    with TestClient(make_app(desk)) as client:
        yield client


@pytest.fixture
def key(desk):
    with write_transaction(desk.engine) as connection:
        return add_key(connection, tenant="local", role="read", name="mine")


@pytest.fixture
def delays(monkeypatch):
    """Return the seconds for which answers were held back, without waiting for them."""
    waited = []

    async def sleep(seconds):
        waited.append(seconds)

    monkeypatch.setattr(auth.asyncio, "sleep", sleep)
    return waited


def status(client, key):
    return client.get("/v1/advisers", headers={"Authorization": f"Bearer {key}"}).status_code


def change(desk, **values):
    with write_transaction(desk.engine) as connection:
        connection.execute(sa.update(keys).values(**values))


def last_used(desk):
    desk.catch_up()
    with desk.engine.connect() as connection:
        return connection.scalar(sa.select(keys.c.last_used))


def test_an_expired_key_works_no_longer(desk, client, key, monkeypatch):
    assert status(client, key) == 200
    change(desk, expires=time.time() - 1.0)
    assert status(client, key) == 200  # it is trusted for a few seconds
    now = time.monotonic() + auth.TRUSTED_SECONDS
    monkeypatch.setattr(auth.time, "monotonic", lambda: now)
    assert status(client, key) == 401


def test_the_last_use_is_written_at_most_once_per_minute(desk, client, key, monkeypatch):
    monkeypatch.setattr(auth, "TRUSTED_SECONDS", 0.0)
    before, transactions = time.time(), desk.committer.transactions
    for _ in range(20):
        assert status(client, key) == 200
    first = last_used(desk)
    assert before <= first <= time.time()
    assert desk.committer.transactions - transactions < 10
    change(desk, last_used=first - 59.0)  # as if by another service
    client.app.state.key_check._noted.clear()
    assert status(client, key) == 200
    assert last_used(desk) == first - 59.0
    change(desk, last_used=first - 61.0)
    client.app.state.key_check._noted.clear()
    assert status(client, key) == 200
    assert last_used(desk) >= first


def test_guessing_is_counted_logged_without_the_key_and_slowed(client, key, delays, caplog):
    caplog.set_level(logging.INFO, "counsel")
    for number in range(FREE + 15):
        assert status(client, f"guess-{number}") == 401
    assert delays == pytest.approx([0.1 * n for n in range(1, 10)] + [1.0] * 6)
    assert f"counsel_failed_logins_total {FREE + 15}.0" in client.get("/metrics").text
    told = [record.getMessage() for record in caplog.records if record.name.endswith("auth")]
    assert len(told) == FREE + 1
    assert "guess" not in " ".join(told)
    assert status(client, key) == 200
    assert len(delays) == 15  # the valid key did not wait


def test_requests_without_a_key_are_no_failed_logins(client, delays):
    for _ in range(FREE + 5):
        assert client.get("/v1/advisers").status_code == 401
    assert delays == []
    assert "counsel_failed_logins_total 0.0" in client.get("/metrics").text


def test_beyond_some_held_back_answers_guesses_are_refused(client, key, delays):
    check = client.app.state.key_check
    for number in range(FREE):
        status(client, f"guess-{number}")
    check.failed.delayed = MOST_DELAYED
    refused = client.get("/v1/advisers", headers={"Authorization": "Bearer guess"})
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "60")
    assert status(client, key) == 200
    check.failed.delayed = 0
    assert status(client, "guess") == 401
    assert check.failed.delayed == 0


def test_unknown_keys_are_not_remembered(client, key, delays):
    for number in range(50):
        status(client, f"guess-{number}")
    check = client.app.state.key_check
    assert (len(check._trusted), len(check._noted)) == (0, 0)
    assert status(client, key) == 200
    assert (len(check._trusted), len(check._noted)) == (1, 1)


def test_a_known_key_is_looked_up_though_guesses_fill_their_lane(client, key, monkeypatch):
    assert status(client, key) == 200
    lanes = client.app.state.lanes
    monkeypatch.setattr(lanes.logins, "pending", lanes.logins.most)
    monkeypatch.setattr(auth, "TRUSTED_SECONDS", 0.0)
    now = time.monotonic() + 60.0
    monkeypatch.setattr(auth.time, "monotonic", lambda: now)
    assert status(client, "guess") == 503
    assert status(client, key) == 200


@pytest.mark.slow
def test_a_hundred_guessers_do_not_slow_a_valid_key(desk, key):
    import httpx2

    app = make_app(desk)

    async def run():
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:

            async def ask(key):
                began = time.monotonic()
                headers = {"Authorization": f"Bearer {key}"}
                answer = await client.get("/v1/advisers", headers=headers)
                return answer.status_code, time.monotonic() - began

            guesses = [asyncio.create_task(ask(f"guess-{i}")) for i in range(200)]
            await asyncio.sleep(0.5)
            mine = [await ask(key) for _ in range(5)]
            return mine, await asyncio.gather(*guesses)

    mine, guesses = asyncio.run(run())
    assert {code for code, _ in mine} == {200}
    codes = [code for code, _ in guesses]
    assert set(codes) <= {401, 429, 503}
    assert codes.count(401) >= FREE
    held_back = [seconds for code, seconds in guesses if code == 401 and seconds > 0.9]
    assert held_back
