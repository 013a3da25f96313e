"""No data silences an adviser: outcomes that the model rules out, and plans that cannot be made."""

import numpy as np
import pytest

from counsel import CounselError, save
from counsel.model.human import Human
from counsel.model.mdp import MDP
from counsel.model.problem import AdviceProblem
from counsel.service.core.outcomes import Outcome
from counsel.service.core.problem_sources import add_model
from counsel.service.core.reported import ReportedDecision, record_decisions
from counsel.service.core.settings import AdviserSettings
from counsel.service.core.summary import summarise
from counsel.service.db.api_keys import KeyHolder
from tests.support.services import open_desk


def masked_model():
    """Two states; in the second, nobody ever took the second action, so that it is masked."""
    transition = np.full((2, 2, 2), 0.5)
    allowed = np.array([[True, True], [True, False]])
    mdp = MDP(
        transition, np.array([[0.0, 1.0], [0.5, 0.0]]), horizon=4, start=0, allowed=allowed,
        state_labels=("calm", "alarm"), action_labels=("wait", "act"),
    )  # fmt: skip
    human = Human(np.array([[0.7, 0.3], [1.0, 0.0]]), lift=np.array([[0.5, 0.5], [0.5, 0.0]]))
    return AdviceProblem(mdp, human)


@pytest.fixture
def desk(url):
    with open_desk(url) as found:
        yield found


@pytest.fixture
def adviser(desk, tmp_path):
    save(masked_model(), tmp_path / "model.npz")
    content = (tmp_path / "model.npz").read_bytes()
    model = desk.committer.submit(
        lambda c: add_model(c, KeyHolder(1, "admin"), "fitted", content)
    ).result()
    settings = AdviserSettings(source=model, must_say={"alarm": "wait"}, holdout=0.0)
    return desk.create(1, "alarms", settings)


def test_an_outcome_that_the_model_rules_out_silences_nobody_after_a_restart(desk, adviser, url):
    episode = desk.start(1, adviser, "ann")
    decision = desk.advise(1, episode.id, 0, 1)
    desk.report(1, [Outcome(decision.id, 1)])  # nobody ever did that here
    with open_desk(url) as again:
        started = again.start(1, adviser, "ann")
        alarm = again.advise(1, started.id, 0, 1)
        assert (alarm.advice, alarm.must) == (0, True)
        assert again.advise(1, started.id, 1, 0).reason["why"]
        summary = summarise(again, 1, adviser)
        assert summary["impossible"] == 1
        assert any("rules out" in sentence for sentence in summary["unknown"])
        own, everybody = again.live(1, adviser).population.counts_of(episode.person)
        assert not own.silent[1].any()
        assert not everybody.given[1].any()
        again.set_mode(1, adviser, "off")
        assert again.live(1, adviser).settings.mode == "off"


def test_advice_that_the_model_rules_out_and_was_said_elsewhere_silences_nobody(desk, adviser, url):
    episode = desk.start(1, adviser, "ann")
    steps = [ReportedDecision(step, 1, 1) for step in range(3)]  # it is masked there
    for action, id_ in zip((0, 1, 0), record_decisions(desk, 1, episode.id, steps), strict=True):
        desk.report(1, [Outcome(id_, action)])
    with open_desk(url) as again:
        started = again.start(1, adviser, "ann")
        assert again.advise(1, started.id, 0, 1).must
        assert again.advise(1, started.id, 1, 0).reason["why"]
        assert again.plans.failing == 0
        summary = summarise(again, 1, adviser)
        assert (summary["decisions"], summary["impossible"]) == (2, 1)


def test_an_adviser_whose_plan_cannot_be_made_says_what_must_be_said(desk, adviser, url, caplog):
    episode = desk.start(1, adviser, "ann")
    with open_desk(url) as again:

        def fails(_):
            raise CounselError("the world has ended")

        again.plans._make = fails
        alarm = again.advise(1, episode.id, 0, 1)
        assert (alarm.advice, alarm.must, alarm.shown) == (0, True, True)
        calm = again.advise(1, episode.id, 1, 0)
        assert calm.advice is None
        assert calm.reason["why"].startswith("no plan can be made")
        assert again.plans.failing == 1
        again.set_mode(1, adviser, "shadow")
    assert "the world has ended" in caplog.text
