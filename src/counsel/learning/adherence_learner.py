"""The base of learners of adherence: the world and the person's own policy are known.

Each group of pairs has one adherence, or one lift (environment 1 of the paper). Learners differ in
what they ``believe`` after the matches counted so far. For a person with a memory the lift is that
of a pair on a level; the level of every decision is observed.
"""

from abc import ABCMeta, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from counsel._arrays import Floats, Ints, check_rng, first, generator_from, layers, sealed
from counsel.errors import CounselError
from counsel.learning.arguments import read_groups, read_limit, read_setting
from counsel.learning.learner import (
    Learner,
    LevelLearner,
    Resumable,
    check_episodes_left,
    documented_by,
)
from counsel.learning.levels import check_levels, check_room, levels_of
from counsel.learning.live_play import EpisodeBuffer
from counsel.learning.match_counts import MatchCounts
from counsel.learning.replanning import within_budget
from counsel.model.mdp import MDP
from counsel.model.memory import Memory
from counsel.model.policy import Policy
from counsel.model.setting import Setting
from counsel.simulate.episodes import Episodes
from counsel.simulate.move import Move

SAVED = ("given", "matched", "upper")  # the arrays of the belief that are saved


@documented_by(LevelLearner, Learner, Resumable)
class AdherenceLearner(metaclass=ABCMeta):
    """Counts ``matches`` and plans for the adherence, or lift, that a subclass believes in."""

    def __init__(  # noqa: PLR0913 (the settings)
        self,
        setting: Setting,
        *,
        penalty: ArrayLike = 0.0,
        budget: float | None = None,
        groups: ArrayLike | None = None,
        rng: Generator | None = None,
        two_sided: bool = False,
    ) -> None:
        if rng is not None:
            check_rng(rng)
        self.rng = rng
        self.setting = read_setting(setting)
        (H, S, A), L = setting.policy.shape, len(layers(setting.policy))
        check_room(setting.memory, H, S, S * (2.0 * H + 5.0 * L * A))
        if groups is not None:
            H, S, A = setting.policy.shape
            table = read_groups(groups, (H, S, A), setting.memory)
            shape = (H, S, A) if setting.memory is None else (len(table), H, S, A)
            self.setting = replace(setting, groups=np.broadcast_to(table, shape))
        self.penalty, self.budget = read_limit(penalty, budget, setting.mdp.horizon)
        self.matches = MatchCounts(self.setting, penalty=self.penalty, two_sided=two_sided)
        self.episode = 0
        self._due = True
        self._policy: Policy | None = None
        self._buffer = EpisodeBuffer(setting.policy.shape[2])

    @abstractmethod
    def believe(self) -> None:
        """Compute the bounds or draws for the counts so far and copy them into the plan."""

    def carry(self) -> None:
        """Copy the last bounds or draws into the plan again, without computing or drawing any."""
        self.matches.set_plan()

    @property
    def policy(self) -> Policy:
        if self._due or self._policy is None:
            self.believe()
            self._policy = self._plan()
            self._due = False
        return self._policy

    def _plan(self) -> Policy:
        """Return the best policy for the lifts in the plan."""
        plan, own, memory = self.matches.plan, self.matches.own_lsa, self.memory
        if self.budget is None:
            levels = None if memory is None else memory.n_levels
            return Policy.trusted(plan.advise(), n_actions=own.shape[2], levels=levels)
        return within_budget(plan, self.world(), own, self.setting.cost, self.budget, memory)

    @property
    def memory(self) -> Memory | None:
        return self.setting.memory

    def world(self) -> MDP:
        """Return the world that is planned on, with optimistic rewards if these are unknown."""
        return self.setting.mdp

    def count(  # noqa: PLR0913 (the columns of decisions)
        self,
        step: Ints,
        state: Ints,
        advice: Ints,
        action: Ints,
        reward: Floats,
        level: Ints | None = None,
    ) -> None:
        """Count decisions, given as columns [decision]; levels are given if there is a memory."""
        self.matches.count(step, state, advice, action, level)

    def update(self, batch: Episodes) -> None:
        H, S, A = self.setting.policy.shape
        batch.check_fits(H, S, A)
        check_episodes_left(self, len(batch))
        levels = [] if self.memory is None else [levels_of(batch, self.memory)]
        self.count(batch.step, batch.state, batch.advice, batch.action, batch.reward, *levels)
        self.episode += len(batch)
        self._due = True

    def advise(self, step: int, state: int, level: int | None = None) -> int:
        return self.policy.draw(step, state, self.rng, level=level)

    def observe(self, move: Move) -> None:
        self._buffer.add(move)

    def finish(self, *, terminated: bool = False) -> None:
        columns = self._buffer.take_columns()
        if not columns:
            return
        step, state, advice, action, reward, _, level = columns
        H, S, A = self.setting.policy.shape
        for name, column, size in zip(Move._fields, columns, (H, S, A + 1, A), strict=False):
            if not 0 <= column.min() <= column.max() < size:
                raise CounselError(
                    f"{name} was {column.min()} to {column.max()}; it runs from 0 to {size - 1}"
                )
        check_episodes_left(self, 1)
        paid, levels = reward.astype(np.float64), list[Ints]()
        if self.memory is not None:
            outcome = np.where(advice == A, 0, np.where(action == advice, 1, 2))
            check_levels(self.memory, level, outcome, follows=step[1:] == step[:-1] + 1)
            levels = [level]
        self.count(step, state, advice, action, paid, *levels)
        self.episode += 1
        self._due = True

    def state(self) -> dict[str, Any]:
        belief = self.matches.belief
        generator = {} if self.rng is None else {"chance": self.rng.bit_generator.state}
        return generator | {
            "episode": self.episode,
            "due": self._due or self._policy is None,
            **{name: getattr(belief, name).copy() for name in SAVED},
            "seen": self._buffer.table()[:, :5],
            **({} if self.memory is None else {"levels": self._buffer.table()[:, 6]}),
        }

    def restore(self, state: dict[str, Any]) -> None:
        belief = self.matches.belief
        if self.rng is not None:
            self.rng = generator_from(state["chance"])
        for name in SAVED:
            if state[name].shape != getattr(belief, name).shape:
                raise CounselError(
                    f"{name} has {state[name].size} numbers but this learner "
                    f"{getattr(belief, name).size}; restore a learner with the same settings"
                )
        where = first((state["matched"] < 0) | (state["matched"] > state["given"]))
        if where is not None:
            raise CounselError(
                f"matched{list(where)} is {state['matched'][where]} of {state['given'][where]} "
                "pieces of advice given; the state is damaged"
            )
        for name in SAVED:
            getattr(belief, name)[:] = state[name]
        self.episode = int(state["episode"])
        # The next states of moves are not saved: the world is known.
        moves = np.pad(state["seen"], ((0, 0), (0, 2)))
        if self.memory is not None:
            moves[:, 6] = state["levels"]
        self._buffer.restore(moves)
        self._due = bool(state["due"])
        self._policy = None
        if not self._due:
            self.carry()
            self._policy = self._plan()

    @property
    def given(self) -> Ints:
        """The pieces of informative advice given in each bin [bin].

        A bin is a group of pairs (and levels of a memory) that share one adherence, in order of
        their numbers; where they share one lift, those of a group for whom the person's own policy
        is the same.
        """
        return sealed(self.matches.belief.given.copy())

    @property
    def matched(self) -> Ints:
        """The matches among them [bin]."""
        return sealed(self.matches.belief.matched.copy())
