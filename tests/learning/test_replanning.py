"""Plans over cells are those of ``solve``, ties and pieces included, also where little changed."""

import numpy as np
import pytest

import counsel
from counsel.learning.replanning import LargePlan, SmallPlan, plan_for
from counsel.planning import reachable_cells
from counsel.worlds import make
from tests.support.each import each_seed
from tests.support.problems import adapt, draw


@pytest.mark.parametrize("name", ["flappy-bird/greedy", "flappy-bird/safe"])
@each_seed(range(8))
def test_a_plan_of_cells_is_worth_and_says_what_solve_does(seed, name):
    rng, world = np.random.default_rng(seed), make(name)
    lift = rng.choice([0.0, 0.25, 0.5, 1.0], size=(world.n_states, world.n_actions))
    problem = counsel.AdviceProblem(world.mdp, counsel.Human(world.policy[0], lift=lift))
    for penalty in (0.0, 0.125, 0.5):
        plan = plan_for(world.mdp, world.policy[:1], penalty=penalty)
        assert isinstance(plan, SmallPlan)
        plan.pull[:] = np.where(np.isnan(plan.pull), np.nan, plan.aligned(problem.lift))
        advice, best = plan.advise(), counsel.solve(problem, penalty=penalty)
        occurs = plan.cells.step_c, plan.cells.state_c
        np.testing.assert_array_equal(advice[occurs], best.policy.advice[occurs])
        first, second = plan.cells.world.start @ plan.cells.V_c2[:-1]
        assert first == pytest.approx(best.penalised_value, rel=1e-12)
        assert -second == pytest.approx(best.advice_count, rel=1e-12)


def test_of_two_pieces_worth_the_same_the_one_that_saves_another_is_said():
    # From state 0 action 0 leads to 1, where it takes another piece to earn the 1 that action 1
    # earns on the way to 2. Alone the person goes to 3 and earns nothing; 4 to 19 never occur.
    then, reward = np.full((20, 3), 3), np.zeros((20, 3))
    then[0], reward[0, 1], reward[1, 0] = (1, 2, 3), 1.0, 1.0
    mdp = counsel.MDP(then, reward, horizon=2)
    own = np.tile([0.0, 0.0, 1.0], (1, 20, 1))
    plan = plan_for(mdp, own, penalty=0.0)
    assert isinstance(plan, SmallPlan)
    assert plan.advise()[:, :2].tolist() == [[1, 3], [3, 0]]
    first, second = plan.cells.world.start @ plan.cells.V_c2[:-1]
    assert (first, -second) == (1.0, 1.0)


def drawn_pulls(plan, rng):
    """Lifts among which there are ties, and advice that is left out."""
    pull = rng.choice([0.0, 0.25, 0.5, 1.0, np.nan], size=plan.pull.size)
    return np.where(np.isnan(plan.pull), np.nan, pull)


@each_seed(range(40))
def test_after_a_change_of_some_lifts_the_plan_is_that_from_scratch(seed):
    rng = np.random.default_rng(seed)
    problem = make("flappy-bird/safe") if seed % 4 == 0 else adapt(draw(seed, most=(5, 5, 4)))
    own = problem.policy
    plan = plan_for(problem.mdp, own, penalty=0.125 * (seed % 3))
    assert isinstance(plan, SmallPlan)
    is_advice = ~np.isnan(plan.pull)
    for _ in range(12):
        some = is_advice & (rng.random(is_advice.size) < rng.choice([0.0, 0.02, 0.3]))
        plan.pull[some] = rng.choice([0.0, 0.25, 0.5, 1.0, np.nan], size=some.sum())
        fresh = plan_for(problem.mdp, own, penalty=0.125 * (seed % 3))
        fresh.pull[:] = plan.pull
        np.testing.assert_array_equal(plan.advise(), fresh.advise())
        np.testing.assert_array_equal(plan.cells.V_c2, fresh.cells.V_c2)
        assert not plan.cells.stale_c.any()


@each_seed(range(40))
def test_after_a_change_of_rewards_the_plan_is_that_from_scratch(seed):
    problem, rng = adapt(draw(seed, most=(5, 5, 4))), np.random.default_rng(seed)
    plan, other = (plan_for(problem.mdp, problem.policy, penalty=0.0) for _ in range(2))
    plan.advise()
    reward = rng.integers(0, 3, size=problem.policy.shape).astype(float)
    for each in (plan, other):
        each.set_rewards(reward)
    np.testing.assert_array_equal(plan.advise(), other.advise())
    np.testing.assert_array_equal(plan.cells.V_c2, other.cells.V_c2)


@each_seed(range(60))
def test_a_small_world_is_planned_in_every_cell_as_a_large_one_is(seed, monkeypatch):
    problem, rng = adapt(draw(seed, most=(5, 5, 4))), np.random.default_rng(seed)
    arguments = (problem.mdp, problem.policy)
    small = plan_for(*arguments, penalty=0.125 * (seed % 3))
    with monkeypatch.context() as patch:
        patch.setattr(reachable_cells, "SMALL", 0)
        patch.setattr(reachable_cells, "MOST_SHARE", 0.0)
        large = plan_for(*arguments, penalty=0.125 * (seed % 3))
    assert isinstance(large, LargePlan)
    assert isinstance(small, SmallPlan)
    for _ in range(4):
        large.pull[:] = drawn_pulls(large, rng)
        small.pull[:] = small.aligned(large.pull.reshape(problem.policy.shape))
        planned = small.cells.step_c, small.cells.state_c
        np.testing.assert_array_equal(small.advise()[planned], large.advise()[planned])


def test_learnt_rewards_tell_apart_actions_that_lead_to_the_same_state(monkeypatch):
    """A large plan took two actions for the same where only their old rewards were."""
    monkeypatch.setattr(reachable_cells, "SMALL", 0)
    mdp = counsel.MDP([[0, 0], [1, 1]], np.zeros((2, 2)), horizon=3)
    plan = plan_for(mdp, np.full((1, 2, 2), 0.5), penalty=0.0)
    assert isinstance(plan, LargePlan)
    assert (plan.advise() == 2).all()
    plan.set_rewards(np.array([[[0.0, 1.0], [1.0, 0.0]]]))
    assert plan.advise().tolist() == [[1, 0]] * 3
