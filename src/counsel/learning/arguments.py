"""Check the arguments that learners are built from: shape, limits, groups and rewards."""

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import (
    Bools,
    Floats,
    Ints,
    by_step,
    layers,
    not_negative,
    numbers,
    rectangular,
    sealed,
)
from counsel.errors import CounselError
from counsel.model.problem import Shape


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


def read_groups(groups: ArrayLike, shape: tuple[int, int, int]) -> Ints:
    """Return which pairs share one adherence as [layer, s, a], from [a], [s, a] or [h, s, a]."""
    table = rectangular("groups", groups)
    H, S, A = shape
    if table.dtype.kind not in "iu" or table.shape not in ((A,), (S, A), (H, S, A)):
        raise CounselError(
            f"groups is {table.dtype} of shape {table.shape}; expected whole numbers "
            f"[a] = {(A,)}, [s, a] = {(S, A)} or [h, s, a] = {(H, S, A)}"
        )
    of_layer = table if table.ndim == 3 else table[None]
    return np.broadcast_to(of_layer.astype(np.int64), (len(of_layer), S, A))


def read_limit(
    penalty: float, budget: float | None, *, name: str = "penalty"
) -> tuple[float, float | None]:
    """Return the penalty and the budget, of which at most one may be given."""
    price = not_negative(name, penalty)
    if budget is None:
        return price, None
    pieces = not_negative("budget", budget)
    if price > 0.0:
        raise CounselError(f"penalty is {penalty} and budget {budget}; give one or the other")
    return price, pieces


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


def require_rewards(reward: ArrayLike | None) -> ArrayLike:
    """Return the machine's rewards; refuse None."""
    if reward is None:
        raise CounselError("reward is None; give the machine's rewards [s, b] or [h, s, b]")
    return reward
