"""Machine repair and inventory: their rules, written down a second time; episodes that end."""

import numpy as np
import pytest
from scipy.stats import poisson

import counsel
from counsel.worlds import AdviceEnv, inventory, make
from counsel.worlds.advice_env import SHOWN
from tests.support import slow_worlds


def test_every_move_of_machine_repair_is_that_of_the_rules():
    problem = make("machine-repair", conditions=6)
    assert problem.n_states == 8
    for s in range(problem.n_states):
        for a in range(3):
            moves, reward = slow_worlds.repair_move(s, a, conditions=6)
            states, chances = problem.mdp.kernel.successors(0, s, a)
            assert dict(zip(states.tolist(), chances.tolist(), strict=True)) == pytest.approx(moves)
            assert problem.mdp.reward[0, s, a] == pytest.approx(reward)
        habit = slow_worlds.repair_habit(s, conditions=6)
        np.testing.assert_allclose(problem.policy[0, s], habit)


def test_every_move_of_the_inventory_is_that_of_the_rules():
    problem = make("inventory", shelves=5, demand=2.5)
    for s in range(6):
        for order in range(6):
            assert problem.mdp.allowed[0, s, order] == (s + order <= 5)
            if s + order > 5:
                continue
            chance = [poisson.pmf(d, 2.5) for d in range(5)] + [poisson.sf(4, 2.5)]
            moves, reward = slow_worlds.shop_move(s, order, chance)
            states, chances = problem.mdp.kernel.successors(0, s, order)
            assert dict(zip(states.tolist(), chances.tolist(), strict=True)) == pytest.approx(moves)
            assert problem.mdp.reward[0, s, order] == pytest.approx(reward)


def test_a_large_shop_with_a_large_demand_can_be_built():
    """Its powers and factorials were larger than the largest number."""
    chance = inventory._poisson(99.0, 300)
    np.testing.assert_allclose(chance[:300], poisson.pmf(np.arange(300), 99.0), atol=1e-14)
    assert chance.sum() == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("name", ["machine-repair", "inventory"])
def test_advice_is_worth_something_and_a_budget_keeps_part_of_it(name):
    problem = make(name)
    alone = counsel.solve(problem, budget=0)
    best, half = counsel.solve(problem), None
    half = counsel.solve(problem, budget=0.5 * best.advice_count)
    assert alone.value < half.value < best.value
    assert half.advice_count == pytest.approx(0.5 * best.advice_count)


@pytest.mark.parametrize(
    ("name", "setting", "text"),
    [
        ("machine-repair", {"conditions": 1}, "conditions"),
        ("machine-repair", {"lift": 1.5}, r"lift is 1\.5"),
        ("machine-repair", {"lift": "much"}, "lift must be a number, not 'much'"),
        ("inventory", {"lift": [0.1]}, "lift must be a number"),
        ("inventory", {"demand": 0.0}, "demand is 0"),
        ("inventory", {"discount": 1.0}, "discount is 1"),
        ("inventory", {"lift": -0.1}, r"lift is -0\.1"),
    ],
)
def test_bad_overrides_are_refused(name, setting, text):
    with pytest.raises(counsel.CounselError, match=text):
        make(name, **setting)


def test_episodes_of_work_without_end_earn_its_discounted_value():
    problem = make("machine-repair", conditions=3, discount=0.8)
    plan = counsel.solve(problem, penalty=0.5)
    env, rewards, lengths = AdviceEnv(problem, penalty=0.5), [], []
    state, _ = env.reset(seed=1)
    for _ in range(4000):
        total, length, over = 0.0, 0, False
        while not over:
            advice = plan.policy.draw(0, int(state), env.np_random)
            state, reward, over, truncated, _ = env.step(advice)
            assert not truncated
            total, length = total + reward, length + 1
        rewards.append(total)
        lengths.append(length)
        state, _ = env.reset()
    error = np.std(rewards) / np.sqrt(len(rewards))
    assert abs(np.mean(rewards) - plan.penalised_value) < 4.0 * error
    assert abs(np.mean(lengths) - 5.0) < 4.0 * np.sqrt(20.0 / len(lengths))


def test_an_episode_that_is_over_takes_no_step():
    env = AdviceEnv(make("machine-repair", discount=0.0))
    with pytest.raises(counsel.CounselError, match="call reset"):
        env.step(0)
    env.reset(seed=0)
    assert env.step(3)[2]
    with pytest.raises(counsel.CounselError, match="call reset"):
        env.step(3)


def test_an_episode_that_never_ends_keeps_only_its_last_decisions():
    env = AdviceEnv(make("machine-repair").without_end(average=True), render_mode="ansi")
    env.reset(seed=0)
    for _ in range(SHOWN + 50):
        *_, terminated, truncated, info = env.step(env.problem.defer)
        assert not terminated
        assert not truncated
    assert info["step"] == SHOWN + 50
    assert len(env._decisions) == SHOWN
    assert f"step {SHOWN + 50} ·" in env.render()


def test_the_simulator_refuses_work_without_end():
    with pytest.raises(counsel.CounselError, match="no end"):
        counsel.Simulator(make("machine-repair"))
