"""One habit, and listening that differs by context: lifts, a test, and a plan for each."""

import json

import numpy as np
import pytest

import counsel
from counsel.logs import evaluate_policy, plan_advice
from counsel.logs.read import read_log
from counsel.logs.saved_model import only_context
from tests.support.later import Later

pd = Later("pandas")

pytestmark = pytest.mark.usefixtures("few_draws")

LIFTS = {"chat": 0.7, "letter": 0.2}


def letters(n=1500, seed=0, lifts=None, quiet=True):
    """A log whose advised episodes hold no silence: whole conditions are advised or silent."""
    rng = np.random.default_rng(seed)
    lifts = LIFTS if lifts is None else lifts
    names = [*lifts, "alone"] if quiet else list(lifts)
    where = rng.integers(len(names), size=n)
    rows = []
    for episode, kind in enumerate(where):
        name = names[kind]
        for step in range(3):
            advice = None if name == "alone" else "act"
            moved = advice is not None and rng.random() < lifts[name]
            action = "act" if moved or rng.random() < 0.3 else "wait"
            paid = float(rng.random() < (0.6 if action == "act" else 0.3))
            rows.append((f"e{episode}", step, "only", advice, action, paid, name))
    columns = ["episode", "step", "state", "advice", "action", "reward", "condition"]
    return pd.DataFrame(rows, columns=columns)


@pytest.fixture(scope="module")
def log():
    return letters()


@pytest.fixture(scope="module")
def fit(log):
    return counsel.fit(log, columns="context=condition")


def test_lifts_are_by_context_and_everything_else_is_shared(fit):
    assert fit.tally.contexts == ("alone", "chat", "letter")
    a = fit.tally.actions.index("act")
    for name, lift in LIFTS.items():
        here = fit.in_context(name)
        assert here.context == name
        # 1,500 pieces and as many silent decisions: a lift is known to 0.025.
        assert here.problem.lift[0, 0, a] == pytest.approx(lift, abs=0.1)
        np.testing.assert_array_equal(here.problem.policy, fit.problem.policy)
        np.testing.assert_array_equal(here.problem.mdp.reward, fit.problem.mdp.reward)
        assert here.self_check == fit.self_check
    assert not fit.in_context("alone").problem.lift.any()
    (note,) = [note for note in fit.notes if note.what.startswith("contexts in which nobody")]
    assert note.examples == ("alone",)


def test_contexts_that_differ_are_told_from_those_that_do_not(fit):
    found = fit.by_context
    assert found.p_value < 1e-6
    for i, name in enumerate(found.by.keys):
        if name in LIFTS:
            assert found.by.low[i] < LIFTS[name] < found.by.high[i]
    same = counsel.fit(letters(seed=1, lifts={"chat": 0.4, "letter": 0.4}),
                       columns="context=condition").by_context  # fmt: skip
    assert same.p_value > 0.05


def test_the_plan_of_a_context_is_its_own(fit, log, tmp_path):
    worth = {name: plan_advice(fit.in_context(name)).plan.value for name in LIFTS}
    assert worth["chat"] > worth["letter"] + 0.2
    fit.save(tmp_path / "model.npz")
    again = counsel.load_fit(tmp_path / "model.npz")
    assert again.fingerprint == fit.fingerprint
    assert plan_advice(again.in_context("chat")).plan.value == pytest.approx(worth["chat"])
    chat = only_context(read_log(log, counsel.logs.Columns.parse("context=condition")), "chat")
    policy = plan_advice(fit.in_context("chat")).plan.policy
    found = evaluate_policy(chat, policy, fitted=fit.in_context("chat"))
    mean = log[log.condition == "chat"].groupby("episode").reward.sum().mean()
    assert found.logged.value == pytest.approx(mean)
    assert found.policy.model.value == pytest.approx(worth["chat"])
    assert fit.in_context("chat").logged_value == pytest.approx(mean)


@pytest.mark.slow
def test_the_chain_of_commands_knows_contexts(command, tmp_path, log):
    log.to_csv(tmp_path / "log.csv", index=False)
    fitted = command("fit", "log.csv", "--context", "condition", "-o", "m.npz", cwd=tmp_path)
    assert fitted.returncode == 0, fitted.stderr
    assert "By context" in fitted.stdout
    assert "People listen differently in 2 contexts (p < 0.001)." in fitted.stdout
    planned = command("plan", "m.npz", "--budget", 2, "-o", "policy.csv", cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr
    assert "In the context 'chat':" in planned.stdout
    table = pd.read_csv(tmp_path / "policy.csv")
    assert set(table.context) == {"alone", "chat", "letter"}
    words = ("evaluate", "log.csv", "policy.csv", "--model", "m.npz", "--model-only")
    refused = command(*words, cwd=tmp_path)
    assert refused.returncode == 2
    assert "the model has the contexts alone, chat, letter; say which with --in" in refused.stderr
    judged = command(*words, "--in", "chat", "--json", cwd=tmp_path)
    assert judged.returncode == 0, judged.stderr
    told = json.loads(judged.stdout)
    assert told["episodes"] == log[log.condition == "chat"].episode.nunique()
    wrong = command(*words, "--in", "smoke", cwd=tmp_path)
    assert "the model has no context 'smoke'; it has alone, chat, letter" in wrong.stderr
    page = command("report", "log.csv", "--model", "m.npz", "--in", "letter", "-o", "r.html",
                   cwd=tmp_path)  # fmt: skip
    assert page.returncode == 0, page.stderr


def test_a_context_that_changes_within_an_episode_is_refused(log):
    rows = log.copy()
    rows.loc[1, "condition"] = "smoke"
    with pytest.raises(counsel.CounselError, match="must be one and the same"):
        counsel.fit(rows, columns="context=condition")
    rows.loc[1, "condition"] = None
    with pytest.raises(counsel.CounselError, match="is empty in a decision of episode e0"):
        counsel.fit(rows, columns="context=condition")
