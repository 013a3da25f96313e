"""A fitted model planned as work without end."""

import numpy as np
import pytest
from typer.testing import CliRunner

import counsel
from counsel.cli.app import app
from counsel.logs import plan_advice, plan_tables


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of machines that are watched for 20 days each; no episode ends before."""
    folder = tmp_path_factory.mktemp("model")
    repair = counsel.make("machine-repair", conditions=3)
    mdp = counsel.MDP(repair.mdp.kernel, repair.mdp.reward[0], horizon=20)
    problem = counsel.AdviceProblem(mdp, repair.human)
    policy = counsel.Policy.from_probabilities(
        np.full((20, problem.n_states, problem.n_actions + 1), 1 / (problem.n_actions + 1))
    )
    rng = np.random.default_rng(0)
    episodes = counsel.Simulator(problem).play(policy, episodes=200, rng=rng)
    counsel.save_log(episodes, folder / "log.csv", problem=problem)
    fit = counsel.fit(folder / "log.csv")
    fit.save(folder / "model.npz")
    return folder, fit


@pytest.mark.parametrize(
    ("end", "limit"),
    [({"discount": 0.9}, {"budget": 0.5}), ({"average": True}, {"penalty": 0.3})],
)
def test_the_plan_is_that_of_the_fitted_problem_without_end(model, end, limit):
    _, fit = model
    plan = plan_advice(fit, **end, **limit)
    best = counsel.solve(fit.problem.without_end(**end), allow_reverse=False, **limit)
    assert plan.plan.value == pytest.approx(best.value)
    assert plan.plan.policy.advice.shape[0] == 1
    (table,) = plan_tables(plan)
    assert "step" not in table.column_names
    silent = counsel.solve(fit.problem.without_end(**end), budget=0)
    assert plan.value_alone == pytest.approx(silent.value)


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_counsel_plan_takes_a_discount_or_an_average(model, tmp_path):
    folder, _ = model
    told = run("plan", folder / "model.npz", "--discount", "0.9", "--budget", "0.5")
    assert told.exit_code == 0, told.output
    assert "Without end (discount 0.9): with 0.5 pieces of advice" in told.output
    assert "--budget 0.5 --discount 0.9" in told.output
    told = run("plan", folder / "model.npz", "--average", "-o", tmp_path / "plan.csv")
    assert "pieces of advice per step the expected reward" in told.output
    assert (tmp_path / "plan.csv").read_text().startswith('"state","advice","probability"')


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"discount": 1.5}, r"discount is 1\.5"),
        ({"discount": 0.9, "average": True}, "discount is 0.9 and average is True"),
        ({"discount": 0.9, "cautious": True}, "a cautious plan needs a horizon"),
        ({"average": True, "budget": 1, "hard": True}, "hard budget needs a horizon"),
    ],
)
def test_what_cannot_be_planned_without_end_is_refused(model, settings, text):
    with pytest.raises(counsel.CounselError, match=text):
        plan_advice(model[1], **settings)


def test_a_log_whose_episodes_end_has_no_average(tmp_path):
    mdp = counsel.MDP([[1, 1], [2, 0], [2, 2]], [0.0, 1.0, 0.0], horizon=8)
    problem = counsel.AdviceProblem(mdp, counsel.Human(np.full((3, 2), 0.5), lift=0.4))
    policy = counsel.Policy.from_probabilities(np.full((8, 3, 3), 1 / 3))
    played = counsel.Simulator(problem).play(policy, episodes=50, rng=np.random.default_rng(1))
    counsel.save_log(played, tmp_path / "log.csv", problem=problem)
    with pytest.raises(counsel.CounselError, match="episodes of this log end"):
        plan_advice(counsel.fit(tmp_path / "log.csv"), average=True)
