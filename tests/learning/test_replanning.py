"""Plans over the cells that can occur are those of ``solve``, ties and pieces included."""

import numpy as np
import pytest

import counsel
from counsel.learning.replanning import SmallPlan, plan_for
from counsel.worlds import make
from tests.support.each import each_seed


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
        occurs = plan.cells.step, plan.cells.states
        np.testing.assert_array_equal(advice[occurs], best.policy.advice[occurs])
        first, second = plan.world.start @ plan.V_c2[:-1]
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
    first, second = plan.world.start @ plan.V_c2[:-1]
    assert (first, -second) == (1.0, 1.0)
