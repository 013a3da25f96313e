"""Plans within an expected budget for lifts of which only an interval is known."""

import numpy as np
import pytest
from numpy.random import default_rng

import counsel
from counsel import UCBAD, Simulator, learn
from counsel.learning.level_budget import within_level_budget
from counsel.testing import check_learner
from tests.support import memory_oracle as o
from tests.support.drawn_memories import draw
from tests.support.each import each_seed
from tests.support.lift_intervals import draw_interval, true_lifts, without_masks
from tests.support.problems import adapt_memory

SMALL = {"H": 3, "S": 2, "A": 2, "required": False}


def best_within(P, low, high, budget):
    problem, _ = adapt_memory(P)
    person = problem.human.policy, problem.memory, np.stack((high, low))
    return problem, *within_level_budget(problem.mdp, *person, cost=P.cost, budget=budget)


def budgets(P):
    """A budget of nothing, three that bind, and one that is more than is ever spent."""
    most = float(P.cost.max()) * P.H
    return (0.0, 0.1 * most, 0.3 * most, 0.6 * most, most)


def check_optimism(seed):
    P, rng = without_masks(draw(seed, **SMALL)), default_rng(seed)
    low, high = draw_interval(P, rng)
    for budget in budgets(P):
        _, value, policy = best_within(P, low, high, budget)
        assert value >= o.budget_lp(P, budget)[0] - 1e-7
        assert policy.levels == P.M
        assert policy.random.cell.size <= 1


@each_seed(range(8))
def test_the_better_end_is_optimistic_within_any_budget(seed):
    check_optimism(seed)


@pytest.mark.slow
@each_seed(range(2000, 2100))
def test_the_better_end_is_optimistic_within_any_budget_in_many_problems(seed):
    check_optimism(seed)


@each_seed(range(20, 26))
def test_an_interval_of_one_number_gives_the_best_plan_within_the_budget(seed):
    P = without_masks(draw(seed, **SMALL))
    lift = true_lifts(P)
    for budget in budgets(P):
        problem, value, policy = best_within(P, lift, lift, budget)
        best = o.budget_lp(P, budget)[0]
        assert value == pytest.approx(best, abs=1e-7)
        outcome = counsel.evaluate(problem, policy)
        assert outcome.value == pytest.approx(best, abs=1e-7)
        assert outcome.advice_cost <= budget + 1e-7


def tiring():
    plain = counsel.make("night-shift")
    memory = counsel.Memory.pieces(2)
    person = counsel.Human(plain.human.policy[0], lift=0.8, memory=memory, fading=[1.0, 0.5, 0.25])
    return counsel.AdviceProblem(plain.mdp, person)


def test_ucb_ad_comes_to_the_best_plan_within_a_budget():
    problem = tiring()
    groups = np.arange(9).reshape(3, 3)
    learner = UCBAD(problem.without_adherence(), budget=1.5, groups=groups, rng=default_rng(1))
    *_, last = learn(learner, Simulator(problem), episodes=3000, every=300, rng=default_rng(0))
    assert learner.policy.levels == 3
    assert abs(last.value_gap) < 0.01
    assert last.advice_count == pytest.approx(1.5, abs=0.05)


@pytest.mark.slow
def test_ucb_ad_with_a_budget_passes_all_checks_on_a_person_with_a_memory():
    check_learner(lambda p: UCBAD(p.without_adherence(), budget=1.0, rng=default_rng(1)), tiring())
