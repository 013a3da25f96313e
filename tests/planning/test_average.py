"""Plans by their average per step against an LP, brute force, pymdptoolbox and limits."""

import mdptoolbox.mdp
import numpy as np
import pytest

import counsel
from counsel.planning import average, discounted, one_closed_class
from counsel.worlds import AdviceEnv
from tests.support import average_oracle as oracle
from tests.support import discounted_oracle
from tests.support.each import each_seed

MEMORIES = [counsel.Memory.since(2), counsel.Memory.dose(0.5, 3)]

REFUSING = [
    counsel.Memory.refusals(1),
    counsel.Memory.refusals(3),
    counsel.Memory.since(1) * counsel.Memory.refusals(1),
    counsel.Memory.since(2) * counsel.Memory.refusals(2),
]


def drawn(seed):
    """Every fifth problem has a person with a memory."""
    return oracle.draw(seed, memory=MEMORIES[seed // 5 % 2] if seed % 5 == 2 else None)


def machine(problem, **masks):
    return discounted_oracle.machine(problem, **masks)


def chances(problem, policy):
    return discounted_oracle.chances(problem, policy)


@pytest.mark.slow
@each_seed(range(18))
def test_plans_have_the_best_average_from_every_cell(seed):
    problem = drawn(seed)
    world = machine(problem)
    for penalty in (0.0, 0.1):
        plan = counsel.solve(problem, penalty=penalty)
        best = oracle.budget_lp(world._replace(reward=world.reward - penalty * world.cost))
        gains = oracle.gains_of(world, chances(problem, plan.policy), penalty)
        assert plan.net_value == pytest.approx(best, abs=1e-9)
        assert np.abs(gains - best).max() <= 1e-9
        assert plan.error <= 1e-8
        outcome = counsel.evaluate(problem, plan.policy)
        assert outcome.value == pytest.approx(plan.value, abs=1e-9)
        assert outcome.advice_cost == pytest.approx(plan.advice_cost, abs=1e-9)
        assert outcome.occupancy.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("seed", [3, 12, 16, 17])
def test_no_policy_of_a_tiny_world_has_a_better_average(seed):
    problem = oracle.draw(seed)
    best = oracle.brute_force(machine(problem), 0.05)
    assert counsel.solve(problem, penalty=0.05).net_value == pytest.approx(best.max(), abs=1e-9)
    np.testing.assert_allclose(best, best[0], atol=1e-9)


@each_seed(range(8))
def test_a_budget_per_step_buys_what_the_lp_says(seed):
    problem = drawn(seed)
    world, most = machine(problem), counsel.solve(problem).advice_cost
    for share in (0.0, 0.4, 0.9, 1.5):
        plan = counsel.solve(problem, budget=share * most)
        best = oracle.budget_lp(world, share * most + 1e-12)
        assert plan.value == pytest.approx(best, abs=1e-8)
        outcome = counsel.evaluate(problem, plan.policy)
        assert outcome.value == pytest.approx(plan.value, abs=plan.error + 1e-9)
        assert outcome.advice_cost <= share * most + 1e-9
        assert plan.error <= 1e-5
        mixed = counsel.evaluate(problem, plan.mixture)
        assert mixed.value == pytest.approx(plan.value, abs=1e-8)


def test_the_frontier_of_the_average_is_that_of_the_lp():
    problem = drawn(7)
    world, front = machine(problem), counsel.frontier(problem)
    assert front.complete
    for budget in np.linspace(0.0, front.vertices[-1].advice_cost, 7):
        low, high = front.bounds(budget)
        assert low == pytest.approx(oracle.budget_lp(world, budget), abs=1e-8)
        assert high == pytest.approx(low, abs=1e-8)


@each_seed(range(6))
def test_masks_are_kept_by_plans_per_step(seed):
    rng, problem = np.random.default_rng(1000 + seed), drawn(seed)
    S, A = problem.n_states, problem.n_actions
    forbidden = rng.random((S, A)) < 0.4
    required = (rng.random(S) < 0.5) & ~forbidden.all(axis=1)
    masks = {"forbidden": forbidden, "required": required}
    world = machine(problem, **masks)
    try:
        plan = counsel.solve(problem, penalty=0.2, **masks)
    except counsel.CounselError as refusal:
        assert "comes back" in str(refusal)  # noqa: PT017 (masks may cut a world in two)
        return
    best = oracle.budget_lp(world._replace(reward=world.reward - 0.2 * world.cost))
    assert plan.net_value == pytest.approx(best, abs=1e-9)
    assert not (chances(problem, plan.policy) > 0.0)[~world.possible].any()


def test_mdptoolbox_finds_the_same_average():
    problem = counsel.make("inventory", shelves=5).without_end(average=True)
    world = machine(problem)
    net = np.where(world.possible, world.reward - 0.05 * world.cost, -1e6)
    P = np.where(world.possible[:, :, None], world.P, np.eye(6)[:, None])
    theirs = mdptoolbox.mdp.RelativeValueIteration(P.swapaxes(0, 1), net, epsilon=1e-12)
    theirs.max_iter = 100_000
    theirs.run()
    plan = counsel.solve(problem, penalty=0.05)
    assert plan.net_value == pytest.approx(theirs.average_reward, abs=1e-9)


def test_a_discount_near_one_converges_to_the_average():
    endless = counsel.make("machine-repair", conditions=4)
    best, apart = counsel.solve(endless.without_end(average=True), penalty=0.2), []
    for gamma in (0.99, 0.9999):
        plan = counsel.solve(endless.without_end(gamma), penalty=0.2)
        apart.append(abs((1.0 - gamma) * plan.net_value - best.net_value))
    assert apart[1] < 0.011 * apart[0]
    assert apart[1] < 2e-3


def test_a_long_horizon_converges_to_the_average():
    repair = counsel.make("machine-repair", conditions=4)
    best, values = counsel.solve(repair.without_end(average=True), penalty=0.2), []
    for horizon in (300, 400):
        mdp = counsel.MDP(repair.mdp.kernel, repair.mdp.reward[0], horizon=horizon)
        long = counsel.AdviceProblem(mdp, repair.human)
        values.append(counsel.solve(long, penalty=0.2).net_value)
    assert (values[1] - values[0]) / 100 == pytest.approx(best.net_value, abs=1e-9)


def round_trip(listens):
    """A walk around three states that pays for every second visit, taken only when advised."""
    mdp = counsel.MDP([[0, 1], [2, 2], [0, 0]], [[0.1, 0.0], [0.0, 0.0], [1.0, 1.0]], average=True)
    return counsel.AdviceProblem(mdp, counsel.Human([[1.0, 0.0]] * 3, listens))


def test_periodic_worlds_have_an_average():
    plan = counsel.solve(round_trip(1.0))
    assert plan.value == pytest.approx(1.0 / 3.0, abs=1e-12)
    assert plan.advice_count == pytest.approx(1.0 / 3.0, abs=1e-12)
    assert plan.error < 1e-12


def test_two_regimes_that_cost_something_to_change_are_shared_by_a_seldom_change():
    mdp = counsel.MDP([[0, 1], [1, 0]], [[0.2, -9.0], [1.0, -9.0]], average=True)
    human = counsel.Human([[1.0, 0.0], [0.0, 1.0]], 1.0)
    problem = counsel.AdviceProblem(mdp, human)
    plan = counsel.solve(problem, budget=0.5)
    assert plan.value == pytest.approx(0.6, abs=1e-9)
    outcome = counsel.evaluate(problem, plan.policy)
    assert outcome.advice_count == pytest.approx(0.5, abs=1e-9)
    assert 0.6 - plan.error <= outcome.value < 0.6
    assert plan.error < 1e-5


def test_ties_take_the_least_advice_per_step():
    mdp = counsel.MDP([[0, 1], [0, 1]], [1.0, 1.0], average=True)
    plan = counsel.solve(counsel.AdviceProblem(mdp, counsel.Human(np.full((2, 2), 0.5), 0.9)))
    assert plan.policy.advice.tolist() == [[2, 2]]
    assert plan.advice_count == 0.0


def test_the_values_of_an_average_are_zero_at_the_start():
    problem = drawn(1)
    plan = counsel.solve(problem, penalty=0.02)
    assert problem.mdp.start @ plan.values[0] == pytest.approx(0.0, abs=1e-12)
    bias = oracle.best_bias(machine(problem), 0.02)
    np.testing.assert_allclose(plan.values[0] - plan.values[0, 0], bias - bias[0], atol=1e-7)


@each_seed(range(4))
def test_advice_pays_up_to_the_criticality_of_the_average(seed):
    problem = drawn(seed)
    world, cells = machine(problem), counsel.criticality(problem)
    critical = cells.lower.reshape(-1)
    assert cells.exact

    def lead(penalty):
        net = world.reward - penalty * world.cost + world.P @ oracle.best_bias(world, penalty)
        net = np.where(world.possible, net, -np.inf)
        return net[:, :-1].max(axis=1) - net[:, -1]

    for penalty in np.unique(critical)[-2:]:
        at = np.flatnonzero(critical == penalty)
        if penalty > 1e-9:
            assert (lead(penalty * (1 - 1e-4))[at] > 0.0).all()
        for above in (penalty * (1 + 1e-4) + 1e-6, 2.0 * penalty + 0.1):
            assert (lead(above)[at] <= 1e-8).all()


def test_a_grid_brackets_the_criticality_of_the_average():
    problem = counsel.make("machine-repair", conditions=5).without_end(average=True)
    exact, rough = counsel.criticality(problem), counsel.criticality(problem, max_kinks=0)
    assert exact.exact
    assert not rough.exact
    assert (rough.lower <= exact.lower + 1e-12).all()
    assert (exact.lower <= rough.upper + 1e-12).all()


def test_an_explanation_of_an_average_has_the_gain_that_decides():
    problem = counsel.make("machine-repair", conditions=5).without_end(average=True)
    plan = counsel.solve(problem, penalty=0.3)
    for state in range(problem.n_states):
        why = counsel.explain(problem, plan, state=state)
        assert why.step is None
        assert (why.advice is not None) == (why.gain > why.price)


def test_a_team_shares_pieces_per_step_on_average():
    problem = counsel.make("machine-repair", conditions=4).without_end(average=True)
    shared = counsel.share([problem], counts=[3], budget=0.3)
    assert shared.value == pytest.approx(3 * counsel.solve(problem, budget=0.1).value, rel=1e-9)


def test_a_team_mixes_no_averages_with_sums():
    repair = counsel.make("machine-repair", conditions=4)
    with pytest.raises(counsel.CounselError, match=r"people\[0\].*discount 0\.95.*people\[1\]"):
        counsel.share([repair, repair.without_end(average=True)], budget=1.0)


@pytest.mark.slow
def test_a_long_episode_earns_the_average():
    problem = counsel.make("machine-repair", conditions=3).without_end(average=True)
    plan = counsel.solve(problem, budget=0.1)
    env, rewards = AdviceEnv(problem), []
    state, _ = env.reset(seed=1)
    for _ in range(100):
        total = 0.0
        for _ in range(300):
            advice = plan.policy.draw(0, int(state), env.np_random)
            state, reward, over, truncated, _ = env.step(advice)
            assert not over
            assert not truncated
            total += reward
        rewards.append(total / 300)
    error = np.std(rewards) / np.sqrt(len(rewards))
    assert abs(np.mean(rewards) - plan.value) < 4.0 * error


@each_seed(range(10))
def test_exactly_the_worlds_that_do_not_come_back_are_refused(seed):
    problem = oracle.draw(seed, leads_back=False)
    if oracle.comes_back(machine(problem)):
        assert np.isfinite(counsel.solve(problem).value)
        return
    with pytest.raises(counsel.CounselError, match="comes back to where it was"):
        counsel.solve(problem)


def test_the_refusal_names_the_states_that_are_never_left():
    mdp = counsel.MDP(
        [[1, 2], [1, 1], [2, 2]],
        [0.0, 1.0, 2.0],
        average=True,
        state_labels=["gate", "garden", "cellar"],
    )
    problem = counsel.AdviceProblem(mdp, counsel.Human(np.full((3, 2), 0.5), 0.8))
    text = "stay in garden for ever or in cellar for ever"
    for use in (counsel.solve, counsel.frontier, counsel.criticality):
        with pytest.raises(counsel.CounselError, match=text):
            use(problem)
    silent = counsel.Policy.never(horizon=1, n_states=3, n_actions=2)
    with pytest.raises(counsel.CounselError, match=r"no one average per step.*garden.*cellar"):
        counsel.evaluate(problem, silent)


def test_a_memory_that_never_forgets_does_not_come_back():
    problem = oracle.draw(7, memory=counsel.Memory.pieces(2))
    with pytest.raises(counsel.CounselError, match="comes back"):
        counsel.solve(problem)


def test_a_hard_budget_of_an_average_is_refused():
    with pytest.raises(counsel.CounselError, match=r"no end.*average per step"):
        counsel.solve(drawn(1), budget=1, hard=True)


def test_large_worlds_have_an_average_too(monkeypatch):
    rng = np.random.default_rng(5)
    S = 230  # more than are solved by elimination
    near = rng.integers(S, size=(S, 2, 3))
    P = np.zeros((S, 2, S))
    for j in range(3):
        P[np.arange(S)[:, None], np.arange(2), near[:, :, j]] += 1.0 / 3.0
    mdp = counsel.MDP(P, rng.random((S, 2)), average=True)
    problem = counsel.AdviceProblem(mdp, counsel.Human(np.full((S, 2), 0.5), lift=0.6))
    plan = counsel.solve(problem, penalty=0.05)
    best = oracle.best_gain(machine(problem), 0.05)
    assert plan.net_value == pytest.approx(best, abs=1e-8)
    monkeypatch.setattr(average, "always_reaches_silence", lambda *_: False)
    other = counsel.solve(problem, penalty=0.05)
    assert other.net_value == pytest.approx(plan.net_value, abs=plan.error + other.error)


def ladder(days, rungs):
    """Return a problem in which silence leads down a ladder and advice up, on days in turn."""
    S = days * rungs
    day, rung = np.divmod(np.arange(S), rungs)
    down = 0.3 + 0.2 * np.sin(2.0 * np.pi * day / days)
    P = np.zeros((S, 2, S))
    for a, up in enumerate((0.15, 0.65)):
        for to, p in (
            (np.minimum(rung + 1, rungs - 1), up * (1.0 - down)),
            (np.maximum(rung - 1, 0), down * (1.0 - up)),
            (rung, up * down + (1.0 - up) * (1.0 - down)),
        ):
            np.add.at(P, (np.arange(S), a, (day + 1) % days * rungs + to), p)
    reward = np.sqrt(rung / rungs)[:, None] - [0.0, 0.4]
    mdp = counsel.MDP(P, reward, average=True)
    return counsel.AdviceProblem(mdp, counsel.Human(np.tile([0.8, 0.2], (S, 1)), lift=0.5))


@pytest.mark.parametrize(("days", "rungs"), [(1, 60), (7, 40)])
def test_a_ladder_that_is_climbed_with_advice_alone_has_an_average(days, rungs):
    """All cycles began where silence ends: the plan of 60 cells was refused, that of 280 hung."""
    problem = ladder(days, rungs)
    world, plan = machine(problem), counsel.solve(problem, penalty=0.5)
    V = plan.values[0]
    improved = (world.reward - 0.5 * world.cost + world.P @ V).max(axis=1) - V
    assert improved.max() == pytest.approx(plan.net_value, abs=1e-9)  # no plan has more
    assert improved.min() == pytest.approx(plan.net_value, abs=1e-9)
    assert counsel.evaluate(problem, plan.policy).value == pytest.approx(plan.value, abs=1e-9)


def test_a_plan_whose_error_may_be_large_is_refused(monkeypatch):
    monkeypatch.setattr(average, "MOST_ERROR", 0.0)
    with pytest.raises(counsel.CounselError, match="has not converged: its error may be"):
        counsel.solve(ladder(1, 20))


@pytest.mark.slow
@each_seed(range(18, 120))
def test_many_plans_and_budgets_agree_with_the_lp(seed):
    problem = drawn(seed)
    world, plan = machine(problem), counsel.solve(problem)
    assert plan.value == pytest.approx(oracle.budget_lp(world), abs=1e-8)
    budget = 0.6 * plan.advice_cost
    within = counsel.solve(problem, budget=budget)
    assert within.value == pytest.approx(oracle.budget_lp(world, budget + 1e-12), abs=1e-8)
    outcome = counsel.evaluate(problem, within.policy)
    assert outcome.value == pytest.approx(within.value, abs=within.error + 1e-9)
    assert outcome.advice_cost <= budget + 1e-9


def test_a_budget_per_step_is_not_exceeded_by_rounding_where_changes_are_seldom():
    problem = drawn(80)
    budget = 0.6 * counsel.solve(problem).advice_cost
    plan = counsel.solve(problem, budget=budget)
    assert counsel.evaluate(problem, plan.policy).advice_cost <= budget * (1.0 + 1e-11)


def alternating():
    """Return a problem whose best choices have several closed classes, other ones in each round."""
    mdp = counsel.MDP(
        [[[1, 0], [0.4, 0.6]], [[1, 0], [1, 0]]],
        [[0.0, 2.0], [2.0, 0.0]],
        average=True,
        start=[0.25, 0.75],
    )
    human = counsel.Human(
        [[0.0, 1.0], [1.0, 0.0]],
        lift=[
            [[0.5, 0.25], [1, 0]],
            [[0, 0.25], [0, 1]],
            [[0.5, 1], [0, 0.5]],
            [[0.5, 0], [1, 0]],
        ],
        memory=counsel.Memory.refusals(3),
    )
    return counsel.AdviceProblem(mdp, human)


def test_a_plan_does_not_alternate_between_advice_with_several_closed_classes():
    problem = alternating()
    plan = counsel.solve(problem)
    assert plan.value == pytest.approx(2.0, abs=1e-12)  # the largest reward
    assert plan.advice_cost == 0.0
    assert plan.error <= 1e-8
    assert counsel.evaluate(problem, plan.policy).value == pytest.approx(2.0, abs=1e-12)


def refusing(seed):
    """Draw a sparse world and a person whose memory counts refusals, of coarse numbers that tie."""
    rng, memory = np.random.default_rng(seed), REFUSING[seed % len(REFUSING)]
    S, A = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    P = rng.choice([0.0, 0.0, 0.0, 1.0, 2.0], size=(S, A, S))
    P[np.arange(S)[:, None], np.arange(A), rng.integers(S, size=(S, A))] += 1.0
    P /= P.sum(axis=2, keepdims=True)
    habit = np.eye(A)[rng.integers(A, size=S)]
    if rng.random() < 0.5:
        habit = rng.dirichlet(np.ones(A), size=S)
    lift = rng.choice([0.0, 0.25, 0.5, 1.0], size=(memory.n_levels, S, A))
    reward = rng.integers(4, size=(S, A)).astype(float)
    mdp = counsel.MDP(P, reward, average=True, start=rng.dirichlet(np.ones(S)))
    return counsel.AdviceProblem(mdp, counsel.Human(habit, lift=lift, memory=memory))


@pytest.mark.slow
@each_seed(range(60))
def test_plans_for_people_who_remember_refusals_agree_with_the_lp(seed):
    problem = refusing(seed)
    world = machine(problem)
    try:
        plan = counsel.solve(problem)
    except counsel.CounselError as refusal:
        assert "comes back" in str(refusal)  # noqa: PT017 (no advice may undo a refusal)
        return
    for penalty in (0.0, 0.1, 0.5):
        plan = counsel.solve(problem, penalty=penalty)
        best = oracle.budget_lp(world._replace(reward=world.reward - penalty * world.cost))
        gains = oracle.gains_of(world, chances(problem, plan.policy), penalty)
        assert plan.net_value == pytest.approx(best, abs=1e-8)
        assert gains == pytest.approx(np.full(gains.size, best), abs=1e-8)
        assert plan.error <= 1e-7
    front = counsel.frontier(problem)
    least = -oracle.budget_lp(world._replace(reward=-world.cost))
    assert front.vertices[0].advice_cost == pytest.approx(least, abs=1e-8)
    assert front.vertices[0].value == pytest.approx(
        oracle.budget_lp(world, least + 1e-12), abs=1e-7
    )
    most = counsel.solve(problem).advice_cost
    assert most == pytest.approx(front.vertices[-1].advice_cost, abs=1e-8)
    for share in (0.3, 0.8):
        budget = least + share * (most - least)
        within = counsel.solve(problem, budget=budget)
        assert within.value == pytest.approx(oracle.budget_lp(world, budget + 1e-12), abs=1e-7)
        mixed = counsel.evaluate(problem, within.mixture)
        assert mixed.value == pytest.approx(within.value, abs=1e-8)
        outcome = counsel.evaluate(problem, within.policy)
        assert outcome.value == pytest.approx(within.value, abs=within.error + 1e-8)


def test_a_plan_that_has_not_converged_is_refused(monkeypatch):
    monkeypatch.setattr(one_closed_class, "MOST_ROUNDS", 1)
    monkeypatch.setattr(average, "FEW_ROUNDS", 1)
    with pytest.raises(counsel.CounselError, match=r"has not converged after 1 rounds; .*discount"):
        counsel.solve(refusing(0))
    monkeypatch.setattr(discounted, "MOST_ROUNDS", 1)
    problem = counsel.make("machine-repair", conditions=5).without_end(average=True)
    with pytest.raises(
        counsel.CounselError, match=r"has not converged: its error may be .*allowed"
    ):
        counsel.solve(problem)
