"""The world: states, actions, transitions, rewards, and a horizon of steps or a discount.

An episode starts in a state drawn from ``start`` and lasts ``horizon`` steps. At step h in state s
the person takes an action a, earns r_h(s, a) and moves to t with probability p_h(t | s, a). With a
horizon nothing is discounted. Rewards are any finite numbers.

Work without end has a ``discount`` γ instead of a horizon: rewards and advice t steps from now
count γ^t. Or its average reward per step counts, with the discount 1. Such a world is stationary,
and its tables have a step axis of length 1.

``allowed`` says which actions exist. An action that is not allowed may have an empty row; neither
the person nor the advice may use it. At least one action is allowed in every state at every step.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import (
    Bools,
    Floats,
    by_step,
    check_distributions,
    check_finite,
    check_range,
    first,
    layers,
    numbers,
    place,
    read_labels,
    rectangular,
    sealed,
    unlayered,
)
from counsel.errors import CounselError
from counsel.model.kernel import NO_ROW, Kernel
from counsel.model.toy_text import ToyText, read_toy_text, write_toy_text
from counsel.model.work_length import check_without_steps, read_length


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False, weakref_slot=True)
class MDP:
    """A world with a horizon, or without end: with a discount or an average reward per step.

    Parameters
    ----------
    transition
        Float array [s, a, t] or [h, s, a, t] of probabilities; integer array [s, a] or [h, s, a]
        of certain next states; a scipy.sparse matrix [s·A + a, t], or a list of one per step; or a
        ``Kernel``.
    reward
        Finite numbers [s], [s, a] or [h, s, a].
    horizon
        The number of steps per episode; None for work without end.
    discount
        For work without end, from 0 up to but not including 1: a reward t steps from now counts
        discount to the power of t. Such a world may not change with the step.
    average
        Whether the average reward per step counts, in work without end and without a discount. The
        world must come back to where it was: whatever happens, advice or silence can lead from
        every state to the states that are visited for ever.
    start
        A state, or a distribution [s].
    allowed
        Booleans [s, a] or [h, s, a]. All actions are allowed by default.
    state_labels, action_labels
        The names of the states [s] and of the actions [a] for people.

    Attributes
    ----------
    kernel
        The transitions.
    reward, allowed
        [h, s, a], with a zero stride over steps if stationary. The reward is 0 where the action is
        not allowed.
    reward_size
        The largest absolute reward.
    n_steps
        The length of the step axis of tables: the horizon, or 1 for work without end.
    discount
        The discount of work without end, 1 if its average reward per step counts; else None.
    start
        Distribution [s].

    Raises
    ------
    CounselError
        If a shape or a number is wrong, a row does not sum to 1, or a state has no action.

    Examples
    --------
    Integers are next states. State 2 is never left and pays nothing, so an episode is over there:

    >>> import counsel
    >>> mdp = counsel.MDP([[1, 2], [0, 2], [2, 2]], reward=[0.0, 1.0, 0.0], horizon=4)
    >>> mdp
    MDP(3 states, 2 actions, horizon 4, stationary)
    >>> mdp.reward.shape
    (4, 3, 2)
    >>> mdp.over[0].tolist()
    [False, False, True]

    The same world without end:

    >>> counsel.MDP([[1, 2], [0, 2], [2, 2]], reward=[0.0, 1.0, 0.0], discount=0.95)
    MDP(3 states, 2 actions, no end, discount 0.95)
    """

    kernel: Kernel
    reward: Floats
    reward_size: float
    n_steps: int
    discount: float | None
    start: Floats
    allowed: Bools
    state_labels: tuple[str, ...] | None
    action_labels: tuple[str, ...] | None

    def __init__(  # noqa: PLR0913 (a world has this many parts)
        self,
        transition: object,
        reward: ArrayLike,
        *,
        horizon: int | None = None,
        discount: float | None = None,
        average: bool = False,
        start: ArrayLike = 0,
        allowed: ArrayLike | None = None,
        state_labels: Sequence[str] | None = None,
        action_labels: Sequence[str] | None = None,
    ) -> None:
        H, discount = read_length(horizon, discount, average)
        kernel = Kernel.read(transition)
        S, A = kernel.n_states, kernel.n_actions
        if discount is not None:
            check_without_steps(kernel, reward, allowed)
        if kernel.n_layers not in (1, H):
            raise CounselError(
                f"transition has {kernel.n_layers} steps but horizon is {H}; give one step for a "
                "stationary world, or all (integers are next states, floats are probabilities)"
            )
        allowed_lsa = read_allowed(allowed, (H, S, A))
        where = first(allowed_lsa & (kernel.row == NO_ROW))
        if where is not None:
            raise CounselError(
                f"transition{place('hsa', where)} sums to 0; "
                "give its next states or mark the action as not allowed"
            )
        reward_hsa = _read_reward(reward, (H, S, A), discount)
        if not allowed_lsa.all():
            reward_hsa = by_step(sealed(np.where(allowed_lsa, layers(reward_hsa), 0.0)), H)
        fields: dict[str, Any] = {
            "kernel": kernel,
            "reward": reward_hsa,
            "reward_size": max(-float(layers(reward_hsa).min()), float(layers(reward_hsa).max())),
            "n_steps": H,
            "discount": discount,
            "start": _read_start(start, S),
            "allowed": by_step(allowed_lsa, H),
            "state_labels": read_labels("state_labels", state_labels, S),
            "action_labels": read_labels("action_labels", action_labels, A),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_toy_text(  # noqa: PLR0913 (a world has this many parts)
        cls,
        transitions: ToyText,
        *,
        horizon: int | None = None,
        discount: float | None = None,
        average: bool = False,
        start: ArrayLike = 0,
        state_labels: Sequence[str] | None = None,
        action_labels: Sequence[str] | None = None,
    ) -> "MDP":
        """Build a world from a Gymnasium toy-text dictionary, ``env.unwrapped.P``.

        A transition that is done leads to one added state, the last, which is never left and pays
        nothing. Repeated next states are summed and r(s, a) is the expected reward.

        Parameters
        ----------
        transitions
            ``P[s][a]`` lists (probability, next state, reward, done).
        horizon, discount, average, action_labels
            As in the constructor.
        start, state_labels
            As in the constructor, with or without the added state; its default label is "over".
        """
        matrix, reward_sa, allowed_sa = read_toy_text(transitions)
        S = reward_sa.shape[0]
        start_s = rectangular("start", start)
        if start_s.shape == (S - 1,):
            start = np.append(start_s, 0.0)
        if isinstance(state_labels, list | tuple) and len(state_labels) == S - 1:
            state_labels = [*state_labels, "over"]
        return cls(
            matrix,
            reward_sa,
            horizon=horizon,
            discount=discount,
            average=average,
            start=start,
            allowed=allowed_sa,
            state_labels=state_labels,
            action_labels=action_labels,
        )

    def to_toy_text(self) -> ToyText:
        """Return the Gymnasium toy-text dictionary of a stationary world.

        A transition is done if it enters a state that is never left and pays nothing. Raises
        ``CounselError`` if the world changes with the step.
        """
        if self.kernel.n_layers > 1 or self.reward.strides[0] or self.allowed.strides[0]:
            raise CounselError(
                "this world cannot be a toy-text dictionary: it may not change with the step"
            )
        return write_toy_text(self.kernel, self.reward[0], self.allowed[0], self.over[0])

    @property
    def over(self) -> Bools:
        """Where an episode is over [h, s]: the state is never left again and pays nothing."""
        kernel, allowed_lsa = self.kernel, layers(self.allowed)
        lengths = np.append(np.diff(kernel.indptr), 0)
        target_lsa = np.append(kernel.next_state, NO_ROW)[np.append(kernel.indptr[:-1], -1)]
        stays_lsa = (lengths[kernel.row] == 1) & (
            target_lsa[kernel.row] == np.arange(self.n_states)[:, None]
        )
        idle_lsa = (stays_lsa & (layers(self.reward) == 0.0)) | ~allowed_lsa
        idle_ls = idle_lsa.all(axis=-1)
        idle_to_the_end: Bools = np.logical_and.accumulate(idle_ls[::-1])[::-1]
        return by_step(idle_to_the_end, self.n_steps)

    @property
    def horizon(self) -> int:
        """The number of steps per episode; raises ``CounselError`` for work without end."""
        if self.discount is not None:
            raise CounselError(
                f"this needs a horizon, but the world has no end ({self.kind_of_work}); give a "
                "world with a horizon"
            )
        return self.n_steps

    @property
    def average(self) -> bool:
        """Whether the average reward per step counts, in work without end."""
        return self.discount == 1.0

    @property
    def kind_of_work(self) -> str:
        """What counts, in words: "horizon 12", "discount 0.95" or "average per step"."""
        if self.discount is None:
            return f"horizon {self.n_steps}"
        return "average per step" if self.average else f"discount {self.discount!r}"

    def paying(self, reward: ArrayLike) -> "MDP":
        """Return the same world with other rewards.

        Parameters
        ----------
        reward
            Finite numbers [s], [s, a] or [h, s, a].
        """
        return self._rebuilder()(self.kernel, reward)

    def without_end(self, discount: float | None = None, *, average: bool = False) -> "MDP":
        """Return the same world without end; raise if it changes with the step.

        Parameters
        ----------
        discount, average
            As in the constructor: give one of them.
        """
        for name, steps in (
            ("transition", self.kernel.n_layers),
            ("reward", len(layers(self.reward))),
            ("allowed", len(layers(self.allowed))),
        ):
            if steps > 1:
                raise CounselError(
                    f"{name} changes over {steps} steps; work without end needs a world that does "
                    "not change with the step"
                )
        end = {"horizon": None, "discount": discount, "average": average}
        settings = self._rebuilder().keywords | end
        return MDP(self.kernel, self.reward[0], **settings)

    def _rebuilder(self) -> "partial[MDP]":
        """Return the constructor with everything but the kernel and the rewards."""
        return partial(
            MDP,
            horizon=self.n_steps if self.discount is None else None,
            discount=None if self.average else self.discount,
            average=self.average,
            start=self.start,
            allowed=unlayered(layers(self.allowed)),
            state_labels=self.state_labels,
            action_labels=self.action_labels,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return self._rebuilder(), (self.kernel, unlayered(layers(self.reward)))

    @property
    def n_states(self) -> int:
        """The number of states."""
        return self.kernel.n_states

    @property
    def n_actions(self) -> int:
        """The number of actions of the person."""
        return self.kernel.n_actions

    @property
    def defer(self) -> int:
        """The advice index that means silence: the index after the last action."""
        return self.kernel.n_actions

    def state_name(self, state: int) -> str:
        """Return the label of a state, or e.g. "state 3" if there are no labels.

        Parameters
        ----------
        state
            The index of the state.
        """
        return self.state_labels[state] if self.state_labels else f"state {state}"

    def action_name(self, action: int) -> str:
        """Return the label of an action, or e.g. "action 1" if there are no labels.

        Parameters
        ----------
        action
            The index of the action.
        """
        return self.action_labels[action] if self.action_labels else f"action {action}"

    def __repr__(self) -> str:
        sizes = f"{self.n_states} states, {self.n_actions} actions"
        if self.discount is not None:
            return f"MDP({sizes}, no end, {self.kind_of_work})"
        kind = "time-dependent" if self.kernel.n_layers > 1 else "stationary"
        return f"MDP({sizes}, horizon {self.n_steps}, {kind})"


def read_allowed(allowed: ArrayLike | None, shape: tuple[int, int, int]) -> Bools:
    """Return the mask [layer, s, a]; raise where no action is allowed."""
    H, S, A = shape
    if allowed is None:
        return sealed(np.ones((1, S, A), dtype=np.bool_))
    mask = rectangular("allowed", allowed)
    if mask.dtype != np.bool_:
        raise CounselError(f"allowed must be booleans, not {mask.dtype}")
    if mask.shape not in ((S, A), (H, S, A)):
        raise CounselError(
            f"allowed has shape {mask.shape}; expected [s, a] = {(S, A)} or [h, s, a] = {shape}"
        )
    where = first(np.asarray(~mask.any(axis=-1)))
    if where is not None:
        raise CounselError(
            f"allowed{place('hs'[-len(where) :], where)} allows no action; allow at least one"
        )
    return sealed(mask.reshape(-1, S, A))


def _read_reward(rewards: ArrayLike, shape: tuple[int, int, int], discount: float | None) -> Floats:
    """Return rewards [h, s, a], with a zero stride over steps if stationary."""
    H, S, A = shape
    reward = numbers("reward", rewards)
    axes = {(S,): "s", (S, A): "sa", shape: "hsa"}.get(reward.shape)
    if axes is None:
        by_steps = "" if discount is not None else f" or [h, s, a] = {shape}"
        raise CounselError(
            f"reward has shape {reward.shape}; expected [s] = {(S,)}, [s, a] = {(S, A)}{by_steps}"
        )
    check_finite("reward", reward, axes)
    most = 1e307 / H  # so that no sum over an episode overflows
    if discount is not None and discount < 1.0:
        most = 1e307 * (1.0 - discount)
    check_range("reward", reward, axes, -most, most)
    if axes == "s":
        reward = np.repeat(reward[:, None], A, axis=1)
    return by_step(sealed(reward.reshape(-1, S, A)), H)


def _read_start(start: ArrayLike, n_states: int) -> Floats:
    """Return the start distribution."""
    state = rectangular("start", start)
    if state.ndim == 0 and state.dtype.kind in "iu":
        if not 0 <= int(state) < n_states:
            raise CounselError(f"start is state {state}; states run from 0 to {n_states - 1}")
        return sealed(np.eye(1, n_states, int(state))[0])
    weights = numbers("start", start)
    if weights.shape != (n_states,):
        raise CounselError(
            f"start has shape {weights.shape}; give a state or a distribution of {n_states} numbers"
        )
    check_distributions("start", weights, "s")
    return sealed(weights)
