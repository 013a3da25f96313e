"""What learners share that count what they see and start out knowing nothing but sizes.

Live they note moves until an episode ends, and learn from it as from a batch of one. Where an
episode ended of its own, nothing more can happen in that state from that step on.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from counsel._arrays import Floats, check_rng, generator_from, index_in, layers
from counsel.errors import CounselError
from counsel.learning._rfe_kernels import mark_ends
from counsel.learning.inputs import read_limit
from counsel.learning.move import Move
from counsel.model.policy import Policy
from counsel.model.problem import Shape
from counsel.simulate.episodes import Episodes


class Watcher(ABC):
    """Counts what it sees of a problem of which only the shape is known.

    Attributes
    ----------
    episode
        Episodes seen so far.
    """

    arrays: ClassVar[tuple[str, ...]]
    """Names of all arrays that hold what was learnt."""

    growing: ClassVar[tuple[str, ...]]
    """Those among them that grow with what is seen."""

    def __init__(
        self, shape: Shape, *, rng: Generator, penalty: float = 0.0, budget: float | None = None
    ) -> None:
        if not isinstance(shape, Shape):
            raise CounselError("give problem.shape: a learner must not see more")
        check_rng(rng)
        self.shape, self.rng = shape, rng
        self.penalty, self.budget = read_limit(penalty, budget)
        H, S, _ = self._sizes
        may = layers(shape.allowed)
        self._open = np.concatenate((may, np.ones((len(may), S, 1), dtype=np.bool_)), axis=2)
        self._starts = np.zeros(S, dtype=np.int64)
        self._idle = np.zeros(1, dtype=np.int64)
        self._ended = np.zeros((H + 1, S), dtype=np.bool_)
        self._moves: list[Move] = []
        self.episode = 0
        self._policy: Policy | None = None

    @property
    def _sizes(self) -> tuple[int, int, int]:
        return self.shape.horizon, self.shape.n_states, self.shape.n_actions

    def _cell(self, step: int, state: int) -> tuple[int, int]:
        """Return a step and a state that compiled loops may trust; raise where there is none."""
        H, S, _ = self._sizes
        return index_in("step", step, H), index_in("state", state, S)

    @abstractmethod
    def update(self, batch: Episodes) -> None:
        """Learn from whole episodes, whoever played them.

        Parameters
        ----------
        batch
            What ``Simulator.play`` returned.
        """

    @abstractmethod
    def advise(self, step: int, state: int) -> int:
        """Return the advice for one person at one step.

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
        """

    @abstractmethod
    def sound(self, state: dict[str, Any]) -> bool:
        """Tell whether arrays that grow with what is seen can be trusted by compiled loops.

        Parameters
        ----------
        state
            What ``state`` returned.

        Returns
        -------
        bool
            Whether they can.
        """

    def observe(self, move: Move) -> None:
        """Note what the person did and what came of it.

        Parameters
        ----------
        move
            One decision; what it tells is learnt when the episode ends.
        """
        self._moves.append(move)

    def finish(self, *, terminated: bool = False) -> None:
        """End an episode and learn from it; without anything seen nothing changes.

        Parameters
        ----------
        terminated
            Whether nothing more can happen in the state the episode led to.

        Raises
        ------
        CounselError
            When a move that was observed is out of range, or steps were left out.
        """
        if not self._moves:
            return
        step, state, advice, action, reward, then = (
            np.array(c) for c in zip(*self._moves, strict=True)
        )
        self._moves.clear()
        if (step != np.arange(step.size)).any():
            where = int((step != np.arange(step.size)).argmax())
            raise CounselError(
                f"the moves of an episode come one after the other from step 0 on; move {where} "
                f"has step {step[where]}, and the episode is forgotten"
            )
        self.update(
            Episodes(
                first=np.array([0, state.size]),
                state=state.astype(np.int32),
                advice=advice.astype(np.int16),
                action=action.astype(np.int16),
                reward=reward.astype(np.float64),
                next_state=then.astype(np.int32),
                terminated=np.array([terminated]),
                defer=self.shape.n_actions,
            )
        )

    @property
    def _span(self) -> float:
        """The unit in which rewards count: their range."""
        low, high = self.shape.reward_range
        return max(high - low, 1e-300)

    def state(self) -> dict[str, Any]:
        """Return all that was learnt, and where chance stands.

        Returns
        -------
        dict
            Arrays and numbers: what ``restore`` takes.
        """
        arrays = {name: getattr(self, name).copy() for name in self.arrays}
        moves = np.array(self._moves, dtype=np.float64).reshape(-1, 6)
        chance = self.rng.bit_generator.state
        return arrays | {"episode": self.episode, "chance": chance, "moves": moves}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state that a learner with the same settings had.

        Parameters
        ----------
        state
            What ``state`` returned.

        Raises
        ------
        CounselError
            When it is of other settings, or does not fit together.
        """
        for name in self.arrays:
            given, own = state[name], getattr(self, name)
            alike = given.shape == own.shape or name in self.growing
            if not alike or given.dtype != own.dtype:
                raise CounselError(
                    f"{name[1:]} is {given.dtype} of shape {given.shape} but in this learner "
                    f"{own.dtype} of {own.shape}; restore one with the same settings"
                )
            fine = np.isfinite(given) if given.dtype.kind == "f" else given >= -1
            if not fine.all():
                raise CounselError(
                    f"{name[1:]} holds {given[~fine][0]}, which it never does; the state is damaged"
                )
        if not self.sound(state):
            raise CounselError(
                "the counts of what followed what do not fit together; the state is damaged"
            )
        for name in self.arrays:
            setattr(self, name, state[name].copy())
        self._moves = [
            Move(int(h), int(s), int(b), int(a), r, int(t)) for h, s, b, a, r, t in state["moves"]
        ]
        self.rng = generator_from(state["chance"])
        self.episode, self._policy = int(state["episode"]), None

    def _note_ends(self, batch: Episodes) -> None:
        """Count the first states, and mark from which step on nothing more can happen where."""
        live = batch.lengths > 0
        np.add.at(self._starts, batch.state[batch.first[:-1][live]], 1)
        self._idle[0] += (~live).sum()
        over = live & batch.terminated
        mark_ends(batch.lengths[over], batch.next_state[batch.first[1:][over] - 1], self._ended)

    def _from_start(self, most_s: Floats, width: float) -> float:
        """Return W before the first state is known: one row more, seen in every episode.

        ``width`` is what so many episodes leave open of the start. Where every episode begins in
        one state there is no such row.
        """
        H, n = self.shape.horizon, int(self._starts.sum() + self._idle[0])
        if self.shape.start is not None:
            return float(most_s[self.shape.start])
        if n == 0:
            return float(H)
        return min(float(H), width + (1.0 + 1.0 / H) * float(self._starts @ most_s) / n)

    def _law_of_start(self) -> tuple[Floats, float]:
        """Return the chance to begin in each state, as seen, and that to begin where all is over.

        Before anything was seen all states are as likely.
        """
        if self.shape.start is not None:
            law = np.zeros(self._starts.size)
            law[self.shape.start] = 1.0
            return law, 0.0
        n = int(self._starts.sum() + self._idle[0])
        if n == 0:
            return np.full(self._starts.size, 1.0 / self._starts.size), 0.0
        return self._starts / n, float(self._idle[0] / n)
