"""A person in a Gymnasium environment and the same person in a problem are certain alike."""

import gymnasium
import numpy as np

import counsel
from counsel.worlds import AdviceEnv, AdviceWrapper

ULP = 2.0**-53
SMALL = (0.0, 5e-324, 1e-320, 2.2e-308, 1e-307, 1e-300, 1e-200, 1e-17, ULP, 1e-12, 0.5)
THETA = (0.0, 5e-324, 1e-17, 0.5, 1.0 - ULP, 1.0)


class Still(gymnasium.Env):
    """Nothing happens, whichever of two actions is taken."""

    observation_space = gymnasium.spaces.Discrete(1)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 0, 0.0, False, False, {}


def test_the_wrapper_and_the_problem_have_one_law():
    mdp = counsel.MDP([[0, 0]], [[0.0, 0.0]], horizon=1)
    for small in SMALL:
        for theta in THETA:
            habit = [1.0 - small, small]
            problem = counsel.AdviceProblem(mdp, counsel.Human([habit], theta))
            env = AdviceWrapper(Still(), lambda o, habit=habit: habit, theta)
            env.reset(seed=0)
            for advice in range(3):
                one, other = env._law(advice), problem.law(0, 0, advice)
                case = f"habit {habit}, adherence {theta!r}, advice {advice}: {one} and {other}"
                assert np.abs(one - other).max() <= 2 * ULP, case


def test_who_is_advised_against_their_habit_at_adherence_zero_does_the_other_thing():
    for small, did in ((1e-310, 0), (1e-300, 1), (1e-17, 1), (0.5, 1)):
        mdp = counsel.MDP([[0, 0]], [[0.0, 0.0]], horizon=1)
        habit = [1.0 - small, small]
        person = counsel.Human([habit], 0.0)
        envs = (
            AdviceEnv(counsel.AdviceProblem(mdp, person)),
            AdviceWrapper(Still(), lambda o, habit=habit: habit, 0.0),
        )
        for env in envs:
            for seed in range(20):
                env.reset(seed=seed)
                assert env.step(0)[4]["action"] == did, f"{type(env).__name__}, {small}, {seed}"
