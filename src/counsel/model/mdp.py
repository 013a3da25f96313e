"""The world: states, actions, transitions, rewards and a horizon of steps.

An episode starts in a state drawn from ``start`` and lasts ``horizon`` steps. At step h in state s
the person takes an action a, earns r_h(s, a) and moves to t with probability p_h(t | s, a). Nothing
is discounted. Rewards are any finite numbers.

``allowed`` says which actions exist where. An action that is not allowed may have an empty row;
neither the person nor the advice may use it. In every state at every step some action is allowed.
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
    labels,
    layers,
    numbers,
    place,
    rectangular,
    sealed,
    unlayered,
    whole,
)
from counsel.errors import CounselError
from counsel.model.kernel import NO_ROW, Kernel
from counsel.model.toy_text import ToyText, read_toy_text, write_toy_text


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class MDP:
    """A finite-horizon world.

    Parameters
    ----------
    transition
        Float array [s, a, t] or [h, s, a, t] of probabilities; integer array [s, a] or [h, s, a]
        of certain next states; a scipy.sparse matrix [s·A + a, t] or a sequence of one a step;
        or a ``Kernel``.
    reward
        Finite numbers [s], [s, a] or [h, s, a].
    horizon
        Steps in an episode.
    start
        A state, or a distribution [s].
    allowed
        Booleans [s, a] or [h, s, a]; all actions are allowed when not given.
    state_labels
        Names of the states that people read [s].
    action_labels
        Names of the actions that people read [a].

    Attributes
    ----------
    kernel
        The transitions.
    reward, allowed
        [h, s, a], with a zero stride over steps where they never change. The reward is 0 where the
        action is not allowed.
    reward_size
        The largest absolute reward.
    start
        Distribution [s].

    Raises
    ------
    CounselError
        When a shape or a number is wrong, a row does not sum to 1, or a state has no action.

    Examples
    --------
    Integers are next states. State 2 is never left and pays nothing: there an episode is over.

    >>> import counsel
    >>> mdp = counsel.MDP([[1, 2], [0, 2], [2, 2]], reward=[0.0, 1.0, 0.0], horizon=4)
    >>> mdp
    MDP(3 states, 2 actions, horizon 4, stationary)
    >>> mdp.reward.shape
    (4, 3, 2)
    >>> mdp.over[0].tolist()
    [False, False, True]
    """

    kernel: Kernel
    reward: Floats
    reward_size: float
    horizon: int
    start: Floats
    allowed: Bools
    state_labels: tuple[str, ...] | None
    action_labels: tuple[str, ...] | None

    def __init__(  # noqa: PLR0913 (a world has this many parts)
        self,
        transition: object,
        reward: ArrayLike,
        *,
        horizon: int,
        start: ArrayLike = 0,
        allowed: ArrayLike | None = None,
        state_labels: Sequence[str] | None = None,
        action_labels: Sequence[str] | None = None,
    ) -> None:
        H = whole("horizon", horizon, least=1)
        kernel = Kernel.read(transition)
        S, A = kernel.n_states, kernel.n_actions
        if kernel.n_layers not in (1, H):
            raise CounselError(
                f"transition has {kernel.n_layers} steps but horizon is {H}; give one step for a "
                "world that never changes, or all (integers are next states, floats probabilities)"
            )
        allowed_lsa = read_allowed(allowed, (H, S, A))
        _check_rows_exist(kernel, allowed_lsa)
        reward_hsa = _without_masked(_read_reward(reward, (H, S, A)), allowed_lsa)
        fields: dict[str, Any] = {
            "kernel": kernel,
            "reward": reward_hsa,
            "reward_size": max(-float(layers(reward_hsa).min()), float(layers(reward_hsa).max())),
            "horizon": H,
            "start": _read_start(start, S),
            "allowed": by_step(allowed_lsa, H),
            "state_labels": labels("state_labels", state_labels, S),
            "action_labels": labels("action_labels", action_labels, A),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_toy_text(
        cls,
        transitions: ToyText,
        *,
        horizon: int,
        start: ArrayLike = 0,
        state_labels: Sequence[str] | None = None,
        action_labels: Sequence[str] | None = None,
    ) -> "MDP":
        """Build from a Gymnasium toy-text dictionary, ``env.unwrapped.P``.

        A transition that is done goes to one added absorbing state, the last, which pays nothing.
        Repeated next states are summed and r(s, a) is the expected reward.

        Parameters
        ----------
        transitions
            ``P[s][a]`` lists (probability, next state, reward, done).
        horizon
            Steps in an episode.
        start
            A state, or a distribution [s], with or without the added state.
        state_labels
            Names of the states [s]; the added one is called "over" where they leave it out.
        action_labels
            Names of the actions [a].

        Returns
        -------
        MDP
            With one state more than the dictionary.

        Raises
        ------
        CounselError
            When the dictionary is not of this form, or as the constructor does.
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
            start=start,
            allowed=allowed_sa,
            state_labels=state_labels,
            action_labels=action_labels,
        )

    def to_toy_text(self) -> ToyText:
        """Return the Gymnasium toy-text dictionary of a world that is the same at every step.

        Returns
        -------
        dict
            ``P[s][a]`` lists (probability, next state, reward, done). A transition is done when it
            enters a state that can never be left and pays nothing.

        Raises
        ------
        CounselError
            When transitions, rewards or what is allowed change with the step.
        """
        if self.kernel.n_layers > 1 or self.reward.strides[0] or self.allowed.strides[0]:
            raise CounselError("a toy-text dictionary cannot change with the step; this world does")
        return write_toy_text(self.kernel, self.reward[0], self.allowed[0], self.over[0])

    @property
    def over(self) -> Bools:
        """Where an episode has ended [h, s], as the state is never left again and pays nothing."""
        kernel, allowed_lsa = self.kernel, layers(self.allowed)
        lengths = np.append(np.diff(kernel.indptr), 0)
        target_lsa = np.append(kernel.next_state, NO_ROW)[np.append(kernel.indptr[:-1], -1)]
        stays_lsa = (lengths[kernel.row] == 1) & (
            target_lsa[kernel.row] == np.arange(self.n_states)[:, None]
        )
        idle_lsa = (stays_lsa & (layers(self.reward) == 0.0)) | ~allowed_lsa
        idle_ls = idle_lsa.all(axis=-1)
        from_here_on: Bools = np.logical_and.accumulate(idle_ls[::-1])[::-1]
        return by_step(from_here_on, self.horizon)

    def paying(self, reward: ArrayLike) -> "MDP":
        """Return the same world with other rewards.

        Parameters
        ----------
        reward
            Finite numbers [s], [s, a] or [h, s, a].

        Returns
        -------
        MDP
            All else is as here.

        Raises
        ------
        CounselError
            When the shape or a number is wrong.
        """
        return self._rebuilder()(self.kernel, reward)

    def _rebuilder(self) -> "partial[MDP]":
        """Return the constructor with everything but the kernel and the rewards."""
        return partial(
            MDP,
            horizon=self.horizon,
            start=self.start,
            allowed=unlayered(layers(self.allowed)),
            state_labels=self.state_labels,
            action_labels=self.action_labels,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return self._rebuilder(), (self.kernel, unlayered(layers(self.reward)))

    @property
    def n_states(self) -> int:
        """How many states."""
        return self.kernel.n_states

    @property
    def n_actions(self) -> int:
        """How many actions the person has."""
        return self.kernel.n_actions

    @property
    def defer(self) -> int:
        """The machine's choice to say nothing, which is the index after the last action."""
        return self.kernel.n_actions

    def state_name(self, state: int) -> str:
        """Return what people call a state.

        Parameters
        ----------
        state
            Its index.

        Returns
        -------
        str
            Its label, or "state 3", say, where there are no labels.
        """
        return self.state_labels[state] if self.state_labels else f"state {state}"

    def action_name(self, action: int) -> str:
        """Return what people call an action.

        Parameters
        ----------
        action
            Its index.

        Returns
        -------
        str
            Its label, or "action 1", say, where there are no labels.
        """
        return self.action_labels[action] if self.action_labels else f"action {action}"

    def __repr__(self) -> str:
        when = "time-dependent" if self.kernel.n_layers > 1 else "stationary"
        return (
            f"MDP({self.n_states} states, {self.n_actions} actions, horizon {self.horizon}, {when})"
        )


def read_allowed(given: ArrayLike | None, shape: tuple[int, int, int]) -> Bools:
    """Return the mask with its layers; raise where no action is left."""
    H, S, A = shape
    if given is None:
        return sealed(np.ones((1, S, A), dtype=np.bool_))
    mask = rectangular("allowed", given)
    if mask.dtype != np.bool_:
        raise CounselError(f"allowed must be booleans, not {mask.dtype}")
    if mask.shape not in ((S, A), (H, S, A)):
        raise CounselError(
            f"allowed has shape {mask.shape}; expected [s, a] = {(S, A)} or [h, s, a] = {shape}"
        )
    where = first(np.asarray(~mask.any(axis=-1)))
    if where is not None:
        raise CounselError(
            f"allowed{place('hs'[-len(where) :], where)} has no action; allow at least one"
        )
    return sealed(mask.reshape(-1, S, A))


def _check_rows_exist(kernel: Kernel, allowed_lsa: Bools) -> None:
    """Raise where an allowed action leads nowhere."""
    where = first(allowed_lsa & (kernel.row == NO_ROW))
    if where is not None:
        raise CounselError(
            f"transition{place('hsa', where)} sums to 0; "
            "give its next states or mark the action as not allowed"
        )


def _read_reward(given: ArrayLike, shape: tuple[int, int, int]) -> Floats:
    """Return rewards [h, s, a]; a zero stride over steps where they do not change."""
    H, S, A = shape
    reward = numbers("reward", given)
    axes = {(S,): "s", (S, A): "sa", shape: "hsa"}.get(reward.shape)
    if axes is None:
        raise CounselError(
            f"reward has shape {reward.shape}; expected [s] = {(S,)}, [s, a] = {(S, A)} "
            f"or [h, s, a] = {shape}"
        )
    check_finite("reward", reward, axes)
    most = 1e307 / H  # so that no sum over an episode overflows
    check_range("reward", reward, axes, -most, most)
    if axes == "s":
        reward = np.repeat(reward[:, None], A, axis=1)
    return by_step(sealed(reward.reshape(-1, S, A)), H)


def _without_masked(reward_hsa: Floats, allowed_lsa: Bools) -> Floats:
    """Return rewards that are 0 where the action is not allowed: there they mean nothing."""
    if allowed_lsa.all():
        return reward_hsa
    kept = np.where(allowed_lsa, layers(reward_hsa), 0.0)
    return by_step(sealed(kept), len(reward_hsa))


def _read_start(given: ArrayLike, n_states: int) -> Floats:
    """Return the start distribution."""
    start = rectangular("start", given)
    if start.ndim == 0 and start.dtype.kind in "iu":
        if not 0 <= int(start) < n_states:
            raise CounselError(f"start is state {start}; states run from 0 to {n_states - 1}")
        return sealed(np.eye(1, n_states, int(start))[0])
    weights = numbers("start", given)
    if weights.shape != (n_states,):
        raise CounselError(
            f"start has shape {weights.shape}; give a state or a distribution of {n_states} numbers"
        )
    check_distributions("start", weights, "s")
    return sealed(weights)
