"""Costs of advice in Gymnasium environments: what is paid, and what bad input is called."""

import gymnasium
import numpy as np
import pytest

import counsel
from counsel import CounselError
from counsel.worlds import AdviceEnv, AdviceWrapper, Uniform, from_gymnasium, make
from tests.support.each import each

COST = [4.0, 3.0, 2.0]


def night(cost):
    problem = make("night-shift")
    return counsel.AdviceProblem(problem.mdp, problem.human, cost=cost)


def play(env, policy, *, seed=None):
    """Play one episode; return the sum of its rewards and its infos."""
    state, info = env.reset(seed=seed)
    total, infos, ended = 0.0, [info], False
    while not ended:
        advice = policy.draw(infos[-1]["step"], int(state), None)
        state, reward, terminated, truncated, info = env.step(advice)
        total, ended = total + reward, terminated or truncated
        infos.append(info)
    return total, infos


@each("penalty", [0.2, np.linspace(0.3, 0.0, 5)])
def test_in_a_certain_world_the_return_is_the_penalised_value(penalty):
    # The person walks right when told, with certainty, and each state pays differently.
    then = np.minimum(np.arange(6)[:, None] + np.arange(2), 5)
    reward = np.arange(12.0).reshape(6, 2) / 8.0
    mdp = counsel.MDP(then, reward, horizon=5)
    human = counsel.Human(np.tile([1.0, 0.0], (6, 1)), adherence=1.0)
    cost = np.arange(60.0).reshape(5, 6, 2) / 32.0
    problem = counsel.AdviceProblem(mdp, human, cost=cost)
    for policy in (
        counsel.solve(problem, penalty=penalty).policy,
        counsel.Policy(np.ones((5, 6), dtype=int), n_actions=2),
    ):
        total, infos = play(AdviceEnv(problem, penalty=penalty), policy)
        outcome = counsel.evaluate(problem, policy)
        charge = (np.broadcast_to(penalty, 5) * outcome.cost).sum()
        assert total == pytest.approx(outcome.value - charge, abs=1e-14)
        assert [info["cost"] for info in infos[1:]] == outcome.cost.tolist()
        assert infos[0]["cost"] == 0.0


@pytest.mark.slow
@each("penalty", [0.1, np.linspace(0.2, 0.0, 12)])
def test_the_mean_return_is_the_penalised_value(penalty):
    problem = night(COST)
    policy = counsel.solve(problem, penalty=0.02).policy
    env = AdviceEnv(problem, penalty=penalty)
    totals = np.array([play(env, policy, seed=seed)[0] for seed in range(1500)])
    outcome = counsel.evaluate(problem, policy)
    expected = outcome.value - (np.broadcast_to(penalty, 12) * outcome.cost).sum()
    assert abs(totals.mean() - expected) < 4.0 * totals.std() / np.sqrt(totals.size)
    plain = outcome.value - (np.broadcast_to(penalty, 12) * outcome.advice_rate).sum()
    assert abs(plain - expected) > 8.0 * totals.std() / np.sqrt(totals.size)


def test_penalties_of_an_environment_are_checked():
    for penalty, message in (
        ([0.1, 0.2], r"penalty has shape \(2,\); give a number, or one for each of the 12 steps"),
        (np.r_[np.zeros(11), -1.0], r"penalty\[h=11\] is -1"),
    ):
        with pytest.raises(CounselError, match=message):
            AdviceEnv(night(1.0), penalty=penalty)


def wrapped(**more):
    return AdviceWrapper(gymnasium.make("CartPole-v1"), lambda observation: 0, 0.5, **more)


def test_a_wrapper_charges_the_cost_of_each_advice():
    env = wrapped(penalty=0.25, cost=[1.0, 3.0])
    _, info = env.reset(seed=0)
    assert info["cost"] == 0.0
    for advice, cost in ((0, 1.0), (1, 3.0), (env.defer, 0.0)):
        _, reward, *_, info = env.step(advice)
        assert (info["cost"], reward) == (cost, 1.0 - 0.25 * cost)
    assert wrapped(cost=2.0).cost.tolist() == [2.0, 2.0]


def test_costs_of_a_wrapper_are_checked():
    for cost, message in (
        ([1.0, 2.0, 3.0], r"cost has shape \(3,\); give a number, or one number for each of 2"),
        ([1.0, -2.0], r"cost\[a=1\] is -2; a cost must be a finite number of at least 0"),
        (np.inf, "cost is inf"),
    ):
        with pytest.raises(CounselError, match=message):
            wrapped(cost=cost)


def test_a_problem_from_gymnasium_takes_costs_with_and_without_the_added_state():
    def lake(cost):
        human = lambda mdp: counsel.Human(Uniform()(mdp), lift=0.5)  # noqa: E731
        return from_gymnasium("FrozenLake", horizon=6, human=human, cost=cost)

    by_action = [1.0, 2.0, 0.5, 1.0]
    cost_sa = np.arange(68.0).reshape(17, 4)
    assert (lake(by_action).cost == by_action).all()
    np.testing.assert_array_equal(lake(cost_sa).cost[0], cost_sa)
    np.testing.assert_array_equal(lake(cost_sa[:16]).cost[0], cost_sa[[*range(16), 15]])
    np.testing.assert_array_equal(
        lake(np.tile(cost_sa[:16], (6, 1, 1))).cost[5], cost_sa[[*range(16), 15]]
    )
    with pytest.raises(CounselError, match=r"cost has shape \(5, 4\)"):
        lake(cost_sa[:5])
