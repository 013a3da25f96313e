"""What tests of pictures share."""

import numpy as np
import pytest

import counsel
from counsel.worlds import make


@pytest.fixture(scope="module")
def played():
    """A problem on our map, its criticality, and many flights under good advice."""
    problem = make("flappy-bird/greedy")
    policy = counsel.solve(problem, penalty=0.3).policy
    simulator = counsel.Simulator(problem)

    def play(episodes):
        return simulator.play(policy, episodes=episodes, rng=np.random.default_rng(8))

    return play, counsel.criticality(problem)
