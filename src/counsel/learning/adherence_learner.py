"""The base of learners of adherence: the world and the person's own policy are known.

Each group of pairs has one adherence, or one lift (environment 1 of the paper). Learners differ in
what they ``believe`` after the matches counted so far.
"""

from abc import ABCMeta, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from counsel._arrays import Floats, Ints, by_step, check_rng, first, generator_from, sealed
from counsel.errors import CounselError
from counsel.learning.arguments import read_groups, read_limit, read_setting
from counsel.learning.learner import (
    Learner,
    Resumable,
    check_episodes_left,
    documented_by,
)
from counsel.learning.live_play import EpisodeBuffer
from counsel.learning.match_counts import MatchCounts
from counsel.learning.replanning import within_budget
from counsel.model.mdp import MDP
from counsel.model.policy import Policy
from counsel.model.setting import Setting
from counsel.simulate.episodes import Episodes
from counsel.simulate.move import Move

SAVED = ("given", "matched", "upper")  # the arrays of the belief that are saved


@documented_by(Learner, Resumable)
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
        may_repel: bool = False,
    ) -> None:
        if rng is not None:
            check_rng(rng)
        self.rng = rng
        self.setting = read_setting(setting)
        if groups is not None:
            H, S, A = setting.policy.shape
            self.setting = replace(setting, groups=by_step(read_groups(groups, (H, S, A)), H))
        self.penalty, self.budget = read_limit(penalty, budget, setting.mdp.horizon)
        if may_repel and budget is not None:
            raise CounselError("may_repel goes with a penalty, not with a budget")
        self.matches = MatchCounts(self.setting, penalty=self.penalty, may_repel=may_repel)
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
        if self.budget is None:
            advice = self.matches.plan.advise()
            return Policy.trusted(advice, n_actions=self.setting.policy.shape[2])
        plan, own, cost = self.matches.plan, self.matches.own_lsa, self.setting.cost
        return within_budget(plan, self.world(), own, cost, self.budget)

    def world(self) -> MDP:
        """Return the world that is planned on, with optimistic rewards if these are unknown."""
        return self.setting.mdp

    def count(self, step: Ints, state: Ints, advice: Ints, action: Ints, reward: Floats) -> None:
        """Count decisions, given as columns [decision]."""
        self.matches.count(step, state, advice, action)

    def update(self, batch: Episodes) -> None:
        H, S, A = self.setting.policy.shape
        batch.check_fits(H, S, A)
        check_episodes_left(self, len(batch))
        self.count(batch.step, batch.state, batch.advice, batch.action, batch.reward)
        self.episode += len(batch)
        self._due = True

    def advise(self, step: int, state: int) -> int:
        return self.policy.draw(step, state, self.rng)

    def observe(self, move: Move) -> None:
        self._buffer.add(move)

    def finish(self, *, terminated: bool = False) -> None:
        columns = self._buffer.take_columns()
        if not columns:
            return
        step, state, advice, action, reward, _ = columns
        H, S, A = self.setting.policy.shape
        for name, column, size in zip(Move._fields, columns, (H, S, A + 1, A), strict=False):
            if not 0 <= column.min() <= column.max() < size:
                raise CounselError(
                    f"{name} was {column.min()} to {column.max()}; it runs from 0 to {size - 1}"
                )
        check_episodes_left(self, 1)
        self.count(step, state, advice, action, reward.astype(np.float64))
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
        self._buffer.restore(np.pad(state["seen"], ((0, 0), (0, 1))))
        self._due = bool(state["due"])
        self._policy = None
        if not self._due:
            self.carry()
            self._policy = self._plan()

    @property
    def given(self) -> Ints:
        """The pieces of informative advice given in each bin [bin].

        A bin is a group of pairs that share one adherence, in order of their numbers; where they
        share one lift, those of a group for whom the person's own policy is the same.
        """
        return sealed(self.matches.belief.given.copy())

    @property
    def matched(self) -> Ints:
        """The matches among them [bin]."""
        return sealed(self.matches.belief.matched.copy())
