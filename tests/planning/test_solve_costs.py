"""Costs of advice, and penalties that change with the step: against LPs and plain recursions."""

import numpy as np
import pytest

import counsel
from counsel.planning.plan import PlanOutcome
from tests.support import oracles
from tests.support.each import each, each_seed
from tests.support.strategies import case

SEEDS = range(30)


def priced(seed, cost, **more):
    """Return a drawn problem, dense and as Counsel's, with these costs."""
    dense, problem = case(seed, **more)
    return dense, counsel.AdviceProblem(problem.mdp, problem.human, cost=cost)


def drawn_costs(seed, shape, *, whole=False):
    rng = np.random.default_rng(1000 + seed)
    return rng.integers(1, 4, size=shape).astype(float) if whole else rng.random(shape) * 2.0


def sweep(dense, cost_hsa, penalty_h):
    """Return values [h, s] by plain backward induction on the machine's MDP."""
    P_hsbt, r_hsb = oracles.machine(*dense[:4])
    may_hsb = oracles.permitted(dense.allowed_hsa, None, None)
    H, S, B = r_hsb.shape
    V_hs = np.zeros((H + 1, S))
    for h in reversed(range(H)):
        for s in range(S):
            values = []
            for b in np.flatnonzero(may_hsb[h, s]):
                price = penalty_h[h] * cost_hsa[h, s, b] if b < B - 1 else 0.0
                values.append(r_hsb[h, s, b] - price + P_hsbt[h, s, b] @ V_hs[h + 1])
            V_hs[h, s] = max(values)
    return V_hs


@each_seed(SEEDS)
def test_values_equal_plain_backward_induction(seed):
    dense, _ = case(seed)
    H, S, A = dense.r_hsa.shape
    rng = np.random.default_rng(seed)
    for shape in ((), (A,), (S, A), (H, S, A)):
        cost = drawn_costs(seed, shape)
        _, problem = priced(seed, cost)
        for penalty in (0.1, rng.random(H) * 0.3):
            plan = counsel.solve(problem, penalty=penalty)
            expected = sweep(dense, problem.cost, np.broadcast_to(penalty, H))
            np.testing.assert_allclose(plan.values, expected, rtol=0, atol=1e-10)
            outcome = counsel.evaluate(problem, plan.policy)
            assert plan.value == pytest.approx(outcome.value, abs=1e-10)
            assert plan.advice_cost == pytest.approx(outcome.advice_cost, abs=1e-10)
            assert plan.advice_count == pytest.approx(outcome.advice_count, abs=1e-10)
            charged = (np.broadcast_to(penalty, H) * outcome.cost).sum()
            assert plan.penalised_value == pytest.approx(outcome.value - charged, abs=1e-10)


@each_seed(range(12))
def test_budgets_equal_the_occupancy_lp_with_costs(seed):
    dense, _ = case(seed)
    cost_hsa = drawn_costs(seed, dense.r_hsa.shape)
    _, problem = priced(seed, cost_hsa)
    front = counsel.frontier(problem)
    for budget in np.linspace(0.0, front.vertices[-1].advice_cost + 0.1, 5):
        lp = oracles.occupancy_lp(*dense, budget=budget + 1e-12, cost_hsa=cost_hsa)
        plan = counsel.solve(problem, budget=budget)
        assert plan.value == pytest.approx(lp.value, abs=1e-7)
        assert front.at_budget(budget).value == pytest.approx(plan.value, abs=1e-9)
        outcome = counsel.evaluate(problem, plan.policy)
        assert outcome.advice_cost <= budget + 1e-9
        assert outcome.value == pytest.approx(plan.value, abs=1e-9)
        assert outcome.advice_cost == pytest.approx(plan.advice_cost, abs=1e-9)
        assert outcome.advice_count == pytest.approx(plan.advice_count, abs=1e-9)


@each_seed(range(20))
def test_penalties_that_change_with_the_step_equal_the_lp(seed):
    dense, _ = case(seed)
    cost_hsa = drawn_costs(seed, dense.r_hsa.shape)
    penalty_h = np.random.default_rng(seed).random(len(dense.r_hsa)) * 0.4
    _, problem = priced(seed, cost_hsa)
    lp = oracles.occupancy_lp(*dense, penalty=penalty_h, cost_hsa=cost_hsa)
    plan = counsel.solve(problem, penalty=penalty_h)
    assert plan.net_value == pytest.approx(lp.value, abs=1e-7)
    assert plan.penalised_value == plan.net_value
    np.testing.assert_array_equal(plan.penalty, penalty_h)


@each_seed(range(20))
@each("budget", [0, 1, 3, 5])
def test_hard_budgets_with_whole_costs_equal_the_recursion(seed, budget):
    dense, _ = case(seed)
    cost_hsa = drawn_costs(seed, dense.r_hsa.shape, whole=True)
    _, problem = priced(seed, cost_hsa)
    plan = counsel.solve(problem, budget=budget, hard=True)
    expected = oracles.hard_budget(*dense[:5], budget, cost_hsa=cost_hsa)
    K = len(plan.values)
    np.testing.assert_allclose(plan.values, expected[:K], rtol=0, atol=1e-10)
    outcome = counsel.evaluate(problem, plan.policy)
    assert outcome.value == pytest.approx(plan.value, abs=1e-10)
    assert outcome.advice_cost == pytest.approx(plan.advice_cost, abs=1e-10)
    assert outcome.advice_count == pytest.approx(plan.advice_count, abs=1e-10)
    episodes = counsel.Simulator(problem).play(
        plan.policy, episodes=50, rng=np.random.default_rng(seed)
    )
    spent = np.zeros(50)
    number = np.repeat(np.arange(50), np.diff(episodes.first))
    step = np.arange(number.size) - episodes.first[number]
    spoken = episodes.advice < problem.n_actions
    cells = (step[spoken], episodes.state[spoken], episodes.advice[spoken])
    np.add.at(spent, number[spoken], problem.cost[cells])
    assert spent.max(initial=0.0) <= budget


@each_seed(range(20))
def test_a_cost_of_one_changes_no_bit(seed):
    dense, plain = case(seed)
    for cost in (1.0, np.ones(plain.n_actions), np.ones(dense.r_hsa.shape)):
        _, problem = priced(seed, cost)
        for limit in ({"penalty": 0.1}, {"budget": 0.7}, {"budget": 1, "hard": True}):
            one, other = counsel.solve(plain, **limit), counsel.solve(problem, **limit)
            assert one.values.tobytes() == other.values.tobytes()
            assert one.policy.advice.tobytes() == other.policy.advice.tobytes()
            assert (one.value, one.advice_count) == (other.value, other.advice_count)
            assert one.advice_cost == pytest.approx(one.advice_count, abs=1e-12)


@each_seed(range(20))
def test_a_cost_of_two_is_two_pieces(seed):
    _, plain = case(seed)
    _, problem = priced(seed, 2.0)
    hard, twice = (
        counsel.solve(plain, budget=1, hard=True),
        counsel.solve(problem, budget=2, hard=True),
    )
    np.testing.assert_array_equal(twice.policy.planes[2], hard.policy.planes[-1])
    assert twice.value == pytest.approx(hard.value, abs=1e-12)
    assert twice.advice_cost == pytest.approx(2.0 * hard.advice_count, abs=1e-12)
    mean, double = counsel.solve(plain, budget=0.6), counsel.solve(problem, budget=1.2)
    assert double.value == pytest.approx(mean.value, abs=1e-9)
    assert double.price == pytest.approx(mean.price / 2.0, abs=1e-9)


@each_seed(range(12))
def test_criticality_is_the_largest_penalty_at_which_advice_still_pays(seed):
    dense, _ = case(seed)
    cost_hsa = 0.2 + drawn_costs(seed, dense.r_hsa.shape)
    _, problem = priced(seed, cost_hsa)
    critical = counsel.criticality(problem).lower
    for penalty in (0.02, 0.1, 0.3):
        advises = counsel.solve(problem, penalty=penalty).policy.advice < problem.n_actions
        assert (critical[advises] >= penalty - 1e-9).all()
    above = counsel.solve(problem, penalty=float(critical.max()) + 1e-6)
    assert (above.policy.advice == problem.n_actions).all()


def test_of_two_equal_pieces_the_cheaper_is_given_and_explained():
    mdp = counsel.MDP([[0, 0, 0]], [[0.0, 1.0, 1.0]], horizon=1)
    human = counsel.Human([[1.0, 0.0, 0.0]], lift=[[0.5, 0.5, 0.5]])
    problem = counsel.AdviceProblem(mdp, human, cost=[1.0, 3.0, 2.0])
    plan = counsel.solve(problem, penalty=0.1)
    assert plan.policy.advice.tolist() == [[2]]
    assert (plan.advice_count, plan.advice_cost) == (1.0, 2.0)
    sentence = str(counsel.explain(problem, plan, step=0, state=0))
    assert "a gain of 0.5 against its price of 2 × 0.1" in sentence
    dear = counsel.solve(problem, penalty=0.3)
    assert dear.policy.advice.tolist() == [[3]]
    sentence = str(counsel.explain(problem, dear, step=0, state=0))
    assert "no more than its price of 2 × 0.3" in sentence


def test_advice_that_costs_nothing_is_given_where_it_gains():
    mdp = counsel.MDP([[0, 0]], [[0.0, 1.0]], horizon=1)
    problem = counsel.AdviceProblem(mdp, counsel.Human([[1.0, 0.0]], 0.5), cost=0.0)
    plan = counsel.solve(problem, penalty=100.0)
    assert (plan.value, plan.advice_count, plan.advice_cost) == (0.5, 1.0, 0.0)


def test_files_and_pickles_keep_costs(tmp_path):
    import pickle

    for cost in (1.0, 2.5, [1.0, 2.0, 3.0], np.full((4, 3), 2.0), np.full((12, 4, 3), 1.5)):
        night = counsel.make("night-shift")
        problem = counsel.AdviceProblem(night.mdp, night.human, cost=cost)
        counsel.save(problem, tmp_path / "night.npz")
        for copy in (counsel.load(tmp_path / "night.npz"), pickle.loads(pickle.dumps(problem))):
            np.testing.assert_array_equal(copy.cost, problem.cost)
            assert copy.cost.strides == problem.cost.strides


@pytest.mark.parametrize(
    ("cost", "sentence"),
    [
        (-1.0, "cost is -1; a cost must be a finite number of at least 0"),
        ([1.0, float("nan"), 1.0], r"cost\[a=1\] is nan; a cost must be a finite number"),
        ([1.0, 2.0], r"cost has shape \(2,\); expected a number, \[a\] = \(3,\)"),
        ("dear", "cost must be numbers"),
        (True, "cost must be numbers, not bool"),
        ([1.0, 1e-9, 2.0], "costs range from 1e-09 to 2; the largest may be at most 1e"),
    ],
)
def test_costs_that_are_none_are_named(cost, sentence):
    night = counsel.make("night-shift")
    with pytest.raises(counsel.CounselError, match=sentence):
        counsel.AdviceProblem(night.mdp, night.human, cost=cost)


@pytest.mark.parametrize(
    ("penalty", "sentence"),
    [
        ([0.1] * 11, r"penalty has shape \(11,\); give a number, or one for each of the 12 steps"),
        ([0.1] * 11 + [-1.0], r"penalty\[h=11\] is -1; it must be a finite number of at least 0"),
        ([0.1] * 11 + [float("nan")], r"penalty\[h=11\] is nan"),
        (float("inf"), "penalty is inf"),
        ([True] * 12, "penalty must be numbers, not bool"),
        ([[1.0], [1.0, 2.0]], "penalty is ragged"),
        (10**400, "penalty is 1000000"),
    ],
)
def test_penalties_that_are_none_are_named(penalty, sentence):
    with pytest.raises(counsel.CounselError, match=sentence):
        counsel.solve(counsel.make("night-shift"), penalty=penalty)


@pytest.mark.parametrize("cost", [0.0, 0.5, 1.5])
def test_a_hard_budget_needs_whole_costs(cost):
    night = counsel.make("night-shift")
    problem = counsel.AdviceProblem(night.mdp, night.human, cost=[1.0, cost, 1.0])
    with pytest.raises(counsel.CounselError, match=rf"cost\[a=1\] is {cost:g}; under a hard"):
        counsel.solve(problem, budget=2, hard=True)


def test_a_policy_may_not_spend_more_than_is_left():
    night = counsel.make("night-shift")
    problem = counsel.AdviceProblem(night.mdp, night.human, cost=2.0)
    policy = counsel.solve(night, budget=1, hard=True).policy
    with pytest.raises(counsel.CounselError, match=r"advises what costs 2 at \[k=1, h="):
        counsel.evaluate(problem, policy)


def small_problem(cost):
    mdp = counsel.MDP([[0, 1], [0, 1]], [0.0, 1.0], horizon=3)
    return counsel.AdviceProblem(mdp, counsel.Human([[0.9, 0.1]] * 2, 0.6), cost=cost)


def test_a_policy_with_a_hard_budget_needs_whole_costs():
    """With a cost of 2.5 the budget went down by 2 only, and was exceeded."""
    advice = np.full((4, 3, 2), 2)
    advice[3, 0], advice[1, 1] = 0, 1
    policy = counsel.Policy(advice, n_actions=2)
    with pytest.raises(counsel.CounselError, match=r"cost\[a=0\] is 2.5; under a hard budget"):
        counsel.evaluate(small_problem([2.5, 1.0]), policy)
    with pytest.raises(counsel.CounselError, match=r"cost\[a=0\] is 0.5; under a hard budget"):
        counsel.Simulator(small_problem([0.5, 1.0])).play(
            policy, episodes=1, rng=np.random.default_rng(0)
        )


def test_a_piece_that_the_rest_of_the_budget_cannot_pay_for_is_explained():
    problem = small_problem(3.0)
    plan = counsel.solve(problem, budget=5, hard=True)
    sentence = str(counsel.explain(problem, plan, step=0, state=0, pieces_left=1))
    assert "costs 3, and only 1 is left" in sentence
    assert sentence.endswith("per unit of cost.")


@pytest.mark.parametrize("penalty", [1e6, 1e9, 1e12])
def test_a_large_penalty_leaves_the_value_its_digits(penalty):
    problem = small_problem(1.0)
    plan = counsel.solve(problem, penalty=penalty, required=[True, True])
    assert plan.value == pytest.approx(counsel.evaluate(problem, plan.policy).value, abs=1e-12)


@each("cost", [1.0, 0.1, 0.01])
def test_the_grid_of_criticality_reaches_the_penalties_of_cheap_advice(cost):
    problem = small_problem(cost)
    exact, rough = counsel.criticality(problem), counsel.criticality(problem, max_kinks=0)
    assert (rough.lower <= exact.lower + 1e-9).all()
    assert (rough.upper >= exact.upper - 1e-9).all()
    assert np.isfinite(rough.upper).all()


def test_a_price_of_a_step_that_does_not_exist_is_an_error():
    plan = counsel.solve(small_problem(1.0), penalty=[0.1, 0.5, 0.2])
    assert [plan.price_at(step) for step in range(3)] == [0.1, 0.5, 0.2]
    with pytest.raises(counsel.CounselError, match="step is 9; it runs from 0 to 2"):
        plan.price_at(9)


def test_a_plan_that_does_not_fit_into_memory_is_refused():
    with pytest.raises(counsel.CounselError, match="a hard budget of 2000000000 takes a plan of"):
        counsel.solve(small_problem([1.0, 1e8]), budget=2_000_000_000, hard=True)


@pytest.mark.parametrize("name", ["hard", "allow_reverse"])
def test_a_switch_that_is_neither_true_nor_false_is_an_error(name):
    for value in ("no", float("nan"), np.array([True, False])):
        with pytest.raises(counsel.CounselError, match=f"{name} is .*; give True or False"):
            counsel.solve(small_problem(1.0), budget=2, **{name: value})


def test_an_explanation_takes_a_problem_and_its_own_criticality():
    problem, longer = small_problem(1.0), counsel.make("night-shift")
    plan, other = counsel.solve(problem), counsel.criticality(longer)
    for given, sentence in ((3, "expected a Criticality, not int"), (other, "is for 12 steps")):
        with pytest.raises(counsel.CounselError, match=sentence):
            counsel.explain(problem, plan, step=0, state=0, criticality=given)
    with pytest.raises(counsel.CounselError, match="expected an AdviceProblem, not NoneType"):
        counsel.explain(None, plan, step=0, state=0)


def test_the_mixture_of_a_plan_has_its_value_and_its_cost():
    """Its count of pieces may differ from that of the policy where costs differ."""
    mdp = counsel.MDP([[0, 0]], [[[0.0, 2.0]], [[0.0, 1.0]]], horizon=2)
    human = counsel.Human([[1.0, 0.0]], lift=1.0)
    problem = counsel.AdviceProblem(mdp, human, cost=[[[1.0, 2.0]], [[1.0, 1.0]]])
    plan = counsel.solve(problem, budget=1.5)
    for part in (plan.policy, plan.mixture):
        outcome = counsel.evaluate(problem, part)
        assert outcome.value == pytest.approx(plan.value, abs=1e-12)
        assert outcome.advice_cost == pytest.approx(plan.advice_cost, abs=1e-12)
    assert plan.advice_count == counsel.evaluate(problem, plan.policy).advice_count


def test_a_plan_with_a_penalty_for_each_step_keeps_its_policy():
    """It was charged the largest penalty at every step."""
    plan = counsel.solve(small_problem(1.0), penalty=[0.1, 0.5, 0.2])
    outcome = PlanOutcome(plan.value, plan.advice_count, plan.advice_cost)
    with pytest.raises(counsel.CounselError, match="a penalty for each step keeps its policy"):
        plan.with_policy(plan.policy, outcome)
    single = counsel.solve(small_problem(1.0), penalty=0.1)
    outcome = PlanOutcome(single.value, single.advice_count, single.advice_cost)
    assert single.with_policy(single.policy, outcome).net_value == pytest.approx(single.net_value)
