"""Episodes step by step: the moves that a learner has yet to learn from, and how it is played."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from counsel._arrays import Floats, brief, check_rng, whole
from counsel.errors import CounselError
from counsel.learning.learner import Learner
from counsel.learning.levels import check_memory
from counsel.model._kernels import layer_of
from counsel.simulate._episode_kernels import draw_on_level, draw_row, draw_start, next_level
from counsel.simulate.advisers import level_adviser
from counsel.simulate.environment import Environment, draw_seed
from counsel.simulate.episodes import Episodes
from counsel.simulate.move import Move
from counsel.simulate.simulator import Simulator


class EpisodeBuffer:
    """Collects the moves of a live episode and returns them as one batch.

    The batch has levels of a memory only if ``has_levels``.
    """

    def __init__(self, n_actions: int, *, has_levels: bool = False) -> None:
        self._defer, self._has_levels = n_actions, has_levels
        self._moves: list[Move] = []

    def add(self, move: Move) -> None:
        """Store a move."""
        self._moves.append(move)

    def take_columns(self) -> tuple[NDArray[Any], ...]:
        """Empty the buffer; return its columns in the order of ``Move``, none if it was empty."""
        columns = tuple(np.array(column) for column in zip(*self._moves, strict=True))
        self._moves.clear()
        return columns

    def finish(self, update: Callable[[Episodes], None], *, terminated: bool) -> None:
        """Empty the buffer; unless it was empty, call ``update`` with its episode."""
        columns = self.take_columns()
        if not columns:
            return
        step, state, advice, action, reward, next_state, level = columns
        gap = np.flatnonzero(step != np.arange(step.size))
        if gap.size:
            raise CounselError(
                f"move {gap[0]} has step {step[gap[0]]}; the moves of an episode must have steps "
                "0, 1, 2, …, and this episode is discarded"
            )
        episode = Episodes(
            first=np.array([0, step.size]),
            state=state.astype(np.int32),
            advice=advice.astype(np.int16),
            action=action.astype(np.int16),
            reward=reward.astype(np.float64),
            next_state=next_state.astype(np.int32),
            terminated=np.array([terminated]),
            defer=self._defer,
            level=level.astype(np.int16) if self._has_levels else None,
        )
        update(episode)

    def table(self) -> Floats:
        """Return the moves as numbers [move, 7], to be saved."""
        return np.array(self._moves, dtype=np.float64).reshape(-1, 7)

    def restore(self, table: Floats) -> None:
        """Take the moves of a saved table; before levels were saved it had no last column."""
        self._moves = [
            Move(int(h), int(s), int(b), int(a), float(r), int(t), *map(int, level))
            for h, s, b, a, r, t, *level in table
        ]


def play_live(learner: Learner, simulator: Simulator, *, episodes: int, rng: Generator) -> None:
    """Play episodes by ``advise``, ``observe`` and ``finish``; the slow way to explore."""
    scene, H = simulator.scene, simulator.problem.horizon
    advise = level_adviser(learner.advise, simulator.problem.memory)
    draws, A = (simulator.draws - 2) // H, simulator.problem.n_actions

    def is_over(step: int, state: int) -> bool:
        return bool(scene.over_ls[min(step, len(scene.over_ls) - 1), state])

    for u_nw in simulator.batches(episodes, rng):
        for u_w in u_nw:
            h, s, m = 0, int(draw_start(scene, u_w[1])), int(scene.first_level[0])
            while h < H and not is_over(h, s):
                b = advise(h, s, m)
                # Kernels repeat these lines: a function that takes the scene slows their loops
                # tenfold, because Numba then counts references to all its arrays at every step.
                layer = layer_of(scene.person_lsc.shape[0], h)
                place, at = A + m * A + b, 2 + draws * h
                a = draw_on_level(scene.person_lsc, layer, s, b, place, A, u_w[at])
                then_m = int(next_level(scene, m, b, a, A, u_w, at))
                t = int(scene.leads_lsa[layer_of(scene.leads_lsa.shape[0], h), s, a])
                if t < 0:
                    t = int(draw_row(scene, -1 - t, u_w[3 + draws * h]))
                cell = np.array([h]), np.array([s]), np.array([a])
                reward = simulator.problem.draw_rewards(*cell, u_w[[simulator.reward_draw(h)]])
                learner.observe(Move(h, s, b, int(a), float(reward[0]), t, m))
                h, s, m = h + 1, t, then_m
            learner.finish(terminated=is_over(h, s))


@dataclass(frozen=True, slots=True)
class LiveRecord:
    """One episode in which a learner advised and learnt, as ``learn_live`` yields it.

    Attributes
    ----------
    episode
        Episodes played so far, including this one.
    reward
        The total reward of the episode.
    steps
        The number of decisions.
    advice_count
        The pieces of advice given.
    matched
        The pieces of advice that the person's actions matched.
    terminated
        Whether the environment ended the episode, rather than the horizon.

    Examples
    --------
    >>> from counsel.learning import LiveRecord
    >>> record = LiveRecord(1, reward=31.0, steps=31, advice_count=20, matched=16, terminated=True)
    >>> record.matched / record.advice_count
    0.8
    """

    episode: int
    reward: float
    steps: int
    advice_count: int
    matched: int
    terminated: bool


def learn_live(
    learner: Learner, environment: Environment, *, episodes: int, rng: Generator
) -> Iterator[LiveRecord]:
    """Let a learner advise in a Gymnasium environment, and yield a record of each episode.

    The best advice in an environment is not known, so unlike ``learn`` there is no regret. Learners
    such as ``RFE`` and ``Structured`` advise what they want to try, not their policy: measure the
    policy with ``environment.play(learner.policy, ...)``.

    Parameters
    ----------
    learner
        A learner built from ``environment.shape``. If the person has a memory, ``advise`` gets its
        level as a third argument, unless the learner takes none.
    environment
        The environment, with a person in it.
    episodes
        The number of episodes to play, at least 1.
    rng
        The generator of the seed of the environment.

    Yields
    ------
    LiveRecord
        The reward, the steps and the pieces of advice of each episode.

    Raises
    ------
    CounselError
        At the first record, if an argument is invalid or the learner does not fit the environment.

    Examples
    --------
    A person in the frozen lake who walks at random, and ten episodes of learning to guide them:

    >>> import gymnasium
    >>> import counsel
    >>> from counsel.simulate import Environment
    >>> from numpy.random import default_rng
    >>> lake = gymnasium.make("FrozenLake-v1", is_slippery=False)
    >>> env = counsel.worlds.AdviceWrapper(lake, human=lambda cell: [0.25] * 4, adherence=0.9)
    >>> environment = Environment(env, horizon=30, reward_range=(0.0, 1.0))
    >>> learner = counsel.Structured(environment.shape, rng=default_rng(0))
    >>> records = list(learn_live(learner, environment, episodes=10, rng=default_rng(1)))
    >>> sum(record.steps for record in records), learner.episode
    (70, 10)
    """
    if not isinstance(environment, Environment):
        raise CounselError(
            f"environment is {brief(environment)}; give counsel.simulate.Environment(env, ...)"
        )
    whole("episodes", episodes, least=1)
    check_rng(rng)
    environment.check_fits(learner.policy)
    check_memory(learner, environment.shape.memory)
    silence = environment.shape.n_actions
    seed: int | None = draw_seed(rng)
    for episode in range(1, episodes + 1):
        moves = []
        for move in environment.decide(learner.advise, seed=seed):
            moves.append(move)
            learner.observe(move)
        terminated = moves[-1].next_state == environment.over
        learner.finish(terminated=terminated)
        yield LiveRecord(
            episode,
            reward=sum(move.reward for move in moves),
            steps=len(moves),
            advice_count=sum(move.advice != silence for move in moves),
            matched=sum(move.advice == move.action for move in moves),
            terminated=terminated,
        )
        seed = None
