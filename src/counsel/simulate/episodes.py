"""Simulated episodes: every decision, counts of decisions, or a running summary."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counsel._arrays import Bools, Floats, Ints, sealed
from counsel.errors import CounselError
from counsel.model.problem import AdviceProblem

DECISION = ("state", "advice", "action", "reward", "next_state")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Episodes:
    """Decisions, one episode after another: the result of ``Simulator.play``.

    An episode ends where it is over (``MDP.over``), so episodes differ in length; an episode that
    starts there has no decision. ``len`` is the number of episodes.

    Attributes
    ----------
    first
        Episode i has decisions ``first[i]`` up to ``first[i + 1]``: [episode + 1].
    state, advice, action, reward, next_state
        One entry per decision; ``advice`` is ``defer`` for silence.
    level
        The level of the person's memory at each decision; None if they have no memory.
    terminated
        Whether each episode ended before the horizon cut it [episode].
    defer
        The index that means silence.

    Examples
    --------
    A hundred flights, of which the shortest ends after three decisions:

    >>> import numpy as np
    >>> import counsel
    >>> problem = counsel.make("flappy-bird-budget/greedy")
    >>> policy = counsel.solve(problem).policy
    >>> rng = np.random.default_rng(0)
    >>> flights = counsel.Simulator(problem).play(policy, episodes=100, rng=rng)
    >>> flights
    Episodes(100 episodes, 760 decisions)
    >>> int(flights.lengths.min()), int(flights.lengths.max())
    (3, 8)
    >>> int(flights.pieces.sum()), int(flights.matched.sum())
    (200, 179)
    """

    first: NDArray[np.int64]
    state: NDArray[np.int32]
    advice: NDArray[np.int16]
    action: NDArray[np.int16]
    reward: Floats
    next_state: NDArray[np.int32]
    terminated: Bools
    defer: int
    level: NDArray[np.int16] | None = None

    def __post_init__(self) -> None:
        for name in ("first", *DECISION, "terminated", "level"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, sealed(getattr(self, name).view()))

    def __len__(self) -> int:
        return self.terminated.size

    def check_fits(self, horizon: int, n_states: int, n_actions: int) -> None:
        """Raise unless the episodes may come from a problem of these sizes.

        Parameters
        ----------
        horizon, n_states, n_actions
            Sizes of the problem.
        """
        if self.defer != n_actions:
            raise CounselError(
                f"the episodes have {self.defer} actions; the problem has {n_actions}"
            )
        if self.lengths.max(initial=0) > horizon:
            raise CounselError(
                f"an episode has {self.lengths.max()} decisions; the problem has {horizon} steps"
            )
        sizes = {"state": n_states, "next_state": n_states, "advice": n_actions + 1}
        for name, most in (sizes | {"action": n_actions}).items():
            column = getattr(self, name)
            if column.size and not 0 <= column.min() <= column.max() < most:
                i = int(np.flatnonzero((column < 0) | (column >= most))[0])
                raise CounselError(
                    f"{name} of decision {i} is {column[i]}; it must lie from 0 to {most - 1}"
                )

    @property
    def lengths(self) -> Ints:
        """The number of decisions of each episode [episode]."""
        return np.diff(self.first)

    @property
    def episode(self) -> Ints:
        """The episode of each decision [decision]."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @property
    def step(self) -> Ints:
        """The step of each decision [decision], counted from 0."""
        return np.arange(self.state.size) - np.repeat(self.first[:-1], self.lengths)

    @property
    def matched(self) -> Bools:
        """Whether each action equals the advice [decision]; never for silence."""
        matched: Bools = self.action == self.advice
        return matched

    @property
    def rewards(self) -> Floats:
        """The total reward of each episode [episode]."""
        return np.bincount(self.episode, self.reward, minlength=len(self)).astype(np.float64)

    @property
    def pieces(self) -> Ints:
        """The pieces of advice of each episode [episode]."""
        advised = self.episode[self.advice != self.defer]
        return np.bincount(advised, minlength=len(self))

    def costs(self, problem: AdviceProblem) -> Floats:
        """Return the cost of the advice of each episode [episode]: its pieces if each costs 1.

        Parameters
        ----------
        problem
            The problem that the episodes are from.
        """
        self.check_fits(problem.horizon, problem.n_states, problem.n_actions)
        said = np.flatnonzero(self.advice != self.defer)
        cells = self.step[said], self.state[said], self.advice[said].astype(np.int64)
        costs = np.bincount(self.episode[said], problem.cost[cells], minlength=len(self))
        return costs.astype(np.float64)

    def __repr__(self) -> str:
        return f"Episodes({len(self)} episodes, {self.state.size} decisions)"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Counts:
    """Counts of decisions, and the reward of each episode: the result of ``Simulator.count``.

    Every episode counts at every step: after its end it stays in its state and is still advised and
    still acts, as in ``evaluate``. ``len`` is the number of episodes; ``+`` adds two batches.

    Attributes
    ----------
    decisions
        Counts [h, s, advice, a], silence last among the advice.
    rewards, pieces
        The total reward and the pieces of advice of each episode [episode].
    live
        The number of decisions before the ends of their episodes.

    Examples
    --------
    How often each advice was given and matched; the adherence is 0.9, 0.7 and 0.9:

    >>> import numpy as np
    >>> import counsel
    >>> problem = counsel.make("flappy-bird/greedy")
    >>> policy = counsel.solve(problem, penalty=0.1).policy
    >>> rng = np.random.default_rng(0)
    >>> counts = counsel.Simulator(problem).count(policy, episodes=10_000, rng=rng)
    >>> for name, pieces, matched in zip(problem.mdp.action_labels, counts.given, counts.matched):
    ...     print(f"{name}: {matched} of {pieces}, {matched / pieces:.2f}")
    Up: 8021 of 8894, 0.90
    Up-Up: 3004 of 4309, 0.70
    Down: 31931 of 35488, 0.90
    """

    decisions: NDArray[np.int64]
    rewards: Floats
    pieces: NDArray[np.int32]
    live: int

    def __len__(self) -> int:
        return self.rewards.size

    @property
    def visits(self) -> Ints:
        """How often each state was visited at each step [h, s]."""
        return np.asarray(self.decisions.sum(axis=(2, 3)))

    @property
    def given(self) -> Ints:
        """How often each advice was given [a]."""
        return np.asarray(self.decisions[:, :, :-1].sum(axis=(0, 1, 3)))

    @property
    def matched(self) -> Ints:
        """How often the action equalled the advice [a]."""
        return np.asarray(np.einsum("hsaa->a", self.decisions[:, :, :-1]))

    def __add__(self, other: "Counts") -> "Counts":
        if not isinstance(other, Counts) or self.decisions.shape != other.decisions.shape:
            raise CounselError(
                "cannot add these counts: both must come from problems of the same shape"
            )
        return Counts(
            decisions=sealed(self.decisions + other.decisions),
            rewards=sealed(np.concatenate((self.rewards, other.rewards))),
            pieces=sealed(np.concatenate((self.pieces, other.pieces))),
            live=self.live + other.live,
        )

    def __repr__(self) -> str:
        return f"Counts({len(self)} episodes, {self.live} decisions)"


@dataclass(slots=True)
class RunningMean:
    """A mean and its standard error, updated batch by batch (Chan, Golub and LeVeque)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, numbers: Floats) -> None:
        """Add a batch of numbers."""
        n = numbers.size
        if n == 0:
            return
        mean = float(numbers.mean())
        difference, total = mean - self.mean, self.count + n
        within = float(((numbers - mean) ** 2).sum())
        self.squares += within + difference**2 * self.count * n / total
        self.mean += difference * n / total
        self.count = total

    @property
    def error(self) -> float:
        """The standard error of the mean; infinite for a single number."""
        if self.count < 2:
            return math.inf
        return math.sqrt(self.squares / (self.count - 1) / self.count)


class EpisodeSummary:
    """Means and counts over batches of episodes; its size does not grow with their number."""

    def __init__(self, problem: AdviceProblem) -> None:
        self.problem = problem
        self.reward, self.pieces, self.cost = RunningMean(), RunningMean(), RunningMean()
        self.decisions = self.ended = 0
        self.given_a = np.zeros(problem.n_actions, dtype=np.int64)
        self.matched_a = np.zeros(problem.n_actions, dtype=np.int64)

    def add(self, batch: Episodes) -> None:
        """Add a batch of episodes."""
        A = self.problem.n_actions
        self.reward.add(batch.rewards)
        self.pieces.add(batch.pieces.astype(np.float64))
        self.cost.add(batch.costs(self.problem))
        self.decisions += batch.state.size
        self.ended += int(batch.terminated.sum())
        self.given_a += np.bincount(batch.advice, minlength=A + 1)[:A]
        self.matched_a += np.bincount(batch.advice[batch.matched], minlength=A)

    @property
    def episodes(self) -> int:
        """The number of episodes."""
        return self.reward.count
