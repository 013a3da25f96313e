"""Sums of rewards that are kept up to date equal those of a slow count of the log."""

import numpy as np
import pytest
import sqlalchemy as sa

from counsel.estimate.confidence_sequences import LEAST, difference_sequence
from counsel.service.core.episode_returns import EpisodeReturns
from counsel.service.core.erasure import erase_person
from counsel.service.core.outcomes import Outcome
from counsel.service.core.settings import AdviserSettings
from counsel.service.core.summary import summarise
from counsel.service.db.tables import episodes, outcomes
from tests.support import services


@pytest.fixture
def desk(url):
    with services.open_desk(url) as opened:
        yield opened


def adviser_of(desk, **changes):
    settings = {"source": "ward", "budget": 1.0, "holdout": 0.4, "knows_habit": True} | changes
    return desk.create(1, "alerts", AdviserSettings(**settings))


def play(desk, adviser, rng, *, person, rewards=(1.0, 1.0)):
    """Play two steps, and return the ids of their decisions."""
    episode = desk.start(1, adviser, person).id
    ids = []
    for step, reward in enumerate(rewards):
        said = desk.advise(1, episode, step, int(rng.integers(4)))
        ids.append(said.id)
        if reward is not None:
            desk.report(1, [Outcome(said.id, 0, reward)])
    return ids


def slow_sums(desk, adviser):
    """Counts, sums and sums of squares of live episodes with rewards, read row by row."""
    totals = {}
    query = (
        sa.select(episodes.c.number, episodes.c.held_out, outcomes.c.reward)
        .join(outcomes, outcomes.c.episode == episodes.c.number)
        .where(episodes.c.adviser == adviser, episodes.c.mode == "live")
        .where(outcomes.c.replaced_by.is_(None), outcomes.c.reward.is_not(None))
    )
    with desk.engine.connect() as connection:
        for number, held_out, reward in connection.execute(query):
            kind = totals.setdefault(bool(held_out), {})
            kind[number] = kind.get(number, 0.0) + reward
    return [np.array(list(totals.get(kind, {}).values())) for kind in (False, True)]


def check(desk, adviser, *readers):
    """Compare the sums of each reader with a slow count."""
    for reader in readers:
        with desk.reading.connect() as connection:
            kinds = reader.read(connection, 0.0)
        for sums, rewards in zip(kinds, slow_sums(desk, adviser), strict=True):
            expected = (rewards.size, rewards.sum(), (rewards**2).sum())
            assert sums.arrays() == pytest.approx(expected, abs=1e-9)


def test_sums_follow_the_log(desk):
    adviser, other, shadow = (
        adviser_of(desk),
        adviser_of(desk),
        adviser_of(desk, mode="shadow"),
    )
    reader, rng = EpisodeReturns(adviser), np.random.default_rng(0)
    check(desk, adviser, reader)
    for i in range(12):
        ids = play(desk, adviser, rng, person=f"nurse {i % 3}", rewards=rng.normal(size=2))
        play(desk, other, rng, person="nurse 0", rewards=(50.0, 50.0))
        if i % 4 == 0:
            check(desk, adviser, reader)
    assert min(rewards.size for rewards in slow_sums(desk, adviser)) >= 2
    # An outcome that is corrected, one that is late, and one without a reward.
    desk.report(1, [Outcome(ids[0], 1, 7.0)])
    late = play(desk, adviser, rng, person="nurse 1", rewards=(None, 3.0))
    check(desk, adviser, reader)
    desk.report(1, [Outcome(late[0], 0, -2.0), Outcome(ids[1], 0)])
    check(desk, adviser, reader, EpisodeReturns(adviser))
    check(desk, shadow, EpisodeReturns(shadow))
    # An erased person leaves no trace, even while the rows are being deleted.
    erase_person(desk, 1, "nurse 2")
    check(desk, adviser, reader, EpisodeReturns(adviser))
    play(desk, adviser, rng, person="nurse 1")
    check(desk, adviser, reader)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_large_mean_keeps_the_digits_in_which_rewards_differ(desk):
    adviser, rng = adviser_of(desk, holdout=0.0), np.random.default_rng(1)
    for reward in (1e9, 1e9 + 1.0, 1e9 + 2.0):
        play(desk, adviser, rng, person="ann", rewards=(reward,))
    with desk.reading.connect() as connection:
        advised, _ = EpisodeReturns(adviser).read(connection, 1e9 + 1.0)
    assert advised.arrays() == pytest.approx((3.0, 0.0, 2.0))


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_summary_has_the_worth_of_all_episodes_with_both_intervals(desk, monkeypatch):
    """Also of those before the last ones, which alone are read row by row."""
    monkeypatch.setattr("counsel.service.core.summary.LAST", 5)
    adviser, rng = adviser_of(desk, holdout=0.5), np.random.default_rng(2)
    while min(rewards.size for rewards in slow_sums(desk, adviser)) < LEAST:
        play(desk, adviser, rng, person="ann", rewards=rng.normal(size=1))
        if sum(rewards.size for rewards in slow_sums(desk, adviser)) == LEAST:
            worth = summarise(desk, 1, adviser)["worth"]
            assert worth["always_low"] is worth["always_high"] is None
    summary = summarise(desk, 1, adviser)
    advised, silent = slow_sums(desk, adviser)
    worth = summary["worth"]
    assert (worth["advised"], worth["held_out"]) == (advised.size, silent.size)
    assert summary["considered"] == 5
    assert worth["estimate"] == pytest.approx(advised.mean() - silent.mean())
    with desk.reading.connect() as connection:
        low, high = difference_sequence(*EpisodeReturns(adviser).read(connection, 0.0))
    assert (worth["always_low"], worth["always_high"]) == pytest.approx((low, high))
    assert worth["always_low"] < worth["low"] < worth["high"] < worth["always_high"]
