"""Plans for work without end against QuantEcon, pymdptoolbox, linear equations and an LP."""

import mdptoolbox.mdp
import numpy as np
import pytest

import counsel
from counsel.planning import discounted
from tests.support import discounted_oracle as oracle
from tests.support.each import each_seed
from tests.support.peers import quantecon_ddp

MEMORIES = [counsel.Memory.pieces(2), counsel.Memory.since(1), counsel.Memory.dose(0.5, 3)]


def drawn(seed):
    """Every third problem has a person with a memory."""
    memory = MEMORIES[seed // 3 % 3] if seed % 3 == 0 else None
    return oracle.draw(seed, memory=memory)


def values(plan):
    return plan.value_planes[:, 0].reshape(-1)


def charged(seed):
    """The machine's world, the plan and the net rewards at a penalty, where all may be done."""
    problem = oracle.draw(seed * 2, discount=0.9)  # an even seed: every action is allowed
    world = oracle.machine(problem)
    return world, counsel.solve(problem, penalty=0.05), world.reward - 0.05 * world.cost


@each_seed(range(60))
@pytest.mark.parametrize("penalty", [0.0, 0.1])
def test_plans_are_best_in_every_cell(seed, penalty):
    problem = drawn(seed)
    world, plan = oracle.machine(problem), counsel.solve(problem, penalty=penalty)
    best = oracle.best_values(world, penalty)
    chosen = oracle.values_of(world, oracle.chances(problem, plan.policy), penalty)
    assert np.abs(values(plan) - best).max() <= max(plan.error, 1e-13)
    assert (best - chosen).max() <= max(plan.error, 1e-13)
    assert plan.error <= 1e-9 * (1.0 + 2.0 * penalty) / (1.0 - problem.discount)
    value, cost = oracle.outcome(world, oracle.chances(problem, plan.policy))
    assert plan.value == pytest.approx(value, abs=1e-9)
    assert plan.advice_cost == pytest.approx(cost, abs=1e-9)
    assert plan.net_value == pytest.approx(value - penalty * cost, abs=1e-9)


@pytest.mark.parametrize("seed", [1, 4, 8])
def test_mdptoolbox_finds_the_same_values(seed):
    world, plan, net = charged(seed)
    toolbox = mdptoolbox.mdp.PolicyIteration(world.P.swapaxes(0, 1), net, 0.9)
    toolbox.run()
    np.testing.assert_allclose(values(plan), toolbox.V, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 4, 8])
def test_quantecon_finds_the_same_values(seed):
    world, plan, net = charged(seed)
    theirs = quantecon_ddp().DiscreteDP(net, world.P, 0.9).solve(method="policy_iteration")
    np.testing.assert_allclose(values(plan), theirs.v, atol=1e-9)


@each_seed(range(30))
def test_a_policy_is_evaluated_as_by_linear_equations(seed):
    problem = drawn(seed)
    world, rng = oracle.machine(problem), np.random.default_rng(seed)
    shape = (problem.n_levels, 1, problem.n_states, problem.n_actions + 1)
    weight = rng.random(shape) * world.possible.reshape(shape) * (rng.random(shape) < 0.7)
    weight[..., -1] += 0.1
    table = weight / weight.sum(axis=-1, keepdims=True)
    levels = problem.n_levels if problem.memory else None
    policy = counsel.Policy.from_probabilities(table if levels else table[0], levels=levels)
    outcome = counsel.evaluate(problem, policy)
    value, cost = oracle.outcome(world, oracle.chances(problem, policy))
    assert abs(outcome.value - value) <= outcome.error + 1e-13
    assert outcome.advice_cost == pytest.approx(cost, abs=1e-11)
    assert outcome.advice_count == pytest.approx(outcome.pieces.sum(), abs=1e-11)
    assert outcome.occupancy.sum() == pytest.approx(1.0 / (1.0 - problem.discount))
    assert outcome.error <= 1e-9 / (1.0 - problem.discount)


@each_seed(range(24))
def test_a_budget_buys_what_the_occupancy_lp_says(seed):
    problem = drawn(seed)
    world = oracle.machine(problem)
    most = counsel.solve(problem).advice_cost
    for share in (0.0, 0.3, 0.8, 1.5):
        plan = counsel.solve(problem, budget=share * most)
        assert plan.value == pytest.approx(oracle.budget_lp(world, share * most), abs=1e-8)
        for policy in (plan.policy, plan.mixture):
            outcome = counsel.evaluate(problem, policy)
            assert outcome.value == pytest.approx(plan.value, abs=1e-8)
            assert outcome.advice_cost == pytest.approx(plan.advice_cost, abs=1e-8)
        assert plan.policy.random.cell.size <= 1
        assert plan.advice_cost <= share * most + 1e-9


def long_work(seed, discount, n_states=30):
    """Draw a problem with three actions and five next states each."""
    rng = np.random.default_rng(seed)
    transition = np.zeros((n_states, 3, n_states))
    for s, a in np.ndindex(n_states, 3):
        following = rng.choice(n_states, 5, replace=False)
        transition[s, a, following] = rng.dirichlet(np.ones(5))
    habit, lift = rng.dirichlet(np.ones(3), n_states), rng.random((n_states, 3))
    mdp = counsel.MDP(transition, rng.random((n_states, 3)), discount=discount)
    return counsel.AdviceProblem(mdp, counsel.Human(habit, lift=lift))


@pytest.mark.parametrize(
    ("seed", "discount", "share"), [(1, 0.999999, 0.33), (1, 0.9999, 0.33), (5, 0.999999, 0.7)]
)
def test_the_error_of_a_budget_plan_covers_that_of_its_two_vertices(seed, discount, share):
    problem = long_work(seed, discount)
    plan = counsel.solve(problem, budget=share * counsel.solve(problem).advice_cost)
    outcome = counsel.evaluate(problem, plan.policy)
    assert abs(plan.value - outcome.value) <= plan.error + outcome.error
    assert plan.error <= 0.02 * abs(plan.value)


@each_seed(range(12))
def test_the_frontier_is_that_of_the_occupancy_lp(seed):
    problem = drawn(seed)
    world, front = oracle.machine(problem), counsel.frontier(problem)
    assert front.complete
    for vertex in front.vertices:
        outcome = counsel.evaluate(problem, vertex.policy)
        assert outcome.value == pytest.approx(vertex.value, abs=1e-9)
        assert outcome.advice_cost == pytest.approx(vertex.advice_cost, abs=1e-9)
    costs = [vertex.advice_cost for vertex in front.vertices]
    for budget in np.linspace(costs[0], costs[-1], 7):
        low, high = front.bounds(budget)
        assert low == pytest.approx(oracle.budget_lp(world, budget), abs=1e-8)
        assert high == pytest.approx(low, abs=1e-8)


@each_seed(range(30))
def test_masks_are_kept_and_the_plan_is_best_among_what_they_permit(seed):
    rng, problem = np.random.default_rng(1000 + seed), drawn(seed)
    S, A = problem.n_states, problem.n_actions
    forbidden = rng.random((S, A)) < 0.4 if seed % 2 else rng.random(S) < 0.4
    permitted = problem.mdp.allowed[0] & ~(forbidden if seed % 2 else forbidden[:, None])
    required = (rng.random(S) < 0.5) & permitted.any(axis=1)
    masks = {"forbidden": forbidden, "required": required}
    plan, world = counsel.solve(problem, penalty=0.2, **masks), oracle.machine(problem, **masks)
    assert np.abs(values(plan) - oracle.best_values(world, 0.2)).max() <= max(plan.error, 1e-12)
    chances = oracle.chances(problem, plan.policy)
    assert not (chances > 0.0)[~world.possible].any()
    least = counsel.solve(problem, **masks).advice_cost
    budget = counsel.frontier(problem, **masks).vertices[0].advice_cost
    if budget > 0.01:
        with pytest.raises(counsel.CounselError, match="required advice"):
            counsel.solve(problem, budget=0.5 * budget, **masks)
    for amount in np.linspace(budget, max(least, budget), 3):
        lp = oracle.budget_lp(world, amount + 1e-9)
        assert counsel.solve(problem, budget=amount, **masks).value == pytest.approx(lp, abs=1e-7)


@pytest.mark.parametrize("seed", [2, 5, 10])
def test_a_long_horizon_with_discounted_rewards_converges_to_work_without_end(seed):
    problem = oracle.draw(seed, discount=0.8)
    plan, gamma = counsel.solve(problem, penalty=0.1), 0.8 ** np.arange(120)
    mdp = counsel.MDP(
        problem.mdp.kernel,
        gamma[:, None, None] * problem.mdp.reward,
        horizon=120,
        start=problem.mdp.start,
        allowed=problem.mdp.allowed[0],
    )
    long = counsel.AdviceProblem(mdp, problem.human, problem.cost[0])
    finite = counsel.solve(long, penalty=0.1 * gamma)
    assert finite.net_value == pytest.approx(plan.net_value, abs=1e-10)
    np.testing.assert_array_equal(finite.policy.advice[0], plan.policy.advice[0])


def test_a_memory_of_one_level_changes_nothing():
    plain = oracle.draw(7, discount=0.9)
    lift = plain.human.lift[0]
    memory = counsel.Memory([[1.0]], [[1.0]], [[1.0]])
    one = counsel.AdviceProblem(
        plain.mdp, counsel.Human(plain.human.policy[0], lift=lift[None], memory=memory), plain.cost
    )
    for limit in ({"penalty": 0.05}, {"budget": 0.7}):
        first, second = counsel.solve(plain, **limit), counsel.solve(one, **limit)
        assert first.value == pytest.approx(second.value, abs=1e-11)
        np.testing.assert_array_equal(first.policy.advice, second.policy.advice[0])


def test_the_equations_of_a_random_policy_have_room_for_every_level_that_may_follow():
    spread = np.full((4, 4), 0.25)
    memory = counsel.Memory(np.eye(4), np.roll(np.eye(4), 1, axis=1), spread)
    problem = oracle.draw(8, discount=0.9, memory=memory)
    S, K = problem.n_states, problem.n_actions + 1
    policy = counsel.Policy.from_probabilities(np.full((4, 1, S, K), 1.0 / K), levels=4)
    value, _ = oracle.outcome(oracle.machine(problem), oracle.chances(problem, policy))
    assert counsel.evaluate(problem, policy).value == pytest.approx(value, abs=1e-11)


def test_silence_wins_where_advice_changes_nothing():
    mdp = counsel.MDP([[0, 0], [0, 1]], [1.0, 2.0], discount=0.9)
    plan = counsel.solve(counsel.AdviceProblem(mdp, counsel.Human(np.full((2, 2), 0.5), 0.9)))
    assert plan.policy.advice.tolist() == [[2, 1]]
    assert plan.advice_count == 0.0  # the start is state 0, which is never left


def test_threads_find_the_same_plan(monkeypatch):
    problem = oracle.draw(11, discount=0.9)
    alone = counsel.solve(problem, penalty=0.02)
    monkeypatch.setattr(discounted, "WORTH_THREADS", 0)
    shared = counsel.solve(problem, penalty=0.02, threads=2)
    np.testing.assert_array_equal(alone.policy.advice, shared.policy.advice)
    assert alone.value == pytest.approx(shared.value, abs=1e-12)


def test_states_that_are_alike_are_planned_once():
    reward = np.zeros((40, 2))
    reward[:, 1] = 1.0
    mdp = counsel.MDP(np.tile([[0, 1]], (40, 1)), reward, discount=0.5, start=np.full(40, 1 / 40))
    problem = counsel.AdviceProblem(mdp, counsel.Human(np.full((40, 2), 0.5), lift=0.5))
    plan = counsel.solve(problem, budget=0.5)
    assert plan.values.shape == (2, 40)
    assert plan.value == pytest.approx(oracle.budget_lp(oracle.machine(problem), 0.5), abs=1e-9)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"budget": 2, "hard": True}, r"hard budget needs a horizon.*discount 0\.9"),
        ({"penalty": [0.1, 0.2]}, r"penalty has shape \(2,\), but the world has no horizon"),
        ({"forbidden": np.zeros((3, 9), bool)}, r"forbidden is bool of shape \(3, 9\)"),
        ({"budget": -1.0}, "budget is -1"),
    ],
)
def test_limits_that_need_a_horizon_are_refused(settings, text):
    with pytest.raises(counsel.CounselError, match=text):
        counsel.solve(oracle.draw(2, discount=0.9), **settings)


def test_a_policy_of_several_steps_is_refused():
    problem = oracle.draw(2, discount=0.9)
    policy = counsel.Policy.never(horizon=3, n_states=problem.n_states, n_actions=problem.n_actions)
    with pytest.raises(counsel.CounselError, match="for 3 steps, but the problem has no end"):
        counsel.evaluate(problem, policy)


def test_a_team_shares_a_budget_of_work_without_end():
    problem = counsel.make("machine-repair", conditions=4)
    shared = counsel.share([problem], counts=[2], budget=3.0)
    assert shared.value == pytest.approx(2 * counsel.solve(problem, budget=1.5).value, rel=1e-12)
    with pytest.raises(counsel.CounselError, match=r"people\[0\] has discount 0\.95"):
        counsel.share([problem, problem], per_step=1)
