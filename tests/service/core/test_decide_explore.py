"""A micro-randomised trial in the service: chances as scheduled, and on record."""

import io

import numpy as np
import pytest

import counsel
from counsel.errors import CounselError
from counsel.logs.decisions import load_decisions
from counsel.logs.read import read_log
from counsel.logs.recorded_probabilities import find_miscalibration
from counsel.service.core.export import export_log
from counsel.service.core.outcomes import Outcome
from counsel.service.core.settings import AdviserSettings
from tests.support.later import Later
from tests.support.services import open_desk

pd = Later("pandas")

SCHEDULE = {"watch": {"call doctor": 0.3, "assess": 0.2}, "deteriorating": {"call doctor": 0.6}}


@pytest.fixture
def desk(tmp_path):
    with open_desk(f"sqlite:///{tmp_path / 'counsel.sqlite'}") as desk:
        yield desk


def settings(**changes):
    return AdviserSettings.checked(**{"source": "ward", "knows_habit": True} | changes)


def played(desk, episodes, **changes):
    """The log of an adviser that advised so many shifts."""
    adviser = desk.create(1, "trial", settings(**changes))
    live, rng = desk.live(1, adviser), np.random.default_rng(0)
    for i in range(episodes):
        episode = desk.start(1, adviser, f"nurse {i % 20}")
        for step in range(live.mdp.horizon):
            state = int(rng.integers(4))
            decision = desk.advise(1, episode.id, step, state)
            action = int(rng.integers(3)) if decision.advice is None else decision.advice
            told = Outcome(decision=decision.id, action=action, reward=float(rng.random()))
            desk.report(1, [told])
        desk.end(1, episode.id, terminated=False)
    return pd.read_csv(io.BytesIO(b"".join(export_log(desk, live, "csv")))), live


@pytest.mark.slow
def test_a_trial_sends_as_scheduled_and_records_the_chances(desk, few_draws):
    log, live = played(desk, 60, explore=1.0, schedule=SCHEDULE)
    for state, chances in SCHEDULE.items():
        here = log[log.state == state]
        for advice, chance in chances.items():
            share = (here.advice == advice).mean()
            assert abs(share - chance) < 4 * np.sqrt(chance * (1 - chance) / len(here))
            assert here[here.advice == advice].advice_probability.tolist() == pytest.approx(
                [chance] * (here.advice == advice).sum()
            )
        silence = 1.0 - sum(chances.values())
        assert here[here.advice.isna()].advice_probability.unique() == pytest.approx(silence)
    log["step"] = log.step.astype(int)
    read = read_log(log)
    fit = counsel.fit(read)
    rows = load_decisions(read, fit.tally, fit.problem)
    assert find_miscalibration(rows, fit.problem.n_actions) is None
    assert live.schedule[live.states["deteriorating"]] == {live.actions["call doctor"]: 0.6}


@pytest.mark.slow
def test_a_share_of_decisions_is_mixed_with_the_plan(desk):
    log, _ = played(desk, 15, explore=0.5, schedule=SCHEDULE, penalty=0.0)
    calls = log[(log.state == "deteriorating") & (log.advice == "call doctor")]
    # The plan calls the doctor there: half of that, and 0.6 of the other half.
    assert calls.advice_probability.unique() == pytest.approx([0.8])


@pytest.mark.slow
def test_a_hard_budget_holds_in_a_trial(desk):
    log, _ = played(desk, 15, explore=1.0, schedule=SCHEDULE, budget=1.0, hard=True)
    assert log.advice.notna().groupby(log.episode).sum().max() == 1
    assert (log[log.advice.isna()].advice_probability == 1.0).any()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"explore": 0.5}, "explore needs a schedule"),
        ({"explore": 1.5}, "explore is 1.5"),
        ({"schedule": {"watch": {"assess": 0.6, "carry on": 0.6}}}, "in 'watch' exceed 1"),
        ({"schedule": {"watch": {"assess": 0.0}}}, "schedule.watch.assess is 0"),
        ({"schedule": {"nowhere": {"assess": 0.5}}}, "schedule has 'nowhere': 'assess'"),
        ({"schedule": {"watch": {"sing": 0.5}}}, "schedule has 'watch': 'sing'"),
    ],
)
def test_what_is_no_schedule_is_refused(desk, changes, told):
    with pytest.raises(CounselError, match=told):
        desk.create(1, "trial", settings(**changes))
