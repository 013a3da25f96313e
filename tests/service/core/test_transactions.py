"""Outcomes with versions, and starts that are sent again; on both databases."""

import io
import itertools

import numpy as np
import pytest
import sqlalchemy as sa

from counsel.service.core.episode_record import describe_episode
from counsel.service.core.export import export_log
from counsel.service.core.outcomes import Outcome, OutcomeReceipt
from counsel.service.core.settings import AdviserSettings
from counsel.service.core.transactions import MOST_VERSIONS
from counsel.service.db.tables import episodes, outcomes
from counsel.service.errors import ConflictError
from tests.support.later import Later
from tests.support.services import open_desk

pd = Later("pandas")
SETTINGS = AdviserSettings(source="ward", budget=1.0, hard=True, knows_habit=True)


@pytest.fixture
def desk(url):
    with open_desk(url) as found:
        yield found


@pytest.fixture
def adviser(desk):
    return desk.create(1, "alerts", SETTINGS)


def asked(desk, adviser, steps=1):
    episode = desk.start(1, adviser, "ann").id
    return [desk.advise(1, episode, step, 0).id for step in range(steps)]


def learnt(desk, adviser):
    """What was learnt, as counts of (state, advice, action)."""
    return dict(desk.learnt.of(adviser).everybody.cells)


def log_of(desk, adviser):
    return pd.read_csv(io.BytesIO(b"".join(export_log(desk, desk.live(1, adviser), "csv"))))


def test_a_second_different_outcome_is_a_correction_and_the_last_counts(desk, adviser, url):
    (decision,) = asked(desk, adviser)
    first = Outcome(decision, 0, 0.5, comment="busy")
    assert desk.report(1, [first]) == OutcomeReceipt(1, 0)
    assert desk.report(1, [first]) == OutcomeReceipt(1, 0), "a repeat is free"
    before = learnt(desk, adviser)
    assert desk.report(1, [Outcome(decision, 2, 0.9)]) == OutcomeReceipt(1, 1)
    assert sum(before.values()) == sum(learnt(desk, adviser).values()) == 1
    assert [action for (_, _, action) in learnt(desk, adviser)] == [2]
    row = log_of(desk, adviser).iloc[0]
    assert (row.action, row.reward, row.version) == ("call doctor", 0.9, 2)
    with desk.engine.connect() as connection:
        kept = connection.execute(sa.select(outcomes).order_by(outcomes.c.version)).all()
    assert [(one.action, one.version) for one in kept] == [(0, 1), (2, 2)], "nothing is lost"
    assert [one.replaced_by for one in kept] == [kept[1].seq, None]
    with open_desk(url) as again:  # a restart learns the same
        assert learnt(again, adviser) == learnt(desk, adviser)


def test_an_outcome_has_only_so_many_versions(desk, adviser):
    # Each correction reads all versions under the lock: with thousands, everybody waited.
    first, second = asked(desk, adviser, 2)
    desk.report(1, [Outcome(first, version % 2) for version in range(MOST_VERSIONS)])
    with pytest.raises(ConflictError, match="has 20 versions on record, which is the most"):
        desk.report(1, [Outcome(second, 0), Outcome(first, 2)])
    last = Outcome(first, (MOST_VERSIONS - 1) % 2)
    assert desk.report(1, [last]) == OutcomeReceipt(1, 0), "a repeat is free all the same"
    assert log_of(desk, adviser).version.tolist() == [MOST_VERSIONS], "of a report all or none"


def test_corrections_in_one_report_and_in_one_transaction_are_versions(desk, adviser):
    decisions = asked(desk, adviser, 2)
    same = [Outcome(decisions[0], action, 0.1) for action in (0, 1, 1, 2)]
    assert desk.report(1, [*same, Outcome(decisions[1], 0)]) == OutcomeReceipt(5, 2)
    log = log_of(desk, adviser)
    assert log.version.tolist() == [3, 1]
    assert log.action.tolist() == ["call doctor", "carry on"]
    assert sum(learnt(desk, adviser).values()) == 2


def test_a_late_copy_of_the_first_version_does_not_undo_its_correction(desk, adviser):
    (decision,) = asked(desk, adviser)
    first, second = (Outcome(decision, action, version=action + 1) for action in (0, 1))
    for outcome in (first, second, first, second, first):
        desk.report(1, [outcome])
    assert log_of(desk, adviser).action.tolist() == ["assess"]
    with pytest.raises(ConflictError, match="on record as version 2"):
        desk.report(1, [Outcome(decision, 2, version=1)])
    assert log_of(desk, adviser).version.tolist() == [2]


def test_a_first_version_that_comes_after_its_correction_never_counts(desk, adviser, url):
    """It is on record as replaced, and the rest of its report is taken."""
    decisions = asked(desk, adviser, 2)
    second = Outcome(decisions[0], 1, 0.7, version=2)
    assert desk.report(1, [second]) == OutcomeReceipt(1, 0), "nothing on record was replaced"
    before = learnt(desk, adviser)
    desk.save_snapshot().result()
    first = Outcome(decisions[0], 0, 0.1, comment="busy", version=1)
    assert desk.report(1, [Outcome(decisions[1], 2), first]) == OutcomeReceipt(2, 0)
    assert desk.report(1, [first, second]) == OutcomeReceipt(2, 0), "both are repeats"
    log = log_of(desk, adviser)
    assert log.action.tolist() == ["assess", "call doctor"]
    assert log.version.tolist() == [2, 1]
    assert log.reward.sum() == 0.7
    shown = describe_episode(desk, 1, decisions[0].partition("-")[0])["decisions"][0]
    assert (shown["outcome"]["version"], shown["earlier"][0]["comment"]) == (2, "busy")
    after = learnt(desk, adviser)
    assert {cell: count for cell, count in after.items() if cell in before} == before
    assert sum(after.values()) == 2
    with open_desk(url) as again:  # a restart learns the same
        assert learnt(again, adviser) == after
    assert desk.report(1, [Outcome(decisions[0], 2, version=3)]) == OutcomeReceipt(1, 1)
    assert sum(learnt(desk, adviser).values()) == 2


def test_versions_of_one_report_may_be_in_any_order(desk, adviser, url):
    decisions = asked(desk, adviser, 6)
    orders = list(itertools.permutations((1, 2, 3)))
    for decision, order in zip(decisions, orders, strict=True):
        desk.report(1, [Outcome(decision, version - 1, version=version) for version in order])
    assert log_of(desk, adviser).action.tolist() == ["call doctor"] * 6
    assert sum(learnt(desk, adviser).values()) == 6
    with desk.engine.connect() as connection:
        rows = connection.execute(sa.select(outcomes)).all()
    assert sorted(row.version for row in rows if row.replaced_by is None) == [3] * 6
    assert len(rows) == 18
    with open_desk(url) as again:
        assert learnt(again, adviser) == learnt(desk, adviser)


def test_another_outcome_of_the_same_version_is_told_what_to_give(desk, adviser):
    (decision,) = asked(desk, adviser)
    desk.report(1, [Outcome(decision, 1, version=2)])
    sentence = (
        f"the outcome of decision {decision} is on record as version 2, and its version 2 is "
        "another one than this; versions never change: give version 3 only to an outcome that is "
        "newer than all on record"
    )
    with pytest.raises(ConflictError, match=f"^{sentence}$"):
        desk.report(1, [Outcome(decision, 0, version=2)])


def test_a_report_with_one_conflict_changes_nothing(desk, adviser):
    decisions = asked(desk, adviser, 2)
    desk.report(1, [Outcome(decisions[0], 0, version=1)])
    with pytest.raises(ConflictError):
        desk.report(1, [Outcome(decisions[1], 0), Outcome(decisions[0], 1, version=1)])
    assert log_of(desk, adviser).step.tolist() == [0]


def test_the_learner_is_rebuilt_from_any_order_of_corrections(desk, adviser, url):
    """Against a plain count of the last outcome of each decision."""
    rng = np.random.default_rng(3)
    decisions = asked(desk, adviser, 6)
    last = {}
    for _ in range(40):
        decision, action = decisions[rng.integers(6)], int(rng.integers(3))
        last[decision] = action
        desk.report(1, [Outcome(decision, action)])
        if rng.random() < 0.2:
            desk.save_snapshot().result()
    expected = np.bincount(list(last.values()), minlength=3).tolist()
    for one in (desk, None):
        if one is None:
            with open_desk(url) as again:
                counted = learnt(again, adviser)
        else:
            counted = learnt(one, adviser)
        total = [0, 0, 0]
        for (_, _, action), times in counted.items():
            total[action] += times
        assert total == expected


def test_a_start_that_is_sent_again_opens_no_second_episode(desk, adviser):
    first = desk.start(1, adviser, "ann", request="shift 7")
    spent = [desk.advise(1, first.id, step, 2).advice for step in range(3)]
    assert sum(advice is not None for advice in spent) == 1
    again = desk.start(1, adviser, "ann", request="shift 7")
    assert again.id == first.id
    assert desk.advise(1, again.id, 4, 2).reason["why"] == "the budget is spent"
    assert desk.start(1, adviser, "ann", request="shift 8").id != first.id
    with pytest.raises(ConflictError, match="another person"):
        desk.start(1, adviser, "bob", request="shift 7")
    with desk.engine.connect() as connection:
        kept = connection.scalars(sa.select(episodes.c.request)).all()
    assert len(kept) == 2
    assert not any("shift" in request for request in kept), "only its digest is stored"
