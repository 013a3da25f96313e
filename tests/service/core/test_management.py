"""Advisers that are edited, archived and deleted, in this service and in others."""

import pytest
import sqlalchemy as sa

from counsel import CounselError
from counsel.model.files import save
from counsel.service.core import deletion, follower, management
from counsel.service.core.export import export_log
from counsel.service.core.outcomes import Outcome
from counsel.service.core.problem_sources import add_model
from counsel.service.core.settings import AdviserSettings
from counsel.service.db.api_keys import KeyHolder
from counsel.service.db.tables import (
    advisers,
    decisions,
    episodes,
    outcomes,
    people,
    remarks,
    snapshots,
)
from counsel.service.errors import ConflictError, NotFoundError
from counsel.worlds.ward import ward
from tests.support.services import open_desk
from tests.support.waiting import until

ADMIN, STRANGER = KeyHolder(1, "admin"), KeyHolder(2, "admin")
DETERIORATING, CRITICAL = 2, 3


@pytest.fixture
def desk(url):
    with open_desk(url) as found:
        yield found


@pytest.fixture
def other(desk, url, monkeypatch):
    """Another service on the same database."""
    monkeypatch.setattr(follower, "POLL_SECONDS", 0.05)
    with open_desk(url) as found:
        yield found


def new_adviser(desk, **settings):
    chosen = {"source": "ward", "budget": 2.0, "hard": True, "knows_habit": True} | settings
    return desk.create(1, "alerts", AdviserSettings(**chosen))


def edit(desk, adviser, **changes):
    management.edit_adviser(desk, ADMIN, adviser, changes)


def work(desk, adviser, person="ann", episodes_=2):
    for _ in range(episodes_):
        episode = desk.start(1, adviser, person).id
        for step in range(3):
            decision = desk.advise(1, episode, step, DETERIORATING)
            desk.report(1, [Outcome(decision.id, 1, 0.5, comment="busy")])
    return episode


def row_of(desk, adviser):
    with desk.engine.connect() as connection:
        mine = sa.select(advisers).where(advisers.c.id == adviser)
        return connection.execute(mine).first()


def count(desk, *tables):
    with desk.engine.connect() as connection:
        return [
            connection.scalar(sa.select(sa.func.count()).select_from(table)) for table in tables
        ]


def test_an_edited_adviser_follows_its_new_settings_at_once(desk):
    adviser = new_adviser(desk)
    episode = desk.start(1, adviser, "ann").id
    first = desk.advise(1, episode, 0, DETERIORATING)
    assert first.advice is not None
    edit(desk, adviser, budget=1.0)
    after = desk.advise(1, episode, 1, DETERIORATING)
    assert (after.advice, after.reason["spent"], after.reason["left"]) == (None, 1, 0)
    assert after.reason["why"] == "the budget is spent", "one piece was spent before the change"
    edit(desk, adviser, budget=0.0)
    lower = desk.advise(1, episode, 2, DETERIORATING)
    assert (lower.advice, lower.reason["left"]) == (None, 0), "less than nothing is not left"
    edit(desk, adviser, must_say={"critical": "call doctor"})
    must = desk.advise(1, episode, 3, CRITICAL)
    assert (must.advice, must.must) == (2, True)
    edit(desk, adviser, budget=None, hard=False, penalty=0.0)
    assert desk.live(1, adviser).settings.penalty == 0.0
    assert desk.advise(1, episode, 4, DETERIORATING).advice is not None


def test_other_services_follow_within_a_poll_and_keep_what_was_learnt(desk, other):
    adviser = new_adviser(desk)
    episode = work(desk, adviser)
    before = other.live(1, adviser)
    assert other.advise(1, episode, 3, DETERIORATING).reason["spent"] == 2
    edit(desk, adviser, must_say={"critical": "call doctor"}, algorithm="thompson")
    until(lambda: other.live(1, adviser).settings.algorithm == "thompson")
    live = other.live(1, adviser)
    assert live is not before
    assert live.population.counts is other.learnt.of(adviser)
    assert live.population.counts.everybody.decisions == 6
    must = other.advise(1, episode, 4, CRITICAL)
    assert (must.must, must.shown) == (True, True), "the episode has the new adviser"
    edit(desk, adviser, mode="off")
    until(lambda: other.live(1, adviser).settings.mode == "off")
    assert other.live(1, adviser) is live, "another mode needs no waking"


def test_a_mode_switched_before_a_poll_hides_no_other_change(desk, other):
    adviser = new_adviser(desk)
    other.live(1, adviser)
    edit(desk, adviser, must_say={"critical": "call doctor"})
    other.set_mode(1, adviser, "shadow")
    until(lambda: other.live(1, adviser).settings.must_say == {"critical": "call doctor"})
    assert other.live(1, adviser).settings.mode == "shadow"
    assert other.live(1, adviser).population.must_say == {CRITICAL: 2}


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"budget": 1.5}, "budget"),
        ({"penalty": 0.1}, "penalty"),
        ({"must_say": {"nowhere": "call doctor"}}, "must_say has 'nowhere'"),
        ({"explore": 0.5}, "explore needs a schedule"),
        ({"budget": -1.0}, "budget is -1"),
        ({"mode": "loud"}, "mode is 'loud'"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_settings_that_make_no_sense_are_refused_and_not_written(desk, changes, what):
    adviser = new_adviser(desk)
    before = row_of(desk, adviser)
    with pytest.raises(CounselError, match=what):
        edit(desk, adviser, **changes)
    assert row_of(desk, adviser) == before
    assert desk.live(1, adviser).settings.budget == 2.0


def test_the_account_of_an_expected_budget_starts_anew_with_another_budget(desk):
    """Otherwise 100 episodes at one piece each would be a debt of 100 pieces at a budget of 2."""
    adviser = new_adviser(desk, budget=1.0, hard=False)
    work(desk, adviser, episodes_=3)
    assert row_of(desk, adviser).paced_episodes == 3
    edit(desk, adviser, must_say={"critical": "call doctor"})
    assert row_of(desk, adviser).paced_episodes == 3
    assert desk.live(1, adviser).paced_episodes == 3
    edit(desk, adviser, budget=2.0)
    row = row_of(desk, adviser)
    assert (row.paced_episodes, row.paced_pieces) == (0, 0)


def test_the_holdout_is_fixed_once_there_are_episodes(desk):
    adviser = new_adviser(desk)
    edit(desk, adviser, holdout=0.1)
    desk.start(1, adviser, "ann")
    with pytest.raises(ConflictError, match=r"holdout is 0\.1 and stays so"):
        edit(desk, adviser, holdout=0.2)


def test_edits_at_the_same_time_are_all_kept(desk, monkeypatch):
    adviser = new_adviser(desk)
    plain, edits = desk.draft, []

    def slow(*arguments):
        if not edits:
            edits.append(1)
            edit(desk, adviser, budget=1.0)  # somebody else, while the first makes a plan
        return plain(*arguments)

    monkeypatch.setattr(desk, "draft", slow)
    edit(desk, adviser, algorithm="thompson")
    settings = desk.live(1, adviser).settings
    assert (settings.budget, settings.algorithm) == (1.0, "thompson")
    assert row_of(desk, adviser).settings == settings.model_dump_json()


def test_an_archived_adviser_starts_nothing_and_answers_for_the_rest(desk, other):
    adviser = new_adviser(desk)
    episode = work(desk, adviser)
    other.live(1, adviser)
    assert management.archive_adviser(desk, ADMIN, adviser).archived > 0
    at = management.archive_adviser(desk, ADMIN, adviser).archived
    assert management.archive_adviser(desk, ADMIN, adviser).archived == at, "again changes nothing"
    for one in (desk, other):  # before the other has polled, too
        with pytest.raises(ConflictError, match="is archived; restore it"):
            one.start(1, adviser, "bob")
    decision = other.advise(1, episode, 3, DETERIORATING)
    other.report(1, [Outcome(decision.id, 1)])
    log = b"".join(export_log(desk, desk.live(1, adviser), "csv"))
    assert log.count(b"\n") == 8
    until(lambda: other.live(1, adviser).archived == at)
    assert management.restore_adviser(desk, ADMIN, adviser).archived is None
    other.start(1, adviser, "bob")
    for change in (management.archive_adviser, management.restore_adviser):
        with pytest.raises(NotFoundError):
            change(desk, STRANGER, adviser)


def test_a_deleted_adviser_is_gone_everywhere(desk, other):
    kept = new_adviser(desk)
    work(desk, kept)
    adviser = new_adviser(desk)
    episode = work(desk, adviser, episodes_=3)
    desk.save_snapshot().result()
    other.catch_up()
    other.episode(1, episode)
    with pytest.raises(ConflictError, match="is in use; archive it first"):
        management.delete_adviser(desk, ADMIN, adviser, "alerts")
    management.archive_adviser(desk, ADMIN, adviser)
    with pytest.raises(CounselError, match="give its name, 'alerts'"):
        management.delete_adviser(desk, ADMIN, adviser, "alarms")
    with pytest.raises(NotFoundError):
        management.delete_adviser(desk, STRANGER, adviser, "alerts")
    assert management.delete_adviser(desk, ADMIN, adviser, "alerts") == []
    tables = (advisers, people, episodes, decisions, outcomes, remarks, snapshots)
    assert count(desk, *tables) == [1, 1, 2, 6, 6, 6, 0]
    until(lambda: adviser not in other.learnt.advisers())
    for one in (desk, other):
        with pytest.raises(NotFoundError):
            one.live(1, adviser)
        with pytest.raises(NotFoundError):
            one.advise(1, episode, 3, DETERIORATING)
        assert one.plans.failing == 0
        assert one.learnt.of(kept).everybody.decisions == 6
        one.start(1, kept, "ann")
    with pytest.raises(NotFoundError):
        management.delete_adviser(desk, ADMIN, adviser, "alerts")


def test_an_interrupted_deletion_is_finished_by_the_next_start(desk, url, monkeypatch):
    adviser = new_adviser(desk)
    work(desk, adviser)
    management.archive_adviser(desk, ADMIN, adviser)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(management, "_delete", killed)
        with pytest.raises(KeyboardInterrupt):
            management.delete_adviser(desk, ADMIN, adviser, "alerts")
    with pytest.raises(NotFoundError):
        management.restore_adviser(desk, ADMIN, adviser)
    with pytest.raises(NotFoundError):
        edit(desk, adviser, budget=1.0)
    with open_desk(url) as again:
        with pytest.raises(NotFoundError):
            again.live(1, adviser)
        management.finish_deletions(again)
    assert count(desk, advisers, episodes, outcomes) == [0, 0, 0]


def test_deleting_goes_some_episodes_at_a_time(desk, monkeypatch):
    monkeypatch.setattr(deletion, "AT_ONCE", 2)
    adviser = new_adviser(desk)
    work(desk, adviser, episodes_=5)
    management.archive_adviser(desk, ADMIN, adviser)
    before = desk.committer.transactions
    management.delete_adviser(desk, ADMIN, adviser, "alerts")
    assert desk.committer.transactions >= before + 4
    assert count(desk, episodes) == [0]


@pytest.fixture
def model(desk, tmp_path):
    save(ward(), tmp_path / "model.npz")
    content = (tmp_path / "model.npz").read_bytes()
    return desk.committer.submit(
        lambda c: add_model(c, KeyHolder(1, "admin"), "fitted", content)
    ).result()


def test_a_model_in_use_is_not_deleted(desk, model):
    management.rename_model(desk, ADMIN, model, "another")
    with pytest.raises(NotFoundError):
        management.rename_model(desk, STRANGER, model, "mine")
    adviser = new_adviser(desk, source=model)
    management.archive_adviser(desk, ADMIN, adviser)
    with pytest.raises(ConflictError, match="is the source of 1 adviser"):
        management.delete_model(desk, ADMIN, model)
    management.delete_adviser(desk, ADMIN, adviser, "alerts")
    with pytest.raises(NotFoundError):
        management.delete_model(desk, STRANGER, model)
    management.delete_model(desk, ADMIN, model)
    with pytest.raises(NotFoundError):
        management.delete_model(desk, ADMIN, model)


def test_no_adviser_is_created_with_a_model_that_is_deleted_meanwhile(desk, model, monkeypatch):
    plain = desk.draft

    def slow(*arguments):
        live = plain(*arguments)
        management.delete_model(desk, ADMIN, model)
        return live

    monkeypatch.setattr(desk, "draft", slow)
    with pytest.raises(ConflictError, match="was deleted meanwhile"):
        new_adviser(desk, source=model)
    assert count(desk, advisers) == [0]
