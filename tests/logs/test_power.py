"""What a log can tell: effects of the size that it names are found as often as it says."""

import json

import numpy as np
import pytest

import counsel
from counsel.logs.adherence_breakdown import overall
from counsel.logs.evidence import Evidence
from counsel.logs.power import LEAST, find_power, make_schedule
from counsel.logs.read import read_log
from tests.support.log_scenarios import Scenario, play

pytestmark = pytest.mark.usefixtures("few_draws")


def log_of(scenario, episodes=400, seed=0):
    return read_log(play(scenario, episodes, np.random.default_rng(seed)).frame(scenario))


def power_of(log):
    fit = counsel.fit(log)
    return find_power(fit, Evidence.load(log, fit, np.random.default_rng(0)))


@pytest.mark.slow
@pytest.mark.parametrize("logs", [24, pytest.param(60, marks=pytest.mark.long)])
def test_a_lift_of_the_size_it_names_is_told_as_often_as_it_says(logs):
    error = np.sqrt(0.8 * 0.2 / logs)
    log = log_of(Scenario(lift=0.1), 600)
    smallest = power_of(log).lift.smallest
    one = overall(*_parts(log)).lift[0]
    assert 0.01 < smallest < 0.2
    # Lifts of the clinic are on average 0.4 times the factor.
    factor = smallest / 0.402
    told = 0
    for seed in range(logs):
        by = overall(*_parts(log_of(Scenario(lift=factor), 600, 100 + seed)))
        told += bool(by.low[0] > 0.0)
    assert 0.8 - 4 * error < told / logs < 0.8 + 3 * error
    assert np.isfinite(one)


def _parts(log):
    fit = counsel.fit(log)
    return fit.tally, fit.estimates


@pytest.mark.slow
def test_four_times_as_many_people_tell_half_the_effect():
    small, large = (power_of(log_of(Scenario(), n)) for n in (300, 1200))
    for name in ("lift", "trial"):
        ratio = getattr(small, name).smallest / getattr(large, name).smallest
        assert ratio == pytest.approx(2.0, rel=0.3), name
    assert small.lift.factor(small.lift.smallest / 2.0) == pytest.approx(4.0)
    assert small.people == small.episodes == 300


def test_a_model_that_is_not_trusted_has_no_difference():
    assert power_of(log_of(Scenario(nagging=0.3), 800)).difference is None


def test_the_schedule_learns_most_within_its_bounds():
    fit = counsel.fit(log_of(Scenario(), 1500))
    schedule = make_schedule(fit)
    assert (schedule.probability >= LEAST).all()
    assert (schedule.probability <= 1.0 - LEAST).all()
    estimates = fit.estimates
    for s, (b, p) in enumerate(zip(schedule.advice, schedule.probability, strict=True)):
        own, lift = estimates.habit.policy[s, b], estimates.lift[0, s, b]
        match = lift + (1.0 - lift) * own

        def variance(chance, own=own, lift=lift, match=match):
            silent = (1.0 - lift) ** 2 * own * (1.0 - own) / (1.0 - chance)
            return match * (1.0 - match) / chance + silent

        grid = np.linspace(LEAST, 1.0 - LEAST, 1001)
        best = grid[np.argmin([variance(chance) for chance in grid])]
        assert p == pytest.approx(best, abs=0.002)
    cheap = make_schedule(fit, budget=1.0)
    assert cheap.pieces == pytest.approx(1.0, abs=1e-6)
    assert (cheap.probability <= schedule.probability + 1e-12).all()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--least", 0.7), "least is 0.7; it must be above 0 and at most 0.5"),
        (("--budget", 0.01), "raise the budget or lower least"),
        (("--lift", 0), "lift is 0; it must be above 0"),
        (("-o", "trial.csv"), ".json"),
    ],
)
def test_bad_input_is_one_sentence(command, tmp_path, words, told):
    play(Scenario(), 60, np.random.default_rng(0)).frame().to_csv(tmp_path / "log.csv")
    done = command("power", "log.csv", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.csv"]


@pytest.mark.slow
def test_the_command_says_it_and_writes_the_schedule(command, tmp_path):
    play(Scenario(people=30), 300, np.random.default_rng(0)).frame().to_csv(tmp_path / "log.csv")
    done = command("power", "log.csv", "--lift", 0.05, "-o", "trial.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("300 episodes by 30 people can tell a lift of ")
    assert "To tell a lift of 0.05 takes " in done.stdout
    written = json.loads((tmp_path / "trial.json").read_text(encoding="utf-8"))
    assert written["explore"] == 1.0
    assert set(written["schedule"]) == {"calm", "crisis", "risk"}
    told = json.loads(command("power", "log.csv", "--lift", 0.05, "--json", cwd=tmp_path).stdout)
    assert told["schedule"] == written
    expected = (told["lift"]["smallest"] / 0.05) ** 2
    assert told["wanted"]["lift"]["times_as_many"] == pytest.approx(expected)
