"""Lanes serve tenants in turn: many calls of one keep nobody else waiting."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.testclient import TestClient

from counsel.service.api import routes
from counsel.service.api.app import make_app
from counsel.service.api.lanes import WAITING, Lane
from counsel.service.core.fair_threads import TENANT
from counsel.service.db.api_keys import add_key, tenant_of
from counsel.service.db.engine import write_transaction
from counsel.service.errors import BusyError
from tests.support.services import open_desk
from tests.support.waiting import until

HEAVY, OTHER = 1, 2


@pytest.fixture
def held():
    """Heavy calls last until this is set."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def lane():
    found = Lane("reading", 2)
    yield found
    found.close()


def asking(lane, tenant, function, *arguments):
    """Return a task that runs a function for a tenant."""

    async def ask():
        TENANT.set(tenant)
        return await lane.run(function, *arguments)

    return asyncio.create_task(ask())


def test_a_tenant_with_many_long_reads_leaves_a_thread_to_others(lane, held):
    async def main():
        heavy = [asking(lane, HEAVY, held.wait) for _ in range(10)]
        for number in range(5):  # each is answered while every heavy one is held
            assert await asyncio.wait_for(asking(lane, OTHER, lambda n=number: n), 60) == number
        assert not any(task.done() for task in heavy)
        assert lane.pending == 10
        held.set()
        await asyncio.gather(*heavy)
        assert lane.pending == 0

    asyncio.run(main())


def test_lists_of_one_tenant_are_answered_while_those_of_another_are_held(
    tmp_path, held, monkeypatch
):
    plain = routes.page_of_advisers

    def page(desk, tenant, *arguments, **named):
        if tenant == tenants[HEAVY]:
            held.wait()
        return plain(desk, tenant, *arguments, **named)

    monkeypatch.setattr(routes, "page_of_advisers", page)
    with open_desk(f"sqlite:///{tmp_path / 'counsel.db'}") as desk:
        with write_transaction(desk.engine) as connection:
            names = {HEAVY: "clinic", OTHER: "school"}
            keys = {
                number: add_key(connection, tenant=name, role="read", name="key")
                for number, name in names.items()
            }
            tenants = {number: tenant_of(connection, name) for number, name in names.items()}
        headers = {number: {"Authorization": f"Bearer {key}"} for number, key in keys.items()}
        with TestClient(make_app(desk)) as client, ThreadPoolExecutor(20) as pool:
            path = "/v1/advisers"
            heavy = [pool.submit(client.get, path, headers=headers[HEAVY]) for _ in range(15)]
            until(lambda: client.app.state.lanes.reading.pending == 15)
            answer = pool.submit(client.get, path, headers=headers[OTHER])
            try:
                assert answer.result(60).status_code == 200
                assert not any(request.done() for request in heavy)
            finally:
                held.set()
            assert {request.result().status_code for request in heavy} == {200}


def test_a_tenant_may_fill_half_of_the_queue(lane, held):
    async def main():
        most = 2 * (1 + WAITING) // 2
        heavy = [asking(lane, HEAVY, held.wait) for _ in range(most)]
        await asyncio.sleep(0)
        with pytest.raises(BusyError, match="too many requests wait for reading"):
            await asking(lane, HEAVY, held.wait)
        assert await asyncio.wait_for(asking(lane, OTHER, lambda: "answered"), 60) == "answered"
        held.set()
        await asyncio.gather(*heavy)

    asyncio.run(main())


def test_a_caller_who_gives_up_makes_room(lane, held):
    async def main():
        heavy = [asking(lane, HEAVY, held.wait) for _ in range(4)]
        await asyncio.sleep(0)
        for task in heavy:
            task.cancel()
        await asyncio.gather(*heavy, return_exceptions=True)
        held.set()
        assert await asking(lane, HEAVY, lambda: "answered") == "answered"

    asyncio.run(main())
