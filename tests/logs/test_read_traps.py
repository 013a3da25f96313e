"""What messy tables did to reading, fitting and evaluating: each bug that was found, by name."""

import gc
import signal
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import counsel
from counsel import CounselError
from counsel.estimate.habit import estimate_habit
from counsel.logs import Bins, check_log, evaluate_policy, plan_advice, read_log
from counsel.logs.adherence_breakdown import by_advice, by_state
from counsel.logs.bootstrap import Draws
from counsel.logs.count import count_log
from counsel.logs.decisions import load_decisions
from counsel.logs.listening import Listening
from counsel.logs.read_policy import read_policy
from counsel.worlds.ward import ward_log
from tests.support.each import each
from tests.support.later import Later
from tests.support.processes import started

pd = Later("pandas")

COUNSEL = [sys.executable, "-c", "from counsel.cli import main; main()"]


def log_of(n=400, seed=0, **columns):
    """One-step decisions in two states, advice and silence at random, half of it matched."""
    rng = np.random.default_rng(seed)
    advice = rng.choice(["x", "y", ""], n)
    own = rng.choice(["x", "y"], n)
    heeds = (advice != "") & (rng.random(n) < 0.5)
    rows = {
        "episode": np.arange(n),
        "step": 0,
        "state": rng.choice(["s", "t"], n),
        "advice": advice,
        "action": np.where(heeds, advice, own),
        "reward": rng.random(n),
    }
    return pd.DataFrame(rows | columns)


@pytest.fixture(scope="module")
def fitted():
    """The fit of 400 of these decisions."""
    return counsel.fit(log_of())


def whats(found):
    return " ".join(finding.what for finding in found.findings)


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_a_pair_that_is_in_no_draw_keeps_what_the_whole_log_says():
    """Evaluating failed when a draw of episodes lacked a rare pair: "not allowed"."""
    log = log_of(300)
    log.loc[log.index[:2], "action"] = "rare"
    log.loc[log.index[2:4], "advice"] = "rare"
    fit = counsel.fit(log)
    for _, drawn in fit.resample(20, np.random.default_rng(0)):
        assert (drawn.problem.mdp.allowed == fit.problem.mdp.allowed).all()
    planned = plan_advice(fit, budget=1)
    found = evaluate_policy(log, planned.plan.policy, fitted=fit)
    assert found.always.model.low < found.always.model.high


@pytest.mark.parametrize("yes", [1.0, "1.0", 1, True, "true", "T"])
def test_flags_may_be_numbers(yes):
    """1.0 and 0.0, as pandas writes flags with gaps, were ignored without a word."""
    log = log_of(300, terminated=[yes, None, type(yes)(0) if yes != "T" else "F"] * 100)
    if yes == "1.0":
        log["terminated"] = [yes, None, "0.0"] * 100
    if yes == "true":
        log["terminated"] = [yes, None, "false"] * 100
    seen = read_log(log).table.terminated.to_pyarrow().to_pylist()
    assert seen[:3] == [True, None, False]


def test_a_flag_that_is_none_is_a_fault():
    found = check_log(read_log(log_of(10, terminated=["maybe"] * 10)))
    assert "terminated is neither true nor false" in whats(found)
    assert found.fatal


def test_files_read_together_must_have_the_same_columns(tmp_path):
    """A second file with its columns in another order was read by the first one's header."""
    (tmp_path / "1.csv").write_text("episode,step,state,advice,action,reward\na,0,s,x,y,1\n")
    (tmp_path / "2.csv").write_text("episode,step,state,action,advice,reward\nb,0,s,z,w,1\n")
    with pytest.raises(CounselError, match=r"2\.csv and .*1\.csv differ in their columns"):
        read_log(str(tmp_path / "*.csv"))


def test_a_column_of_a_later_parquet_file_is_not_lost(tmp_path):
    pq.write_table(pa.Table.from_pandas(log_of(5)), tmp_path / "1.parquet")
    later = log_of(5, terminated=[True] * 5)
    later["episode"] += 5
    pq.write_table(pa.Table.from_pandas(later), tmp_path / "2.parquet")
    log = read_log(str(tmp_path / "*.parquet"))
    assert log.has("terminated")
    assert log.table.terminated.sum().to_pyarrow().as_py() == 5


@pytest.mark.parametrize("cuts", [(1700000100, 1700000200, 1700000300), (1.00000001, 1.00000002)])
def test_bins_are_told_apart_however_close(cuts):
    """Labels of six digits made one bin of two."""
    at = [cuts[0] - 1, *[(a + b) / 2 for a, b in pairwise(cuts)], cuts[-1] + 1]
    log = log_of(len(at) * 20, state=at * 20)
    labels = read_log(log, bins=Bins({"state": cuts})).table.state.nunique().to_pyarrow().as_py()
    assert labels == len(cuts) + 1


def test_cuts_at_infinity_are_left_out():
    log = log_of(300, state=[1.0, 2.0, np.inf] * 100)
    cuts = read_log(log, bins=Bins({"state": 3})).bins["state"]
    assert np.isfinite(cuts).all()


def test_whole_numbers_with_gaps_are_the_same_labels(tmp_path):
    """Advice 1.0 and action 1 were two things, so that all advice looked refused."""
    log = log_of(200)
    action = log.action.map({"x": 1, "y": 2})
    advice = log.advice.map({"x": 1, "y": 2, "": np.nan})
    frame = log.assign(action=action, advice=advice)
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "log.parquet")
    for source in (frame, tmp_path / "log.parquet"):
        found = check_log(read_log(source))
        assert found.actions == ("1", "2")
        assert found.matched == ((log.advice != "") & (log.advice == log.action)).sum()


def test_no_number_is_no_label():
    """NaN for silence, not NULL, was a piece of advice called "nan"."""
    log = pa.table(
        {
            "episode": [1, 2, 3],
            "step": [0, 0, 0],
            "state": pa.array([1.5, float("nan"), 2.0]),
            "advice": pa.array([1.0, float("nan"), float("nan")]),
            "action": [1, 1, 2],
            "reward": [1.0, 1.0, 1.0],
        }
    )
    found = check_log(read_log(log))
    assert found.advised == 1
    assert "state is empty" in whats(found)


def test_advice_that_nobody_took_is_pointed_out():
    log = log_of(50)
    found = check_log(read_log(log.assign(advice=log.advice.replace({"x": "X", "y": "Y"}))))
    assert "advice that nobody ever took" in whats(found)


ODD = ("NA", "nan", "NULL", "None", "1.5", " x")


@pytest.fixture(scope="module")
def odd():
    """The fit of a log whose states, advice and actions have all of these names."""
    log, names = log_of(300), np.array(ODD * 50)
    odd = {"state": ("s", names), "advice": ("x", names), "action": ("x", np.roll(names, 1))}
    return counsel.fit(
        log.assign(**{role: log[role].where(log[role] != of, to) for role, (of, to) in odd.items()})
    )


@pytest.mark.parametrize("name", ODD)
def test_labels_that_look_like_nothing_survive_a_policy_table(tmp_path, odd, name):
    """NA as advice was read as silence."""
    path = tmp_path / "policy.csv"
    path.write_text(f'step,state,advice\n0,"{name}","{name}"\n0,t,\n')
    policy = read_policy(path, odd)
    s, a = odd.tally.states.index(name.strip()), odd.tally.actions.index(name.strip())
    assert policy.at(0, s) == {a: 1.0}
    assert policy.at(0, odd.tally.states.index("t")) == {policy.defer: 1.0}


def test_what_is_done_anyway_is_a_share_of_what_is_known():
    """It was divided by all advice, also where nobody knows what people do alone."""
    rows = [("lit", "", a) for a in ["x"] * 50 + ["y"] * 50]
    rows += [("lit", "x", a) for a in ["x"] * 75 + ["y"] * 25] + [("dark", "x", "x")] * 300
    log = pd.DataFrame(rows, columns=["state", "advice", "action"])
    log = log.assign(episode=range(len(log)), step=0, reward=1.0)
    fit = counsel.fit(log)
    advice = by_advice(fit.tally, fit.estimates)
    assert advice.given[0] == 400
    assert advice.anyway_share[0] == pytest.approx(0.5)
    assert np.isnan(by_state(fit.tally, fit.estimates).anyway_share[0])


def test_where_nothing_could_have_gone_otherwise_no_lift_is_claimed():
    """A habit of 1 − 1e-8 made a lift of minus ten billion per cent."""
    log = pd.DataFrame(
        [("e", 0, "s", "b", "a", 1.0), ("e", 1, "s", "", "b", 0.0)],
        columns=["episode", "step", "state", "advice", "action", "reward"],
    )
    fit = counsel.fit(log)
    found = by_advice(fit.tally, fit.estimates)
    assert np.isinf(found.error).all()


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_huge_rewards_do_not_hide_the_weights():
    """The effective sample was the difference of two large numbers."""
    log = log_of(2000)
    policy = plan_advice(counsel.fit(log), budget=0.5).plan.policy
    small = evaluate_policy(log, policy).policy.effective
    large = evaluate_policy(log.assign(reward=log.reward * 1e18), policy).policy.effective
    assert large == pytest.approx(small)


@pytest.mark.parametrize(
    ("columns", "what"),
    [
        ({"terminated": [True] * 8}, "continue after terminated"),
        ({"terminated": [False, True] * 4, "truncated": [False, True] * 4}, "are both true"),
        ({"seen": [False] * 8}, "no piece of advice was seen"),
        ({"advice_probability": [1.0] * 8}, "advice_probability is 1 although"),
        ({"timestamp": ["yesterday"] * 8}, "timestamp is neither a date"),
        ({"person": ["ann", None] * 4}, "person is empty"),
    ],
)
def test_columns_that_contradict_the_rows_are_pointed_out(columns, what):
    log = log_of(8, episode=np.repeat(range(4), 2), step=[0, 1] * 4, state="s", **columns)
    log["advice"] = ["x", "", "y", "x"] * 2
    found = check_log(read_log(log))
    assert what in whats(found)
    assert not found.fatal


def test_a_next_state_that_is_not_the_next_row_is_pointed_out():
    log = log_of(8, episode=np.repeat(range(4), 2), step=[0, 1] * 4, state="s", next_state="t")
    assert any(n.count == 4 and "next_state counts" in n.what for n in counsel.fit(log).notes)


@pytest.mark.parametrize(
    "columns", ["advice=action", "next_state=state", "state=state+state", "reward=x,seen=x"]
)
def test_one_column_cannot_be_two_things(columns):
    with pytest.raises(CounselError, match="is both"):
        counsel.fit(log_of(20, x=1), columns=columns)


def test_no_reward_at_all_is_a_fault():
    """It was fitted, and silence was "best"."""
    found = check_log(read_log(log_of(20, reward=None)))
    assert found.fatal
    assert "no decision has a reward" in whats(found)


def test_a_column_without_a_name_is_no_obstacle(tmp_path):
    """pandas writes its index without one."""
    log_of(20).to_csv(tmp_path / "log.csv")
    assert check_log(read_log(tmp_path / "log.csv")).rows == 20


@pytest.mark.parametrize(
    "kind", [pa.time32("s"), pa.bool_(), pa.string(), pa.float64(), pa.date32(), pa.timestamp("us")]
)
def test_timestamps_of_any_kind_stop_nothing(fitted, kind):
    """A time of day ended in a traceback, and an endless number in "cannot be cast"."""
    values = {
        pa.string(): ["inf", "2026-01-01", "soon", "2026-02-01T08:00"],
        pa.bool_(): [True, False, True, False],
        pa.float64(): [1.0, float("inf"), float("nan"), 5.0],
    }.get(kind, [1, 100, 200, 300])
    table = pa.Table.from_pandas(log_of(400)).append_column(
        "timestamp", pa.array(values * 100, kind)
    )
    log = read_log(table)
    assert not check_log(log).fatal
    rows = load_decisions(log, fitted.tally, fitted.problem)
    trend = Listening.of(rows, fitted.estimates).over_time()
    assert (trend is None) == (kind in (pa.time32("s"), pa.bool_()))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("step,step,state,advice\n0,0,s,x\n", "two columns called 'step'"),
        ("pieces_left,step,state,advice\n1000000000,0,s,x\n", "an episode has 1 steps"),
        ("pieces_left,step,state,advice,probability\n1,0,s,x,0.5\n1,0,s,,0.5\n", "use only one"),
        ("step,state,advice\ntrue,s,x\n", "step is True"),
    ],
)
def test_policy_tables_that_make_no_sense_are_refused(tmp_path, fitted, text, what):
    path = tmp_path / "policy.csv"
    path.write_text(text)
    with pytest.raises(CounselError, match=what):
        read_policy(path, fitted)


def test_a_model_whose_counts_were_changed_is_damaged(tmp_path, fitted):
    """The stored problem was never compared with its counts."""
    path = tmp_path / "model.npz"
    fitted.save(path)
    with np.load(path) as file:
        arrays = dict(file)
    for name, change in (("tally_times", 3.0), ("tally_paid", 5.0), ("tally_priced", -1.0)):
        damaged = dict(arrays)
        damaged[name] = np.r_[arrays[name][:1] * change, arrays[name][1:]]
        np.savez(path, **damaged)
        with pytest.raises(CounselError, match="damaged"):
            counsel.load_fit(path)


@pytest.mark.usefixtures("few_draws")
def test_few_episodes_have_no_interval():
    """One row gave an interval of no width."""
    estimate = Draws(1.0, np.ones(200), 3).estimate
    assert (estimate.low, estimate.high) == (-np.inf, np.inf)
    fit = counsel.fit(log_of(3, state="s"))
    never = counsel.Policy.never(horizon=1, n_states=1, n_actions=2)
    found = evaluate_policy(log_of(3, state="s"), never, fitted=fit)
    assert np.isinf(found.policy.model.high)


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_the_same_policy_gets_the_same_interval():
    log = log_of(2000)
    fit = counsel.fit(log)
    never = counsel.Policy.never(
        horizon=1, n_states=fit.problem.n_states, n_actions=fit.problem.n_actions
    )
    found = evaluate_policy(log, never, fitted=fit)
    assert found.policy.weighted == found.never.weighted
    assert found.policy.doubly_robust == found.never.doubly_robust


@pytest.mark.slow
def test_many_actions_take_seconds_not_minutes():
    """The information of 500 actions was inverted in every draw of the test of the law."""
    A = 300
    counts = np.ones((4, A))
    habit = estimate_habit(counts, counts, counts, 3 * counts)
    np.testing.assert_allclose(habit.policy, 1.0 / A)
    rng = np.random.default_rng(0)
    names = [f"a{i}" for i in range(A)]
    log = log_of(3000, action=rng.choice(names, 3000), advice=rng.choice([*names, ""], 3000))
    assert counsel.fit(log).law is None


def test_a_file_with_brackets_in_its_name_is_a_file(tmp_path):
    path = tmp_path / "log[1].csv"
    log_of(20).to_csv(path, index=False)
    assert check_log(read_log(path)).rows == 20


def test_parts_of_a_state_do_not_run_into_each_other():
    log = log_of(2, a=["p · q", "p"], b=["r", "q · r"])
    table = read_log(log, counsel.logs.Columns(state=("a", "b"))).table
    assert table.state.nunique().to_pyarrow().as_py() == 2


def test_lines_with_a_word_for_a_number_are_counted(tmp_path):
    """JSON with one bad reward stopped with the engine's own complaint."""
    rows = log_of(2000)
    rows["reward"] = rows.reward.astype(object)
    rows.loc[1999, "reward"] = "oops"
    rows.to_json(tmp_path / "log.jsonl", orient="records", lines=True)
    found = check_log(read_log(tmp_path / "log.jsonl"))
    assert "reward is not a number" in whats(found)


@pytest.mark.usefixtures("few_draws")
def test_next_commands_say_how_the_log_was_read(command, tmp_path):
    log = log_of(400).rename(columns={"state": "ward"})
    log.to_csv(tmp_path / "log.csv", index=False)
    counsel.fit(tmp_path / "log.csv", columns="state=ward").save(tmp_path / "model.npz")
    done = command("plan", "model.npz", "--budget", "1", "-o", "policy.csv", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].endswith("policy.csv --model model.npz")


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A log that takes a while: three million decisions."""
    n, rng = 3_000_000, np.random.default_rng(0)
    names = pa.array(["0", "1", "2"])
    columns = {name: names.take(rng.integers(0, 3, n)) for name in ("state", "advice", "action")}
    steps = {"episode": np.arange(n) // 4, "step": np.arange(n) % 4, "reward": rng.random(n)}
    path = tmp_path_factory.mktemp("large") / "log.parquet"
    pq.write_table(pa.table(columns | steps), path)
    return path


@pytest.mark.slow
@each("how", [signal.SIGINT, signal.SIGTERM])
def test_a_fit_that_is_stopped_says_so(tmp_path, large, how):
    """The engine turned Ctrl-C into an error of its own, with a traceback."""
    command = [*COUNSEL, "fit", str(large), "-o", "model.npz"]
    with started(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        reads = psutil.Process(process.pid)
        while str(large) not in [file.path for file in reads.open_files()]:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(how)  # while the engine reads
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert told == "counsel: stopped; nothing was left half-written\n"
    assert list(tmp_path.iterdir()) == []


def test_the_demo_log_is_the_same_for_the_same_seed():
    first, again = (ward_log(shifts=30, rng=np.random.default_rng(3)) for _ in range(2))
    assert first.equals(again)
    assert not first.equals(ward_log(shifts=30, rng=np.random.default_rng(4)))


def test_a_table_in_memory_is_forgotten_with_its_log():
    # A thousand fits of small frames grew by 4 GB: the engine that all tables shared kept them all.
    frame = pd.DataFrame(log_of())
    gc.collect()
    before = pa.total_allocated_bytes()
    for _ in range(2):
        assert count_log(read_log(frame)).episodes == 400
    gc.collect()
    assert pa.total_allocated_bytes() == before
