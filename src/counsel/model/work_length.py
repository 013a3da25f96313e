"""How long the work of a world is: a number of steps, or no end by a discount or an average."""

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import brief, real, rectangular, whole
from counsel.errors import CounselError
from counsel.model.kernel import Kernel


def read_length(
    horizon: int | None, discount: float | None, average: object
) -> tuple[int, float | None]:
    """Return the length of the step axis and the discount: the axis has length 1 without end."""
    if not isinstance(average, bool | np.bool_):
        raise CounselError(f"average is {brief(average)}; give True or False")
    if average:
        for name, value in (("horizon", horizon), ("discount", discount)):
            if value is not None:
                raise CounselError(
                    f"{name} is {brief(value)} and average is True; the average reward per step "
                    f"has no {name}, so leave one of them out"
                )
        return 1, 1.0
    if horizon is not None and discount is not None:
        raise CounselError(
            f"horizon is {brief(horizon)} and discount is {brief(discount)}; give a horizon, or a "
            "discount for work without end, not both"
        )
    if discount is None:
        if horizon is None:
            raise CounselError(
                "horizon is None and discount is None; give the number of steps per episode, or a "
                "discount of at least 0 and below 1, or average=True, for work without end"
            )
        return whole("horizon", horizon, least=1), None
    factor = real("discount", discount)
    if not 0.0 <= factor < 1.0:
        hint = "; give average for the average reward per step" if factor == 1.0 else ""
        raise CounselError(f"discount is {factor:.10g}; it must be at least 0 and below 1{hint}")
    return 1, factor


def check_without_steps(kernel: Kernel, reward: ArrayLike, allowed: ArrayLike | None) -> None:
    """Raise if a table of work without end has a step axis."""
    if kernel.n_layers > 1:
        raise steps_without_end("transition", kernel.n_layers)
    for name, table in (("reward", reward), ("allowed", allowed)):
        if np.ndim(rectangular(name, table, copy=False)) > 2:
            raise steps_without_end(name, len(np.asarray(table)))


def steps_without_end(name: str, steps: int) -> CounselError:
    """Return the error for a table with a step axis in work without end."""
    return CounselError(
        f"{name} has {steps} steps, but work without end has none; give a table without them, or "
        "keep the horizon"
    )
