"""The command line as a person runs it: its output, its exit code."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import counsel
import counsel.worlds

COUNSEL = Path(sys.executable).with_name("counsel")


def installed(*arguments, cwd=None):
    return subprocess.run(
        [COUNSEL, *arguments], capture_output=True, text=True, cwd=cwd, timeout=300, check=False
    )


@pytest.fixture(scope="module")
def problem_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "night.npz"
    counsel.save(counsel.worlds.make("night-shift"), path)
    return path


def test_version_is_that_of_the_package():
    assert installed("--version").stdout == f"counsel {counsel.__version__}\n"


def test_help_answers_without_loading_anything_heavy():
    code = (
        "import sys, counsel.cli\n"
        "sys.argv = ['counsel', '--help']\n"
        "try: counsel.cli.main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'numba', 'scipy', 'pyarrow', 'matplotlib', 'ibis', 'fastapi'}\n"
        "sys.exit(', '.join(heavy & sys.modules.keys()) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "frontier" in done.stdout


def test_solve_reads_a_file_and_prints_what_solve_returns(command, problem_file):
    told = json.loads(command("solve", str(problem_file), "--budget", "2", "--json").stdout)
    plan = counsel.solve(counsel.load(problem_file), budget=2)
    assert told["value"] == plan.value
    assert told["advice_count"] == plan.advice_count
    assert told["price"] == plan.price
    assert sum(told["advice_rate"]) == pytest.approx(2.0)


def test_solve_writes_the_policy(command, problem_file, tmp_path):
    for name in ("policy.csv", "policy.parquet", "policy.npz"):
        done = command("solve", str(problem_file), "--penalty", "0.1", "-o", name, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / name).stat().st_size > 0
    header, first = (tmp_path / "policy.csv").read_text().splitlines()[:2]
    assert "probability" in header
    assert "stable" in first


def test_solve_hard_budget(command, problem_file):
    told = json.loads(
        command("solve", str(problem_file), "--budget", "2", "--hard", "--json").stdout
    )
    assert told["hard"]
    assert told["value"] == counsel.solve(counsel.load(problem_file), budget=2, hard=True).value


def test_frontier_lists_every_vertex(command, problem_file, tmp_path):
    told = json.loads(command("frontier", str(problem_file), "--json").stdout)
    front = counsel.frontier(counsel.load(problem_file))
    assert [v["value"] for v in told["vertices"]] == [v.value for v in front.vertices]
    assert told["vertices"][0]["penalty_high"] is None
    assert command("frontier", str(problem_file), "-o", "f.csv", cwd=tmp_path).returncode == 0
    assert len((tmp_path / "f.csv").read_text().splitlines()) == len(front.vertices) + 1


def test_explain_takes_a_label_or_a_number(command, problem_file):
    by_label = command("explain", str(problem_file), "--step", "3", "--state", "failing").stdout
    by_number = command("explain", str(problem_file), "--step", "3", "--state", "2").stdout
    assert by_label == by_number
    assert by_label.startswith("At step 3 in failing, advise treat")


def test_explain_with_pieces_left(command, problem_file):
    told = json.loads(
        command(
            *("explain", str(problem_file), "--step", "3", "--state", "2", "--budget", "2"),
            *("--hard", "--pieces-left", "0", "--json"),
        ).stdout
    )
    assert told["advice"] is None
    assert told["price"] is None
    assert "no piece of advice is left" in told["sentence"]


def test_advice_that_repels_is_left_out_unless_asked_for(command, tmp_path):
    # Found by use: with --allow-reverse it still said that such advice was left out.
    mdp = counsel.MDP([[0, 0]], [[1.0, 0.0]], horizon=2)
    shy = counsel.AdviceProblem(mdp, counsel.Human([[0.5, 0.5]], [0.5, 0.1]))
    bold = counsel.AdviceProblem(mdp, counsel.Human([[0.5, 0.5]], [0.1, 0.5]))
    counsel.save(shy, tmp_path / "shy.npz")
    counsel.save(bold, tmp_path / "bold.npz")
    left_out = command("solve", "shy.npz", cwd=tmp_path).stdout
    assert "Silence is best" in left_out
    assert "left out" in left_out
    used = command("solve", "shy.npz", "--allow-reverse", cwd=tmp_path).stdout
    assert "works by repelling" in used
    idle = command("solve", "bold.npz", "--penalty", "1", "--allow-reverse", cwd=tmp_path).stdout
    assert "left out" not in idle


def test_the_next_command_plans_as_this_one_did(command, tmp_path):
    """Found by reading: without --allow-reverse the next command is about another policy."""
    mdp = counsel.MDP([[0, 0]], [[1.0, 0.0]], horizon=2)
    counsel.save(
        counsel.AdviceProblem(mdp, counsel.Human([[0.5, 0.5]], [0.5, 0.1])), tmp_path / "shy.npz"
    )
    words = ("solve", "shy.npz", "--penalty", "0.1", "--allow-reverse")
    asked = "shy.npz --penalty 0.1 --allow-reverse"
    last = command(*words, cwd=tmp_path).stdout.splitlines()[-1]
    assert last == f"Next: counsel solve {asked} -o policy.csv"
    last = command(*words, "-o", "policy.csv", cwd=tmp_path).stdout.splitlines()[-1]
    assert last == f"Next: counsel explain {asked} --step 0 --state 0"


def test_a_built_in_world_needs_no_file(command):
    assert command("frontier", "night-shift").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["solve", "missing.npz"], "missing.npz does not exist"),
        (["solve", "night-day"], "night-day is neither"),
        (["solve", "night-shift", "--budget", "-1"], "budget is -1"),
        (["solve", "night-shift", "--budget", "nan"], "budget is nan"),
        (["solve", "night-shift", "--penalty", "-1"], "penalty is -1"),
        (["solve", "night-shift", "--budget", "two"], "--budget"),
        (["solve", "night-shift", "--budget", "1", "--penalty", "1"], "not both"),
        (["solve", "night-shift", "--hard"], "needs a budget"),
        (["solve", "night-shift", "--budget", "1.5", "--hard"], "whole number"),
        (["solve", "night-shift", "-o", "policy.xls"], "policy.xls must be a file that ends in"),
        (["solve", "night-shift", "-o", "no/where.csv"], "cannot write no/where.csv"),
        (["frontier", "night-shift", "--max-vertices", "1"], "max_vertices"),
        (["explain", "night-shift", "--step", "12", "--state", "0"], "step is 12"),
        (["explain", "night-shift", "--step", "0", "--state", "ill"], "state is 'ill'"),
        (["explain", "night-shift", "--step", "0", "--state", "4"], "state is 4"),
        (["explain", "night-shift", "--state", "0"], "step is missing; give a step from 0 to 11"),
        (["sovle", "night-shift"], "sovle"),  # codespell:ignore sovle
        (["solve"], "PROBLEM"),
    ],
)
def test_an_error_is_one_line_on_stderr_and_exit_code_2(command, arguments, fragment, tmp_path):
    done = command(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert fragment in done.stderr
    assert os.listdir(tmp_path) == []


def test_a_damaged_file_is_one_line(command, problem_file, tmp_path):
    damaged = tmp_path / "half.npz"
    damaged.write_bytes(problem_file.read_bytes()[:2000])
    done = command("solve", str(damaged))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "half.npz" in done.stderr


def test_the_installed_program_fails_in_one_line_with_exit_code_2(tmp_path):
    done = installed("solve", "missing.npz", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "counsel: missing.npz does not exist\n"


def test_debug_shows_the_traceback():
    assert "Traceback" in installed("--debug", "solve", "missing.npz").stderr
