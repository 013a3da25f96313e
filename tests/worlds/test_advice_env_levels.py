"""People with a memory in Gymnasium: their level is part of the observation."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import counsel
from counsel import CounselError, Memory
from counsel.worlds import AdviceEnv, AdviceWrapper

MEMORY, FADING = Memory.pieces(2), (1.0, 0.5, 0.25)


def lake(**options):
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    return AdviceWrapper(env, lambda seen: [0.1, 0.4, 0.4, 0.1], adherence=0.9, **options)


def test_gymnasiums_own_checks_pass():
    check_env(AdviceEnv(counsel.make("ward/tiring")), skip_render_check=True)


def test_the_wrapper_observes_what_its_space_says():
    env = lake(memory=MEMORY, fading=FADING)
    seen, info = env.reset(seed=0)
    assert (seen["level"], info["level"]) == (0, 0)
    for level in (1, 2, 2):
        seen, *_, info = env.step(0)
        assert env.observation_space.contains(seen)
        assert seen["level"] == info["level"] == level


def test_the_observation_is_state_and_level():
    env = AdviceEnv(counsel.make("ward/tiring"))
    seen, info = env.reset(seed=0)
    assert (seen["level"], info["level"]) == (0, 0)
    assert env.observation_space["level"].n == 6
    said = 0
    for advice in (1, env.problem.defer, 1, 1):
        said += advice == 1
        seen, *_, info = env.step(advice)
        assert seen["level"] == info["level"] == said
    assert env.reset()[0]["level"] == 0


def test_playing_a_plan_earns_its_value():
    problem = counsel.make("ward/tiring")
    plan, env, episodes = counsel.solve(problem, penalty=0.01), None, 3000
    env = AdviceEnv(problem)
    totals, pieces = np.zeros(episodes), np.zeros(episodes)
    seen, _ = env.reset(seed=1)
    for i in range(episodes):
        done, step = False, 0
        while not done:
            chances = plan.policy.at(step, int(seen["state"]), level=int(seen["level"]))
            (advice,) = chances
            seen, reward, terminated, truncated, info = env.step(advice)
            totals[i] += reward
            pieces[i] += not info["deferred"]
            done, step = terminated or truncated, step + 1
        seen, _ = env.reset()
    outcome = counsel.evaluate(problem, plan.policy)
    for drawn, exact in ((totals, outcome.value), (pieces, outcome.advice_count)):
        # Pieces after the end of an episode count in evaluate; there are none in intensive care.
        assert abs(drawn.mean() - exact) <= 4.0 * drawn.std() / np.sqrt(episodes)


def test_the_wrapper_fades_the_lift_by_level():
    matched, said = np.zeros(3), np.zeros(3)
    env = lake(memory=MEMORY, fading=FADING)
    env.reset(seed=0)
    for _ in range(3000):
        level, over = env.reset()[1]["level"], False
        while level <= 2 and not over:
            *_, terminated, truncated, info = env.step(2)
            matched[level] += info["matched"]
            said[level] += 1
            level, over = level + 1, terminated or truncated
    habit, full = 0.4, (0.9 - 0.4) / 0.6
    expected = habit + np.array(FADING) * full * (1 - habit)
    error = np.sqrt(expected * (1 - expected) / said)
    assert (said > 500).all()
    assert (np.abs(matched / said - expected) <= 4.0 * error).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fading": [1.0]}, "fading is a factor for each level of a memory; give a memory, too"),
        ({"memory": MEMORY, "fading": [1.0]}, r"fading has shape \(1,\); give one factor for each"),
        ({"memory": 3}, "memory is 3; give a counsel.Memory"),
    ],
)
def test_a_memory_that_does_not_fit_is_refused(options, message):
    with pytest.raises(CounselError, match=message):
        lake(**options)


def test_a_fading_that_is_too_strong_is_named_when_it_happens():
    env = lake(memory=MEMORY, fading=[2.0, 1.0, 1.0])
    env.reset(seed=0)
    with pytest.raises(CounselError, match=r"the adherence with fading is 1\.4; it must lie in"):
        env.step(2)
