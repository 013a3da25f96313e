"""Read and describe the arguments that learners are built from."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counsel._arrays import (
    Bools,
    Floats,
    Ints,
    brief,
    by_step,
    layers,
    not_negative,
    numbers,
    rectangular,
    sealed,
)
from counsel._docstrings import share_parameters
from counsel.errors import CounselError
from counsel.learning.charges import Penalty
from counsel.model.memory import Memory
from counsel.model.setting import Setting, Shape
from counsel.planning.solve import read_penalty

DESCRIPTIONS = {
    "shape": "The sizes of the problem: ``problem.shape``.",
    "rng": "The generator that breaks ties.",
    "delta": "The probability of failure, between 0 and 1.",
    "epsilon": "The accuracy of the plan, in units of reward; without it exploration never stops.",
    "scale": "The factor of the bonus: 1 in theory.",
    "most_penalty": "The largest penalty that will be planned for, at any step: one number.",
    "reward": "Rewards of the person's actions, if they are known: [s, a] or [h, s, a].",
    "penalty": """
        The penalty per unit of cost, in units of reward, or one for each step [h]; not with a
        budget. A piece of advice costs 1 unless the problem says otherwise.""",
    "budget": """
        The largest expected cost of advice per episode, which is the number of pieces if each costs
        1; not with a penalty.""",
    "groups": """
        Pairs that share one adherence, whole numbers [a], [s, a] or [h, s, a]: ``[0, 1, 2]`` is
        one for each of three pieces of advice. For a person with a memory the level comes first,
        [m], [m, a], [m, s, a] or [m, h, s, a], and pairs of levels that share a number share one
        lift. By default those of the setting, or one for each state and advice (and level).""",
}
"""What the parameters of learners are, for their docstrings."""

shared_parameters = share_parameters(DESCRIPTIONS)


def read_setting(setting: Setting) -> Setting:
    """Return the setting; refuse anything else, such as a whole problem."""
    if not isinstance(setting, Setting):
        raise CounselError(
            f"setting is {brief(setting)}; give problem.without_adherence(): "
            "a learner must not see more"
        )
    return setting


def read_shape(shape: Shape) -> Shape:
    """Return the shape; refuse anything else, such as a whole problem."""
    if not isinstance(shape, Shape):
        raise CounselError("give problem.shape: a learner must not see more")
    return shape


def allowed_with_silence(shape: Shape) -> Bools:
    """Return which advice may be given [layer, s, b], silence last."""
    allowed = layers(shape.allowed)
    silence = np.ones((*allowed.shape[:2], 1), dtype=np.bool_)
    return np.concatenate((allowed, silence), axis=2)


def read_groups(
    groups: ArrayLike, shape: tuple[int, int, int], memory: Memory | None = None
) -> Ints:
    """Return which pairs share one adherence as [layer, s, a], from [a], [s, a] or [h, s, a].

    With a memory the level comes first in both.
    """
    table = rectangular("groups", groups)
    H, S, A = shape
    if memory is not None:
        return _read_level_groups(table, shape, memory.n_levels)
    if table.dtype.kind not in "iu" or table.shape not in ((A,), (S, A), (H, S, A)):
        raise CounselError(
            f"groups is {table.dtype} of shape {table.shape}; expected whole numbers "
            f"[a] = {(A,)}, [s, a] = {(S, A)} or [h, s, a] = {(H, S, A)}"
        )
    of_layer = table if table.ndim == 3 else table[None]
    return np.broadcast_to(of_layer.astype(np.int64), (len(of_layer), S, A))


def _read_level_groups(table: NDArray[Any], shape: tuple[int, int, int], n_levels: int) -> Ints:
    """Return groups [m, layer, s, a] from [m], [m, a], [m, s, a] or [m, h, s, a]."""
    (H, S, A), M = shape, n_levels
    if table.dtype.kind not in "iu" or table.shape not in (
        (M,),
        (M, A),
        (M, S, A),
        (M, H, S, A),
    ):
        raise CounselError(
            f"groups is {table.dtype} of shape {table.shape}; for a memory of {M} levels, expected "
            f"whole numbers [m] = {(M,)}, [m, a] = {(M, A)}, [m, s, a] = {(M, S, A)} or "
            f"[m, h, s, a] = {(M, H, S, A)}"
        )
    inner = table.shape[1:]
    by_layer = table.reshape(M, *(1,) * (3 - len(inner)), *inner).astype(np.int64)
    return np.broadcast_to(by_layer, (M, by_layer.shape[1], S, A))


def read_limit(
    penalty: ArrayLike, budget: float | None, horizon: int
) -> tuple[Penalty, float | None]:
    """Return the penalty, a number or one for each step, and the budget; at most one is given."""
    penalty_h = read_penalty(penalty, horizon)
    price: Penalty = float(penalty_h[0]) if np.ndim(penalty) == 0 else penalty_h
    if budget is None:
        return price, None
    most = not_negative("budget", budget)
    if penalty_h.any():
        raise CounselError(f"penalty is {penalty!r} and budget {budget}; give one or the other")
    return price, most


def read_rewards(reward: ArrayLike, shape: tuple[int, int, int], *, axes: str = "sa") -> Floats:
    """Return known rewards [h, s, x] from [s, x] or [h, s, x]."""
    table = numbers("reward", reward)
    if table.shape not in (shape, shape[1:]):
        names = ", ".join(axes)
        raise CounselError(
            f"reward has shape {table.shape}; expected [{names}] = {shape[1:]} or "
            f"[h, {names}] = {shape}"
        )
    return by_step(sealed(table.reshape(-1, *shape[1:])), shape[0])


def require_rewards(reward: ArrayLike | None) -> None:
    """Refuse to learn without the machine's rewards."""
    if reward is None:
        raise CounselError("reward is None; give the machine's rewards [s, b] or [h, s, b]")
