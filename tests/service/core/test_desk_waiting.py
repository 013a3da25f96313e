"""Who waits for a plan that takes long, or for a model that is read: only who needs it."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from counsel.service.core.desk import Desk
from counsel.service.core.encounters import Encounter, advise
from counsel.service.core.settings import AdviserSettings
from counsel.service.db.api_keys import tenant_of
from counsel.service.db.engine import open_engine, write_transaction
from counsel.worlds import make
from tests.support.waiting import Release, until

WARD = make("ward")
CRITICAL, WATCH = map(WARD.mdp.state_labels.index, ("critical", "watch"))
CALL = WARD.mdp.action_labels.index("call doctor")
SETTINGS = {"budget": 1.0, "hard": True, "must_say": {"critical": "call doctor"}}


@pytest.fixture
def release():
    held = Release()
    yield held
    held.close()


@pytest.fixture
def pool(release):
    with ThreadPoolExecutor(8) as found:
        yield found
        release.set()


class World:
    """The ward under two names; reading "slow" takes until ``release`` is set."""

    def __init__(self, release):
        self.release, self.reading = release, []

    def __call__(self, tenant, source):
        self.reading.append(source)
        if source == "slow" and len(self.reading) > 2:  # not while the adviser is created
            self.release.hold()
        return WARD


@pytest.fixture
def engine(tmp_path):
    found = open_engine(f"sqlite:///{tmp_path / 'counsel.db'}")
    yield found
    found.dispose()


@pytest.fixture
def tenant(engine):
    with write_transaction(engine) as connection:
        return tenant_of(connection, "clinic")


@pytest.fixture
def opened(engine, release):
    """Opens desks on one database and closes them all."""
    made, world = [], World(release)

    def open_desk():
        made.append(Desk(engine, world, np.random.default_rng(0)))
        return made[-1]

    yield open_desk
    release.set()
    for desk in made:
        desk.close()


@pytest.fixture
def desk(opened):
    return opened()


def an_adviser(desk, tenant, source="ward"):
    return desk.create(tenant, "alerts", AdviserSettings.checked(source=source, **SETTINGS))


def hold_plans(desk, release, monkeypatch):
    """Have every plan of a desk take until ``release`` is set; returns what was begun."""
    begun, plain = [], desk.plans._make

    def slow(key):
        begun.append(key)
        release.hold()
        return plain(key)

    monkeypatch.setattr(desk.plans, "_make", slow)
    return begun


def test_what_must_be_said_is_said_while_the_plan_is_made(desk, tenant, release, pool, monkeypatch):
    # Found by an audit: an alarm waited for the plan of its adviser, which it does not need, and a
    # start too, so that nothing was said until some start had waited long enough.
    adviser = an_adviser(desk, tenant)
    begun = hold_plans(desk, release, monkeypatch)
    episode = desk.start(tenant, adviser, "ann").id
    said = desk.advise(tenant, episode, 0, CRITICAL)
    assert (said.advice, said.shown, said.must) == (CALL, True, True)
    assert said.reason["why"] == "this must be said"
    until(lambda: len(begun) == 1)
    other = pool.submit(desk.advise, tenant, episode, 1, WATCH)  # waits, as anything else does
    assert desk.advise(tenant, episode, 2, CRITICAL).advice == CALL
    assert not other.done()
    release.set()
    assert "no plan" not in other.result(60).reason["why"]


def test_what_must_be_said_is_said_to_callers_who_count_no_episodes(
    desk, tenant, release, monkeypatch
):
    adviser = an_adviser(desk, tenant)
    hold_plans(desk, release, monkeypatch)
    assert advise(desk, tenant, Encounter(adviser, "ann", "1"), CRITICAL).advice == CALL


def test_after_a_restart_what_must_be_said_is_said_while_the_plan_is_made(
    opened, tenant, release, monkeypatch
):
    first = opened()
    episode = first.start(tenant, an_adviser(first, tenant), "ann").id
    second = opened()
    hold_plans(second, release, monkeypatch)
    assert second.advise(tenant, episode, 0, CRITICAL).advice == CALL


def test_nobody_waits_until_the_model_of_another_adviser_is_read(opened, tenant, pool):
    # Found by an audit: one lock was held while any adviser was loaded.
    first = opened()
    slow, quick = an_adviser(first, tenant, "slow"), an_adviser(first, tenant)
    second = opened()
    loading = pool.submit(second.live, tenant, slow)
    until(lambda: second.problems.reading[-1] == "slow" and len(second.problems.reading) == 3)
    assert pool.submit(second.live, tenant, quick).result(60).id == quick
    assert not loading.done()
