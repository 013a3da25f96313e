"""Threads serve tenants in turn: calls wait for those of their own tenant, and for no others."""

import threading

import pytest

from counsel.service.core.fair_threads import FairThreads
from tests.support.waiting import until

HEAVY, OTHER = 1, 2


@pytest.fixture
def held():
    """Heavy calls last until this is set."""
    event = threading.Event()
    yield event
    event.set()


def test_waiting_calls_are_taken_in_turn():
    threads, held, order = FairThreads("reading", 1), threading.Event(), []
    running = threading.Event()
    first = threads.submit(lambda: (running.set(), held.wait()), HEAVY)
    running.wait()
    calls = [threads.submit(lambda n=n: order.append((HEAVY, n)), HEAVY) for n in range(3)]
    calls += [threads.submit(lambda n=n: order.append((OTHER, n)), OTHER) for n in range(3)]
    held.set()
    for call in [first, *calls]:
        call.result(60)
    assert order == [(HEAVY, 0), (OTHER, 0), (HEAVY, 1), (OTHER, 1), (HEAVY, 2), (OTHER, 2)]
    threads.close()


def test_calls_of_no_tenant_may_take_every_thread():
    threads, barrier = FairThreads("logins", 2), threading.Barrier(2)
    for call in [threads.submit(lambda: barrier.wait(60)) for _ in range(2)]:
        call.result(60)
    threads.close()


def test_closing_cancels_what_waits_and_waits_for_nobody(held):
    threads, running = FairThreads("reading", 2), threading.Event()
    threads.submit(lambda: (running.set(), held.wait()), HEAVY)
    running.wait()
    waiting = threads.submit(lambda: None, HEAVY)
    threads.close()
    assert waiting.cancelled()
    with pytest.raises(RuntimeError, match="have ended"):
        threads.submit(lambda: None, OTHER)


def test_a_fault_is_the_callers():
    threads = FairThreads("reading", 1)
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 / 0).result(60)
    assert threads.submit(lambda: "next").result(60) == "next"
    threads.close()


def test_a_tenant_has_so_many_threads_at_most_though_more_are_free(held):
    threads, begun = FairThreads("planning", 4, each=1), []
    first = threads.submit(lambda: (begun.append(1), held.wait()), HEAVY)
    second = threads.submit(lambda: begun.append(2), HEAVY)
    for number in range(3):
        assert threads.submit(lambda n=number: n, OTHER).result(60) == number
    assert begun == [1]
    held.set()
    first.result(60)
    second.result(60)
    assert begun == [1, 2]
    threads.close()


def test_two_calls_at_once_wake_one_thread_and_start_another(held):
    # Found by reading: a thread that was woken but did not run yet counted as free for the second
    # call, which then waited for the first.
    threads = FairThreads("reading", 2)
    threads.submit(lambda: None, OTHER).result(60)
    until(lambda: threads._idle == 1)
    with threads._changed:  # the idle thread wakes only after both
        threads.submit(held.wait, HEAVY)
        other = threads.submit(lambda: "answered", OTHER)
    assert other.result(60) == "answered"
    threads.close()
