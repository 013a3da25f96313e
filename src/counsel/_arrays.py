"""Array types, checks that name the faulty entry, and the step axis.

Every table inside Counsel has its axes in the order step, state, action, next state. A table that
is the same at every step is stored as a single *layer*: its first axis has length one. ``by_step``
shows such a table with all its steps through a zero stride, without a copy.
"""

import math
import operator
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counsel.errors import CounselError

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
_T = TypeVar("_T", bound=np.generic)
_Arrays = TypeVar("_Arrays", bound=tuple[Any, ...])

ROW_TOLERANCE = 1e-9
"""How far from 1 the sum of a row of probabilities may be. Rows are never rescaled."""


def sealed(array: NDArray[_T]) -> NDArray[_T]:
    """Make an array read-only, in place."""
    array.flags.writeable = False
    return array


def one_type(arrays: _Arrays) -> _Arrays:
    """Return a tuple of read-only arrays in C order: kernels compile once, for that type."""
    views = [sealed(np.ascontiguousarray(array).view()) for array in arrays]
    return type(arrays)(*views) if hasattr(arrays, "_fields") else type(arrays)(views)


def place(axes: str, index: Iterable[int]) -> str:
    """Format an index with its axes: ``place("sa", (3, 1))`` is ``[s=3, a=1]``."""
    if not axes:
        return ""
    return "[" + ", ".join(f"{axis}={int(i)}" for axis, i in zip(axes, index, strict=True)) + "]"


def rectangular(name: str, value: object, *, copy: bool = True) -> NDArray[Any]:
    """Return ``value`` as an array, by default a new one in C order."""
    if isinstance(value, np.ma.MaskedArray):
        raise CounselError(f"{name} is a masked array; replace its missing numbers")
    try:
        return np.array(value, order="C") if copy else np.asarray(value)
    except ValueError:
        raise CounselError(
            f"{name} is ragged: its rows differ in length; give a full rectangular array"
        ) from None


def numbers(name: str, value: ArrayLike) -> Floats:
    """Return ``value`` as a new float array; raise if it does not contain numbers."""
    array = rectangular(name, value)
    if array.dtype.kind not in "biuf":
        raise CounselError(f"{name} must be numbers, not {array.dtype}")
    return array.astype(np.float64, copy=False)


def whole(name: str, value: object, *, least: int) -> int:
    """Return ``value`` as an int of at least ``least``."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise CounselError(f"{name} must be a whole number, not {brief(value)}") from None
    if isinstance(value, bool | np.bool_) or number < least:
        raise CounselError(f"{name} must be a whole number of at least {least}, not {brief(value)}")
    if number >= 2**31:
        raise CounselError(f"{name} is {brief(value)}; it must be below {2**31}")
    return number


def index_in(name: str, value: object, count: int) -> int:
    """Return ``value`` as an index from 0 up to ``count``."""
    number = whole(name, value, least=0)
    if number >= count:
        raise CounselError(f"{name} is {number}; it runs from 0 to {count - 1}")
    return number


def real(name: str, value: object) -> float:
    """Return ``value`` as a float; it may be NaN or infinite."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise CounselError(f"{name} must be a number, not {brief(value)}")
    try:
        return float(value)
    except OverflowError:
        raise CounselError(f"{name} is {brief(value)}; it is too large") from None


def positive(name: str, value: object, most: float = math.inf) -> float:
    """Return a number above 0 and below ``most``."""
    number = real(name, value)
    if not 0.0 < number < most:
        limit = "finite" if most == math.inf else f"below {most:g}"
        raise CounselError(f"{name} is {value}; it must be above 0 and {limit}")
    return number


def not_negative(name: str, value: object) -> float:
    """Return a finite number of at least 0."""
    number = real(name, value)
    if not 0.0 <= number < math.inf:
        raise CounselError(f"{name} is {number:g}; it must be a finite number of at least 0")
    return number


def check_rng(rng: object) -> None:
    """Raise unless ``rng`` is a generator."""
    if not isinstance(rng, np.random.Generator):
        raise CounselError(
            f"rng is {brief(rng)}; give a generator such as numpy.random.default_rng(0)"
        )


def generator_from(state: dict[str, Any]) -> np.random.Generator:
    """Return a generator that continues from the state of a ``bit_generator``."""
    kind = getattr(np.random, str(state.get("bit_generator")), None)
    if not (isinstance(kind, type) and issubclass(kind, np.random.BitGenerator)):
        raise CounselError(f"{brief(state)} is not the state of a NumPy random generator")
    bits = kind()
    bits.state = state
    return np.random.Generator(bits)


def brief(value: object) -> str:
    """Format any value in at most 60 characters of one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


def first(mask: Bools) -> tuple[int, ...] | None:
    """Return the index of the first true entry, or None."""
    if not mask.any():
        return None
    return tuple(int(i) for i in np.unravel_index(int(mask.argmax()), mask.shape))


def check_finite(name: str, array: Floats, axes: str) -> None:
    """Raise unless every number is finite."""
    where = first(~np.isfinite(array))
    if where is not None:
        raise CounselError(f"{name}{place(axes, where)} is {array[where]}; give a finite number")


def check_range(name: str, array: Floats, axes: str, low: float, high: float) -> None:
    """Raise unless every number lies in [low, high]; NaN lies outside."""
    where = first(~((array >= low) & (array <= high)))
    if where is not None:
        bounds = f"be {low:g} or more" if np.isinf(high) else f"lie in [{low:g}, {high:g}]"
        raise CounselError(f"{name}{place(axes, where)} is {array[where]:.10g}; it must {bounds}")


def check_distributions(name: str, array: Floats, axes: str) -> None:
    """Raise unless every last-axis row is a probability distribution."""
    where = first(~(array >= 0.0))
    if where is not None:
        raise CounselError(
            f"{name}{place(axes, where)} is {array[where]:.10g}; a probability must be 0 or more"
        )
    with np.errstate(over="ignore"):
        total = array.sum(axis=-1)
    where = first(~(np.abs(total - 1.0) <= ROW_TOLERANCE))
    if where is not None:
        raise CounselError(
            f"{name}{place(axes[:-1], where)} sums to {total[where]:.10g}; "
            "a row of probabilities must sum to 1"
        )


def by_step(table: NDArray[_T], horizon: int) -> NDArray[_T]:
    """Return a view [h, …] of a table with one layer or ``horizon`` layers."""
    return np.broadcast_to(table, (horizon, *table.shape[1:]))


def at_cell(table: NDArray[_T], step: int, state: int) -> NDArray[_T]:
    """Return the row of one cell of a table [layer, s, …] with one layer, or one per step."""
    row: NDArray[_T] = table[step if len(table) > 1 else 0, state]
    return row


def layers(view: NDArray[_T]) -> NDArray[_T]:
    """Return the stored layers behind a view of ``by_step``: one, or one per step."""
    return view[:1] if view.strides[0] == 0 else view


def unlayered(table: NDArray[_T]) -> NDArray[_T]:
    """Return the layers without the step axis if there is only one, as constructors take them."""
    return table[0] if len(table) == 1 else table


def read_labels(name: str, texts: Sequence[str] | None, count: int) -> tuple[str, ...] | None:
    """Return ``count`` distinct labels, or None if there are none."""
    if texts is None:
        return None
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise CounselError(f"{name} must be a list of {count} texts, not {brief(texts)}")
    labels = tuple(texts)
    if len(labels) != count:
        raise CounselError(f"{name} has {len(labels)} labels; give {count}")
    index_of: dict[str, int] = {}
    for i, label in enumerate(labels):
        if (
            not isinstance(label, str)
            or not label
            or label.encode(errors="ignore").decode() != label
        ):
            raise CounselError(f"{name}[{i}] is {brief(label)}; a label must be a non-empty text")
        if label in index_of:
            raise CounselError(
                f"{name}[{i}] and {name}[{index_of[label]}] are both {label!r}; labels must differ"
            )
        index_of[label] = i
    return labels
