"""People who play CartPole, and environments that record their actions."""

import gymnasium
import numpy as np
from gymnasium import spaces

DEFER = 2  # in CartPole


def leans(observation):
    """Push to where the pole falls."""
    return int(observation[2] > 0.0)


def hesitates(observation):
    """Push to where the pole falls, the likelier the more it does."""
    right = 1.0 / (1.0 + np.exp(-20.0 * float(observation[2])))
    return [1.0 - right, right]


def evenly(observation):
    return [0.5, 0.5]


def trusts(observation, advice):
    """Listen more to the right, and less when the cart is far out."""
    return (0.9 if advice else 0.6) - min(abs(float(observation[0])), 0.4)


class Noise(gymnasium.Env):
    """Observations are chance and nothing else, whatever is done."""

    observation_space = spaces.Box(0.0, 1.0, (1,), np.float64)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.random(1), {}

    def step(self, action):
        return self.np_random.random(1), 0.0, False, False, {}


class Counter(gymnasium.Env):
    """Actions are 5, 6 and 7; the reward is the action, the observation how often each was taken.

    ``log`` records the actions.
    """

    action_space = spaces.Discrete(3, start=5)
    observation_space = spaces.Dict(
        {"taken": spaces.Box(0, 10**6, (3,), np.int64), "last": spaces.Discrete(4, start=4)}
    )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.log = []
        return self._seen(), {"note": "hello"}

    def step(self, action):
        assert type(action) is int
        assert action in self.action_space
        self.log.append(action)
        return self._seen(), float(action), False, False, {"note": str(action)}

    def _seen(self):
        taken = np.bincount(self.log, minlength=8)[5:8] if self.log else np.zeros(3, np.int64)
        return {"taken": taken, "last": self.log[-1] if self.log else 4}


def cart():
    return gymnasium.make("CartPole-v1")
