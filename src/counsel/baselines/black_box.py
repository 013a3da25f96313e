"""What learners share that take the machine's world for a black box.

Setting: the machine's MDP of ``problem.machine()``, whose actions are the advice and, last,
silence. Nothing of the person is used: only state, advice, reward and next state are seen. The
rewards r^M_h(s, b) are known unless said otherwise; a penalty β makes them r^M − β for all but
silence.
Formulas are for rewards in [0, 1]: inside, rewards count from low − β to high as 0 to 1.

The terminal trap: an episode stops where nothing more can happen, so nothing is ever recorded
there. A learner that is optimistic about what it has not seen would then believe in the best for
ever after the end, and crash on purpose. Here states reported as the end are worth 0 (in the user's
units) from that step on; ``known_zero`` declares others. States that a burn-in did not see are
taken to be unreachable, and to pay the least there is, until they are seen after all.
"""

from abc import abstractmethod
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from counsel._arrays import Bools, Floats, Ints, check_range, layers, rectangular, whole
from counsel.baselines._optimism_kernels import Box, note_advised
from counsel.errors import CounselError
from counsel.learning._transition_kernels import Chains, are_chains, with_room
from counsel.learning.inputs import read_rewards
from counsel.learning.watcher import Watcher
from counsel.model.policy import Advice, Policy, RandomCells
from counsel.model.problem import Shape
from counsel.simulate.episodes import Episodes
from counsel.simulate.simulator import Simulator

RANDOM = tuple(field.name for field in fields(RandomCells))


class BlackBox(Watcher):
    """Learns the machine's MDP from what follows advice.

    A plan breaks ties by chance, so it is drawn once, kept until something is learnt, and put away
    with the rest of the state.
    """

    arrays: ClassVar[tuple[str, ...]] = ("_visits", "_zero", "_shut", "_starts", "_idle", "_ended")
    growing: ClassVar[tuple[str, ...]] = ()

    def __init__(  # noqa: PLR0913 (what the machine may know)
        self,
        shape: Shape,
        *,
        rng: Generator,
        reward: ArrayLike | None,
        penalty: float = 0.0,
        budget: float | None = None,
        known_zero: ArrayLike | None = None,
    ) -> None:
        super().__init__(shape, rng=rng, penalty=penalty, budget=budget)
        H, S, A = self._sizes
        low, high = shape.reward_range
        self._low, self._unit = low - self.penalty, (high - low) + self.penalty or 1.0
        self._reward: Floats | None = None
        if reward is not None:
            known = layers(read_rewards(reward, (H, S, A + 1), axes="sb"))
            known = np.where(
                self._open, known, low
            )  # of advice that may not be given none is known
            slack = 1e-9 * max(abs(low), abs(high))
            check_range("reward", known, "hsb", low - slack, high + slack)
            self._reward = self._scaled(known)
        self._visits = np.zeros((H, S, A + 1), dtype=np.int64)
        self._zero = _read_zero(known_zero, (H, S))
        self._shut = np.zeros((H + 1, S), dtype=np.bool_)
        self._drawn: Policy | None = None

    @abstractmethod
    def best_advice(self) -> Advice:
        """Return what to advise after what was seen.

        Returns
        -------
        ndarray
            [h, s], whole numbers; the number of actions is silence.
        """

    @abstractmethod
    def _take_in(self, batch: Episodes, paid: Floats) -> None:
        """Learn from whole episodes; ``paid`` are their rewards in [0, 1]."""

    def draw(self) -> Policy:
        """Make the plan of which chance is a part.

        Returns
        -------
        Policy
            What will be played until something is learnt.
        """
        return Policy.trusted(self.best_advice(), n_actions=self.shape.n_actions)

    @property
    def drawn(self) -> Policy:
        """The plan that is played."""
        if self._drawn is None:
            self._drawn = self.draw()
        return self._drawn

    @property
    def policy(self) -> Policy:
        """What to advise now."""
        return self.drawn

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

        Raises
        ------
        CounselError
            When ``step`` or ``state`` is out of range.
        """
        return self.drawn.draw(step, state, self.rng)

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
        batch.check_fits(*self._sizes)
        paid = (batch.reward - self._low) / self._unit
        paid -= self.penalty / self._unit * (batch.advice < self.shape.n_actions)
        self._shut[batch.step, batch.state] = False
        self._note_ends(batch)
        self._take_in(batch, paid)
        self.episode += len(batch)

    def burn_in(self, simulator: Simulator, *, episodes: int, rng: Generator) -> None:
        """Play evenly random advice, keep its counts, and declare what was not seen unreachable.

        Parameters
        ----------
        simulator
            The world and the person.
        episodes
            How many, at least 1.
        rng
            Where chance comes from.

        Raises
        ------
        CounselError
            When ``episodes`` is no whole number of at least 1.
        """
        whole("episodes", episodes, least=1)
        H, S, A = self._sizes
        chance = np.broadcast_to(self._open, (H, S, A + 1)).astype(np.float64)
        even = Policy.from_probabilities(chance / chance.sum(axis=2, keepdims=True))
        left = episodes
        while left > 0:
            size = min(left, max(1, 1_000_000 // H))
            self.update(simulator.play(even, episodes=size, rng=rng))
            left -= size
        self._shut[:-1] = self._seen.sum(axis=2) == 0
        self._forget_plans()

    @property
    def _seen(self) -> Ints:
        """How often each row was seen."""
        return self._visits

    @property
    def _over(self) -> Bools:
        """Where nothing more can happen [h, s], with one step more."""
        over: Bools = self._ended | self._zero
        return over

    def state(self) -> dict[str, Any]:
        """Return all that was learnt, the plan (its ties were drawn), and where chance stands.

        Returns
        -------
        dict
            Arrays and numbers: what ``restore`` takes.
        """
        plan = self._drawn
        if plan is None:
            return super().state() | {"planned": False}
        kept: dict[str, Any] = {f"plan_{name}": getattr(plan.random, name) for name in RANDOM}
        return super().state() | {"planned": True, "plan": plan.advice, **kept}

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
        super().restore(state)
        self._forget_plans()
        if state["planned"]:
            random = RandomCells(*(state[f"plan_{name}"] for name in RANDOM))
            plan = Policy(state["plan"], n_actions=self.shape.n_actions, random=random)
            plan.check_fits(*self._sizes)
            self._drawn = plan

    def _forget_plans(self) -> None:
        """Plan anew when asked."""
        self._policy = self._drawn = None

    def _scaled(self, reward_lsb: Floats) -> Floats:
        """Return rewards in [0, 1], with the penalty."""
        spoken = np.arange(reward_lsb.shape[2]) < self.shape.n_actions
        scaled: Floats = (reward_lsb - self.penalty * spoken - self._low) / self._unit
        return np.clip(scaled, 0.0, 1.0)

    @property
    def _rest(self) -> float:
        """What a step pays where nothing more can happen."""
        return -self._low / self._unit

    def _values(self, scaled_hs: Floats) -> Floats:
        """Return values in the user's units."""
        left = np.arange(len(scaled_hs) - 1, -1, -1.0)[:, None]
        values: Floats = scaled_hs * self._unit + left * self._low
        return values


class Counted(BlackBox):
    """Counts what follows each advice."""

    growing: ClassVar[tuple[str, ...]] = ("_links",)
    arrays: ClassVar[tuple[str, ...]] = (
        *BlackBox.arrays,
        "_head",
        "_used",
        "_paid",
        "_square",
        *growing,
    )

    def __init__(  # noqa: PLR0913 (what the machine may know)
        self,
        shape: Shape,
        *,
        rng: Generator,
        reward: ArrayLike | None,
        penalty: float = 0.0,
        budget: float | None = None,
        known_zero: ArrayLike | None = None,
    ) -> None:
        super().__init__(
            shape, rng=rng, reward=reward, penalty=penalty, budget=budget, known_zero=known_zero
        )
        self._head = np.full(self._visits.shape, -1, dtype=np.int64)
        self._links: Ints = np.zeros((0, 3), dtype=np.int64)
        self._used = np.zeros(1, dtype=np.int64)
        self._paid = np.zeros(self._visits.shape)
        self._square = np.zeros(self._visits.shape)

    def _take_in(self, batch: Episodes, paid: Floats) -> None:
        """Count what followed, and what was paid."""
        self._links = with_room(self._links, int(self._used[0]), batch.state.size)
        self._note(batch, paid, self._chains)
        if batch.state.size:
            self._forget_plans()

    def sound(self, state: dict[str, Any]) -> bool:
        """Tell whether chains lead somewhere, come to an end, and hold what was seen.

        Parameters
        ----------
        state
            What ``state`` returned.

        Returns
        -------
        bool
            Whether the arrays that grow can be trusted by compiled loops.
        """
        head, links, used = state["_head"], state["_links"], int(state["_used"][0])
        return are_chains(state["_visits"], head, links, used, self.shape.n_states)

    def _note(self, batch: Episodes, paid: Floats, chains: Chains) -> None:
        note_advised(
            batch.first,
            batch.state,
            batch.advice,
            paid,
            batch.next_state,
            chains,
            self._paid,
            self._square,
        )

    @property
    def _chains(self) -> Chains:
        return Chains(self._visits, self._head, self._links, self._used)

    def _box(self) -> Box:
        """Return what was seen, with rewards in [0, 1]: those known, or averages."""
        reward = self._reward
        if reward is None:
            reward = self._paid / np.maximum(self._visits, 1)
        return Box(self._chains, self._open, reward, self._over, self._shut.copy(), self._rest)


def _read_zero(given: ArrayLike | None, shape: tuple[int, int]) -> Bools:
    """Return declared states of value 0 as [h, s] with one step more, from [s] or [h, s]."""
    H, S = shape
    zero = np.zeros((H + 1, S), dtype=np.bool_)
    if given is None:
        return zero
    table = rectangular("known_zero", given)
    if table.dtype != np.bool_ or table.shape not in ((S,), (H, S)):
        raise CounselError(
            f"known_zero is {table.dtype} of shape {table.shape}; "
            f"expected booleans [s] = {(S,)} or [h, s] = {(H, S)}"
        )
    zero[:H] = table
    return zero
