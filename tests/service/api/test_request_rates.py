"""Requests per second of each tenant: refused beyond the limit, and nobody else is slowed down."""

import threading
import time
from contextlib import suppress

import httpx2
import pytest
import uvicorn
from starlette.exceptions import HTTPException

from counsel.service.api import request_rates
from counsel.service.api.request_rates import RequestRates
from counsel.service.client import Client
from counsel.service.db.api_keys import add_key
from counsel.service.db.engine import open_engine, write_transaction
from counsel.service.process import ServiceProcess
from counsel.service.settings import ServiceSettings
from tests.support.services import free_port


class Clock:
    now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(request_rates, "time", clock)
    return clock


def admitted(rates, tenant, requests):
    count = 0
    for _ in range(requests):
        with suppress(HTTPException):
            rates.admit(tenant)
            count += 1
    return count


def test_a_tenant_gets_its_rate_and_a_second_of_it_at_once(clock):
    rates = RequestRates(10.0)
    assert admitted(rates, 1, 50) == 10
    assert admitted(rates, 2, 5) == 5, "another tenant has a bucket of its own"
    clock.now += 0.5
    assert admitted(rates, 1, 50) == 5
    clock.now += 100.0
    assert admitted(rates, 1, 50) == 10
    total = 0
    for _ in range(1000):
        clock.now += 0.01
        total += admitted(rates, 1, 3)
    assert total == pytest.approx(100, abs=1)


def test_a_slow_rate_says_for_how_long_to_wait(clock):
    rates = RequestRates(0.1)
    rates.admit(1)
    with pytest.raises(HTTPException) as fault:
        rates.admit(1)
    assert fault.value.status_code == 429
    assert fault.value.headers == {"Retry-After": "10"}
    assert fault.value.detail == (
        "this tenant sends more than 0.1 requests per second; send fewer, or raise "
        "COUNSEL_REQUESTS_PER_SECOND"
    )
    clock.now += 10.0
    rates.admit(1)


@pytest.mark.slow
def test_a_tenant_that_floods_slows_nobody_else(tmp_path):
    """Eight connections send as fast as they can; another tenant is advised as if alone."""
    database = str(tmp_path / "counsel.db")
    engine = open_engine(database)
    with write_transaction(engine) as connection:
        keys = {
            name: add_key(connection, tenant=name, role="admin", name=name)
            for name in ("clinic", "flood")
        }
    engine.dispose()
    settings = ServiceSettings(requests_per_second=100.0)
    port = free_port()
    app = ServiceProcess(database, settings=settings).app()
    service = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error"))
    thread = threading.Thread(target=service.run)
    thread.start()
    while not service.started:
        time.sleep(0.01)
    address, stop, statuses = f"http://127.0.0.1:{port}", threading.Event(), []

    def flood():
        headers = {"Authorization": f"Bearer {keys['flood']}"}
        with httpx2.Client(base_url=address, headers=headers) as client:
            while not stop.is_set():
                answer = client.get("/v1/advisers")
                statuses.append((answer.status_code, answer.headers.get("retry-after")))

    floods = [threading.Thread(target=flood) for _ in range(8)]
    try:
        with Client(address, keys["clinic"]) as client:
            adviser = client.create_adviser("alerts", "ward", budget=1)["id"]
            episode = client.start(adviser, "ann")
            client.advise(episode, 0, "stable")
            began = time.monotonic()
            for one in floods:
                one.start()
            took = []
            for step in range(1, 6):
                for _ in range(20):
                    before = time.monotonic()
                    client.advise(episode, step, "stable")
                    took.append(time.monotonic() - before)
                    time.sleep(0.02)  # within its own rate
            lasted = time.monotonic() - began
    finally:
        stop.set()
        for one in floods:
            one.join()
        service.should_exit = True
        thread.join()
    assert {status for status, _ in statuses} == {200, 429}
    assert {wait for status, wait in statuses if status == 429} == {"1"}
    served = sum(status == 200 for status, _ in statuses)
    assert served <= 100.0 * (lasted + 2.0), "no more than its rate, and a second at once"
    took.sort()
    told = (
        f"{len(statuses) / lasted:.0f} requests per second, {served / lasted:.0f} served; "
        f"advice: median {took[50] * 1e3:.1f} ms, p99 {took[-2] * 1e3:.1f} ms"
    )
    assert took[-2] < 1.0, told
