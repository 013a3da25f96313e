"""Listening and habit are two things: who differs in which, and what changes over time."""

import numpy as np
import pytest

import counsel
from counsel.errors import CounselError
from counsel.logs.evidence import Evidence
from counsel.logs.excursion import excursion_effects
from counsel.logs.read import read_log
from counsel.report import findings
from tests.support.later import Later
from tests.support.paths import HEARTSTEPS
from tests.support.real_data import real_data

pd = Later("pandas")


pytestmark = pytest.mark.usefixtures("few_draws")


def walks(rng, habit, lift, *, people=30, days=40):
    """A log of daily suggestions to walk; habit and lift are functions of person and day."""
    who, day = np.divmod(np.arange(people * days), days)
    advised = rng.random(who.size) < 0.5
    moved = advised & (rng.random(who.size) < lift(who, day))
    acts = moved | (rng.random(who.size) < habit(who, day))
    joined = rng.integers(0, 200, people)[who]
    return pd.DataFrame(
        {
            "episode": [f"p{i}-{d}" for i, d in zip(who, day, strict=True)],
            "step": 0,
            "person": [f"p{i}" for i in who],
            "state": "home",
            "advice": np.where(advised, "walk", None),
            "action": np.where(acts, "walk", "stay"),
            "reward": acts.astype(float),
            "timestamp": (joined + day) * 86400.0,
        }
    )


def flat(value):
    return lambda who, _: np.full(who.shape, value)


def test_people_who_differ_in_habit_alone_are_not_said_to_listen_differently():
    # Found by referees: with a lift of 0 for all it printed "a lift between -0.45 and 0.43".
    rng = np.random.default_rng(0)
    habits = rng.uniform(0.1, 0.9, 30)
    fit = counsel.fit(walks(rng, lambda who, _: habits[who], flat(0.0)))
    assert not fit.people.differ
    sentence = findings.people_differ(fit.people)
    assert sentence.startswith("No difference between people can be told: 30 people, each compared")
    assert fit.people.lift_quantiles(0.9)[0] < 0.15


@pytest.mark.slow
@pytest.mark.parametrize(
    ("logs", "too_many"), [(20, 5), pytest.param(60, 8, marks=pytest.mark.long)]
)
def test_people_who_listen_alike_are_found_to_differ_in_one_log_of_twenty(logs, too_many):
    # Different habits, no effect or the same: at 5 % 5 of 20 are once in 390, 8 of 60 once in 100.
    differ = 0
    for seed in range(logs):
        rng = np.random.default_rng(seed)
        habits = rng.uniform(0.1, 0.8, 30)
        log = walks(rng, lambda who, _, own=habits: own[who], flat(0.3 * (seed % 2)))
        differ += counsel.fit(log).people.differ
    assert differ < too_many


def test_people_who_do_listen_differently_are_found():
    rng = np.random.default_rng(1)
    lifts = np.where(np.arange(30) % 2, 0.7, 0.1)
    fit = counsel.fit(walks(rng, flat(0.3), lambda who, _: lifts[who]))
    assert fit.people.differ
    assert fit.people.p_value < 1e-6
    # A lift of one person, from 20 days of each kind, has an error of 0.2; lifts differ by 0.3.
    own = lifts[[int(name[1:]) for name in fit.people.by.keys]]
    assert np.corrcoef(fit.people.lift, own)[0, 1] > 0.7


@pytest.mark.slow
def test_a_habit_that_drifts_is_no_trend_of_listening():
    # Found by referees: "listen less" in 12 of 12 logs. Of 24 at 5 %, 5 or more once in 170.
    clear = 0
    for seed in range(24):
        rng = np.random.default_rng(seed)
        fit = counsel.fit(walks(rng, lambda _, day: 0.2 + 0.015 * day, flat(0.3)))
        clear += fit.over_time.is_clear
    assert clear < 5


def test_rows_without_a_person_are_left_out_of_the_comparison_of_people():
    # Bug: every fit of a log that names only some people ended in a ValueError of NumPy.
    log = walks(np.random.default_rng(3), flat(0.3), flat(0.3), people=4)
    log.loc[log.person == "p2", "person"] = None
    assert counsel.fit(log).people.by.keys == ("p0", "p1", "p3")
    with pytest.raises(CounselError, match="has 40 episodes without a person; give --unit"):
        counsel.fit(log, unit="person")


def test_waning_is_seen_on_each_persons_own_clock():
    # People join over 200 days, so the calendar shows nothing.
    rng = np.random.default_rng(2)
    fit = counsel.fit(walks(rng, flat(0.3), lambda _, day: 0.7 - 0.0175 * day))
    trend = fit.over_time
    assert trend.is_own_clock
    assert trend.is_clear
    assert trend.slope_low < -0.7 < trend.slope_high
    assert findings.time_trend(trend).startswith("People listen less the longer they are in the l")


@pytest.fixture(scope="module")
def heartsteps():
    return pd.read_csv(real_data(HEARTSTEPS))


def test_the_walking_trial_wanes_with_time_and_not_with_dose(heartsteps):
    # What its own description says: alone 0.4715 walk, advised 0.4884, a lift of 0.032.
    fit = counsel.fit(heartsteps)
    everything = counsel.logs.adherence_breakdown.overall(fit.tally, fit.estimates)
    assert everything.low[0] < 0.032 < everything.high[0]
    assert everything.matched[0] / everything.given[0] == pytest.approx(0.4884, abs=1e-4)
    assert fit.over_time.is_own_clock
    assert fit.over_time.is_clear
    assert fit.over_time.slope < 0.0
    assert not fit.over_advice.is_clear
    assert fit.is_trusted


def test_excursion_effects_of_the_walking_trial(heartsteps):
    # By independent analysis, log(0.5 + steps): +12.7 % on average, +67.9 % at day 0, falling.
    rows = heartsteps.assign(reward=np.log(0.5 + 100.0 * heartsteps.reward))
    log = read_log(rows)
    fit = counsel.fit(log)
    evidence = Evidence.load(log, fit, np.random.default_rng(0))
    assert evidence.is_recorded
    reward, match = excursion_effects(evidence.rows, fit.problem)
    assert reward.average.low < np.log(1.127) < reward.average.high
    assert reward.at_start.low < np.log(1.679) < reward.at_start.high
    assert reward.at_start.is_clear
    assert reward.change.value < 0.0
    assert match.average.value == pytest.approx(0.4884 - 0.4715, abs=0.005)
    assert match.silent == pytest.approx(0.4715, abs=1e-4)
    assert "At the beginning of people's time in the log it is +0.4" in findings.excursion(reward)
