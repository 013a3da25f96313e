"""Episodes played step by step: those of the simulator, and learning in an environment."""

import gymnasium
import numpy as np
import pytest

import counsel
from counsel import CounselError
from counsel.learning import LiveRecord, Move, learn_live
from counsel.learning.live_play import EpisodeBuffer, play_live
from counsel.simulate import Environment
from counsel.worlds import AdviceWrapper
from tests.support.corridors import walker
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

    def all_moves(self):
        return [move for episode in self.episodes for move in episode]


def moves_of(batch):
    """Return the decisions of episodes as moves."""
    level = np.zeros_like(batch.state) if batch.level is None else batch.level
    names = ("step", "state", "advice", "action", "reward", "next_state")
    columns = (*(getattr(batch, name) for name in names), level)
    return [Move(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


@pytest.mark.parametrize(("problem", "seed"), PROBLEMS)
def test_live_episodes_are_those_of_the_simulator(problem, seed):
    policy = counsel.solve(problem).policy
    simulator, recorder = counsel.Simulator(problem), Recorder(policy)
    batch = simulator.play(policy, episodes=40, rng=np.random.default_rng(seed))
    play_live(recorder, simulator, episodes=40, rng=np.random.default_rng(seed))
    assert [len(moves) for moves in recorder.episodes] == batch.lengths.tolist()
    assert recorder.all_moves() == moves_of(batch)
    assert recorder.ended == batch.terminated.tolist()


class LevelRecorder(Recorder):
    """Advises by a policy with levels."""

    def advise(self, step, state, level):
        return int(self.policy.advice[level, step, state])


@pytest.mark.parametrize(
    "memory", [counsel.Memory.since(2), counsel.Memory.refusals(1), counsel.Memory.dose(0.6, 3)]
)
def test_live_episodes_of_a_person_with_a_memory_have_the_levels_of_the_simulator(memory):
    plain = counsel.make("night-shift")
    fading = np.linspace(1.0, 0.2, memory.n_levels)
    person = counsel.Human(plain.human.policy[0], lift=0.8, memory=memory, fading=fading)
    problem = counsel.AdviceProblem(plain.mdp, person)
    policy = counsel.solve(problem, penalty=0.02).policy
    simulator, recorder = counsel.Simulator(problem), LevelRecorder(policy)
    batch = simulator.play(policy, episodes=40, rng=np.random.default_rng(0))
    play_live(recorder, simulator, episodes=40, rng=np.random.default_rng(0))
    assert recorder.all_moves() == moves_of(batch)
    assert len(set(batch.level.tolist())) == memory.n_levels


def test_a_learner_whose_advise_takes_no_level_may_advise_a_person_with_a_memory():
    problem = counsel.make("flappy-bird/tiring")
    policy = counsel.solve(problem.without_memory()).policy
    simulator, recorder = counsel.Simulator(problem), Recorder(policy)
    batch = simulator.play(policy, episodes=5, rng=np.random.default_rng(0))
    play_live(recorder, simulator, episodes=5, rng=np.random.default_rng(0))
    assert recorder.all_moves() == moves_of(batch)


def test_moves_that_were_saved_without_levels_are_on_level_0():
    """Files of earlier versions have six columns."""
    buffer = EpisodeBuffer(2)
    buffer.restore(np.array([[0, 1, 2, 1, 0.5, 3]]))
    assert buffer.table().tolist() == [[0, 1, 2, 1, 0.5, 3, 0]]
    buffer.restore(np.array([[0, 1, 2, 1, 0.5, 3, 4]]))
    assert buffer.table().tolist() == [[0, 1, 2, 1, 0.5, 3, 4]]


# In a Gymnasium environment.


def corridor(**settings):
    return Environment(walker(**settings), horizon=8, reward_range=(0.0, 1.0))


def explorer(environment, seed=0):
    return counsel.Structured(environment.shape, groups=[0, 1], rng=np.random.default_rng(seed))


def test_a_learner_sees_every_decision_and_every_end():
    environment = corridor(adherence=0.7)
    policy = counsel.Policy(np.full((8, 5), 1), n_actions=2)
    recorder = Recorder(policy)
    games = environment.play(policy, episodes=30, rng=np.random.default_rng(5))
    rng = np.random.default_rng(5)
    records = list(learn_live(recorder, environment, episodes=30, rng=rng))
    assert recorder.all_moves() == moves_of(games)
    assert recorder.ended == games.terminated.tolist()
    assert 0 < sum(recorder.ended) < 30
    assert [record.episode for record in records] == list(range(1, 31))
    for name, column in (
        ("reward", games.rewards),
        ("steps", games.lengths),
        ("advice_count", games.pieces),
        ("terminated", games.terminated),
    ):
        assert [getattr(record, name) for record in records] == column.tolist()
    assert sum(record.matched for record in records) == games.matched.sum()


def test_silence_is_neither_advice_nor_a_match():
    silent = Recorder(counsel.Policy.never(horizon=8, n_states=5, n_actions=2))
    (record,) = learn_live(silent, corridor(), episodes=1, rng=np.random.default_rng(0))
    assert record == LiveRecord(1, 0.0, 8, 0, 0, terminated=False)


def test_structured_learns_the_way_to_the_door():
    environment = corridor(adherence=0.9)
    learner = explorer(environment)
    rng = np.random.default_rng(1)
    before = environment.play(learner.policy, episodes=100, rng=rng)
    assert before.rewards.mean() == 0.0
    list(learn_live(learner, environment, episodes=100, rng=rng))
    assert learner.episode == 100
    after = environment.play(learner.policy, episodes=100, rng=rng)
    # To go right four times in eight steps, each with probability 0.9 (else left): at least 0.95.
    assert after.rewards.mean() > 0.9
    # The end is known as an end, and the first cell, which the door shows, is not.
    ended = learner.state()["_ended"]
    assert ended[:, environment.over].any()
    assert not ended[:, :4].any()


@pytest.mark.slow
def test_structured_learns_to_keep_a_pole_up():
    # The gallery's example: from about 33 to about 59 of 60 steps; each mean of 60 episodes has a
    # standard error of about 1.5 steps.
    edges = [-0.05, 0.0, 0.05], [-0.5, 0.0, 0.5]

    def cell(seen):
        return int(4 * np.searchsorted(edges[0], seen[2]) + np.searchsorted(edges[1], seen[3]))

    person = AdviceWrapper(
        gymnasium.make("CartPole-v1"), lambda seen: int(seen[2] > 0.05), adherence=0.8
    )
    env = gymnasium.wrappers.TransformObservation(person, cell, gymnasium.spaces.Discrete(16))
    environment = Environment(env, horizon=60, reward_range=(0.0, 1.0))
    learner, rng = explorer(environment), np.random.default_rng(1)
    before = environment.play(learner.policy, episodes=60, rng=rng).lengths.mean()
    list(learn_live(learner, environment, episodes=600, rng=rng))
    after = environment.play(learner.policy, episodes=60, rng=rng).lengths.mean()
    assert before < 40.0
    assert after > 52.0


def test_a_learner_or_an_environment_of_another_kind_is_refused():
    environment, rng = corridor(), np.random.default_rng(0)
    night = counsel.make("night-shift")
    other = counsel.Structured(night.shape, rng=rng)
    with pytest.raises(CounselError, match="the policy is for 12 steps"):
        next(learn_live(other, environment, episodes=1, rng=rng))
    with pytest.raises(CounselError, match=r"give counsel.simulate.Environment\(env, ...\)"):
        next(learn_live(explorer(environment), walker(), episodes=1, rng=rng))
    with pytest.raises(CounselError, match="episodes"):
        next(learn_live(explorer(environment), environment, episodes=0, rng=rng))
    with pytest.raises(CounselError, match="in a Gymnasium environment use counsel"):
        next(counsel.learn(explorer(environment), environment, episodes=1, rng=rng))
