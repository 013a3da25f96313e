"""What was drawn: whole decisions, or how often each was taken."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counsel._arrays import Bools, Floats, Ints, sealed
from counsel.errors import CounselError

DECISION = ("state", "advice", "action", "reward", "next_state")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Episodes:
    """Decisions, one episode after another: what ``Simulator.play`` returns.

    An episode stops where nothing more can happen (``MDP.over``), so they differ in length; one
    that starts there has no decision. ``len`` tells how many episodes there are.

    Attributes
    ----------
    first
        Episode i has decisions ``first[i]`` up to ``first[i + 1]``: [episode + 1].
    state, advice, action, reward, next_state
        One entry for each decision; ``advice`` is ``defer`` for silence.
    terminated
        Whether each episode came to an end of its own, rather than to the horizon [episode].
    defer
        The index that means silence.

    Examples
    --------
    A hundred flights, of which the shortest ends after three decisions:

    >>> import numpy as np
    >>> import counsel
    >>> from counsel.worlds import make
    >>> problem = make("flappy-bird-budget/greedy")
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

    def __post_init__(self) -> None:
        for name in ("first", *DECISION, "terminated"):
            object.__setattr__(self, name, sealed(getattr(self, name).view()))

    def __len__(self) -> int:
        return self.terminated.size

    def check_fits(self, horizon: int, n_states: int, n_actions: int) -> None:
        """Raise unless these can be episodes of a problem of such sizes.

        Parameters
        ----------
        horizon, n_states, n_actions
            Sizes of the problem.

        Raises
        ------
        CounselError
            When there are other actions, an episode is longer, or an index is out of range.
        """
        if self.defer != n_actions:
            raise CounselError(f"the episodes have {self.defer} actions but there are {n_actions}")
        if self.lengths.max(initial=0) > horizon:
            raise CounselError(
                f"an episode has {self.lengths.max()} decisions but there are {horizon} steps"
            )
        for name, most in (
            ("state", n_states),
            ("next_state", n_states),
            ("advice", n_actions + 1),
            ("action", n_actions),
        ):
            column = getattr(self, name)
            if column.size and not 0 <= column.min() <= column.max() < most:
                off = int(np.flatnonzero((column < 0) | (column >= most))[0])
                raise CounselError(
                    f"{name} of decision {off} is {column[off]}; it runs from 0 to {most - 1}"
                )

    @property
    def lengths(self) -> Ints:
        """How many decisions each episode has [episode]."""
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
        """What each episode earned [episode]."""
        return np.bincount(self.episode, self.reward, minlength=len(self)).astype(np.float64)

    @property
    def pieces(self) -> Ints:
        """How many pieces of advice each episode had [episode]."""
        spoken = self.episode[self.advice != self.defer]
        return np.bincount(spoken, minlength=len(self))

    def __repr__(self) -> str:
        return f"Episodes({len(self)} episodes, {self.state.size} decisions)"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Counts:
    """How often each decision was taken, and what each episode brought.

    This is what ``Simulator.count`` returns. Every episode counts at every step: one that has ended
    stays where it is, and is still advised and still acts, as in ``evaluate``. ``len`` tells how
    many episodes there are; ``+`` joins the counts of two batches.

    Attributes
    ----------
    decisions
        How often [h, s, advice, a], silence last among the advice.
    rewards, pieces
        What each episode earned, and how many pieces of advice it had [episode].
    live
        How many decisions were taken before an end.

    Examples
    --------
    How often each piece of advice was given and matched; the adherence is 0.9, 0.7 and 0.9:

    >>> import numpy as np
    >>> import counsel
    >>> from counsel.worlds import make
    >>> problem = make("flappy-bird/greedy")
    >>> policy = counsel.solve(problem, penalty=0.1).policy
    >>> rng = np.random.default_rng(0)
    >>> counts = counsel.Simulator(problem).count(policy, episodes=10_000, rng=rng)
    >>> for name, given, matched in zip(problem.mdp.action_labels, counts.given, counts.matched):
    ...     print(f"{name}: {matched} of {given}, {matched / given:.2f}")
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
        """How often each state was seen at each step [h, s]."""
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
        """Return the counts of both."""
        if not isinstance(other, Counts) or self.decisions.shape != other.decisions.shape:
            raise CounselError("counts can only be added to counts of a problem of the same shape")
        return Counts(
            decisions=sealed(self.decisions + other.decisions),
            rewards=sealed(np.concatenate((self.rewards, other.rewards))),
            pieces=sealed(np.concatenate((self.pieces, other.pieces))),
            live=self.live + other.live,
        )

    def __repr__(self) -> str:
        return f"Counts({len(self)} episodes, {self.live} decisions)"
