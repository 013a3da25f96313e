"""The simulator against ``evaluate``: rewards, pieces of advice and where people are."""

import numpy as np
import pytest

import counsel
from counsel import Mixture, Policy, Simulator
from tests.support import examples
from tests.support.each import each, each_seed
from tests.support.frequencies import check_binomial, check_means
from tests.support.problems import adapt
from tests.support.simulated import (
    PATCHWORKS,
    WORLDS,
    check_evaluation,
    drawn_hard,
    everything,
    never,
    patchwork,
    policies,
    world,
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plan", "random", "hard", "mixture"])
@pytest.mark.parametrize("name", WORLDS)
def test_named_worlds_bring_what_evaluate_says(name, kind):
    problem, policy = world(name), policies(name)[kind]
    counts = Simulator(problem).count(policy, episodes=200_000, rng=np.random.default_rng(1))
    check_evaluation(problem, policy, counts)
    if kind == "hard":
        assert counts.pieces.max() == 2


@pytest.mark.slow
@each_seed(PATCHWORKS)
def test_drawn_problems_bring_what_evaluate_says(seed):
    problem = patchwork(seed)
    random = everything(problem, seed)
    hard, generous = drawn_hard(problem, 2, seed), drawn_hard(problem, 7, seed)
    plan = counsel.solve(problem).policy
    other = everything(problem, seed + 1_000)  # so that two parts have random cells
    mixture = Mixture((hard, random, generous, plan, other), (0.1, 0.25, 0.2, 0.15, 0.3))
    simulator, rng = Simulator(problem), np.random.default_rng(seed)
    for policy in (plan, random, hard, generous, mixture):
        counts = simulator.count(policy, episodes=50_000, rng=rng)
        check_evaluation(problem, policy, counts)
        if isinstance(policy, Policy) and policy.budget is not None:
            assert counts.pieces.max() <= policy.budget


@pytest.mark.parametrize("name", ["flappy-bird/greedy", "night-shift", 3, 12])
def test_both_forms_of_a_plan_on_an_expected_budget_bring_the_same(name):
    problem = world(name)
    plan = counsel.solve(problem, budget=0.6)
    simulator, rng = Simulator(problem), np.random.default_rng(6)
    for policy in (plan.policy, plan.mixture):
        counts = simulator.count(policy, episodes=100_000, rng=rng)
        check_evaluation(problem, policy, counts)
        check_means(counts.rewards.mean(), counts.rewards.std() / len(counts) ** 0.5, plan.value)


@each("budget", [0, 1, 2, 3, 30])
def test_no_episode_ever_has_more_pieces_than_a_hard_budget(budget):
    problem = world("flappy-bird/safe")
    plan = counsel.solve(problem, budget=budget, hard=True)
    simulator, rng = Simulator(problem), np.random.default_rng(budget)
    counts = simulator.count(plan.policy, episodes=20_000, rng=rng)
    episodes = simulator.play(plan.policy, episodes=20_000, rng=rng)
    most = min(budget, problem.horizon)
    assert counts.pieces.max() <= most
    assert episodes.pieces.max() <= most
    if budget < 4:
        assert counts.pieces.max() == episodes.pieces.max() == budget


def test_a_mixture_draws_a_policy_for_the_whole_episode():
    problem = adapt(examples.random_fork(np.random.default_rng(2), H=6))
    talks = Policy(np.zeros((6, 3), dtype=int), n_actions=2)
    mixture = Mixture((never(problem), drawn_hard(problem, 0), talks), (0.2, 0.1, 0.7))
    counts = Simulator(problem).count(mixture, episodes=50_000, rng=np.random.default_rng(5))
    assert np.isin(counts.pieces, (0, 6)).all()  # all or nothing
    check_binomial((counts.pieces == 6).sum(), 50_000, 0.7)


def test_a_policy_without_weight_is_never_drawn():
    problem = adapt(examples.random_fork(np.random.default_rng(2)))
    talks, silent = Policy(np.zeros((3, 3), dtype=int), n_actions=2), never(problem)
    for parts, weights in (
        ((talks, silent), (0.0, 1.0)),
        ((silent, talks), (1.0, 0.0)),
        ((silent, talks, silent), (0.4, 0.0, 0.6)),
    ):
        counts = Simulator(problem).count(
            Mixture(parts, weights), episodes=5_000, rng=np.random.default_rng(5)
        )
        assert not counts.pieces.any()
