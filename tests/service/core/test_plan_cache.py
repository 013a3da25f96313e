"""Plans that are kept, which of them go when there are too many, and who waits for whom."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from counsel.learning.population import NOBODY
from counsel.service.core import kept_plans, plan_cache
from counsel.service.core.kept_plans import PlanKey
from counsel.service.core.plan_cache import PlanCache
from tests.support.waiting import until


@pytest.fixture
def made(monkeypatch):
    """Plans of 10 bytes each, of which three may be kept, and what was made, in order."""
    monkeypatch.setattr(kept_plans, "MOST_BYTES", 30)
    keys = []

    def make(key):
        keys.append(key.person)
        return SimpleNamespace(size=10, person=key.person)

    kept = PlanCache(make, lambda key, plan: False)
    yield kept, keys
    kept.close()


def key(person):
    return PlanKey("alerts", person, None)


def test_a_plan_that_is_used_outlives_those_that_are_not(made):
    # Found by reading: plans went in the order in which they were made, so that many people pushed
    # out the plan for everybody, and the next newcomer had to wait until it was made again.
    kept, keys = made
    for person in range(6):
        assert kept.wait_for(key(person)).person == NOBODY  # a newcomer is advised as everybody is
        kept.settle()
        assert kept.of(key(person)).person == person
    assert keys == [NOBODY, 0, 1, 2, 3, 4, 5]
    assert [person for person in range(6) if kept.last(key(person))] == [4, 5]
    assert kept.last(key(NOBODY))


def test_one_plan_is_kept_however_large_it_is(made, monkeypatch):
    kept, _ = made
    monkeypatch.setattr(kept_plans, "MOST_BYTES", 1)
    assert kept.wait_for(key(NOBODY)).person == NOBODY
    assert kept.last(key(NOBODY))


class Workshop:
    """Makes plans; those of advisers whose names begin with "slow" when ``release`` is set.

    The tenant of an adviser is the last letter of its name.
    """

    def __init__(self):
        self.begun, self.sizes = [], {}
        self.release = threading.Event()
        self.cache = PlanCache(self.make, lambda key, plan: False, lambda key: key.adviser[-1])

    def make(self, key):
        self.begun.append(key.adviser)
        if key.adviser.startswith("slow"):
            assert self.release.wait(120)
        return SimpleNamespace(size=self.sizes.get(key.adviser, 10), adviser=key.adviser)

    def wait_for(self, adviser, person=NOBODY):
        return self.cache.wait_for(PlanKey(adviser, person, None))

    def kept(self):
        return {key.adviser for key in self.cache._plans._share_of}


@pytest.fixture
def workshop():
    found = Workshop()
    yield found
    found.release.set()
    found.cache.close()


@pytest.fixture
def pool():
    with ThreadPoolExecutor(8) as found:
        yield found


def test_nobody_waits_for_the_plan_of_another_tenant(workshop, pool):
    # Found by an audit: one lock was held while any plan was made, so the first plan of every other
    # adviser waited for the largest one of all.
    slow = pool.submit(workshop.wait_for, "slow of a")
    until(lambda: workshop.begun == ["slow of a"])
    assert pool.submit(workshop.wait_for, "quick of b").result(60).adviser == "quick of b"
    assert not slow.done()
    workshop.release.set()
    assert slow.result(60).adviser == "slow of a"


def test_a_tenant_makes_one_plan_at_a_time(workshop, pool):
    waiting = [pool.submit(workshop.wait_for, name) for name in ("slow of a", "slow too of a")]
    for name in ("b", "c", "d"):
        assert pool.submit(workshop.wait_for, name).result(60)
    assert sum(name.startswith("slow") for name in workshop.begun) == 1
    workshop.release.set()
    assert all(each.result(60) for each in waiting)


def test_of_several_who_wait_for_a_plan_one_makes_it(workshop, pool):
    waiting = [pool.submit(workshop.wait_for, "slow of a") for _ in range(5)]
    until(lambda: workshop.begun == ["slow of a"])
    workshop.release.set()
    assert len({id(each.result(60)) for each in waiting}) == 1
    assert workshop.begun == ["slow of a"]


def test_a_large_plan_takes_nothing_from_others(workshop):
    # Found by an audit: a plan larger than the whole cache pushed out the plans of everybody.
    workshop.sizes["large of z"] = 2 * kept_plans.MOST_BYTES
    small = {f"{number} of {tenant}" for number in range(3) for tenant in "abz"}
    for adviser in (*sorted(small), "large of z"):
        workshop.wait_for(adviser)
    assert workshop.kept() == small | {"large of z"}


def test_large_plans_make_room_among_themselves(workshop, monkeypatch):
    monkeypatch.setattr(kept_plans, "LARGE_BYTES", 3 * kept_plans.LARGE)
    names = [f"large {number} of a" for number in range(5)]
    workshop.sizes = dict.fromkeys(names, kept_plans.LARGE)
    for adviser in ("small of a", *names):
        workshop.wait_for(adviser)
    assert workshop.kept() == {"small of a", *names[2:]}


def test_the_tenant_with_most_gives_up_its_own(workshop, monkeypatch):
    monkeypatch.setattr(kept_plans, "MOST_BYTES", 100)
    few = {"1 of b", "2 of b", "1 of c"}
    for adviser in sorted(few) + [f"{number} of a" for number in range(50)]:
        workshop.wait_for(adviser)
    assert workshop.kept() == few | {f"{number} of a" for number in range(43, 50)}


def test_another_adviser_that_is_changed_does_not_undo_a_plan(workshop, pool):
    # Found by reading: a plan was made again if any adviser of anybody had changed meanwhile.
    slow = pool.submit(workshop.wait_for, "slow of a")
    until(lambda: workshop.begun == ["slow of a"])
    workshop.cache.drop("quick of b")
    workshop.release.set()
    assert slow.result(60)
    assert workshop.begun == ["slow of a"]


def test_the_rest_after_a_long_renewal_is_that_of_its_tenant(workshop, monkeypatch):
    monkeypatch.setattr(plan_cache, "REST", 1e7)
    monkeypatch.setattr(plan_cache, "REST_OF_OTHERS", 0.0)
    for adviser in ("slow of a", "next of a", "quick of b"):
        workshop.cache.renew(PlanKey(adviser, NOBODY, None))
    until(lambda: workshop.begun == ["slow of a"])
    workshop.release.set()
    until(lambda: workshop.begun == ["slow of a", "quick of b"])
    until(lambda: list(workshop.cache._wanted) == ["a"])
    assert workshop.begun == ["slow of a", "quick of b"]
