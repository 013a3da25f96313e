"""Costs of advice in logs: kept by every model, counted by budgets, plans and evaluations."""

import dataclasses

import numpy as np
import pytest

import counsel
from counsel.logs import evaluate_policy, plan_advice
from counsel.logs.decisions import load_decisions
from counsel.logs.estimate import estimate
from counsel.logs.importance_weights import policy_values
from counsel.logs.plan_table import plan_tables, ranked_entries
from counsel.logs.read import as_log
from counsel.logs.read_policy import read_policy
from counsel.logs.report_contents import choose_budget
from counsel.logs.sensitivity import sensitivity_ranges
from counsel.model.advice_costs import advice_costs
from counsel.worlds.ward import ACTIONS, ward_log

COSTS = {"call doctor": 3, "assess": 2.0}


@pytest.fixture(scope="module")
def log():
    return ward_log(shifts=300, rng=np.random.default_rng(0))


@pytest.fixture(scope="module")
def plain(log):
    return counsel.fit(log)


@pytest.fixture(scope="module")
def fitted(log):
    return counsel.fit(log, cost=COSTS)


def priced(fit, costs=COSTS):
    """The same problem with costs by hand."""
    cost = [costs.get(label, 1.0) for label in fit.problem.mdp.action_labels]
    return counsel.AdviceProblem(fit.problem.mdp, fit.problem.human, cost=cost)


def test_a_fit_and_its_file_and_its_draws_keep_the_costs(fitted, tmp_path):
    expected = priced(fitted).cost
    fitted.save(tmp_path / "ward.npz")
    again = counsel.load_fit(tmp_path / "ward.npz")
    draws = [estimates.problem for _, estimates in fitted.resample(2, np.random.default_rng(0))]
    loaded = counsel.load(tmp_path / "ward.npz")
    for problem in (fitted.problem, again.problem, loaded, *draws):
        np.testing.assert_array_equal(problem.cost, expected)
    assert fitted.costs == again.costs == {"assess": 2.0, "call doctor": 3.0}


@pytest.mark.parametrize("limit", [{"penalty": 0.02}, {"budget": 2.5}, {"budget": 4, "hard": True}])
def test_plans_are_those_of_solve_with_these_costs(plain, fitted, limit):
    expected = counsel.solve(priced(plain), **limit, allow_reverse=False)
    plan = plan_advice(fitted, **limit).plan
    np.testing.assert_array_equal(plan.policy.planes, expected.policy.planes)
    assert (plan.value, plan.advice_cost) == (expected.value, expected.advice_cost)
    assert plan.advice_cost > plan.advice_count + 0.1
    if "budget" in limit:
        assert plan.advice_cost <= limit["budget"] + 1e-9


def test_costs_of_one_change_nothing(log, plain, tmp_path):
    same = counsel.fit(log, cost={"call doctor": 1, "assess": 1.0})
    files = []
    for name, fit in (("plain", plain), ("same", same)):
        fit.save(tmp_path / f"{name}.npz")
        files.append(np.load(tmp_path / f"{name}.npz"))
    assert files[0].files == files[1].files
    assert files[0]["header"].tobytes() == files[1]["header"].tobytes()
    assert plain.costs == same.costs == {}
    assert plain.logged_cost == plain.logged_pieces
    # The sums of an engine differ in their last digit from one run to the next.
    estimates = estimate(plain.tally, plain.sharing, cost=advice_costs({"assess": 1}, ACTIONS))
    same = dataclasses.replace(plain, estimates=estimates)
    for limit in ({"penalty": 0.02}, {"budget": 1.5}, {"budget": 2, "hard": True}):
        tables = [
            [table.to_pylist() for table in plan_tables(plan_advice(fit, **limit))]
            for fit in (plain, same)
        ]
        assert tables[0] == tables[1]
        assert "cost" not in tables[0][0][0]


def test_the_log_is_charged_for_what_it_sent(log, fitted):
    rows = log.to_pylist()
    charged = sum({"carry on": 1.0, **COSTS}[row["advice"]] for row in rows if row["advice"])
    assert fitted.logged_cost == pytest.approx(charged / 300)


def test_gains_of_the_table_are_those_of_explain(fitted):
    plan = plan_advice(fitted, budget=4, hard=True)
    rows = [row for table in plan_tables(plan) for row in table.to_pylist() if row["advice"]]
    assert {row["cost"] for row in rows} == {1.0, 2.0, 3.0}
    for row in rows[::7]:
        why = counsel.explain(
            fitted.problem,
            plan.plan,
            step=row["step"],
            state=row["state"],
            pieces_left=row["pieces_left"],
            criticality=plan.criticality,
        )
        assert fitted.tally.actions[why.advice] == row["advice"]
        assert row["gain"] == pytest.approx(why.gain, rel=1e-5)
        assert row["advantage"] == pytest.approx(why.advantage, rel=1e-5)
        assert why.cost == row["cost"] <= row["pieces_left"]
    assert {entry.advice: entry.cost for entry in ranked_entries(plan)}["call doctor"] == 3.0


def test_a_table_of_a_plan_with_costs_is_read_back(fitted, tmp_path):
    from counsel._tables import write_tables
    from counsel.logs.plan_table import plan_columns

    plan = plan_advice(fitted, budget=8, hard=True)
    write_tables(tmp_path / "policy.csv", plan_columns(plan))
    policy = read_policy(tmp_path / "policy.csv", fitted)
    S = len(fitted.tally.states)
    np.testing.assert_array_equal(policy.planes[:, :, :S], plan.plan.policy.planes[:, :, :S])


def test_weights_count_what_was_spent_by_its_cost(log, fitted):
    """Along each episode, V is Q of what the policy does there, with what is left there."""
    plan = plan_advice(fitted, budget=4, hard=True).plan
    rows = load_decisions(as_log(log, None, None), fitted.tally, fitted.problem)
    cost_b = np.append(fitted.problem.cost[0, 0], 0.0)
    for episode in range(20):
        mine = np.flatnonzero(rows.episode == episode)
        spent = np.append(0.0, np.cumsum(cost_b[rows.advice[mine]]))[:-1]
        np.testing.assert_array_equal(rows.earlier[mine], spent)
    left = np.maximum(4 - rows.earlier, 0)
    says = plan.policy.planes[left, rows.place, rows.state]
    obedient = dataclasses.replace(rows, advice=says)
    q, v = policy_values(fitted.problem, plan.policy, obedient)
    np.testing.assert_allclose(q, v, rtol=0, atol=1e-12)
    np.testing.assert_allclose(v, plan.values[left, rows.place, rows.state], rtol=0, atol=1e-9)


@pytest.mark.slow
def test_an_evaluation_has_the_cost_beside_the_pieces(log, plain, fitted, few_draws):
    policy = plan_advice(fitted, budget=3).plan.policy
    result = evaluate_policy(log, policy, cost=COSTS)
    assert result.has_costs
    assert result.policy.cost == pytest.approx(3.0)
    assert result.policy.pieces < 2.9
    assert result.logged_cost == fitted.logged_cost
    assert not evaluate_policy(log, policy, fitted=plain).has_costs


def test_the_budget_of_a_report_and_the_sensitivity_are_in_units_of_cost(plain, fitted):
    assert choose_budget(fitted) > choose_budget(plain)
    policy = plan_advice(fitted, budget=6, hard=True).plan.policy
    same, *_ = sensitivity_ranges(fitted, policy)
    worth = counsel.evaluate(fitted.problem, policy).value
    alone = counsel.solve(fitted.problem, budget=0).value
    assert same.low == pytest.approx(worth - alone)


@pytest.mark.parametrize(
    ("cost", "sentence"),
    [
        ({"pag": 3}, "cost has pag=3; there is no such advice, only assess, call doctor, carry on"),
        ({"assess": -1}, "the cost of assess is -1; it must be a finite number of at least 0"),
        ({"assess": float("nan")}, "the cost of assess is nan"),
        ({"assess": "dear"}, "the cost of assess must be a number, not 'dear'"),
        (3.0, 'cost is 3.0; give costs by label, e.g. {"page": 3}'),
    ],
)
def test_costs_that_make_no_sense_are_named(log, cost, sentence):
    with pytest.raises(counsel.CounselError) as fault:
        counsel.fit(log, cost=cost)
    assert sentence in str(fault.value)


def test_a_hard_budget_needs_whole_costs(log):
    fit = counsel.fit(log, cost={"assess": 0.5})
    assert plan_advice(fit, budget=1.5).plan.advice_cost == pytest.approx(1.5)
    with pytest.raises(counsel.CounselError, match=r"is 0\.5; under a hard budget"):
        plan_advice(fit, budget=2, hard=True)
