"""What a policy would have been worth, against what it is worth in the world the log is from."""

import numpy as np
import pytest

import counsel
from counsel.logs import bootstrap, evaluate_log
from counsel.logs.decisions import load_decisions
from counsel.logs.evaluate_log import _Judged
from counsel.logs.evidence import Evidence
from counsel.logs.importance_weights import censoring_weights, logged_paths
from counsel.logs.read import read_log
from counsel.worlds import make
from tests.support.drawn_logs import drawn, fit_of, tally_of, uniform
from tests.support.later import Later
from tests.support.target_policies import half_uniform, hard, in_fit_order, rows_of

pd = Later("pandas")

pytestmark = pytest.mark.usefixtures("few_draws")


def _model(log):
    """The counts and the problem of a log."""
    fit = counsel.fit(log)
    return fit.tally, fit.problem


def test_rows_of_a_batch_are_those_of_the_written_log(tmp_path):
    problem = make("ward", horizon=5)
    batch = drawn(problem, 200, 3)
    counsel.save_log(batch, tmp_path / "log.parquet", problem=problem)
    log = read_log(str(tmp_path / "log.parquet"))
    told, made = load_decisions(log, *_model(log)), rows_of(problem, batch)
    assert told.n_episodes == made.n_episodes == 200
    # The log's episodes go by their names, in the order of text.
    order = np.argsort([str(i) for i in range(200)], kind="stable")
    back = np.argsort(order[told.episode], kind="stable")
    assert np.array_equal(order[told.episode][back], made.episode)
    for name in ("place", "state", "advice", "earlier", "reward"):
        assert np.array_equal(getattr(told, name)[back], getattr(made, name)), name
    assert np.isnan(told.recorded).all()


# How often intervals hold.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("horizon", "episodes", "target", "recorded"),
    [
        (3, 1800, half_uniform, 0.25),
        pytest.param(5, 5000, half_uniform, np.nan, marks=pytest.mark.long),
        pytest.param(2, 5000, hard, 0.25, marks=pytest.mark.long),
    ],
)
def test_weighted_intervals_hold_as_often_as_they_say(horizon, episodes, target, recorded):
    # 150 logs: 0.95 has a standard error of 0.018. An interval from 400 draws is a little narrow.
    problem = make("ward", horizon=horizon)
    policy = target(problem)
    truth = counsel.evaluate(problem, policy).value
    held, sizes, off = [], [], []
    # The same draws of blocks for every log; what is in a block is another matter each time.
    filled = bootstrap.BLOCKS
    times = np.random.default_rng(0).multinomial(filled, np.full(filled, 1.0 / filled), size=400)
    for seed in range(150):
        batch = drawn(problem, episodes, 5000 + seed)
        fit = fit_of(tally_of(problem, batch))
        rows = rows_of(problem, batch, recorded)
        paths, told = logged_paths(rows, fit.problem)
        blocks = np.random.default_rng(seed).permutation(episodes) % bootstrap.BLOCKS
        here = in_fit_order(problem, fit, policy)
        draws = bootstrap.BlockDraws(blocks, times)
        evidence = Evidence(fit, rows, paths, censoring_weights(rows), told, draws)
        found = _Judged.by(here, None, evidence)
        sizes.append(found.effective)
        both = (found.weighted.estimate, found.robust.estimate)
        held.append([one.low <= truth <= one.high for one in both])
        off.append([one.value - truth for one in both])
    assert np.median(sizes) > 200.0
    shares, off = np.mean(held, axis=0), np.array(off)
    assert (shares > 0.95 - 3 * 0.018 - 0.005).all(), (shares, np.median(sizes))
    assert (shares < 0.95 + 3 * 0.018).all(), (shares, np.median(sizes))
    # Both are right on average (weights that sum to one bias a little, of the order of variance).
    error = off.std(axis=0) / np.sqrt(150)
    assert (np.abs(off.mean(axis=0)) < 4 * error).all(), (off.mean(axis=0), error)


@pytest.mark.slow
@pytest.mark.parametrize("logs", [15, pytest.param(40, marks=pytest.mark.long)])
def test_intervals_of_the_model_hold_as_often_as_they_say(monkeypatch, logs):
    error = np.sqrt(0.95 * 0.05 / logs)
    monkeypatch.setattr(evaluate_log, "MODELS", 40)
    problem = make("ward", horizon=5)
    policy = counsel.solve(problem, budget=1).policy
    never = counsel.Policy.never(horizon=5, n_states=5, n_actions=3)
    truth = [counsel.evaluate(problem, one).value for one in (policy, never)]
    held = []
    for seed in range(logs):
        fit = fit_of(tally_of(problem, drawn(problem, 1500, seed)))
        asked = [in_fit_order(problem, fit, one) for one in (policy, never)]
        values = evaluate_log._values_in_models(fit, asked, np.random.default_rng(seed), None)
        assert [drawn.draws.size for drawn in values] == [40] * 3
        ends = [drawn.estimate for drawn in values[:2]]
        held.append([end.low <= at <= end.high for end, at in zip(ends, truth, strict=True)])
    assert (np.mean(held, axis=0) > 0.95 - 3 * error).all(), np.mean(held, axis=0)


@pytest.mark.slow
def test_models_of_draws_that_lack_what_the_policy_advises_are_played_too(tmp_path):
    # Decisions that were seldom taken are in some draws not at all; they stay possible.
    problem = make("ward", horizon=3)
    counsel.save_log(drawn(problem, 40, 0), tmp_path / "log.csv", problem=problem)
    log = read_log(str(tmp_path / "log.csv"))
    fit = counsel.fit(log)
    draws = fit.resample(50, np.random.default_rng(0))
    known = fit.problem.mdp.allowed
    lacking = [(~one.problem.mdp.allowed & known).any() for _, one in draws]
    assert not np.any(lacking)
    for limit in ({"budget": 1}, {"budget": 1, "hard": True}):
        policy = counsel.logs.plan_advice(fit, **limit).plan.policy
        found = counsel.logs.evaluate_policy(log, policy, fitted=fit).policy
        assert found.model.value == pytest.approx(counsel.evaluate(fit.problem, policy).value)
        assert found.model.low < found.model.value < found.model.high


# The whole of it.


@pytest.fixture(scope="module")
def ward():
    """4,000 shifts of three rounds, advice at random, as a table."""
    problem = make("ward", horizon=3)
    batch = drawn(problem, 4000, 8)
    states, actions = (np.array(x) for x in (problem.mdp.state_labels, problem.mdp.action_labels))
    last = np.zeros(batch.state.size, dtype=bool)
    last[batch.first[1:] - 1] = True
    ended = last & batch.terminated[batch.episode]
    rows = pd.DataFrame({
        "episode": [f"e{i:05d}" for i in batch.episode],
        "step": batch.step,
        "state": states[batch.state],
        "advice": np.append(actions, "")[batch.advice],
        "action": actions[batch.action],
        "reward": batch.reward,
        "advice_probability": 0.25,
        "terminated": ended,
        "truncated": last & ~ended,
    })  # fmt: skip
    return problem, rows


@pytest.fixture(scope="module")
def fitted(ward):
    """The fit of these shifts."""
    return counsel.fit(ward[1])


@pytest.mark.slow
def test_the_whole_answer_holds_the_truth_and_what_was_logged(ward, monkeypatch):
    monkeypatch.setattr(evaluate_log, "MODELS", 60)
    problem, rows = ward
    fit = counsel.fit(rows)
    policy = in_fit_order(problem, fit, half_uniform(problem))
    seen = []
    found = counsel.logs.evaluate_policy(rows, policy, fitted=fit, show=seen.append)
    assert seen == list(range(1, 61))
    assert found.refusal is None
    assert found.recorded
    assert (found.episodes, found.whole) == (4000, 4000)
    truth = counsel.evaluate(problem, half_uniform(problem))
    for one in (found.policy.model, found.policy.weighted, found.policy.doubly_robust):
        # A fixed seed; four standard errors, as an interval is 3.92 of them wide.
        assert abs(one.value - truth.value) < 4 * (one.high - one.low) / 3.92
        assert one.low < one.value < one.high
    assert found.policy.pieces == pytest.approx(truth.advice_count, abs=0.05)
    assert found.never.pieces == 0.0
    returns = rows.groupby("episode").reward.sum()
    assert found.logged.value == pytest.approx(returns.mean())
    half = 1.96 * returns.std() / np.sqrt(4000)
    # The bootstrap's width from 500 blocks of 8: known to 1 / √1000 = 3 %, and its draws' 3 %.
    assert (found.logged.high - found.logged.low) / 2 == pytest.approx(half, rel=0.15)
    assert found.logged_pieces == pytest.approx((rows.advice != "").sum() / 4000)
    assert found.policy.new == 0.0
    # What was logged, judged by itself, is the mean of the log: all weights are 1.
    same = counsel.logs.evaluate_policy(
        rows, in_fit_order(problem, fit, uniform(problem)), fitted=fit
    )
    assert same.policy.weighted.value == pytest.approx(np.sum(
        rows.groupby("step").reward.sum() / 4000
    ))  # fmt: skip
    assert same.policy.effective == pytest.approx(4000)
    again = counsel.logs.evaluate_policy(rows, policy, fitted=fit)
    assert again.policy == found.policy


@pytest.mark.slow
def test_episodes_with_gaps_count_up_to_the_gap(ward, monkeypatch):
    monkeypatch.setattr(evaluate_log, "MODELS", 5)
    _, rows = ward
    names = rows.episode.unique()
    long = rows.groupby("episode").size().loc[lambda n: n == 3].index[:50]
    gone = rows.episode.isin(long) & (rows.step == 1)
    cut = rows.groupby("episode").size().loc[lambda n: n == 3].index[50:80]
    stopped = rows.episode.isin(cut) & (rows.step == 2)
    kept = rows[~gone & ~stopped]
    fit = counsel.fit(kept)
    never = counsel.Policy.never(horizon=3, n_states=fit.problem.n_states, n_actions=3)
    found = counsel.logs.evaluate_policy(kept, never, fitted=fit)
    assert found.episodes == names.size
    assert found.whole == names.size - 80
    # They count up to the gap, and those that went on count for them too.
    paid, alive = 0.0, 1.0
    known = kept[~(kept.episode.isin(long) & (kept.step == 2))]
    for step in range(3):
        here = known[known.step == step]
        paid += alive * here.reward.mean()
        alive *= 1.0 - here.terminated.mean()
    assert found.logged.value == pytest.approx(paid, abs=1e-9)
    whole = rows.groupby("episode").reward.sum()
    assert abs(paid - whole.mean()) < 3 * whole.std() * np.sqrt(80 / 4000 / 4000)


def test_a_log_without_a_whole_episode_is_refused(ward, monkeypatch):
    monkeypatch.setattr(evaluate_log, "MODELS", 5)
    _, rows = ward
    long = rows.groupby("episode").size().loc[lambda n: n == 3].index[:300]
    rows = rows[rows.episode.isin(long) & (rows.step != 1)]
    fit = counsel.fit(rows)
    never = counsel.Policy.never(
        horizon=3, n_states=fit.problem.n_states, n_actions=fit.problem.n_actions
    )
    found = counsel.logs.evaluate_policy(rows, never, fitted=fit)
    assert found.whole == 0
    assert found.refusal.startswith("none of the 300 episodes is complete")
    assert found.policy.weighted is found.policy.doubly_robust is found.logged is None
    assert found.policy.effective == 0.0
    # Nobody saw what follows what: the model is a guess, and contradicts the log.
    assert not found.model_is_trusted
    assert found.policy.model is None


@pytest.mark.slow
def test_what_was_never_said_cannot_be_judged(ward, monkeypatch):
    monkeypatch.setattr(evaluate_log, "MODELS", 5)
    _, rows = ward
    quiet = (rows.state == "stable") & (rows.advice == "assess")
    rows = rows.assign(advice=rows.advice.where(~quiet, ""))
    fit = counsel.fit(rows)
    table = np.full((3, fit.problem.n_states), 3)
    table[:, fit.tally.states.index("stable")] = fit.tally.actions.index("assess")
    policy = counsel.Policy(table, n_actions=3)
    found = counsel.logs.evaluate_policy(rows, policy, fitted=fit)
    at = counsel.evaluate(fit.problem, policy)
    stable = at.occupancy[:, fit.tally.states.index("stable")].sum()
    lived = at.occupancy[:, : len(fit.tally.states)].sum()
    assert found.policy.new == pytest.approx(stable / lived)
    assert "where the log never does so in that state" in found.refusal
    assert found.refusal.startswith(f"{stable / lived:.0%} of the policy's decisions")


@pytest.mark.slow
def test_rewards_that_are_missing_have_that_of_the_model(ward, fitted, monkeypatch):
    monkeypatch.setattr(evaluate_log, "MODELS", 5)
    problem, rows = ward
    rng = np.random.default_rng(0)
    lost = rows.assign(reward=rows.reward.where(rng.random(len(rows)) > 0.3))
    fit = counsel.fit(lost)
    policy = in_fit_order(problem, fit, half_uniform(problem))
    one, other = (
        counsel.logs.evaluate_policy(x, policy, fitted=of).policy.weighted
        for x, of in ((lost, fit), (rows, fitted))
    )
    # Rewards are certain on the simulated ward, so nothing is lost but sums in another order.
    assert one.value == pytest.approx(other.value, abs=1e-9)


def test_what_is_no_policy_is_refused(ward, fitted):
    _, rows = ward
    small = counsel.Policy.never(horizon=2, n_states=5, n_actions=3)
    for wrong, words in ((small, "the policy is for 2 steps"), (3, "give a policy")):
        with pytest.raises(counsel.CounselError, match=words):
            counsel.logs.evaluate_policy(rows, wrong, fitted=fitted)


@pytest.mark.slow
def test_the_command_refuses_where_too_few_episodes_went_that_way(command, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluate_log, "MODELS", 5)
    monkeypatch.chdir(tmp_path)
    problem = make("flappy-bird/greedy")
    counsel.save_log(drawn(problem, 600, 1), "log.csv", problem=problem)
    for words, code in (
        ("fit log.csv -o model.npz", 0),
        ("plan model.npz --budget 2 -o policy.csv", 0),
        ("evaluate log.csv policy.csv", 2),
    ):
        done = command(*words.split())
        assert done.returncode == code, done.stderr
    assert "never advise" in done.stdout, "what is known is shown all the same"
    (line,) = done.stderr.splitlines()
    assert line.startswith("counsel: log.csv cannot say what policy.csv would have been worth: ")
    assert "the effective sample is" in line or "where the log never does so" in line
    assert "--model-only" in line
