"""Every kind of plan calls the compiled loops with arguments of one type.

A second type would be compiled anew, for a second or more.
"""

import numpy as np

import counsel
from counsel.baselines import UCBVI
from counsel.baselines._optimism_kernels import ucbvi_episodes
from counsel.model.machine import machine_rewards
from counsel.planning._backward_kernels import plan_back
from counsel.planning._piecewise_kernels import expect_functions
from counsel.planning._reachable_kernels import renumber_rows

WARD = counsel.make("ward")


def test_plans_of_every_kind_share_one_compiled_loop():
    alike = counsel.make("car-driving/myopic")  # many states are of one kind
    few_reached = counsel.make("flappy-bird/safe")
    priced = counsel.AdviceProblem(
        few_reached.mdp, few_reached.human, cost=np.arange(1.0, 1.0 + few_reached.n_actions)
    )
    by_cell = np.full((few_reached.n_states, few_reached.n_actions), 2.0)
    by_state = counsel.AdviceProblem(few_reached.mdp, few_reached.human, cost=by_cell)
    for problem in (WARD, alike, few_reached, priced, by_state):
        assert counsel.solve(problem, penalty=0.1, threads=1).value is not None
        assert counsel.solve(problem, penalty=np.full(problem.horizon, 0.1), threads=1).value > -9
    assert counsel.solve(WARD, budget=1.0, threads=1).advice_count <= 1.0 + 1e-9
    counsel.frontier(WARD)
    assert len(plan_back.signatures) == 1
    assert len(renumber_rows.signatures) == 1


def test_criticality_by_row_and_by_state_shares_one_compiled_loop():
    for world in ("ward", "flappy-bird/safe", "night-shift"):
        counsel.criticality(counsel.make(world))
    assert len(expect_functions.signatures) == 1


def test_learning_with_one_penalty_or_many_and_with_costs_shares_one_compiled_loop():
    costs = (1.0, np.arange(1.0, 4.0), np.full((6, 5, 3), 2.0))
    for cost in costs:
        problem = counsel.AdviceProblem(WARD.mdp, WARD.human, cost=cost)
        for penalty in (0.1, np.linspace(0.1, 0.2, 6)):
            learner = UCBVI(
                problem.shape,
                rng=np.random.default_rng(0),
                reward=machine_rewards(problem),
                episodes=9,
                penalty=penalty,
            )
            assert learner.can_run
            rng = np.random.default_rng(1)
            list(counsel.learn(learner, counsel.Simulator(problem), episodes=9, rng=rng))
    assert len(ucbvi_episodes.signatures) == 1
