"""Plans that are kept, and which of them go when there are too many."""

from types import SimpleNamespace

import pytest

from counsel.learning.population import NOBODY
from counsel.service.core import plan_cache as plans
from counsel.service.core.plan_cache import PlanCache, PlanKey


@pytest.fixture
def made(monkeypatch):
    """Plans of 10 bytes each, of which three may be kept, and what was made, in order."""
    monkeypatch.setattr(plans, "MOST_BYTES", 30)
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
    monkeypatch.setattr(plans, "MOST_BYTES", 1)
    assert kept.wait_for(key(NOBODY)).person == NOBODY
    assert kept.last(key(NOBODY))
