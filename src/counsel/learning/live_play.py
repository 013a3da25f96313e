"""Episodes step by step: the moves that a learner has yet to learn from, and how it is played."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from counsel._arrays import Floats
from counsel.errors import CounselError
from counsel.learning.learner import Learner, Move
from counsel.model._kernels import layer_of
from counsel.simulate._episode_kernels import draw_action, draw_row, draw_start
from counsel.simulate.episodes import Episodes
from counsel.simulate.simulator import Simulator


class EpisodeBuffer:
    """Collects the moves of a live episode and returns them as one batch."""

    def __init__(self, n_actions: int) -> None:
        self._defer = n_actions
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
        step, state, advice, action, reward, next_state = columns
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
        )
        update(episode)

    def table(self) -> Floats:
        """Return the moves as numbers [move, 6], to be saved."""
        return np.array(self._moves, dtype=np.float64).reshape(-1, 6)

    def restore(self, table: Floats) -> None:
        """Take the moves of a saved table."""
        self._moves = [
            Move(int(h), int(s), int(b), int(a), float(r), int(t)) for h, s, b, a, r, t in table
        ]


def play_live(learner: Learner, simulator: Simulator, *, episodes: int, rng: Generator) -> None:
    """Play episodes by ``advise``, ``observe`` and ``finish``; the slow way to explore."""
    scene, H = simulator.scene, simulator.problem.horizon
    draws = (simulator.draws - 2) // H

    def is_over(step: int, state: int) -> bool:
        return bool(scene.over_ls[min(step, len(scene.over_ls) - 1), state])

    for u_nw in simulator.batches(episodes, rng):
        for u_w in u_nw:
            h, s = 0, int(draw_start(scene, u_w[1]))
            while h < H and not is_over(h, s):
                b = learner.advise(h, s)
                # Kernels repeat these lines: a function that takes the scene slows their loops
                # tenfold, because Numba then counts references to all its arrays at every step.
                layer = layer_of(scene.person_lsc.shape[0], h)
                a = draw_action(scene.person_lsc, layer, s, b, u_w[2 + draws * h])
                t = int(scene.leads_lsa[layer_of(scene.leads_lsa.shape[0], h), s, a])
                if t < 0:
                    t = int(draw_row(scene, -1 - t, u_w[3 + draws * h]))
                cell = np.array([h]), np.array([s]), np.array([a])
                reward = simulator.problem.draw_rewards(*cell, u_w[[simulator.reward_draw(h)]])
                learner.observe(Move(h, s, b, int(a), float(reward[0]), t))
                h, s = h + 1, t
            learner.finish(terminated=is_over(h, s))
