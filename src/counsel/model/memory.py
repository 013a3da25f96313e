"""What a person carries over from advice they were given: the levels of a memory.

At each step the person is on one of M levels. The level of the next step depends on what the
machine said and on what the person did, by one of three stochastic matrices [m, m′]: after silence,
after a piece of advice that was matched, and after a piece that was refused. The lift of advice
depends on the level; the habit does not. The machine knows the level: it follows from what was
said and done, or is drawn where a matrix is not deterministic.

Memories that are often needed have names:

=====================  ==========================================================================
``pieces(n)``          pieces of advice given so far: 0 … n, where n means n or more
``since(n)``           silent steps since the last piece: 0 (just now) … n (long ago, the start)
``dose(decay, M)``     m ← decay · m + 1{advised}, on M equally spaced levels
``refusals(n)``        refusals in a row: 0 … n; a match resets them, silence changes nothing
=====================  ==========================================================================

A hard budget is a memory of a special kind, the pieces left, and at zero nothing may be said. It
belongs to the machine and not to the person, so it is a setting of ``solve``; plans treat both in
the same way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import (
    Floats,
    Ints,
    brief,
    check_distributions,
    index_in,
    numbers,
    one_type,
    positive,
    read_labels,
    sealed,
    whole,
)
from counsel.errors import CounselError

MATRICES = ("after_silence", "after_match", "after_refusal")

MOST_LEVELS = 10_000
"""The three matrices of more levels would take gigabytes."""


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class Memory:
    """The levels of a person's memory, and how advice moves the person between them.

    ``a * b`` joins two memories: its levels are the pairs of their levels, those of ``b`` varying
    fastest.

    Parameters
    ----------
    after_silence, after_match, after_refusal
        Stochastic matrices [m, m′]: the level of the next step after silence, after advice that
        the person took, and after advice that they did not take. Without ``after_refusal``, a
        refusal counts like a match.
    start
        The level at the start of an episode.
    newcomer
        The level of somebody who was never advised; by default the start. It differs where people
        remember earlier episodes, so that most episodes start on another level.
    labels
        A name for each level.
    name
        The name that is printed.

    Attributes
    ----------
    after
        The three matrices as one array [silence, match or refusal; m; m′].

    Raises
    ------
    CounselError
        If a matrix is not square or not stochastic, the matrices differ in size, or the start or
        the level of a newcomer is not a level.

    Examples
    --------
    The person remembers up to two pieces of advice:

    >>> import counsel
    >>> memory = counsel.Memory.pieces(2)
    >>> memory
    Memory(pieces=2, 3 levels)
    >>> memory.labels
    ('no piece so far', '1 piece so far', '2 or more pieces so far')
    >>> memory.after_match.tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]

    Joined with a second memory, of whether they were advised just now:

    >>> (memory * counsel.Memory.since(1)).n_levels
    6
    """

    after: Floats
    start: int
    newcomer: int
    labels: tuple[str, ...]
    name: str

    def __init__(  # noqa: PLR0913 (three matrices, where they start and their names)
        self,
        after_silence: ArrayLike,
        after_match: ArrayLike,
        after_refusal: ArrayLike | None = None,
        *,
        start: int = 0,
        newcomer: int | None = None,
        labels: Sequence[str] | None = None,
        name: str = "custom",
    ) -> None:
        if after_refusal is None:
            after_refusal = after_match
        matrices = (after_silence, after_match, after_refusal)
        tables = [numbers(field, table) for field, table in zip(MATRICES, matrices, strict=True)]
        M = len(tables[0]) if tables[0].ndim else 0
        for matrix, table in zip(MATRICES, tables, strict=True):
            if table.shape != (M, M) or M == 0:
                raise CounselError(
                    f"{matrix} has shape {table.shape}; expected a square matrix [level, next "
                    f"level]{f' of {M} levels, as after_silence' if matrix != MATRICES[0] else ''}"
                )
            if M > MOST_LEVELS:
                raise CounselError(
                    f"{matrix} has {M:,} levels; at most {MOST_LEVELS:,} are allowed"
                )
            check_distributions(matrix, table, "mn")
        if not isinstance(name, str) or not name:
            raise CounselError(f"name is {brief(name)}; it must be a text")
        texts = read_labels("labels", labels, M)
        fields: dict[str, Any] = {
            "after": sealed(np.stack(tables)),
            "start": index_in("start", start, M),
            "newcomer": index_in("newcomer", start if newcomer is None else newcomer, M),
            "labels": tuple(f"level {m}" for m in range(M)) if texts is None else texts,
            "name": name,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    @classmethod
    def pieces(cls, n: int) -> "Memory":
        """Return the memory of the pieces of advice given so far in the episode.

        Parameters
        ----------
        n
            The last level means this many pieces or more. The first level, 0, is the start.
        """
        n = _most("pieces", n)
        level = np.arange(n + 1)
        spoken = _moves(np.minimum(level + 1, n))
        labels = [_counted(m, "piece", "so far", last=m == n) for m in range(n + 1)]
        return cls(_moves(level), spoken, labels=labels, name=f"pieces={n}")

    @classmethod
    def since(cls, n: int) -> "Memory":
        """Return the memory of the silent steps since the last piece of advice.

        Parameters
        ----------
        n
            The last level means this many silent steps or more; it is also the start. Level 0 is
            the step right after a piece.
        """
        n = _most("since", n)
        level = np.arange(n + 1)
        labels = [_counted(m, "silent step", "since advice", last=m == n) for m in range(n + 1)]
        spoken = _moves(np.zeros_like(level))
        return cls(
            _moves(np.minimum(level + 1, n)), spoken, start=n, labels=labels, name=f"since={n}"
        )

    @classmethod
    def dose(cls, decay: float, levels: int) -> "Memory":
        """Return the memory of a dose: every piece adds 1, and every step multiplies by ``decay``.

        The dose follows m ← decay · m + 1{advised}. It lies between 0, the start, and
        1 / (1 − decay); between two levels one of them is drawn, so that the mean dose is exact.

        Parameters
        ----------
        decay
            The factor per step, above 0 and below 1.
        levels
            The number of equally spaced levels, at least 2.
        """
        decay = positive("decay", decay, 1.0)
        M = whole("levels", levels, least=2)
        if M > MOST_LEVELS:
            raise CounselError(f"levels is {M:,}; at most {MOST_LEVELS:,} are allowed")
        grid = np.linspace(0.0, 1.0 / (1.0 - decay), M)
        labels = [f"a dose of {dose:.3g}" for dose in grid]
        return cls(
            _spread_between(grid, decay * grid),
            _spread_between(grid, decay * grid + 1.0),
            labels=labels if len(set(labels)) == M else None,
            name=f"dose={decay:g}",
        )

    @classmethod
    def refusals(cls, n: int) -> "Memory":
        """Return the memory of the refusals in a row.

        Parameters
        ----------
        n
            The last level means this many refusals or more. The first level, 0, is the start; a
            match returns to it, and silence changes nothing.
        """
        n = _most("refusals", n)
        level = np.arange(n + 1)
        labels = [_counted(m, "refusal", "in a row", last=m == n) for m in range(n + 1)]
        refused = _moves(np.minimum(level + 1, n))
        name = f"refusals={n}"
        return cls(_moves(level), _moves(np.zeros_like(level)), refused, labels=labels, name=name)

    @property
    def after_silence(self) -> Floats:
        """The probabilities of the next level after silence [m, m′]."""
        matrix: Floats = self.after[0]
        return matrix

    @property
    def after_match(self) -> Floats:
        """The probabilities of the next level after advice that the person took [m, m′]."""
        matrix: Floats = self.after[1]
        return matrix

    @property
    def after_refusal(self) -> Floats:
        """The probabilities of the next level after advice that the person did not take [m, m′]."""
        matrix: Floats = self.after[2]
        return matrix

    @property
    def n_levels(self) -> int:
        """The number of levels."""
        return int(self.after.shape[1])

    def next_levels(self, level: int, advice: int, action: int, *, defer: int) -> Floats:
        """Return the probability [m′] of each level after a decision.

        Parameters
        ----------
        level
            The level at the decision.
        advice, action
            What the machine said and what the person did.
        defer
            The index that means silence.
        """
        outcome = 0 if advice == defer else 1 if action == advice else 2
        chances: Floats = self.after[outcome, level]
        return chances

    def number_of(self, level: int | str) -> int:
        """Return the number of a level from its number or label.

        Parameters
        ----------
        level
            A number from 0, or one of ``labels``.
        """
        if isinstance(level, str) and not level.isdecimal():
            if level not in self.labels:
                some = ", ".join(self.labels[:8]) + (", …" if self.n_levels > 8 else "")
                raise CounselError(
                    f"level is {level!r}; give a number from 0 to {self.n_levels - 1} or a label "
                    f"({some})"
                )
            return self.labels.index(level)
        number = int(level) if isinstance(level, str) else level
        return index_in("level", number, self.n_levels)

    def starting_at(self, level: int) -> "Memory":
        """Return the same memory with another start; the level of newcomers stays.

        Parameters
        ----------
        level
            The level at the start of an episode.
        """
        if level == self.start:
            return self
        return _built(self.after, level, self.newcomer, self.labels, self.name)

    def __mul__(self, other: "Memory") -> "Memory":
        if not isinstance(other, Memory):
            return NotImplemented
        if self.n_levels * other.n_levels > MOST_LEVELS:
            raise CounselError(
                f"the joined memory has {self.n_levels:,} × {other.n_levels:,} levels; at most "
                f"{MOST_LEVELS:,} are allowed"
            )
        labels = [f"{own}, {theirs}" for own in self.labels for theirs in other.labels]
        return Memory(
            *(np.kron(own, theirs) for own, theirs in zip(self.after, other.after, strict=True)),
            start=self.start * other.n_levels + other.start,
            newcomer=self.newcomer * other.n_levels + other.newcomer,
            labels=labels,
            name=f"{self.name} × {other.name}",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _built, (self.after, self.start, self.newcomer, self.labels, self.name)

    def __repr__(self) -> str:
        levels = f"{self.n_levels} level{'' if self.n_levels == 1 else 's'}"
        return f"Memory({self.name}, {levels})"


class LevelRows(NamedTuple):
    """The moves of a memory as rows of levels, each distinct row once.

    ``after_cm`` is the row after silence, a match and a refusal on level m. The entries of row d
    are ``indptr[d]`` up to ``indptr[d + 1]`` of ``level`` and ``weight``.
    """

    after_cm: Ints
    indptr: Ints
    level: Ints
    weight: Floats


def level_rows(memory: Memory | None) -> LevelRows:
    """Return the moves of a memory; without a memory there is one level."""
    # The rows of one level may be 1 but for rounding.
    after = np.ones((3, 1, 1)) if memory is None or memory.n_levels == 1 else memory.after
    M = after.shape[1]
    rows, inverse = np.unique(after.reshape(3 * M, M), axis=0, return_inverse=True)
    row, level = np.nonzero(rows)
    indptr = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=len(rows)))))
    return one_type(LevelRows(inverse.reshape(3, M), indptr, level, rows[row, level]))


def _built(after: Floats, start: int, newcomer: int, labels: tuple[str, ...], name: str) -> Memory:
    return Memory(*after, start=start, newcomer=newcomer, labels=labels, name=name)


def _most(name: str, n: object) -> int:
    """Return the last level of a memory that counts."""
    most = whole(name, n, least=1)
    if most >= MOST_LEVELS:
        raise CounselError(f"{name} is {most:,}; it must be below {MOST_LEVELS:,}")
    return most


def _moves(level_m: np.ndarray[Any, Any]) -> Floats:
    """Return the matrix [m, m′] of certain moves to the given levels."""
    matrix: Floats = np.eye(level_m.size)[level_m]
    return matrix


def _spread_between(grid: Floats, value_m: Floats) -> Floats:
    """Return the distribution [m, m′] over the two levels of a grid next to each value.

    Its mean is the value.
    """
    M = grid.size
    below = np.clip(np.searchsorted(grid, value_m, side="right") - 1, 0, M - 2)
    share = np.clip((value_m - grid[below]) / (grid[below + 1] - grid[below]), 0.0, 1.0)
    matrix = np.zeros((value_m.size, M))
    rows = np.arange(value_m.size)
    matrix[rows, below] = 1.0 - share
    matrix[rows, below + 1] += share
    return matrix


def _counted(m: int, what: str, when: str, *, last: bool) -> str:
    number = "no" if m == 0 else f"{m} or more" if last else str(m)
    plural = "s" if m > 1 or (last and m > 0) else ""
    return f"{number} {what}{plural} {when}"
