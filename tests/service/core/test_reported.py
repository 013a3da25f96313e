"""Decisions that were made without the service are on record as what was shown."""

import csv
import json

import pytest
import sqlalchemy as sa

from counsel import CounselError
from counsel.service.core.export import export_log
from counsel.service.core.outcomes import Outcome
from counsel.service.core.reported import ReportedDecision, record_decisions
from counsel.service.core.settings import AdviserSettings
from counsel.service.db.tables import decisions, episodes
from counsel.service.errors import ConflictError, NotFoundError
from tests.support.services import open_desk

SETTINGS = AdviserSettings(source="ward", budget=1, hard=True, must_say={"critical": "call doctor"})
STABLE, CRITICAL, DOCTOR = 0, 3, 2


@pytest.fixture
def desk(url):
    with open_desk(url) as opened:
        yield opened


@pytest.fixture
def episode(desk):
    adviser = desk.create(1, "alerts", SETTINGS, "alerts")
    return desk.start(1, adviser, "ann").id


def rows(desk):
    with desk.engine.connect() as connection:
        return connection.execute(sa.select(decisions).order_by(decisions.c.step)).all()


def test_what_was_shown_is_on_record_and_not_charged(desk, episode):
    reported = [ReportedDecision(0, CRITICAL, DOCTOR, at=5.0), ReportedDecision(1, STABLE, None)]
    assert record_decisions(desk, 1, episode, reported) == [f"{episode}-0", f"{episode}-1"]
    said, silent = rows(desk)
    assert (said.advice, said.shown, said.must, said.probability, said.at) == (2, True, True, 1, 5)
    assert json.loads(said.reason) == {"why": "said without the service"}
    assert (silent.advice, silent.shown, silent.must, silent.probability) == (None, False, False, 1)
    assert json.loads(silent.reason) == {"why": "silent without the service"}
    with desk.engine.connect() as connection:
        assert connection.scalar(sa.select(episodes.c.spent)) == 0
    assert desk.advise(1, episode, 0, CRITICAL).shown_advice == DOCTOR, "it is not decided again"


def test_outcomes_of_reported_decisions_are_learnt_and_exported(desk, episode):
    record_decisions(desk, 1, episode, [ReportedDecision(0, CRITICAL, DOCTOR)])
    desk.report(1, [Outcome(f"{episode}-0", DOCTOR, reward=1.0)])
    log = b"".join(export_log(desk, desk.live(1, "alerts"), "csv")).decode()
    (logged,) = csv.DictReader(log.splitlines())
    assert (logged["advice"], logged["action"]) == ("call doctor", "call doctor")
    assert float(logged["advice_probability"]) == 1.0


def test_the_same_again_changes_nothing_and_another_decision_is_refused(desk, episode):
    said = ReportedDecision(0, CRITICAL, DOCTOR)
    for _ in range(2):
        record_decisions(desk, 1, episode, [said, said])
    for other in (ReportedDecision(0, CRITICAL, None), ReportedDecision(0, STABLE, DOCTOR)):
        with pytest.raises(ConflictError, match=r"step 0 .* another state or advice"):
            record_decisions(desk, 1, episode, [ReportedDecision(1, STABLE, None), other])
    assert len(rows(desk)) == 1, "all decisions of a report or none"


def test_what_the_service_decided_stays(desk, episode):
    decision = desk.advise(1, episode, 0, CRITICAL)
    assert decision.must
    record_decisions(desk, 1, episode, [ReportedDecision(0, CRITICAL, DOCTOR)])
    assert json.loads(rows(desk)[0].reason)["why"] == "this must be said"


def test_after_the_end_only_what_is_on_record_may_be_sent_again(desk, episode):
    said = ReportedDecision(0, CRITICAL, DOCTOR)
    record_decisions(desk, 1, episode, [said])
    desk.end(1, episode, terminated=True)
    record_decisions(desk, 1, episode, [said])
    with pytest.raises(ConflictError, match="has ended"):
        record_decisions(desk, 1, episode, [ReportedDecision(1, STABLE, None)])


def test_what_makes_no_sense_is_refused(desk, episode):
    for wrong in (ReportedDecision(99, 0, None), ReportedDecision(0, 9, None)):
        with pytest.raises(CounselError):
            record_decisions(desk, 1, episode, [wrong])
    with pytest.raises(CounselError, match="advice"):
        record_decisions(desk, 1, episode, [ReportedDecision(0, 0, 3)])
    with pytest.raises(NotFoundError):
        record_decisions(desk, 2, episode, [])
    assert record_decisions(desk, 1, episode, []) == []


def test_a_decision_is_never_later_than_its_report(desk, episode):
    record_decisions(desk, 1, episode, [ReportedDecision(0, STABLE, None, at=1e11)])
    assert rows(desk)[0].at < 1e10
