"""``counsel worlds`` and ``counsel play-out`` as a person runs them, and the log they write."""

import csv
import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

import counsel
from counsel.worlds import list_worlds, make
from tests.support.processes import started
from tests.support.waiting import PATIENCE, until

COUNSEL = Path(sys.executable).with_name("counsel")


def read_csv(path):
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_worlds_lists_every_world_with_one_line(command):
    shown = command("worlds")
    assert shown.returncode == 0
    for name, world in list_worlds().items():
        assert any(name in line and world.summary in line for line in shown.stdout.splitlines())
    told = json.loads(command("worlds", "--json").stdout)["worlds"]
    assert [each["name"] for each in told] == list(list_worlds())


def test_the_record_agrees_with_the_simulator_and_with_evaluate(command):
    told = json.loads(
        command(
            "play-out", "flappy-bird/safe", "--penalty", "0.3", "--episodes", "5000", "--json"
        ).stdout
    )
    problem = make("flappy-bird/safe")
    plan = counsel.solve(problem, penalty=0.3, allow_reverse=False)
    played = counsel.Simulator(problem).play(
        plan.policy, episodes=5000, rng=np.random.default_rng(0)
    )
    assert told["reward"] == pytest.approx(played.rewards.mean(), rel=1e-12)
    assert told["advice_count"] == played.pieces.mean()
    assert told["decisions"] == played.state.size
    assert told["exact_value"] == pytest.approx(plan.value, rel=1e-12)
    assert abs(told["reward"] - plan.value) < 4 * told["reward_standard_error"]
    for a, each in enumerate(told["advice"]):
        assert each["given"] == (played.advice == a).sum()
        assert each["matched"] == ((played.advice == a) & (played.action == a)).sum()


def test_the_printed_table_has_reward_pieces_and_match_rates(command, tmp_path):
    shown = command("play-out", "flappy-bird/greedy", "--episodes", "2000", cwd=tmp_path)
    assert shown.returncode == 0
    assert shown.stderr == ""  # no bar when piped
    for words in ("2,000 episodes", "pieces of advice", "Up-Up", "matched", "Next: counsel"):
        assert words in shown.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_terminal_sees_a_bar_and_it_goes_away():
    leader, follower = pty.openpty()
    arguments = ["play-out", "car-driving/myopic", "--policy", "never", "--episodes", "2000"]
    done = subprocess.run(
        [COUNSEL, *arguments], stdout=subprocess.DEVNULL, stderr=follower, timeout=300, check=False
    )
    os.close(follower)
    seen = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(leader)
    assert done.returncode == 0
    assert "mean reward" in seen.decode()
    assert "per second" in seen.decode()


def test_the_log_has_one_row_for_each_decision_in_the_schema(command, tmp_path):
    arguments = ["play-out", "flappy-bird/greedy", "--episodes", "400", "--seed", "7"]
    for name in ("log.csv", "log.parquet"):
        done = command(*arguments, "-o", name, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert f"Wrote {name}" in done.stdout
    problem = make("flappy-bird/greedy")
    played = counsel.Simulator(problem).play(
        counsel.solve(problem).policy, episodes=400, rng=np.random.default_rng(7)
    )
    rows = read_csv(tmp_path / "log.csv")
    assert list(rows[0]) == [
        *("episode", "step", "person", "state", "advice", "action", "reward", "next_state"),
        *("terminated", "truncated"),
    ]
    assert len(rows) == played.state.size
    states, actions = problem.mdp.state_labels, problem.mdp.action_labels
    names = [*actions, ""]
    for i, row in enumerate(rows):
        assert int(row["episode"]) == played.episode[i]
        assert int(row["step"]) == played.step[i]
        assert row["person"] == "flappy-bird/greedy"
        assert row["state"] == states[played.state[i]]
        assert row["next_state"] == states[played.next_state[i]]
        assert row["advice"] == names[played.advice[i]]
        assert row["action"] == actions[played.action[i]]
        assert float(row["reward"]) == played.reward[i]
        last = i + 1 == len(rows) or rows[i + 1]["episode"] != row["episode"]
        ended = bool(played.terminated[played.episode[i]])
        assert row["terminated"] == str(last and ended).lower()
        assert row["truncated"] == str(last and not ended).lower()
    parquet = pyarrow.parquet.read_table(tmp_path / "log.parquet").to_pylist()
    assert [row["advice"] for row in parquet] == [row["advice"] or None for row in rows]
    assert [str(row["episode"]) for row in parquet] == [row["episode"] for row in rows]


def test_episodes_that_reach_the_horizon_are_truncated_not_terminated(command, tmp_path):
    done = command(
        *("play-out", "night-shift", "--policy", "never", "--episodes", "20", "-o", "log.csv"),
        cwd=tmp_path,
    )
    assert done.returncode == 0
    rows = read_csv(tmp_path / "log.csv")
    assert len(rows) == 20 * 12
    assert {row["terminated"] for row in rows} == {"false"}
    assert [row["truncated"] for row in rows] == (["false"] * 11 + ["true"]) * 20
    assert {row["advice"] for row in rows} == {""}


def test_a_log_in_many_batches_equals_a_log_in_one(tmp_path):
    problem = make("car-driving/myopic")
    policy = counsel.solve(problem).policy
    simulator = counsel.Simulator(problem)
    rng = np.random.default_rng(1)
    parts = (simulator.play(policy, episodes=n, rng=rng) for n in (1, 399, 100))
    counsel.save_log(parts, tmp_path / "parts.csv", problem=problem)
    whole = simulator.play(policy, episodes=500, rng=np.random.default_rng(1))
    counsel.save_log(whole, tmp_path / "whole.csv", problem=problem)
    assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_a_problem_without_labels_is_logged_by_number(tmp_path):
    mdp = counsel.MDP(np.array([[0, 1], [1, 1]]), [[1.0, 0.0], [0.0, 0.0]], horizon=3)
    problem = counsel.AdviceProblem(mdp, counsel.Human([[0.5, 0.5], [0.5, 0.5]], 0.9))
    policy = counsel.Policy([[0, 2]] * 3, n_actions=2)
    played = counsel.Simulator(problem).play(policy, episodes=50, rng=np.random.default_rng(0))
    counsel.save_log(played, tmp_path / "log.parquet", problem=problem, person="me")
    table = pyarrow.parquet.read_table(tmp_path / "log.parquet")
    assert table["state"].to_pylist() == [0] * played.state.size
    assert table["next_state"].to_pylist() == played.next_state.tolist()
    assert set(table["person"].to_pylist()) == {"me"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "nowhere is neither a problem (.npz) nor a world"),
        (["night-shift", "--policy", "worst"], "--policy is 'worst'"),
        (["night-shift", "--policy", "gone.npz"], "gone.npz does not exist"),
        (["night-shift", "--policy", "never", "--budget", "2"], "go with --policy best"),
        (["night-shift", "--policy", "never", "--hard"], "go with --policy best"),
        (["night-shift", "--episodes", "0"], "--episodes must be a whole number of at least 1"),
        (["night-shift", "--seed", "-1"], "--seed is -1; it must be 0 or more"),
        (["night-shift", "-o", "log.txt"], "must be a file that ends in .csv or .parquet"),
        (["night-shift", "-o", "no/such/folder/log.csv"], "cannot write"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_and_nothing_is_left(command, arguments, words, tmp_path):
    done = command("play-out", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_policy_of_another_world_is_refused(command, tmp_path):
    saved = command("solve", "night-shift", "-o", "night.npz", cwd=tmp_path)
    assert saved.returncode == 0
    done = command("play-out", "flappy-bird/safe", "--policy", "night.npz", cwd=tmp_path)
    assert done.returncode == 2
    assert "the policy is for 12 steps, 4 states and 3 actions" in done.stderr
    played = command("play-out", "night-shift", "--policy", "night.npz", cwd=tmp_path)
    assert played.returncode == 0


def until_it_writes(process, folder):
    """Wait until a file of the folder has something in it."""

    def writes():
        assert process.poll() is None
        return any(file.stat().st_size for file in folder.iterdir())

    until(writes)


@pytest.mark.slow
def test_stopping_leaves_no_half_written_log(tmp_path):
    arguments = ["play-out", "car-driving/myopic", "--episodes", "50000000", "-o", "log.csv"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started([COUNSEL, *arguments], cwd=tmp_path, **pipes) as process:
        until_it_writes(process, tmp_path)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert told.decode() == "counsel: stopped; nothing was left half-written\n"
    assert not list(tmp_path.iterdir())


def test_advice_after_the_end_counts_on_neither_side(command, tmp_path):
    # Found by use: a policy that speaks when all is over was compared with what nobody hears.
    always = counsel.Policy(np.zeros((20, 141), int), n_actions=3)
    counsel.save_policy(always, tmp_path / "always.npz")
    arguments = ["flappy-bird/greedy", "--policy", "always.npz", "--episodes", "4000", "--json"]
    told = json.loads(command("play-out", *arguments, cwd=tmp_path).stdout)
    error = told["advice_count_standard_error"]
    assert abs(told["advice_count"] - told["exact_advice_count"]) < 4 * error
    assert (told["problem"], told["seed"]) == ("flappy-bird/greedy", 0)


def odd_problem():
    mdp = counsel.MDP(
        [[0, 0]],
        [[0.0, 1.0]],
        horizon=2,
        state_labels=["[red]:star:"],
        action_labels=["[/bold]", "[b]go"],
    )
    return counsel.AdviceProblem(mdp, counsel.Human([[0.5, 0.5]], 0.9))


def test_labels_are_printed_as_they_are(command, tmp_path):
    # Found by use: they were read as markup, and "[/bold]" ended in a traceback.
    counsel.save(odd_problem(), tmp_path / "odd.npz")
    shown = command("play-out", "odd.npz", cwd=tmp_path)
    assert shown.returncode == 0
    assert "[b]go" in shown.stdout
    solved = command("solve", "odd.npz", cwd=tmp_path)
    assert solved.returncode == 0
    assert "[red]:star:" in solved.stdout


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["worlds"], ["worlds", "--json"], ["--help"]])
def test_a_full_disk_behind_standard_output_is_one_line(arguments):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [COUNSEL, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr.startswith("counsel: cannot write: No space left")
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["worlds"], ["worlds", "--json"]])
def test_nobody_reading_on_is_no_error(arguments):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started([COUNSEL, *arguments], **pipes) as process:
        process.stdout.close()
        told = process.stderr.read()
        assert (process.wait(timeout=PATIENCE), told) == (0, b"")


@pytest.mark.slow
def test_a_terminal_that_knows_no_unicode_is_served_too():
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([COUNSEL, "worlds"], capture_output=True, env=env, check=False)
    assert done.returncode == 0
    assert b"flappy-bird/safe" in done.stdout


@pytest.mark.slow
def test_being_told_to_end_leaves_nothing_behind(tmp_path):
    # Found by use: SIGTERM left half a gigabyte of unfinished log.
    arguments = ["play-out", "car-driving/myopic", "--episodes", "50000000", "-o", "log.csv"]
    with started([COUNSEL, *arguments], cwd=tmp_path, stderr=subprocess.PIPE) as process:
        until_it_writes(process, tmp_path)
        process.terminate()
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_without_a_place_for_compiled_code_it_compiles_anew(tmp_path):
    # Found by use: in a read-only container nothing could be imported.
    code = (
        "import numba, counsel._jit as j\n"
        "real = numba.njit\n"
        "def njit(*a, **k):\n"
        "    if k.get('cache'): raise RuntimeError('no locator available')\n"
        "    return real(*a, **k)\n"
        "numba.njit = njit\n"
        "assert j.kernel(lambda x: x + 1)(2) == 3\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_folder_or_a_wrong_kind_of_policy_is_said_at_once(command, tmp_path):
    (tmp_path / "log.csv").mkdir()
    done = command("play-out", "night-shift", "-o", "log.csv", cwd=tmp_path)
    assert (done.returncode, "must be a file" in done.stderr) == (2, True)
    command("solve", "night-shift", "-o", "policy.csv", cwd=tmp_path)
    done = command("play-out", "night-shift", "--policy", "policy.csv", cwd=tmp_path)
    assert (done.returncode, "save the policy as .npz" in done.stderr) == (2, True)


def test_a_file_with_the_name_of_a_world_does_not_hide_it(command, tmp_path):
    (tmp_path / "night-shift").write_text("my notes")
    assert command("play-out", "night-shift", "--episodes", "10", cwd=tmp_path).returncode == 0


def test_a_log_of_another_problem_is_refused(tmp_path):
    # Found by use: it was written with the labels of the other world.
    problem = make("flappy-bird/greedy")
    played = counsel.Simulator(problem).play(
        counsel.solve(problem).policy, episodes=5, rng=np.random.default_rng(0)
    )
    for other in ("car-driving/myopic", "night-shift", "flappy-bird-budget/greedy"):
        with pytest.raises(counsel.CounselError, match="not from this problem"):
            counsel.save_log(played, tmp_path / "log.csv", problem=make(other))
    for wrong in ([], None, [played, "x"], 5):
        with pytest.raises(counsel.CounselError):
            counsel.save_log(wrong, tmp_path / "log.csv", problem=problem)
    assert not list(tmp_path.iterdir())


def test_random_rewards_are_played_and_written(command, tmp_path):
    words = ("play-out", "night-shift", "--random-rewards", "--episodes", "50")
    done = command(*words, cwd=tmp_path)
    assert "--random-rewards --episodes 50" in done.stdout
    assert command(*words, "-o", "log.csv", cwd=tmp_path).returncode == 0
    with (tmp_path / "log.csv").open(newline="") as file:
        assert {row["reward"] for row in csv.DictReader(file)} == {"-0.2", "1"}


def test_explain_knows_the_level_of_a_memory(command):
    words = ("explain", "ward/tiring", "--step", "2", "--state", "deteriorating")
    printed = command(*words, "--level", "2 pieces so far").stdout
    assert "in deteriorating (2 pieces so far), advise call doctor" in printed
    assert "gain = lift × advantage − burden" in printed
    record = json.loads(command(*words, "--level", "2", "--json").stdout)
    assert record["level"] == 2
    expected = record["lift"] * record["advantage"] - record["burden"]
    assert record["gain"] == pytest.approx(expected)
    for level, says in (("9", "level is 9; it runs from 0 to 5"), ("tired", "level is 'tired'; ")):
        refused = command(*words, "--level", level)
        assert refused.returncode == 2
        assert says in refused.stderr
    refused = command("explain", "ward", *words[2:], "--level", "1")
    assert "level is '1', but the person has no memory; leave it out" in refused.stderr
