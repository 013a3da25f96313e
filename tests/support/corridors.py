"""A corridor with a door at its end: a Gymnasium environment whose numbers do not begin at 0."""

import gymnasium
from gymnasium import spaces

from counsel.worlds import AdviceWrapper

LEFT, RIGHT = 5, 6


class Corridor(gymnasium.Env):
    """Cells 10 to 13; a step to the right of the last one pays 1 and ends the episode.

    After ``most`` steps the environment cuts the episode itself.
    """

    action_space = spaces.Discrete(2, start=LEFT)
    observation_space = spaces.Discrete(4, start=10)

    def __init__(self, most=100):
        self.most = most

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell, self.steps = 10, 0
        return self.cell, {}

    def step(self, action):
        self.steps += 1
        self.cell += 1 if action == RIGHT else -1
        self.cell = max(self.cell, 10)
        through = self.cell == 14
        # The door leads back to the first cell, as far as anybody can see.
        seen = 10 if through else self.cell
        return seen, float(through), through, self.steps == self.most, {}


def walker(most=100, *, adherence=1.0, **settings):
    """A person who stays at the left end unless advice moves them."""
    return AdviceWrapper(Corridor(most), lambda seen: LEFT, adherence, **settings)
