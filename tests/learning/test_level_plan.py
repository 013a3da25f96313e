"""Plans for lifts of which only an interval is known, on every level of a memory."""

import copy
import pickle

import numpy as np
import pytest

import counsel
from counsel.learning.level_plan import LevelPlan
from tests.support import memory_oracle as o
from tests.support.drawn_memories import draw
from tests.support.each import each, each_seed
from tests.support.lift_intervals import draw_interval, true_lifts, without_masks
from tests.support.problems import adapt_memory

SMALL = {"H": 3, "S": 2, "A": 2, "required": False}


def plan_of(P, penalty, low, high=None):
    """Return a plan for lifts [m, h, s, a], or for the better end of an interval of each."""
    problem, _ = adapt_memory(P)
    plan = LevelPlan(
        problem.mdp,
        problem.human.policy,
        problem.memory,
        penalty=penalty,
        cost=P.cost,
        two_sided=high is not None,
    )

    def columns(table_mhsa):
        M, H, S, A = table_mhsa.shape
        return plan.aligned(np.moveaxis(table_mhsa, 0, 2).reshape(H, S, M * A))

    plan.pull[:] = columns(low if high is None else high)
    if high is not None:
        plan.push[:] = columns(low)
    return plan, problem


def check_optimism(seed):
    P, rng = without_masks(draw(seed, **SMALL)), np.random.default_rng(seed)
    penalty = float(rng.choice([0.0, 0.3]))
    plan, _ = plan_of(P, penalty, *draw_interval(P, rng))
    plan.advise()
    V, _ = o.plan(P, penalty)
    assert plan.value >= o.start_mean(P, V[0]) - 1e-9


@each_seed(range(24))
def test_the_better_end_of_each_interval_is_optimistic_for_any_memory(seed):
    """Also where a match builds trust, or advice repels."""
    check_optimism(seed)


@pytest.mark.slow
@each_seed(range(1000, 1400))
def test_the_better_end_is_optimistic_in_many_problems(seed):
    check_optimism(seed)


@each_seed(range(60, 80))
def test_an_interval_of_one_number_gives_the_plan_of_the_oracle(seed):
    P = without_masks(draw(seed, **SMALL))
    lift, penalty = true_lifts(P), (0.0, 0.2)[seed % 2]
    problem, _ = adapt_memory(P)
    best = counsel.solve(problem, penalty=penalty)
    for ends in ((lift,), (lift, lift)):
        plan, problem = plan_of(P, penalty, *ends)
        advice = plan.advise()
        V, _ = o.plan(P, penalty)
        np.testing.assert_allclose(plan.value, o.start_mean(P, V[0]), rtol=0, atol=1e-9)
        policy = counsel.Policy(advice, n_actions=P.A, levels=P.M)
        outcome = counsel.evaluate(problem, policy)
        net = outcome.value - penalty * outcome.advice_cost
        np.testing.assert_allclose(net, best.penalised_value, rtol=0, atol=1e-9)


def trust_lost_by_a_match(low, high):
    """One state, two steps: who is advised at step 0 does not listen at step 1.

    Advice at step 0 brings λ · 1, at step 1 it brings 2 if the person was not advised before.
    """
    mdp = counsel.MDP(np.ones((1, 2, 1)), [[[0.0, 1.0]], [[0.0, 2.0]]], horizon=2)
    memory = counsel.Memory(np.eye(2), [[0, 1], [0, 1]])
    plan = LevelPlan(mdp, np.array([[[1.0, 0.0]]]), memory, penalty=0.0, two_sided=True)
    plan.pull[:] = plan.aligned(np.array([[[0.0, high, 0.0, 0.0]]]))
    plan.push[:] = plan.aligned(np.array([[[0.0, low, 0.0, 0.0]]]))
    return plan


def test_where_speaking_costs_later_lift_the_plan_waits():
    plan = trust_lost_by_a_match(0.5, 1.0)
    assert plan.advise()[0].tolist() == [[2], [1]]
    assert plan.value == 2.0


def test_the_upper_end_alone_is_not_optimistic():
    """A person who trusts more after a refusal: less lift now means more trust later."""
    mdp = counsel.MDP(np.ones((1, 2, 1)), [[[1.0, 0.0]], [[0.0, 2.0]]], horizon=2)
    # Only a refusal leads to level 1, where advice is taken; level 0 ignores advice at step 1.
    memory = counsel.Memory(np.eye(2), np.eye(2), [[0, 1], [0, 1]])
    own = np.array([[[1.0, 0.0]], [[1.0, 0.0]]])
    low, high = np.zeros((2, 1, 4)), np.zeros((2, 1, 4))
    high[0, 0, 1] = (
        1.0  # the lift of advice 1 at step 0 on level 0 lies in [0, 1]; in truth it is 0
    )
    low[1, 0, 3] = high[1, 0, 3] = 1.0

    def value(push):
        plan = LevelPlan(mdp, own, memory, penalty=0.0, two_sided=True)
        plan.pull[:], plan.push[:] = plan.aligned(high), plan.aligned(push)
        plan.advise()
        return plan.value

    human = counsel.Human(own, lift=np.moveaxis(low.reshape(2, 1, 2, 2), 2, 0), memory=memory)
    truth = counsel.solve(counsel.AdviceProblem(mdp, human)).value
    assert truth == 3.0
    assert value(high) == 1.0
    assert value(low) == 3.0


@each("world", ["flappy-bird/tiring", "ward/tiring"])
def test_the_plan_for_the_true_lifts_is_that_of_solve(world):
    """Where few cells can occur (on the map), and where all can (in the ward)."""
    problem = counsel.make(world)
    best = counsel.solve(problem, penalty=0.1)
    plan = LevelPlan(problem.mdp, problem.human.policy, problem.memory, penalty=0.1)
    plan.pull[:] = plan.aligned(np.concatenate(problem.human.level_lift, axis=-1))
    policy = counsel.Policy(plan.advise(), n_actions=problem.n_actions, levels=problem.n_levels)
    outcome = counsel.evaluate(problem, policy)
    assert outcome.value - 0.1 * outcome.advice_cost == pytest.approx(best.penalised_value)
    assert plan.value == pytest.approx(best.penalised_value)
    is_visited = outcome.level_occupancy.swapaxes(0, 1) > 0.0
    assert np.array_equal(policy.advice[is_visited], best.policy.advice[is_visited])
    lifts = plan.lifts()
    is_visited_hs = is_visited.any(axis=0)
    assert np.array_equal(lifts[:, is_visited_hs], problem.level_lift[:, is_visited_hs])


def test_copies_of_a_plan_plan_the_same():
    plan = trust_lost_by_a_match(0.5, 1.0)
    advice = plan.advise()
    for twin in (pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan)):
        assert np.array_equal(twin.advise(), advice)
        assert twin.value == plan.value
