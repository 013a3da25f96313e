"""`--cost` and penalties by step, from end to end, and what they refuse."""

import json

import numpy as np
import pytest

import counsel
from tests.support.few_draws import draw_less

COSTS = "call doctor=3,assess=2"
WARD = counsel.make("ward")
PRICED = counsel.AdviceProblem(WARD.mdp, WARD.human, cost=[1.0, 2.0, 3.0])


@pytest.fixture
def run(command, few_draws):
    """Run a command that must succeed: what it said."""

    def said(*words):
        done = command(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return said


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder with a demonstration log."""
    from counsel._tables import write_tables
    from counsel.worlds.ward import ward_table

    folder = tmp_path_factory.mktemp("shop")
    write_tables(folder / "log.csv", [ward_table(shifts=300, rng=np.random.default_rng(0))])
    return folder


@pytest.fixture(scope="module")
def fitted(shop, command):
    """The log fitted with costs, as bytes."""
    with pytest.MonkeyPatch.context() as patch:
        draw_less(patch)
        done = command("fit", shop / "log.csv", "--cost", COSTS, "-o", shop / "model.npz")
    assert done.returncode == 0, done.stderr
    return (shop / "model.npz").read_bytes()


@pytest.mark.parametrize(
    "limit",
    [("--budget", "2.5"), pytest.param(("--budget", "4", "--hard"), marks=pytest.mark.slow)],
)
def test_a_log_is_planned_with_its_costs_from_end_to_end(
    run, shop, fitted, tmp_path, monkeypatch, limit
):
    monkeypatch.chdir(tmp_path)
    log = str(shop / "log.csv")
    (tmp_path / "model.npz").write_bytes(fitted)
    record = json.loads(run("plan", "model.npz", *limit, "-o", "policy.csv", "--json"))
    model = counsel.load("model.npz")
    problem = counsel.AdviceProblem(model.mdp, model.human, cost=[2.0, 3.0, 1.0])
    assert model.mdp.action_labels == ("assess", "call doctor", "carry on")
    plan = counsel.solve(problem, budget=float(limit[1]), hard=len(limit) > 2, allow_reverse=False)
    assert record["value"] == plan.value
    assert record["advice_cost"] == plan.advice_cost <= float(limit[1]) + 1e-9
    said = run("plan", "model.npz", *limit)
    pieces, cost = f"{plan.advice_count:.3g}", f"{plan.advice_cost:.3g}"
    assert f"With {pieces} pieces of advice that cost {cost} per episode" in said
    assert "cost" in said.splitlines()[2] + said.splitlines()[3]
    words = ("evaluate", log, "policy.csv", "--model", "model.npz", "--model-only")
    evaluation = json.loads(run(*words, "--json"))
    assert evaluation["policy"]["cost"] == pytest.approx(plan.advice_cost)
    assert evaluation["logged_cost"] > evaluation["logged_pieces"]
    assert "cost" in run(*words)
    same = ("evaluate", log, "policy.csv", "--cost", COSTS, "--model-only", "--json")
    assert json.loads(run(*same))["policy"]["cost"] == evaluation["policy"]["cost"]


def test_the_next_lines_keep_the_costs(run, shop, fitted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = str(shop / "log.csv")
    assert f"--cost '{COSTS}' -o model.npz" in run("fit", log, "--cost", COSTS)
    (tmp_path / "model.npz").write_bytes(fitted)
    assert "--model model.npz" in run("plan", "model.npz", "--budget", "2", "-o", "policy.csv")
    said = run("solve", "ward", "--cost", COSTS, "--penalty", "0.1,0.1,0.1,0.2,0.2,0.3")
    assert said.endswith(
        f"Next: counsel solve ward --penalty 0.1,0.1,0.1,0.2,0.2,0.3 --cost '{COSTS}' "
        "-o policy.csv\n"
    )


@pytest.mark.slow
def test_a_report_says_what_advice_costs(run, shop, tmp_path):
    page = tmp_path / "report.html"
    run("report", str(shop / "log.csv"), "--cost", COSTS, "-o", str(page))
    text = page.read_text()
    for words in ("pieces of advice that cost", "cost of advice per episode", "per unit of cost"):
        assert words in text, words


@pytest.mark.slow
def test_costs_of_one_change_nothing_that_is_printed(run, shop):
    ones = ("--cost", "call doctor=1,assess=1.0")
    for words in (
        ("solve", "ward", "--budget", "2"),
        ("solve", "ward", "--budget", "2", "--hard", "--json"),
        ("solve", "ward", "--penalty", "0.05"),
        ("frontier", "ward"),
        ("frontier", "ward", "--json"),
        ("explain", "ward", "--penalty", "0.05", "--step", "1", "--state", "watch"),
        ("play-out", "ward", "--budget", "1", "--episodes", "50"),
        ("fit", str(shop / "log.csv")),
    ):
        plain, same = run(*words), run(*words, *ones)
        assert plain.partition("Next: ")[0] == same.partition("Next: ")[0]
        if "--json" not in words:
            assert " cost" not in plain.partition("Next: ")[0].replace("it costs", "")


def test_worlds_are_solved_with_costs(run):
    words = ("ward", "--cost", COSTS)
    plan = counsel.solve(PRICED, budget=3, allow_reverse=False)
    record = json.loads(run("solve", *words, "--budget", "3", "--json"))
    assert (record["value"], record["advice_cost"]) == (plan.value, plan.advice_cost)
    assert "expected cost of advice" in run("solve", *words, "--budget", "3")
    front = json.loads(run("frontier", *words, "--json"))["vertices"]
    assert front[-1]["advice_cost"] > front[-1]["advice_count"] + 0.5
    said = run("frontier", *words)
    assert "Advice at a cost of 2 per episode keeps" in said
    assert "cost of advice" in said
    said = run("explain", *words, "--penalty", "0.02", "--step", "1", "--state", "deteriorating")
    assert "against its price of 3 × 0.02" in said
    played = json.loads(run("play-out", *words, "--budget", "3", "--episodes", "200", "--json"))
    assert played["exact_advice_cost"] == pytest.approx(3.0)
    assert played["advice_cost"] == pytest.approx(3.0, abs=0.5)
    assert played["advice_count"] < played["advice_cost"]


def test_the_frontier_is_written_with_its_costs(run, tmp_path):
    for words, first in (
        (("--cost", COSTS), "advice_count,advice_cost,value,penalty_low,penalty_high"),
        ((), "advice_count,value,penalty_low,penalty_high"),
    ):
        run("frontier", "ward", *words, "-o", str(tmp_path / "front.csv"))
        lines = (tmp_path / "front.csv").read_text().splitlines()
        assert lines[0] == first
        assert {line.count(",") for line in lines} == {first.count(",")}


def test_a_penalty_for_each_step(run):
    penalties = [0.1, 0.1, 0.05, 0.02, 0.01, 0.0]
    typed = ",".join(map(str, penalties))
    plan = counsel.solve(WARD, penalty=penalties, allow_reverse=False)
    record = json.loads(run("solve", "ward", "--penalty", typed, "--json"))
    assert record["penalty"] == penalties
    assert (record["value"], record["penalised_value"]) == (plan.value, plan.penalised_value)
    assert "0 to 0.1" in run("solve", "ward", "--penalty", typed)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--cost", "pag=3"], "cost has pag=3; there is no such advice, only carry on, assess"),
        (["--cost", "assess=-1"], "the cost of assess is -1; it must be a finite number"),
        (["--cost", "assess=inf"], "the cost of assess is inf; it must be a finite number"),
        (["--cost", "assess=dear"], "cost has 'assess=dear'; write ADVICE=COST,…"),
        (["--cost", "assess"], "cost has 'assess'; write ADVICE=COST,…"),
        (["--cost", "=3"], "cost has '=3'; write ADVICE=COST,…"),
        (["--cost", "assess=3,assess=2"], "cost has assess=3 and assess=2; name each advice once"),
        (["--cost", "assess=0.5", "--budget", "2", "--hard"], "under a hard budget a cost must be"),
        (["--penalty", "0.1,much"], "penalty is '0.1,much'; give a number, or one for each step"),
        (["--penalty", "0.1,0.2"], "give a number, or one for each of the 6 steps"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(command, words, sentence):
    done = command("solve", "ward", *words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert sentence in done.stderr


def test_a_fit_refuses_costs_of_unknown_advice(command, shop):
    done = command("fit", str(shop / "log.csv"), "--cost", "pag=3")
    assert done.returncode == 2
    assert "cost has pag=3; there is no such advice, only assess, call doctor" in done.stderr
