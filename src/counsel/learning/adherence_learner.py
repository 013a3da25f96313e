"""What learners of adherence share: who shares an adherence, what was seen, and the plan it gives.

The world and the person's own policy are known (environment 1); each group of pairs has one
adherence, or one lift. A match says something about it unless the person would take the advised
action for certain. Where a group shares one *lift* its pairs may differ in what the person does
alone; a match then has probability π + λ (1 − π), so matches are counted in one bin for each π,
each bin bounds λ, and the least bound holds.
"""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from counsel._arrays import (
    Floats,
    Ints,
    brief,
    by_step,
    check_rng,
    first,
    generator_from,
    layers,
    sealed,
)
from counsel.errors import CounselError
from counsel.learning._adherence_kernels import Belief, Groups, set_groups
from counsel.learning.inputs import read_groups, read_limit
from counsel.learning.move import Move
from counsel.learning.replanning import BothEnds, plan_for, within_budget
from counsel.model._kernels import sum_others
from counsel.model.mdp import MDP
from counsel.model.policy import Policy
from counsel.model.problem import Setting
from counsel.simulate.episodes import Episodes


class Adherence:
    """Counts of matches, and the plan for given bounds of adherence.

    Attributes
    ----------
    groups
        Which pairs share what.
    belief
        Counts and upper bounds of each bin.
    plan
        The plan for the bounds.
    """

    def __init__(self, setting: Setting, *, penalty: float, may_repel: bool = False) -> None:
        self.setting = setting
        own, group = _together(layers(setting.policy), _fewest_layers(setting.groups))
        own_lsa, group_lsa = np.ascontiguousarray(own, dtype=np.float64), np.asarray(group)
        rest_lsa = np.empty(own_lsa.shape)
        sum_others(own_lsa, rest_lsa)
        allowed = layers(setting.mdp.allowed)
        ever = allowed if len(own_lsa) > 1 else allowed.any(axis=0, keepdims=True)
        says = ever & (rest_lsa > 0.0)
        if not says.any():
            raise CounselError("this person does the same whatever is advised: nothing to learn")
        habit = np.zeros(own_lsa.shape, dtype=np.int64)
        if setting.shares_lift:
            habit = np.unique(own_lsa, return_inverse=True)[1].reshape(own_lsa.shape)
        pairs, which = np.unique(
            np.stack((group_lsa[says], habit[says])), axis=1, return_inverse=True
        )
        bin_lsa = np.full(says.shape, -1, dtype=np.int32)
        bin_lsa[says] = which.reshape(-1)
        ids, group_of_bin = np.unique(pairs[0], return_inverse=True)
        some = np.empty(pairs.shape[1], dtype=np.int64)
        some[which.reshape(-1)] = np.flatnonzero(says)
        plan = BothEnds if may_repel else plan_for
        self.plan = plan(setting.mdp, own_lsa, penalty=penalty)
        self.own_lsa = own_lsa
        bin_of_cell = self.plan.aligned(bin_lsa)
        counted = (bin_of_cell >= 0) & self.plan.aligned(allowed)
        group_of_cell = np.where(counted, group_of_bin[bin_of_cell], -1)
        order = np.argsort(group_of_cell, kind="stable")
        order = order[group_of_cell[order] >= 0]
        self.groups = Groups(
            bin_lsa=bin_lsa,
            group_of_bin=group_of_bin,
            first_bin=_firsts(group_of_bin, ids.size),
            own_of_bin=own_lsa.reshape(-1)[some],
            rest_of_bin=rest_lsa.reshape(-1)[some],
            first_cell=_firsts(group_of_cell[order], ids.size),
            cell=order,
            own_of_cell=self.plan.aligned(own_lsa)[order],
            rest_of_cell=self.plan.aligned(rest_lsa)[order],
            shares_lift=bool(setting.shares_lift),
        )
        self.belief = Belief(
            given=np.zeros(group_of_bin.size, dtype=np.int64),
            matched=np.zeros(group_of_bin.size, dtype=np.int64),
            upper=np.ones(group_of_bin.size),
            dirty=np.zeros(group_of_bin.size, dtype=np.bool_),
        )

    @property
    def n_bins(self) -> int:
        """How many adherences are bounded at once."""
        return self.belief.upper.size

    def count(self, step: Ints, state: Ints, advice: Ints, action: Ints) -> None:
        """Count what people made of advice."""
        spoken = np.flatnonzero(advice < self.setting.policy.shape[2])
        step, state, advice, action = (each[spoken] for each in (step, state, advice, action))
        bins = self.groups.bin_lsa[step if len(self.groups.bin_lsa) > 1 else 0, state, advice]
        says = bins >= 0
        self.belief.given[:] += np.bincount(bins[says], minlength=self.n_bins)
        matched = bins[says & (action == advice)]
        self.belief.matched[:] += np.bincount(matched, minlength=self.n_bins)


class AdherenceLearner(ABC):
    """What all learners of adherence have in common: they differ in what they ``believe``.

    Attributes
    ----------
    episode
        Episodes seen so far.
    """

    def __init__(  # noqa: PLR0913 (the settings)
        self,
        setting: Setting,
        *,
        penalty: float = 0.0,
        budget: float | None = None,
        groups: ArrayLike | None = None,
        rng: Generator | None = None,
        may_repel: bool = False,
    ) -> None:
        if rng is not None:
            check_rng(rng)
        self.rng = rng
        if not isinstance(setting, Setting):
            raise CounselError(
                f"setting is {brief(setting)}; give problem.without_adherence(): "
                "a learner must not see more"
            )
        if groups is not None:
            H, S, A = setting.policy.shape
            setting = replace(setting, groups=by_step(read_groups(groups, (H, S, A)), H))
        self.setting = setting
        self.penalty, self.budget = read_limit(penalty, budget)
        if may_repel and budget is not None:
            raise CounselError("may_repel goes with a penalty, not with a budget")
        self.known = Adherence(self.setting, penalty=self.penalty, may_repel=may_repel)
        self.episode = 0
        self._due = True
        self._policy: Policy | None = None
        self._seen: list[tuple[int, int, int, int, float]] = []

    @abstractmethod
    def believe(self) -> None:
        """Carry what was seen into the plan's pull."""

    def carry(self) -> None:
        """Carry what is believed into the plan again, without learning or drawing anything."""
        set_groups(self.known.groups, self.known.belief, self.known.plan.pull)

    @property
    def policy(self) -> Policy:
        """What to advise now, the best ``Policy`` for what is believed."""
        if self._due or self._policy is None:
            self.believe()
            self._policy = self._planned()
            self._due = False
        return self._policy

    def _planned(self) -> Policy:
        """Return the best policy for what is believed."""
        if self.budget is None:
            advice = self.known.plan.advise()
            return Policy.trusted(advice, n_actions=self.setting.policy.shape[2])
        if isinstance(self.known.plan, BothEnds):
            raise TypeError("the constructor lets no budget through")
        return within_budget(self.known.plan, self.world(), self.known.own_lsa, self.budget)

    def world(self) -> MDP:
        """Return the world as far as it is known, with optimistic rewards where they are not.

        Returns
        -------
        MDP
            What is planned on.
        """
        return self.setting.mdp

    def count(self, step: Ints, state: Ints, advice: Ints, action: Ints, reward: Floats) -> None:
        """Count decisions.

        Parameters
        ----------
        step
            Steps [decision].
        state
            States [decision].
        advice
            What was advised [decision]; the number of actions for silence.
        action
            What people did [decision].
        reward
            What it paid [decision].
        """
        self.known.count(step, state, advice, action)

    def update(self, batch: Episodes) -> None:
        """Learn from whole episodes.

        Parameters
        ----------
        batch
            What ``Simulator.play`` returned.

        Raises
        ------
        CounselError
            When the episodes do not fit the problem's sizes.
        """
        H, S, A = self.setting.policy.shape
        batch.check_fits(H, S, A)
        self.count(batch.step, batch.state, batch.advice, batch.action, batch.reward)
        self.episode += len(batch)
        self._due = True

    def advise(self, step: int, state: int) -> int:
        """Return the advice for one person at one step; within a budget it may be drawn.

        Parameters
        ----------
        step
            The step in the episode, from 0.
        state
            The state the person is in.

        Returns
        -------
        int
            The advice; the number of actions is silence.

        Raises
        ------
        CounselError
            When ``step`` or ``state`` is out of range, or chance decides there and no ``rng`` was
            given.
        """
        return self.policy.draw(step, state, self.rng)

    def observe(self, move: Move) -> None:
        """Note what the person did.

        Parameters
        ----------
        move
            One decision; what it tells is learnt when the episode ends.
        """
        self._seen.append((move.step, move.state, move.advice, move.action, move.reward))

    def finish(self, *, terminated: bool = False) -> None:
        """End an episode and learn from it; without anything seen nothing changes.

        Parameters
        ----------
        terminated
            Whether nothing more can happen; of no consequence here, where the world is known.

        Raises
        ------
        CounselError
            When a move that was observed is out of range; the episode is then forgotten.
        """
        if not self._seen:
            return
        *where, reward = zip(*self._seen, strict=True)
        step, state, advice, action = (np.array(column) for column in where)
        H, S, A = self.setting.policy.shape
        for name, column, most in (
            ("step", step, H),
            ("state", state, S),
            ("advice", advice, A + 1),
            ("action", action, A),
        ):
            if not 0 <= column.min() <= column.max() < most:
                self._seen.clear()
                raise CounselError(
                    f"{name} was {column.min()} to {column.max()}; it runs from 0 to {most - 1}"
                )
        self.count(step, state, advice, action, np.array(reward, dtype=np.float64))
        self._seen.clear()
        self.episode += 1
        self._due = True

    def state(self) -> dict[str, Any]:
        """Return all that was learnt: what ``restore`` needs to go on from here.

        Returns
        -------
        dict
            Arrays and numbers.
        """
        belief = self.known.belief
        chance = {} if self.rng is None else {"chance": self.rng.bit_generator.state}
        return chance | {
            "episode": self.episode,
            "due": self._due or self._policy is None,
            "given": belief.given.copy(),
            "matched": belief.matched.copy(),
            "upper": belief.upper.copy(),
            "seen": np.array(self._seen, dtype=np.float64).reshape(-1, 5),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state that a learner with the same settings had.

        Parameters
        ----------
        state
            What ``state`` returned.

        Raises
        ------
        CounselError
            When it is of other settings, or its counts cannot be.
        """
        belief = self.known.belief
        if self.rng is not None:
            self.rng = generator_from(state["chance"])
        for name in ("given", "matched", "upper"):
            if state[name].shape != getattr(belief, name).shape:
                raise CounselError(
                    f"{name} has {state[name].size} numbers but this learner "
                    f"{getattr(belief, name).size}; restore one with the same settings"
                )
        where = first((state["matched"] < 0) | (state["matched"] > state["given"]))
        if where is not None:
            raise CounselError(
                f"matched{list(where)} is {state['matched'][where]} of {state['given'][where]} "
                "pieces of advice given; the state is damaged"
            )
        for name in ("given", "matched", "upper"):
            getattr(belief, name)[:] = state[name]
        self.episode = int(state["episode"])
        self._seen = [
            (int(h), int(s), int(b), int(a), reward) for h, s, b, a, reward in state["seen"]
        ]
        self._due = bool(state["due"])
        self._policy = None
        if not self._due:
            self.carry()
            self._policy = self._planned()

    @property
    def given(self) -> Ints:
        """How often advice that tells something was given in each bin [bin].

        A bin is a group of pairs that share one adherence, in order of their numbers; where they
        share one lift, those of a group for whom the person's own policy is the same.
        """
        return sealed(self.known.belief.given.copy())

    @property
    def matched(self) -> Ints:
        """How often it was matched [bin]."""
        return sealed(self.known.belief.matched.copy())


def _together(*tables: NDArray[Any]) -> list[NDArray[Any]]:
    """Give tables [layer, …] as many layers as the longest has."""
    most = max(len(table) for table in tables)
    return [np.broadcast_to(table, (most, *table.shape[1:])) for table in tables]


def _fewest_layers(view_hsa: Ints) -> Ints:
    """Return the one layer of groups that are the same at every step, else all."""
    return view_hsa[:1] if (view_hsa == view_hsa[:1]).all() else view_hsa


def _firsts(groups: Ints, count: int) -> Ints:
    """Return where each group begins in a sorted list, and the end."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(np.bincount(groups, minlength=count))))
