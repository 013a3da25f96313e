"""Criticality is Whittle's index for arms: advice that is always taken, and a passive habit.

The index of a state is the subsidy for passivity at which both choices are equally good. Ours are
prices, never below 0, so active rewards are raised by a constant, which raises every index by it.
"""

import numpy as np
import pytest

import counsel

RAISED = 3.0


def indices(passive, active, rewards, *, discount=None):
    """Return the criticality of an arm, less what active rewards were raised by."""
    P = np.stack((passive, active), axis=1)
    reward = np.array(rewards, dtype=float).T + np.array([0.0, RAISED])
    average = discount is None
    mdp = counsel.MDP(P, reward, discount=discount, average=average)
    habit = np.tile([1.0, 0.0], (len(P), 1))
    forbidden = np.tile([True, False], (len(P), 1))
    problem = counsel.AdviceProblem(mdp, counsel.Human(habit, 1.0))
    cells = counsel.criticality(problem, forbidden=forbidden)
    assert cells.exact
    return cells.lower[0] - RAISED


def test_circulant_arm():
    """The circulant arm of Avrachenkov and Borkar (2022), "Whittle index based Q-learning"."""
    active = 0.5 * (np.eye(4) + np.roll(np.eye(4), 1, axis=1))
    rewards = [[-1.0, 0.0, 0.0, 1.0]] * 2
    found = indices(active.T, active, rewards)
    np.testing.assert_allclose(found, [-0.5, 0.5, 1.0, -1.0], atol=1e-9)


def test_random_arm():
    """The example in the documentation of the package markovianbandit-pkg 0.4."""
    rng = np.random.RandomState(42)  # what the package draws from
    P = rng.exponential(size=(4, 2, 4))
    P /= P.sum(axis=2, keepdims=True)
    found = indices(P[:, 0], P[:, 1], rng.rand(4, 2).T)
    np.testing.assert_allclose(
        found, [0.87536099, -0.08765819, -0.15279431, -0.51905682], atol=5e-9
    )


@pytest.mark.parametrize("discount", [0.5, 0.9])
def test_a_discounted_arm_that_never_moves_has_its_reward_as_index(discount):
    rest = np.eye(3)
    found = indices(rest, rest, [[0.0, 0.0, 0.0], [0.2, 0.5, 0.9]], discount=discount)
    np.testing.assert_allclose(found, [0.2, 0.5, 0.9], atol=1e-9)
