"""Costs of advice, and penalties that change with the step, for learners."""

import numpy as np
import pytest

import counsel
from counsel import RFE, UCBAD, CounselError, Structured, Thompson
from counsel.baselines import EULER, UCBVI, UCCFH, Fixed, QLearning, RFExpress, as_if_all_listened
from counsel.learning import KL, Move
from counsel.learning.population import Population
from counsel.learning.replanning import LargePlan, SmallPlan, TwoSidedPlan, plan_for
from counsel.model.machine import machine_rewards
from counsel.planning import reachable_cells
from counsel.worlds import make
from tests.support.each import each, each_seed
from tests.support.problems import adapt, draw

COST = [0.5, 2.0, 1.0]  # of the three pieces of advice of the night shift


def priced(problem, cost):
    return counsel.AdviceProblem(problem.mdp, problem.human, cost=cost)


def rng(seed=1):
    return np.random.default_rng(seed)


def drawn_costs(seed, problem):
    H, S, A = problem.policy.shape
    shape = ((), (A,), (S, A), (H, S, A))[seed % 4]
    return rng(1000 + seed).choice([0.0, 0.5, 1.0, 2.0], size=shape)


def drawn_penalty(seed, horizon):
    return rng(seed).choice([0.0, 0.125, 0.25], size=horizon) if seed % 3 else 0.125


@each_seed(range(40))
def test_a_small_plan_with_costs_is_that_of_a_large_one_and_of_solve(seed, monkeypatch):
    problem = adapt(draw(seed, most=(5, 5, 4)))
    cost, penalty = drawn_costs(seed, problem), drawn_penalty(seed, problem.horizon)
    limits = {"penalty": penalty, "cost": cost}
    small = plan_for(problem.mdp, problem.policy, **limits)
    with monkeypatch.context() as patch:
        patch.setattr(reachable_cells, "SMALL", 0)
        patch.setattr(reachable_cells, "MOST_SHARE", 0.0)
        large = plan_for(problem.mdp, problem.policy, **limits)
    assert isinstance(large, LargePlan)
    assert isinstance(small, SmallPlan)
    chance = rng(seed)
    for _ in range(3):
        pull = chance.choice([0.0, 0.25, 0.5, 1.0, np.nan], size=large.pull.size)
        large.pull[:] = np.where(np.isnan(large.pull), np.nan, pull)
        small.pull[:] = small.aligned(large.pull.reshape(problem.policy.shape))
        planned = small.cells.step_c, small.cells.state_c
        np.testing.assert_array_equal(small.advise()[planned], large.advise()[planned])
        person = counsel.Human(problem.policy, lift=small.lifts())
        best = counsel.solve(counsel.AdviceProblem(problem.mdp, person, cost), penalty=penalty)
        first, second = small.cells.world.start @ small.cells.V_c2[:-1]
        assert first == pytest.approx(best.net_value, abs=1e-11)
        if not np.isnan(large.pull).any():
            assert -second == pytest.approx(best.advice_cost, abs=1e-11)


@each_seed(range(10))
def test_a_two_sided_plan_charges_both_ends_alike(seed):
    problem = adapt(draw(5 * seed, most=(4, 4, 3)))
    cost, penalty = drawn_costs(seed, problem), drawn_penalty(seed, problem.horizon)
    plan = TwoSidedPlan(problem.mdp, problem.policy, penalty=penalty, cost=cost)
    lift = plan.aligned(problem.lift)
    plan.pull[:], plan.push[:] = (
        np.where(lift > 0, lift, np.nan),
        np.where(lift < 0, lift, np.nan),
    )
    policy = counsel.Policy(plan.advise(), n_actions=problem.n_actions)
    true = priced(problem, cost)
    outcome = counsel.evaluate(true, policy)
    net = outcome.value - (np.broadcast_to(penalty, problem.horizon) * outcome.cost).sum()
    assert net == pytest.approx(counsel.solve(true, penalty=penalty).net_value, abs=1e-10)


BUILDERS = {
    "ucb-ad": lambda p, b, c: UCBAD(p.without_adherence(), penalty=b),
    "ucb-ad, repels": lambda p, b, c: UCBAD(p.without_adherence(), penalty=b, may_repel=True),
    "ucb-ad, rewards": lambda p, b, c: UCBAD(p.without_adherence().without_rewards(), penalty=b),
    "thompson": lambda p, b, c: Thompson(p.without_adherence(), rng=rng(), penalty=b),
    "rfe": lambda p, b, c: RFE(p.shape, rng=rng(), penalty=b),
    "rfe, model": lambda p, b, c: RFE(p.shape, rng=rng(), budget=0.75 * c),
    "structured": lambda p, b, c: Structured(p.shape, rng=rng(), penalty=b),
    "structured, model": lambda p, b, c: Structured(p.shape, rng=rng(), budget=0.75 * c),
    "ucb-ad, budget": lambda p, b, c: UCBAD(p.without_adherence(), rng=rng(), budget=0.75 * c),
    "population": lambda p, b, c: Population(p.without_adherence()).learner(1, penalty=b),
    "population, hard": lambda p, b, c: Population(p.without_adherence()).learner(
        1, budget=2 * c, hard=True
    ),
    "euler": lambda p, b, c: EULER(p.shape, **known(p), episodes=40, scale=0.01, penalty=b),
    "ucbvi": lambda p, b, c: UCBVI(p.shape, **known(p), episodes=40, scale=0.01, penalty=b),
    "q": lambda p, b, c: QLearning(p.shape, **known(p), episodes=40, scale=0.01, penalty=b),
    "rf-express": lambda p, b, c: RFExpress(p.shape, rng=rng(), reward=None, penalty=b),
    "uc-cfh": lambda p, b, c: UCCFH(p.shape, **known(p), scale=0.01, budget=0.75 * c),
    "all listen": lambda p, b, c: Fixed(as_if_all_listened(p, penalty=b), penalty=b),
}


def known(problem):
    return {"rng": rng(), "reward": machine_rewards(problem)}


def run(learner, problem, **more):
    settings = {"episodes": 40, "every": 4, "records": 10, "rng": rng(0)} | more
    return list(counsel.learn(learner, counsel.Simulator(problem), **settings))


@pytest.mark.parametrize("name", BUILDERS)
def test_twice_the_cost_is_twice_the_penalty_bit_for_bit(name):
    cheap, dear = make("night-shift"), priced(make("night-shift"), 2.0)
    learners = BUILDERS[name](cheap, 0.14, 1), BUILDERS[name](dear, 0.07, 2)
    records = run(learners[0], cheap), run(learners[1], dear)
    for first, second in zip(*records, strict=True):
        if name == "uc-cfh":  # a linear programme rounds
            assert first.value_gap == pytest.approx(second.value_gap, abs=1e-9)
            continue
        assert first.advice_count == second.advice_count
        assert (first.value_gap, first.regret) == (second.value_gap, second.regret)
    every = 2 if "hard" in name else 1  # a hard budget has a plane for each unit of cost
    planes = learners[1].policy.planes[::every]
    np.testing.assert_array_equal(learners[0].policy.planes, planes)


@pytest.mark.parametrize("name", [name for name in BUILDERS if "budget" not in name])
def test_one_penalty_for_all_steps_is_that_of_every_step(name):
    problem = priced(make("night-shift"), COST)
    if "hard" in name:
        problem = make("night-shift")
    plain, by_step = (BUILDERS[name](problem, b, 1) for b in (0.07, np.full(12, 0.07)))
    for first, second in zip(run(plain, problem), run(by_step, problem), strict=True):
        assert first.advice_count == second.advice_count
        assert first.value_gap == pytest.approx(second.value_gap, abs=1e-10)


@pytest.mark.slow
@each("penalty", [0.06, np.linspace(0.12, 0.0, 12)])
@each("build", [
    lambda p, b: UCBAD(p.without_adherence(), groups=[0, 1, 2], penalty=b),
    lambda p, b: Thompson(p.without_adherence(), rng=rng(), groups=[0, 1, 2], penalty=b),
])  # fmt: skip
def test_learners_of_adherence_converge_to_the_plan_of_solve(build, penalty):
    problem = priced(make("night-shift"), COST)
    best = counsel.solve(problem, penalty=penalty)
    records = run(build(problem, penalty), problem, episodes=6000, every=1, records=60)
    assert sum(record.value_gap for record in records[-10:]) / 10 < 0.01
    assert records[-1].regret < 30.0
    free = counsel.solve(make("night-shift"), penalty=penalty)
    assert not np.array_equal(best.policy.advice, free.policy.advice)


@each_seed(range(12))
def test_optimistic_values_are_never_below_the_truth(seed):
    problem = make("night-shift") if seed % 2 else make("flappy-bird-budget/greedy")
    penalty = rng(seed).random(problem.horizon) * 0.2
    problem = priced(problem, rng(seed).random((problem.n_states, problem.n_actions)) * 2.0)
    learner = UCBAD(problem.without_adherence(), penalty=penalty, bound=KL(delta=1e-4))
    best = counsel.solve(problem, penalty=penalty).net_value
    simulator, chance = counsel.Simulator(problem), rng(seed)
    for _ in range(30):
        learner.update(simulator.play(learner.policy, episodes=10, rng=chance))
        _ = learner.policy
        cells = learner.matches.plan.cells
        assert cells.world.start @ cells.V_c2[:-1, 0] >= best - 1e-9


@each("name", ["ucb-ad", "ucbvi"])
@each("world", ["night-shift", "flappy-bird-budget/greedy"])
@each("by_step", [False, True])
def test_a_compiled_loop_charges_costs_as_learn_does(name, world, by_step):
    problem = make(world)
    problem = priced(problem, rng().random((problem.n_states, problem.n_actions)) * 2.0)
    penalty = np.linspace(0.1, 0.0, problem.horizon) if by_step else 0.07
    learner = BUILDERS[name](problem, penalty, 1)
    assert learner.can_run
    best = counsel.solve(problem, penalty=penalty).penalised_value
    gaps, counts = learner.run(
        counsel.Simulator(problem), best=best, episodes=30, every=30, rng=rng(3)
    )
    policy = BUILDERS[name](problem, penalty, 1).policy
    outcome = counsel.evaluate(problem, policy)
    charge = (np.broadcast_to(penalty, problem.horizon) * outcome.cost).sum()
    assert gaps[0] == pytest.approx(best - (outcome.value - charge), abs=1e-12)
    assert counts[0] == pytest.approx(outcome.advice_count, abs=1e-12)
    assert outcome.advice_cost != pytest.approx(outcome.advice_count)


@each("build", [
    lambda p: UCBAD(p.without_adherence(), groups=[0, 1, 2], budget=1.5, rng=rng()),
    lambda p: Structured(p.shape, rng=rng(), groups=[0, 1, 2], budget=1.5),
    lambda p: Population(p.without_adherence()).learner(1, budget=1.5, rng=rng()),
])  # fmt: skip
def test_budgets_of_learners_are_in_units_of_cost(build):
    problem = priced(make("night-shift"), COST)
    learner = build(problem)
    records = run(learner, problem, episodes=1500, every=50)
    outcome = counsel.evaluate(problem, learner.policy)
    assert outcome.advice_cost == pytest.approx(1.5, abs=0.2)
    by_pieces = counsel.solve(make("night-shift"), budget=1.5).policy
    assert counsel.evaluate(problem, by_pieces).advice_cost > 2.0
    assert abs(records[-1].value_gap) < 0.06


def test_a_hard_budget_of_a_person_counts_costs_live():
    problem = priced(make("night-shift"), [1.0, 2.0, 3.0])
    learner = Population(problem.without_adherence()).learner(1, budget=3, hard=True)
    chance, simulator = rng(), counsel.Simulator(problem)
    episodes = simulator.play(learner.policy, episodes=200, rng=chance)
    assert episodes.costs(problem).max() == 3.0
    spent, state = 0.0, 2
    for step in range(12):
        advice = learner.advise(step, state)
        if advice < problem.defer:
            spent += problem.cost[step, state, advice]
        learner.observe(Move(step, state, advice, 0, 0.0, state))
    assert 0.0 < spent <= 3.0


@each("kind", [RFE, Structured])
def test_learnt_models_have_the_cost_of_the_problem(kind):
    for cost in (2.0, COST, rng().random((4, 3)), rng().random((12, 4, 3))):
        problem = priced(make("night-shift"), cost)
        learner = kind(problem.shape, rng=rng(), reward=problem.mdp.reward)
        learner.explore(counsel.Simulator(problem), episodes=300, rng=rng(0))
        np.testing.assert_array_equal(learner.model().cost[:, :4, :3], problem.cost)
        for penalty in (0.05, np.linspace(0.1, 0.0, 12)):
            plan = learner.plan(penalty=penalty)
            direct = counsel.Policy(learner.best_advice(penalty), n_actions=3)
            values = [counsel.evaluate(problem, policy) for policy in (plan.policy, direct)]
            charges = [(np.broadcast_to(penalty, 12) * each.cost).sum() for each in values]
            assert values[0].value - charges[0] == pytest.approx(values[1].value - charges[1])
        cheap = learner.plan(budget=0.5)
        assert cheap.advice_cost == pytest.approx(0.5)


def test_the_stopping_rule_takes_the_largest_charge():
    cheap, dear = make("night-shift"), priced(make("night-shift"), 2.0)
    settings = {"epsilon": 400.0, "scale": 1e-6}
    ends = []
    for problem, most in ((cheap, 6.0), (dear, 3.0), (dear, 6.0)):
        learner = RFE(problem.shape, rng=rng(), most_penalty=most, **settings)
        simulator, chance = counsel.Simulator(problem), rng(0)
        while not learner.done and learner.episode < 20_000:
            learner.explore(simulator, episodes=50, rng=chance)
        ends.append(learner.episode)
    assert ends[0] == ends[1] < ends[2] < 20_000


def test_the_cost_of_episodes_is_that_of_their_advice():
    problem = priced(make("night-shift"), COST)
    policy = counsel.solve(problem, penalty=0.01).policy
    episodes = counsel.Simulator(problem).play(policy, episodes=2000, rng=rng())
    expected = np.zeros(2000)
    columns = (episodes.episode, episodes.step, episodes.state, episodes.advice)
    for n, h, s, b in zip(*columns, strict=True):
        expected[n] += problem.cost[h, s, b] if b < 3 else 0.0
    np.testing.assert_allclose(episodes.costs(problem), expected)
    assert expected.mean() == pytest.approx(counsel.evaluate(problem, policy).advice_cost, rel=0.02)
    plain = counsel.AdviceProblem(problem.mdp, problem.human)
    np.testing.assert_array_equal(episodes.costs(plain), episodes.pieces)


@each("name", ["ucb-ad", "thompson", "rfe", "structured", "population", "euler", "all listen"])
def test_bad_penalties_are_named(name):
    problem = make("night-shift")
    for penalty, message in (
        ([0.1, 0.2], r"penalty has shape \(2,\); give a number, or one for each of the 12 steps"),
        (np.r_[0.1, -1.0, np.zeros(10)], r"penalty\[h=1\] is -1"),
        (-0.5, "penalty is -0.5"),
    ):
        with pytest.raises(CounselError, match=message):
            BUILDERS[name](problem, penalty, 1)


@each("kind", [RFE, Structured])
def test_the_stopping_rule_needs_one_largest_penalty(kind):
    with pytest.raises(CounselError, match="most_penalty has one number for each step; give the"):
        kind(make("night-shift").shape, rng=rng(), most_penalty=np.full(12, 0.1))


def test_a_budget_excludes_penalties_of_some_steps():
    setting, penalty = make("night-shift").without_adherence(), np.r_[np.zeros(11), 0.1]
    with pytest.raises(CounselError, match="give one or the other"):
        UCBAD(setting, penalty=penalty, budget=1.0)
    assert UCBAD(setting, penalty=np.zeros(12), budget=1.0).budget == 1.0
