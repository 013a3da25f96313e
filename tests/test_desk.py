"""The desk behind the service: what is answered is on record, and what is on record is learnt."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sqlalchemy as sa

from counsel import CounselError
from counsel.model.human import draw_index
from counsel.service.desk import Desk, Outcome, Settings
from counsel.service.keys import tenant_of
from counsel.service.store import open_engine
from counsel.service.tables import decisions, episodes, outcomes
from counsel.worlds import make

WARD = make("ward")
DETERIORATING = WARD.mdp.state_labels.index("deteriorating")


def world(_, source):
    return make(source)


@pytest.fixture
def tenant(url):
    engine = open_engine(url)
    with engine.begin() as connection:
        number = tenant_of(connection, "clinic")
        tenant_of(connection, "school")
    engine.dispose()
    return number


@pytest.fixture
def opened(url, tenant):
    """Opens desks on one database and closes them all."""
    made = []

    def open_desk(seed=0):
        desk = Desk(open_engine(url), world, np.random.default_rng(seed))
        made.append(desk)
        return desk

    yield open_desk
    for desk in made:
        desk.close()
        desk.engine.dispose()


def settings(**changes):
    return Settings(**({"source": "ward", "budget": 1.0, "knows_habit": True} | changes))


def live_through(desk, tenant, adviser, person, episodes, rng, *, report=True):
    """Play episodes with a simulated nurse; return the outcomes."""
    told = []
    moves, A = WARD.mdp.kernel.to_sparse().toarray(), WARD.n_actions
    for _ in range(episodes):
        episode, state = desk.start(tenant, adviser, person), draw_index(WARD.mdp.start, rng)
        for step in range(WARD.horizon):
            said = desk.advise(tenant, episode, step, state).result()
            heard = A if said.advice is None or not said.shown else said.advice
            action = draw_index(WARD.law(step, state, heard), rng)
            then = draw_index(moves[state * A + action], rng)
            told.append(Outcome(said.id, action, 1.0, then))
            if report:
                desk.report(tenant, told[-1:])
            state = then
            if WARD.mdp.over[step, state]:
                break
        desk.end(tenant, episode, terminated=bool(WARD.mdp.over[0, state]))
    return told


def same(one, other):
    for name in ("silent", "refusing", "given", "matched"):
        np.testing.assert_array_equal(getattr(one.everybody, name), getattr(other.everybody, name))
    assert set(one.people) == set(other.people)


def test_a_desk_that_is_opened_again_knows_the_same(opened, tenant):
    desk, rng = opened(), np.random.default_rng(1)
    adviser = desk.create(tenant, "alerts", settings())
    live_through(desk, tenant, adviser, "ann", 8, rng)
    live_through(desk, tenant, adviser, "bob", 4, rng)
    learnt = desk.adviser(tenant, adviser)
    assert learnt.everybody.given.sum() > 0
    again = opened().adviser(tenant, adviser)
    same(learnt, again)
    for person in learnt.people:
        mine, other = learnt.plan(person), again.plan(person)
        np.testing.assert_array_equal(mine.plan.policy.advice, other.plan.policy.advice)


def test_another_desk_on_the_same_database_learns_too(opened, tenant):
    one, other = opened(), opened(1)
    adviser = one.create(tenant, "alerts", settings())
    # The other one has not heard of the adviser: it is told when it is opened anew.
    other = opened(2)
    live_through(one, tenant, adviser, "ann", 3, np.random.default_rng(0))
    assert other.follow() > 0
    assert other.follow() == 0
    same(one.adviser(tenant, adviser), other.adviser(tenant, adviser))


def test_outcomes_may_be_late_repeated_and_out_of_order(opened, tenant):
    desk, rng = opened(), np.random.default_rng(2)
    adviser = desk.create(tenant, "alerts", settings())
    told = live_through(desk, tenant, adviser, "ann", 6, rng, report=False)
    assert desk.adviser(tenant, adviser).everybody.silent.sum() == 0
    shuffled = [told[i] for i in rng.permutation(len(told))]
    desk.report(tenant, shuffled[:10])
    desk.report(tenant, shuffled)
    desk.report(tenant, told)
    counts = desk.adviser(tenant, adviser).everybody
    assert counts.silent.sum() + counts.given.sum() == len(told)
    with desk.engine.connect() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(outcomes)) == len(told)


def test_the_same_step_asked_again_gets_the_same_answer(opened, tenant):
    desk = opened()
    adviser = desk.create(tenant, "alerts", settings())
    episode = desk.start(tenant, adviser, "ann")
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(desk.advise, tenant, episode, 0, DETERIORATING) for _ in range(16)]
        said = [one.result().result() for one in asked]
    assert len({one.id for one in said}) == 1
    assert said[0].advice is not None
    with desk.engine.connect() as connection:
        assert connection.scalar(sa.select(episodes.c.spent)) == 1


def test_two_desks_never_overspend_a_hard_budget(opened, tenant):
    first = opened()
    adviser = first.create(tenant, "alerts", settings(budget=2, hard=True))
    desks = [opened(1), opened(2)]
    for _ in range(5):
        episode = desks[0].start(tenant, adviser, "ann")
        with ThreadPoolExecutor(6) as pool:
            asked = [
                pool.submit(desks[step % 2].advise, tenant, episode, step, DETERIORATING)
                for step in range(6)
            ]
            said = [one.result().result() for one in asked]
        assert sum(one.advice is not None for one in said) <= 2
        with first.engine.connect() as connection:
            row = sa.select(episodes.c.spent).where(episodes.c.id == episode)
            assert connection.scalar(row) == sum(one.advice is not None for one in said)


@pytest.mark.parametrize("mode", ["shadow", "off"])
def test_in_shadow_and_off_nothing_is_shown_and_all_counts_as_silence(opened, tenant, mode):
    desk = opened()
    adviser = desk.create(tenant, "alerts", settings(mode=mode))
    live_through(desk, tenant, adviser, "ann", 5, np.random.default_rng(0))
    with desk.engine.connect() as connection:
        rows = connection.execute(sa.select(decisions)).all()
        spent = connection.scalar(sa.select(sa.func.sum(episodes.c.spent)))
    assert not any(row.shown and row.advice < 3 for row in rows)
    assert any(row.advice < 3 for row in rows) == (mode == "shadow")
    assert spent == 0
    assert desk.adviser(tenant, adviser).everybody.given.sum() == 0


def test_a_share_of_episodes_is_kept_silent(opened, tenant):
    desk = opened()
    adviser = desk.create(tenant, "alerts", settings(holdout=0.5))
    for _ in range(60):
        desk.start(tenant, adviser, "ann")
    with desk.engine.connect() as connection:
        held = connection.execute(sa.select(episodes.c.held_out)).scalars().all()
    # 60 draws of a half: a standard deviation of 3.9.
    assert 18 <= sum(held) <= 42
    silent = opened(5)
    other = silent.create(tenant, "all silent", settings(holdout=1.0))
    episode = silent.start(tenant, other, "ann")
    said = silent.advise(tenant, episode, 0, DETERIORATING).result()
    assert not said.shown
    assert "kept silent" in said.reason["why"]


def test_what_must_be_said_is_said_when_the_budget_is_spent(opened, tenant):
    desk = opened()
    must = {"critical": "call doctor"}
    adviser = desk.create(tenant, "alerts", settings(budget=0, hard=True, must_say=must))
    episode = desk.start(tenant, adviser, "ann")
    critical = WARD.mdp.state_labels.index("critical")
    said = desk.advise(tenant, episode, 0, critical).result()
    quiet = desk.advise(tenant, episode, 1, DETERIORATING).result()
    assert (said.advice, said.shown, said.reason["why"]) == (2, True, "this must be said")
    assert quiet.advice is None
    with desk.engine.connect() as connection:
        assert connection.scalar(sa.select(episodes.c.spent)) == 0


def test_a_tenant_sees_its_own_only(opened, tenant):
    desk = opened()
    stranger = tenant + 1
    adviser = desk.create(tenant, "alerts", settings())
    episode = desk.start(tenant, adviser, "ann")
    said = desk.advise(tenant, episode, 0, 0).result()
    for refused in (
        lambda: desk.start(stranger, adviser, "ann"),
        lambda: desk.advise(stranger, episode, 1, 0),
        lambda: desk.report(stranger, [Outcome(said.id, 0)]),
        lambda: desk.end(stranger, episode, terminated=True),
        lambda: desk.adviser(stranger, adviser),
    ):
        with pytest.raises(CounselError, match="there is no"):
            refused()


def test_what_makes_no_sense_is_refused_and_not_written(opened, tenant):
    desk = opened()
    for wrong in (
        {"mode": "loud"},
        {"holdout": 2.0},
        {"must_say": {"nowhere": "assess"}},
        {"budget": -1.0},
        {"penalty": 0.1},
        {"algorithm": "magic"},
    ):
        with pytest.raises(CounselError):
            desk.create(tenant, "alerts", settings(**wrong))
    adviser = desk.create(tenant, "alerts", settings())
    episode = desk.start(tenant, adviser, "ann")
    said = desk.advise(tenant, episode, 0, 0).result()
    for refused in (
        lambda: desk.advise(tenant, episode, 6, 0),
        lambda: desk.advise(tenant, episode, 1, 5),
        lambda: desk.advise(tenant, "none", 0, 0),
        lambda: desk.report(tenant, [Outcome(said.id, 3)]),
        lambda: desk.report(tenant, [Outcome(said.id, 0, reward=float("nan"))]),
        lambda: desk.report(tenant, [Outcome(said.id, 0), Outcome("none", 0)]),
    ):
        with pytest.raises(CounselError):
            refused()
    with desk.engine.connect() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(outcomes)) == 0
        assert connection.scalar(sa.select(sa.func.count()).select_from(decisions)) == 1
    desk.end(tenant, episode, terminated=True)
    desk.end(tenant, episode, terminated=False)
    with pytest.raises(CounselError, match="has ended"):
        desk.advise(tenant, episode, 1, 0)
    with desk.engine.connect() as connection:
        assert connection.scalar(sa.select(episodes.c.terminated)) is True
