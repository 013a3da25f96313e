"""Deadlines of requests: one timer for all of a kind."""

import asyncio

import pytest

from counsel.service.api.deadlines import Deadlines
from tests.support.short_deadlines import within

ADVICE = {"method": "POST", "path": "/v1/episodes/e/advice"}
LIST = {"method": "GET", "path": "/v1/advisers"}


@pytest.fixture
def deadlines():
    return Deadlines(within(0.01, reading_seconds=300.0))


async def work(deadlines, scope, wait):
    """Return how a request ended that waits for something."""
    deadline = deadlines.begin(scope)
    try:
        await wait(deadline)
    except asyncio.CancelledError:
        if not deadline.has_passed():
            raise
        return "late"
    finally:
        deadline.lift()
    return "done"


async def for_ever(_):
    await asyncio.Event().wait()


def test_a_request_that_waits_for_ever_is_late_and_its_task_goes_on(deadlines):
    async def ask():
        first = await work(deadlines, ADVICE, for_ever)
        await asyncio.sleep(0)  # the task is not being cancelled any more
        return first, await work(deadlines, ADVICE, for_ever)

    assert asyncio.run(ask()) == ("late", "late")


def test_each_of_many_requests_is_late_by_itself(deadlines):
    async def quick(_):
        await asyncio.sleep(0)

    async def ask():
        waits = [for_ever, quick, for_ever, quick]
        return await asyncio.gather(*(work(deadlines, ADVICE, wait) for wait in waits))

    assert asyncio.run(ask()) == ["late", "done", "late", "done"]


def test_a_list_has_more_time_than_advice(deadlines):
    async def until_advice_is_late(_):
        assert await asyncio.create_task(work(deadlines, ADVICE, for_ever)) == "late"

    assert asyncio.run(work(deadlines, LIST, until_advice_is_late)) == "done"


def test_an_answer_that_has_begun_is_not_cut_short(deadlines):
    async def begin(deadline):
        deadline.lift()
        assert await asyncio.create_task(work(deadlines, ADVICE, for_ever)) == "late"

    assert asyncio.run(work(deadlines, ADVICE, begin)) == "done"


def test_a_request_that_somebody_else_stops_is_not_late(deadlines):
    async def ask():
        task = asyncio.create_task(work(deadlines, LIST, for_ever))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return task.cancelled()

    assert asyncio.run(ask())


def test_every_event_loop_has_its_own_timer(deadlines):
    assert [asyncio.run(work(deadlines, ADVICE, for_ever)) for _ in range(3)] == ["late"] * 3
