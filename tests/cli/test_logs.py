"""`counsel demo-log | check | fit | plan | evaluate` from end to end, and what they refuse."""

import json
import re
import shlex

import numpy as np
import pytest

import counsel
from counsel.logs import assumptions, evaluate_log
from counsel.worlds import make
from tests.support.faulty_logs import FAULTS, FINE, HEADER, malformed, written
from tests.support.later import Later

pd = Later("pandas")


@pytest.fixture
def run(command, few_draws):
    """Run a command: its exit code, what it said, and what it complained of."""

    def three(*words):
        done = command(*words)
        return done.returncode, done.stdout, done.stderr

    return three


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder with a demonstration log of 400 shifts and its model."""
    folder = tmp_path_factory.mktemp("shop")
    from counsel._tables import write_tables
    from counsel.worlds.ward import ward_table

    write_tables(folder / "log.csv", [ward_table(shifts=400, rng=np.random.default_rng(0))])
    counsel.fit(str(folder / "log.csv")).save(folder / "model.npz")
    return folder


@pytest.fixture(scope="module")
def fitted(shop):
    """The model of the demonstration log."""
    return counsel.load_fit(shop / "model.npz")


@pytest.fixture
def here(shop, tmp_path, monkeypatch):
    """A folder of its own with the log and the model."""
    for name in ("log.csv", "model.npz"):
        (tmp_path / name).write_bytes((shop / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(result, *words, folder, kept):
    """One line on stderr, exit code 2, nothing said, nothing left behind."""
    code, said, told = result
    assert code == 2, (said, told)
    assert said == ""
    assert len(told.splitlines()) == 1, told
    assert told.startswith("counsel: ")
    assert "Traceback" not in told
    for word in words:
        assert word in told, told
    assert {path.name for path in folder.iterdir()} == kept


def next_of(said):
    """The command after "Next:"."""
    (line,) = [line for line in said.splitlines() if line.startswith("Next: ")]
    assert line.startswith("Next: counsel ")
    return shlex.split(line.removeprefix("Next: counsel "))


@pytest.mark.slow
def test_every_next_line_can_be_typed(run, tmp_path, monkeypatch):
    """From nothing to a report, by doing what each command says."""
    monkeypatch.chdir(tmp_path)
    words, done = ["demo-log", "--shifts", "400", "--seed", "3", "-o", "my log.csv"], []
    while words[0] in ("demo-log", "fit", "plan", "evaluate"):
        code, said, told = run(*words)
        done.append(words[0])
        if words[0] == "evaluate" and code == 2:
            # 400 shifts say too little about two pieces at the right time; the line says what to do
            assert "--model-only" in told
            code, said, told = run(*words, "--model-only")
            assert "The log cannot answer" in said
        assert code == 0, told
        assert told == ""
        words = next_of(said)
    assert done == ["demo-log", "fit", "plan", "evaluate"]
    assert words == ["report", "my log.csv", "--model", "model.npz", "-o", "report.html"]
    assert {p.name for p in tmp_path.iterdir()} == {"my log.csv", "model.npz", "policy.csv"}
    code, said, told = run("check", "my log.csv")
    assert code == 0
    assert next_of(said) == ["fit", "my log.csv", "-o", "model.npz"]


@pytest.mark.slow
def test_the_next_command_does_as_this_one_did(run, here):
    """Found by reading: the next command fitted otherwise than the one that was shown."""
    options = ["--columns", "reward=reward", "--actions", "carry on,assess,call doctor"]
    options += ["--rewards", "-9,9"]
    code, said, told = run("check", "log.csv", *options)
    assert code == 0, said + told
    assert next_of(said) == ["fit", "log.csv", *options, "-o", "model.npz"]
    options += ["--by-step", "--share", "advice", "--scale", "adherence"]
    code, said, told = run("fit", "log.csv", *options)
    assert code == 0, said + told
    assert next_of(said) == ["fit", "log.csv", *options, "-o", "model.npz"]
    options = ["--budget", "1", "--hard", "--allow-reverse"]
    code, said, told = run("plan", "model.npz", *options)
    assert code == 0, said + told
    assert next_of(said) == ["plan", "model.npz", *options, "-o", "policy.csv"]


def test_the_demonstration_log_is_the_same_for_the_same_seed(run, tmp_path):
    for name, seed in (("a.csv", 1), ("b.csv", 1), ("c.csv", 2)):
        words = ["--shifts", "30", "--seed", str(seed), "-o", str(tmp_path / name)]
        assert run("demo-log", *words)[0] == 0
    one, same, other = ((tmp_path / f"{x}.csv").read_bytes() for x in "abc")
    assert one == same != other
    rows = pd.read_csv(tmp_path / "a.csv")
    assert rows.episode.nunique() == 30
    code, said, _ = run("demo-log", "--shifts", "30", "-o", str(tmp_path / "d.parquet"))
    assert code == 0
    assert "30 shifts" in said
    assert pd.read_parquet(tmp_path / "d.parquet").step.max() == 5


def test_check_counts_what_is_there(run, here):
    rows = pd.read_csv(here / "log.csv", keep_default_na=False)
    code, said, _ = run("check", "log.csv", "--json")
    assert code == 0
    told = json.loads(said)
    assert told["rows"] == len(rows)
    assert told["episodes"] == 400
    assert told["people"] == rows.person.nunique()
    seen = (rows.advice != "") & (rows.seen.astype(str).str.lower() == "true")
    assert told["advised"] == seen.sum()
    assert told["matched"] == (seen & (rows.advice == rows.action)).sum()
    assert told["fatal"] is False


@pytest.mark.slow
def test_fit_says_what_it_found(run, here):
    code, said, told = run("fit", "log.csv", "-o", "m.npz", "--json")
    assert (code, told) == (0, "")
    told = json.loads(said)
    fit = counsel.load_fit("m.npz")
    assert told["written"] == "m.npz"
    assert told["log"] == "log.csv"
    assert told["actions"] == list(fit.tally.actions)
    assert told["logged"]["value"] == pytest.approx(fit.logged_value)
    pair = next(p for p in told["pairs"] if (p["state"], p["action"]) == ("watch", "assess"))
    s, a = fit.tally.states.index("watch"), fit.tally.actions.index("assess")
    assert pair["taken"] == fit.estimates.taken[0, s, a]
    assert pair["given"] == fit.estimates.given[0, s, a]
    assert pair["lift"][0] == pytest.approx(fit.estimates.lift[0, s, a])
    assert pair["lift"][1] < pair["lift"][0] < pair["lift"][2]
    assert told["seen"]["assess"] == pytest.approx(0.94, abs=0.04)  # 700 pieces: 0.009
    assert "nurse-" not in said
    code, said, _ = run("fit", "log.csv")
    assert code == 0
    assert next_of(said) == ["fit", "log.csv", "-o", "model.npz"]
    assert "nurse-" not in said
    assert re.search(r"People match [\d.]+ % of the advice they see", said)


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_fit_takes_all_its_options(run, here):
    for words in (
        ["--by-step"], ["--share", "advice"], ["--share", "all"], ["--scale", "adherence"],
        ["--groups", "work=assess+call doctor"], ["--actions", "carry on,assess,call doctor"],
        ["--rewards", "-1,1"], ["--columns", "state=state"],
    ):  # fmt: skip
        code, said, told = run("fit", "log.csv", *words, "--json")
        assert code == 0, (words, told)
        json.loads(said)
    rows = pd.read_csv("log.csv").assign(pulse=np.linspace(40, 160, len(pd.read_csv("log.csv"))))
    rows.to_csv("numbers.csv", index=False)
    words = ["--columns", "state=state+pulse", "--bins", "pulse=80,120"]
    code, said, _ = run("fit", "numbers.csv", *words, "-o", "n.npz")
    assert code == 0
    assert counsel.load_fit("n.npz").bins == {"pulse": (80.0, 120.0)}
    code, said, _ = run("check", "numbers.csv", *words)
    assert next_of(said) == ["fit", "numbers.csv", *words, "-o", "model.npz"]
    assert run(*next_of(said))[0] == 0
    # A policy on bins is judged with the log read in the same way.
    assert run("plan", "n.npz", "--budget", "1", "-o", "p.csv")[0] == 0
    asked = ["--model", "n.npz", "--model-only", "--json"]
    code, said, told = run("evaluate", "numbers.csv", "p.csv", *asked)
    assert code == 0, told
    assert json.loads(said)["policy"]["pieces"] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("limit", [
    ["--budget", "1"], ["--penalty", "0.02"], ["--budget", "2", "--hard"],
    pytest.param(["--budget", "1", "--cautious"], marks=pytest.mark.slow), [],
    ["--budget", "1", "--allow-reverse"],
])  # fmt: skip
def test_plan_prints_writes_and_gives_numbers(limit, run, here):
    code, said, told = run("plan", "model.npz", *limit, "-o", "p.csv", "--json")
    assert (code, told) == (0, "")
    told = json.loads(said)
    assert told["cautious"] == ("--cautious" in limit)
    rows = pd.read_csv("p.csv", keep_default_na=False)
    assert len(rows) == len(told["cells"])
    if "--budget" in limit:
        assert told["advice_count"] <= float(limit[1]) + 1e-9
    assert told["value"] >= told["alone"] - 1e-12
    code, said, _ = run("plan", "model.npz", *limit)
    assert code == 0
    again = next_of(said)
    assert again[:2] == ["plan", "model.npz"]
    assert run(*again)[0] == 0
    # What is printed as the next step plans the same.
    assert pd.read_csv("policy.csv", keep_default_na=False).equals(rows)


@pytest.mark.slow
def test_evaluate_gives_every_number(run, here):
    # Silence for all is what the rule says often enough to be judged, in the first round.
    (here / "quiet.csv").write_text("step,state,advice\n0,stable,\n")
    run("plan", "model.npz", "--budget", "1", "-o", "p.parquet")
    code, said, told = run("evaluate", "log.csv", "p.parquet", "--model-only", "--json")
    assert (code, told) == (0, "")
    found = json.loads(said)
    assert found["episodes"] == found["whole"] == 400
    assert found["recorded"] is True
    assert found["policy"]["model"]["low"] < found["policy"]["model"]["value"]
    assert found["policy"]["pieces"] == pytest.approx(1.0, abs=1e-6)
    rows = pd.read_csv("log.csv")
    returns = rows.groupby("episode").reward.sum()
    assert found["logged"]["value"] == pytest.approx(returns.mean())
    code, said, _ = run("evaluate", "log.csv", "quiet.csv", "--model-only", "--json")
    assert code == 0
    found = json.loads(said)
    assert found["policy"]["model"] == found["never"]["model"]
    code, said, _ = run("evaluate", "log.csv", "p.parquet", "--model-only")
    assert code == 0
    assert "never advise" in said


# What is refused.


@pytest.mark.slow
def test_what_is_no_log_is_not_fitted(run, tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    sources = malformed(logs)
    assert len(sources) >= 20
    out = tmp_path / "out"
    out.mkdir()
    for source, words in sources.items():
        refused(run("fit", source, "-o", str(out / "model.npz")), words, folder=out, kept=set())
    left = list(tmp_path.rglob(".counsel-*"))
    assert left == []


FATAL = sorted(name for name, (_, _, fatal) in FAULTS.items() if fatal)


@pytest.mark.parametrize("name", FATAL)
def test_a_log_with_faults_is_not_fitted(name, run, tmp_path):
    rows, words, _ = FAULTS[name]
    log = written(tmp_path / "log.csv", *FINE, *rows)
    result = run("fit", str(log), "-o", str(tmp_path / "model.npz"))
    refused(result, words, "`counsel check` lists all faults", folder=tmp_path, kept={"log.csv"})


def test_chances_that_are_none_are_refused(run, tmp_path):
    for chance, words in (("1.5", "not above 0"), ("0", "not above 0"), ("x", "is not a number")):
        log = written(
            tmp_path / "log.csv", f"a,0,calm,,wait,1,{chance}", "b,0,calm,act,act,1,0.5",
            header=f"{HEADER},advice_probability",
        )  # fmt: skip
        result = run("fit", str(log), "-o", str(tmp_path / "model.npz"))
        refused(result, words, folder=tmp_path, kept={"log.csv"})


BAD = {
    "share": ["fit log.csv --share x -o m.npz", "share is 'x'"],
    "scale": ["fit log.csv --scale x -o m.npz", "scale is 'x'"],
    "groups": ["fit log.csv --groups nonsense -o m.npz", "groups has 'nonsense'"],
    "unknown group": ["fit log.csv --groups x=shout -o m.npz", "groups name 'shout'"],
    "group twice": ["fit log.csv --groups x=assess,y=assess -o m.npz", "groups has"],
    "bins": ["fit log.csv --bins nonsense -o m.npz", "bins has 'nonsense'"],
    "falling bins": ["fit log.csv --columns state=reward --bins reward=3,1 -o m.npz", "rising"],
    "bins elsewhere": ["fit log.csv --bins reward=1 -o m.npz", "no part of the state"],
    "bins of words": ["fit log.csv --bins state=q3 -o m.npz", "holds no numbers"],
    "columns": ["fit log.csv --columns nonsense -o m.npz", "write role=column"],
    "no such column": ["fit log.csv --columns action=did -o m.npz", "no column 'did'"],
    "rewards": ["fit log.csv --rewards one -o m.npz", "give two numbers"],
    "rewards the other way": ["fit log.csv --rewards 2,1 -o m.npz", "the smallest"],
    "rewards outside": ["fit log.csv --rewards 0.5,1 -o m.npz", "reward is not between"],
    "actions": ["fit log.csv --actions jump -o m.npz", "action is none of jump"],
    "fit ending": ["fit log.csv -o m.csv", "must be a file that ends in .npz"],
    "fit folder": ["fit log.csv -o nowhere/m.npz", "cannot write nowhere/m.npz"],
    "fit nothing": ["fit nothing.csv -o m.npz", "nothing.csv does not exist"],
    "fit option": ["fit log.csv --colour red -o m.npz", "No such option"],
    "plan nothing": ["plan nothing.npz -o p.csv", "nothing.npz does not exist"],
    "plan without counts": ["plan problem.npz -o p.csv", "is a problem without counts"],
    "plan a log": ["plan log.csv -o p.csv", "log.csv is not a model (.npz); fit a table"],
    "plan ending": ["plan model.npz -o p.npz", "must be a file that ends in .csv or .parquet"],
    "plan folder": ["plan model.npz -o nowhere/p.csv", "cannot write nowhere/p.csv"],
    "plan both": ["plan model.npz --budget 1 --penalty 1 -o p.csv", ""],
    "plan hard": ["plan model.npz --hard -o p.csv", ""],
    "plan half hard": ["plan model.npz --budget 1.5 --hard -o p.csv", ""],
    "plan below 0": ["plan model.npz --budget -1 -o p.csv", ""],
    "plan a word": ["plan model.npz --budget many -o p.csv", ""],
    "evaluate nothing": ["evaluate log.csv nothing.csv", "nothing.csv does not exist"],
    "evaluate no log": ["evaluate nothing.csv p.csv", "nothing.csv does not exist"],
    "evaluate with no model": ["evaluate log.csv p.csv --model nothing.npz", "does not exist"],
    "model and columns": ["evaluate log.csv p.csv --model model.npz --columns a=b", "leave out"],
    "demo ending": ["demo-log -o d.txt", "must be a file that ends in"],
    "demo folder": ["demo-log --shifts 1 -o nowhere/d.csv", "cannot write"],
    "demo seed": ["demo-log --seed -1 -o d.csv", "--seed is -1"],
    "demo shifts": ["demo-log --shifts 0 -o d.csv", "shifts"],
}


@pytest.mark.parametrize("name", BAD)
def test_bad_options_are_refused_in_one_line(name, run, here):
    counsel.save(make("night-shift"), "problem.npz")
    words, told = BAD[name]
    refused(run(*words.split()), told, folder=here, kept={"log.csv", "model.npz", "problem.npz"})


HEAD = "step,state,advice"
POLICIES = {
    "no such state": (f"{HEAD}\n0,asleep,assess\n", "row 1: the log has no state 'asleep'"),
    "no such action": (f"{HEAD}\n0,stable,sing\n", "row 1: the log has no action 'sing'"),
    "no such step": (f"{HEAD}\n0,stable,\n6,stable,assess\n", "row 2: step is 6; the log has 6"),
    "half a step": (f"{HEAD}\n0.5,stable,assess\n", "give a whole number"),
    "a step below 0": (f"{HEAD}\n-1,stable,assess\n", "give a whole number"),
    "a word for a step": (f"{HEAD}\nfirst,stable,assess\n", "give a whole number"),
    "sums to less": (f"{HEAD},probability\n0,stable,assess,0.4\n", "sum to 0.4"),
    "sums to more": (f"{HEAD}\n0,stable,assess\n0,stable,carry on\n", "sum to 2"),
    "no chance": (f"{HEAD},probability\n0,stable,assess,2\n", "give 0 to 1"),
    "a word for a chance": (f"{HEAD},probability\n0,stable,assess,often\n", "give 0 to 1"),
    "no advice": ("step,state\n0,stable\n", "has no column 'advice'"),
    "a plan without end": ("state,advice\nstable,assess\n", "as a plan for work without end"),
    "nothing": ("", "cannot be read"),
    "ragged": (f"{HEAD}\n0,stable\n1,stable,assess,more\n", "cannot be read"),
    "pieces below 0": (f"pieces_left,{HEAD}\n-1,0,stable,assess\n", "give a whole number"),
    "speaks with none left": (f"pieces_left,{HEAD}\n0,0,stable,assess\n", "no piece left"),
}


@pytest.mark.parametrize("name", POLICIES)
def test_policies_that_make_no_sense_are_refused_in_one_line(name, run, here, fitted, monkeypatch):
    monkeypatch.setattr(evaluate_log, "fit", lambda log, cost, unit: fitted)  # made once
    text, told = POLICIES[name]
    (here / "p.csv").write_text(text)
    kept = {"log.csv", "model.npz", "p.csv"}
    refused(run("evaluate", "log.csv", "p.csv"), told, folder=here, kept=kept)


def test_a_damaged_model_is_refused(run, here):
    whole = (here / "model.npz").read_bytes()
    (here / "model.npz").write_bytes(whole[: len(whole) // 2])
    kept = {"log.csv", "model.npz"}
    refused(run("plan", "model.npz", "-o", "p.csv"), "damaged", folder=here, kept=kept)


def test_nothing_is_overwritten_by_what_fails(run, here):
    before = (here / "model.npz").read_bytes()
    written(here / "bad.csv", *FINE, "a,2,calm,,,1")
    assert run("fit", "bad.csv", "-o", "model.npz")[0] == 2
    assert (here / "model.npz").read_bytes() == before
    assert not list(here.glob(".counsel-*"))


def test_a_table_instead_of_a_model_is_told_to_be_fitted_first(command, tmp_path):
    # Found by a newcomer: it was called damaged.
    (tmp_path / "hints.csv").write_text("session,turn\n1,1\n")
    done = command("plan", "hints.csv", "-o", "policy.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert "fit a table with: counsel fit hints.csv -o model.npz" in done.stderr


def test_all_columns_that_are_missing_are_named_at_once(command, tmp_path):
    # Found by a newcomer: they were asked for one after the other.
    (tmp_path / "hints.csv").write_text("session,turn,state\n1,1,low\n")
    done = command("check", "hints.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith("--columns episode=…,step=…,advice=…,action=…,reward=…\n")


def nagging(n=1500, seed=0):
    """A log in which advice is random, makes people act, and costs more than acting brings."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        advice = "walk" if rng.random() < 0.5 else None
        walks = rng.random() < (0.7 if advice else 0.3)
        reward = 1.0 * walks - 0.8 * (advice is not None) + rng.normal(0.0, 0.3)
        rows.append((f"e{i}", 0, "home", advice, "walk" if walks else "stay", reward))
    return pd.DataFrame(rows, columns=["episode", "step", "state", "advice", "action", "reward"])


@pytest.mark.slow
def test_where_model_and_episodes_disagree_the_output_begins_with_that(run, tmp_path, monkeypatch):
    # Advice that annoys: acting pays, so the model wants advice, which in truth loses 0.4.
    path = tmp_path / "log.csv"
    nagging().to_csv(path, index=False)
    policy = tmp_path / "policy.csv"
    policy.write_text("step,state,advice\n0,home,walk\n")
    code, said, told = run("evaluate", str(path), str(policy))
    assert code == 0, told
    first, *_ = said.splitlines()
    assert first.startswith("In the same state and after the same action, rewards with advice diff")
    assert "Values in the model are withheld." in first
    record = json.loads(run("evaluate", str(path), str(policy), "--json")[1])
    assert record["policy"]["model"] is None
    assert record["assumptions"][0]["name"] == "reward"
    # Without the tests of what the model takes for granted, the numbers still contradict it.
    monkeypatch.setattr(assumptions, "LEVEL", 0.0)
    code, said, told = run("evaluate", str(path), str(policy))
    first, *_ = said.splitlines()
    assert first.startswith("The model and the episodes of the log disagree about “policy”: ")
    assert "doubly robust" in first
    head = next(line for line in said.splitlines() if "weighted episodes" in line)
    assert head.index("doubly robust") < head.index("weighted") < head.index("in the model")
    record = json.loads(run("evaluate", str(path), str(policy), "--json")[1])
    model, robust = (record["policy"][name]["value"] for name in ("model", "doubly_robust"))
    assert robust == pytest.approx(-0.1, abs=0.05)
    assert model > 0.2


@pytest.mark.slow
def test_a_report_that_the_log_contradicts_begins_with_the_contradiction(
    run, tmp_path, monkeypatch
):
    path, out = tmp_path / "log.csv", tmp_path / "page.html"

    def page_of(log):
        log.to_csv(path, index=False)
        code, _, told = run("report", str(path), "-o", str(out))
        assert code == 0, told
        page = out.read_text(encoding="utf-8")
        assert "Advice pays most" not in page
        return page

    # Whether advice annoys or went to those who do worse, only recorded probabilities tell.
    page = page_of(nagging())
    assert "<h1>What a plan would bring cannot be told from this log</h1>" in page
    page = page_of(nagging().assign(advice_probability=0.5))
    assert "<h1>The plan brings less per episode than today: -0." in page
    monkeypatch.setattr(assumptions, "LEVEL", 0.0)
    page = page_of(nagging())
    assert "<h1>The model and the episodes of the log disagree</h1>" in page
    assert "The model repeats its log" in page
