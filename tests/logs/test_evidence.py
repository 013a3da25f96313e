"""Weighted episodes, cuts and arms, against a plain re-implementation from the formulas."""

import numpy as np
import pytest

import counsel
from counsel.logs.decisions import load_decisions
from counsel.logs.evaluate_log import evaluate_policy
from counsel.logs.evidence import Evidence
from counsel.logs.excursion import excursion_effects
from counsel.logs.importance_weights import (
    censoring_weights,
    logged_paths,
    policy_values,
)
from counsel.logs.read import read_log
from tests.support import plain_estimators as plain
from tests.support.log_scenarios import (
    BROKEN,
    SILENT,
    STEPS,
    WELL_SPECIFIED,
    Scenario,
    play,
    silence,
    truth,
)

pytestmark = pytest.mark.usefixtures("few_draws")


def log_and_fit(scenario, episodes=500, seed=0, **options):
    frame = play(scenario, episodes, np.random.default_rng(seed)).frame(scenario)
    log = read_log(frame)
    return frame, log, counsel.fit(log, **options)


def as_lists(rows):
    """Decisions as the lists of dictionaries that the plain estimators read."""
    episodes = [[] for _ in range(rows.n_episodes)]
    for i, e in enumerate(rows.episode):
        said = int(rows.advice[i])
        episodes[e].append(
            {
                "state": int(rows.state[i]),
                "advice": None if said == SILENT else said,
                "action": int(rows.action[i]),
                "reward": float(rows.reward[i]),
            }
        )
    for one, whole in zip(episodes, rows.complete, strict=True):
        one[-1]["ended"] = bool(whole)
    return episodes


def some_policy(fit, rng):
    """A policy near the log's, so that weights stay small, for people and for the oracle."""
    S = fit.problem.n_states
    table = np.zeros((STEPS, S, 3))
    table[..., SILENT] = 1.0
    table[:, :3] = rng.dirichlet((3.0, 1.0, 4.0), (STEPS, 3))
    options = (0, 1, None)
    as_dicts = [
        [dict(zip(options, table[h, s].tolist(), strict=True)) for s in range(S)]
        for h in range(STEPS)
    ]
    return counsel.Policy.from_probabilities(table), as_dicts


@pytest.mark.parametrize("name", ["as modelled", "cut at random", "ended at the last step"])
def test_weighted_and_doubly_robust_values_are_those_of_the_formulas(name):
    _, log, fit = log_and_fit(WELL_SPECIFIED[name])
    rows = load_decisions(log, fit.tally, fit.problem)
    evidence = Evidence.of(rows, fit, np.random.default_rng(0))
    episodes = as_lists(rows)
    policy, as_dicts = some_policy(fit, np.random.default_rng(1))
    counts = censoring_weights(rows)
    np.testing.assert_allclose(counts, plain.censoring_counts(episodes, STEPS), rtol=1e-12)
    assert evidence.today().value == pytest.approx(plain.mean_return(episodes, STEPS), rel=1e-12)
    assert evidence.today().value == pytest.approx(fit.logged_value, rel=1e-9)
    chances = plain.logged_chances(episodes, STEPS)
    sums = evidence.sums(policy, fit.problem, evidence.everyone())
    weighted, robust = evidence.weighted(sums), evidence.doubly_robust(sums)
    expected = plain.weighted_value(episodes, as_dicts, chances, STEPS)
    assert weighted.value == pytest.approx(expected, rel=1e-10)
    q, v = policy_values(fit.problem, policy, rows)
    Q = [[{} for _ in range(3)] for _ in range(STEPS)]
    V = [[0.0] * 3 for _ in range(STEPS)]
    for i in range(rows.place.size):
        h, s, said = int(rows.place[i]), int(rows.state[i]), int(rows.advice[i])
        Q[h][s][None if said == SILENT else said] = float(q[i])
        V[h][s] = float(v[i])
    expected = plain.doubly_robust_value(episodes, as_dicts, chances, Q, V, STEPS)
    assert robust.value == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("unit", ["episode", "person"])
def test_the_paths_of_arms_are_those_of_the_formulas(unit):
    _, log, fit = log_and_fit(Scenario(arms=0.3, people=60), 240, unit=unit)
    rows = load_decisions(log, fit.tally, fit.problem)
    paths, recorded = logged_paths(rows, fit.problem, unit)
    assert not recorded
    arms = rows.cluster.tolist() if unit == "person" else None
    np.testing.assert_allclose(paths, plain.arm_paths(as_lists(rows), STEPS, arms), atol=1e-6)


@pytest.mark.slow
def test_silent_arms_say_directly_what_silence_brings():
    # Found by referees: 101 wholly silent games answered "never advise", and the tool did not ask.
    scenario = Scenario(arms=0.4, ends=False)
    frame, log, fit = log_and_fit(scenario, 1500, unit="episode")
    spoke = frame.advice.notna().groupby(frame.episode).transform("any")
    quiet = frame[~spoke].groupby("episode").reward.sum()
    never = counsel.Policy.never(horizon=STEPS, n_states=fit.problem.n_states, n_actions=2)
    found = evaluate_policy(log, never, fitted=fit).policy
    assert found.effective > 400.0
    # Episodes of the other arm count too, up to their first piece of advice.
    error = quiet.std() / np.sqrt(quiet.size)
    assert abs(found.weighted.value - quiet.mean()) < 2 * error
    expected = truth(scenario, silence(), episodes=200_000)
    assert found.doubly_robust.low < expected < found.doubly_robust.high
    by_decision = evaluate_policy(log, never, fitted=counsel.fit(log)).policy
    assert by_decision.effective < 0.5 * found.effective


@pytest.mark.slow
@pytest.mark.parametrize("timed", [False, True])
def test_excursion_effects_are_those_of_the_formulas(timed):
    frame, _, _ = log_and_fit(Scenario(people=40, spread=0.1), 400)
    rng = np.random.default_rng(3)
    chance = np.clip(rng.beta(6, 6, len(frame)), 0.2, 0.8)
    sent = rng.random(len(frame)) < chance
    frame["advice"] = np.where(sent, "act", None)
    frame["action"] = np.where(sent & (rng.random(len(frame)) < 0.3), "act", frame.action)
    frame["advice_probability"] = np.where(sent, chance, 1.0 - chance)
    frame["reward"] += 0.2 * (frame.action == "act")
    if timed:
        frame["timestamp"] = rng.random(len(frame)) * 1000.0
    log = read_log(frame)
    fit = counsel.fit(log)
    rows = load_decisions(log, fit.tally, fit.problem)
    assert np.isfinite(rows.recorded).all()
    p = np.where(rows.advice < 2, rows.recorded, 1.0 - rows.recorded)
    time = rows.since / np.quantile(rows.since, 0.99) if timed else None
    cluster = rows.cluster[rows.episode]
    given = rows.advice < 2
    matched = np.where(given, rows.action == rows.advice, rows.action == 0)
    for effect, y in zip(
        excursion_effects(rows, fit.problem), (rows.reward, matched.astype(float)), strict=True
    ):
        alone, spread = plain.excursion_effect(y, given, p, rows.state, rows.place, None, cluster)
        assert effect.average.value == pytest.approx(alone[-1], rel=1e-8)
        half = (effect.average.high - effect.average.low) / 2
        assert half == pytest.approx(2.0227 * np.sqrt(spread[-1, -1]), rel=1e-3)  # t with 39
        if timed:
            both, _ = plain.excursion_effect(y, given, p, rows.state, rows.place, time, cluster)
            assert effect.at_start.value == pytest.approx(both[-2], rel=1e-8)
            assert effect.change.value == pytest.approx(both[-1], rel=1e-8)
        else:
            assert effect.at_start is effect.change is None


@pytest.mark.slow
def test_two_policies_are_compared_episode_by_episode():
    _, log, fit = log_and_fit(WELL_SPECIFIED["as modelled"], 8000)
    one, _ = some_policy(fit, np.random.default_rng(1))
    other, _ = some_policy(fit, np.random.default_rng(2))
    found = evaluate_policy(log, one, other=other, fitted=fit)
    value = found.policy.doubly_robust.value - found.other.doubly_robust.value
    assert found.beyond_other.doubly_robust.value == pytest.approx(value, abs=1e-12)
    same = evaluate_policy(log, one, other=one, fitted=fit).beyond_other
    assert same.doubly_robust.value == same.model.value == 0.0
    assert same.doubly_robust.low == same.doubly_robust.high == 0.0
    # Paired: much narrower than two intervals that know nothing of each other.
    apart = [e.doubly_robust.high - e.doubly_robust.low for e in (found.policy, found.other)]
    paired = found.beyond_other.doubly_robust
    assert paired.high - paired.low < np.hypot(*apart)
    assert found.policies[:2] == (found.policy, found.other)


@pytest.mark.slow
def test_a_log_whose_advice_differs_in_what_is_not_recorded_is_not_fair():
    _, log, fit = log_and_fit(BROKEN["failing"], 1200)
    assert not Evidence.load(log, fit, np.random.default_rng(0)).is_fair
    _, log, fit = log_and_fit(WELL_SPECIFIED["as modelled"], 600)
    assert Evidence.load(log, fit, np.random.default_rng(0)).is_fair
