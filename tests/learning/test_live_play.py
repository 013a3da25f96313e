"""Episodes that are played step by step are those of the simulator."""

import numpy as np
import pytest

import counsel
from counsel.learning.live_play import play_live
from tests.support.structured import PROBLEMS


class Recorder:
    """Advises by a policy and keeps every move."""

    def __init__(self, policy):
        self.policy, self.episodes, self.ended, self.moves = policy, [], [], []

    def advise(self, step, state):
        return int(self.policy.advice[step, state])

    def observe(self, move):
        self.moves.append(move)

    def finish(self, *, terminated=False):
        self.episodes.append(self.moves)
        self.ended.append(terminated)
        self.moves = []


@pytest.mark.parametrize(("problem", "seed"), PROBLEMS)
def test_live_episodes_are_those_of_the_simulator(problem, seed):
    policy = counsel.solve(problem).policy
    simulator, recorder = counsel.Simulator(problem), Recorder(policy)
    batch = simulator.play(policy, episodes=40, rng=np.random.default_rng(seed))
    play_live(recorder, simulator, episodes=40, rng=np.random.default_rng(seed))
    assert [len(moves) for moves in recorder.episodes] == batch.lengths.tolist()
    columns = (batch.step, batch.state, batch.advice, batch.action, batch.reward, batch.next_state)
    moves = [tuple(move) for episode in recorder.episodes for move in episode]
    assert moves == list(zip(*(column.tolist() for column in columns), strict=True))
    assert recorder.ended == batch.terminated.tolist()
