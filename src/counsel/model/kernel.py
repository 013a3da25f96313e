"""The world's transitions p_h(t | s, a) as sparse rows, each distinct row stored once.

Most worlds repeat themselves: in the car world 1,459 distinct rows stand behind 177,150 pairs of
state and action. So a kernel keeps the distinct rows of each layer in compressed sparse form and a
table ``row[layer, state, action]`` that points to them. A world that is the same at every step has
one layer. Planners compute the expectation of each row once, before they visit states.
"""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from counsel._arrays import ROW_TOLERANCE, Floats, Ints, first, place, rectangular, sealed
from counsel.errors import CounselError
from counsel.model._kernels import BAD_NUMBER, GOOD, check_rows, keep_rows, share_rows, tidy_rows

NO_ROW = -1
"""The entry of ``Kernel.row`` for a pair without a row (an action that is not allowed)."""

MOST_ACTIONS = 32_766
"""Advice is stored in two bytes, and silence has the index after the last action."""


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """Transition probabilities, each distinct row stored once.

    Build a kernel with ``read``, which accepts every form, or with ``from_dense``, ``from_sparse``,
    ``from_next_states`` or ``from_rows``. These raise ``CounselError`` if a shape is wrong, a state
    does not exist or a row is not a distribution; the constructor does not check.

    Attributes
    ----------
    row
        The row of each [layer, s, a], −1 where there is none. A stationary world has one layer,
        other worlds one per step.
    first_row
        Rows ``first_row[l]`` up to ``first_row[l + 1]`` belong to layer ``l``: [layer + 1].
    indptr, next_state, probability
        Row ``i`` holds entries ``indptr[i]`` up to ``indptr[i + 1]`` of the other two.

    Examples
    --------
    Action 0 stays, action 1 goes anywhere; the six pairs have four distinct rows:

    >>> import counsel
    >>> import numpy as np
    >>> stay, anywhere = np.eye(3), np.full((3, 3), 1 / 3)
    >>> kernel = counsel.Kernel.read(np.stack((stay, anywhere), axis=1))
    >>> kernel.row.shape, kernel.n_rows
    ((1, 3, 2), 4)
    >>> states, chances = kernel.successors(0, 2, 1)
    >>> states.tolist(), chances.round(3).tolist()
    ([0, 1, 2], [0.333, 0.333, 0.333])
    """

    row: NDArray[np.int32]
    first_row: NDArray[np.int64]
    indptr: NDArray[np.int64]
    next_state: NDArray[np.int32]
    probability: Floats

    @classmethod
    def read(cls, transition: object) -> "Kernel":
        """Read transitions in any accepted form; a ``Kernel`` is returned as it is.

        Parameters
        ----------
        transition
            A ``Kernel``; a float array [s, a, t] or [h, s, a, t] of probabilities; an integer array
            [s, a] or [h, s, a] of next states; a scipy.sparse matrix [s·A + a, t], or a list of
            one matrix per step.
        """
        if isinstance(transition, Kernel):
            return transition
        if sp.issparse(transition):
            return cls.from_sparse(transition)
        if isinstance(transition, list | tuple) and any(sp.issparse(m) for m in transition):
            return cls.from_sparse(transition)
        array = rectangular("transition", transition, copy=False)
        if array.dtype.kind in "iu":
            is_square = array.ndim == 3 and array.shape[0] == array.shape[2]
            if is_square and (array >= 0).all() and (array.sum(axis=-1) == 1).all():
                raise CounselError(
                    "transition is integers that may be next states [h, s, a] or probabilities "
                    "[s, a, t]; give probabilities as floats, or use Kernel.from_next_states"
                )
            return cls.from_next_states(array)
        if array.dtype.kind == "f":
            return cls.from_dense(array)
        raise CounselError(
            f"transition is {type(transition).__name__} of {array.dtype}; give a float array of "
            "probabilities, an integer array of next states, or scipy.sparse matrices"
        )

    @classmethod
    def from_dense(cls, transition: NDArray[np.floating[Any]]) -> "Kernel":
        """Build a kernel from an array of probabilities.

        Parameters
        ----------
        transition
            Floats [s, a, t], or [h, s, a, t] if they change with the step. A row of zeros means
            that the action is not allowed.
        """
        if transition.ndim not in (3, 4) or transition.shape[-1] != transition.shape[-3]:
            raise CounselError(
                f"transition has shape {transition.shape}; expected [s, a, t] or [h, s, a, t] "
                "with as many next states t as states s"
            )
        if transition.dtype.kind != "f":
            raise CounselError(f"transition must be floats, not {transition.dtype}")
        *layer, S, A, _ = transition.shape
        L = layer[0] if layer else 1
        _check_sizes(L, S, A)
        entries = np.nonzero(transition.reshape(-1))[0]
        counts = np.bincount(entries // S, minlength=L * S * A)
        return cls._from_csr(
            np.concatenate(([0], np.cumsum(counts))),
            entries % S,
            transition.reshape(-1)[entries].astype(np.float64),
            (L, S, A),
        )

    @classmethod
    def from_sparse(cls, matrices: object, *, tolerance: float = ROW_TOLERANCE) -> "Kernel":
        """Build a kernel from matrices whose row s·A + a is p(· | s, a).

        Parameters
        ----------
        matrices
            A scipy.sparse matrix [s·A + a, t], or a list of one matrix per step. An empty row means
            that the action is not allowed.
        tolerance
            How far from 1 the sum of a row may be.
        """
        steps = list(matrices) if isinstance(matrices, list | tuple) else [matrices]
        if not steps or not all(sp.issparse(matrix) for matrix in steps):
            raise CounselError("transition must be a sparse matrix or a list of one per step")
        layers = [cast("sp.csr_matrix", sp.csr_matrix(matrix)) for matrix in steps]
        for matrix in layers:
            if matrix.dtype.kind not in "biuf":
                raise CounselError(f"transition must be numbers, not {matrix.dtype}")
        rows, S = layers[0].shape
        if S < 1 or rows % S or any(matrix.shape != (rows, S) for matrix in layers):
            raise CounselError(
                f"transition has sparse shapes {sorted({m.shape for m in layers})}; expected "
                "(S·A, S), the same at every step"
            )
        L, A = len(layers), rows // S
        _check_sizes(L, S, A)
        index, data, lengths = (
            np.concatenate(parts)
            for parts in zip(*((m.indices, m.data, np.diff(m.indptr)) for m in layers), strict=True)
        )
        indptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))
        return cls._from_csr(indptr, index, data.astype(np.float64), (L, S, A), tolerance)

    @classmethod
    def from_next_states(cls, table: Ints) -> "Kernel":
        """Build a kernel from the certain next state of each pair.

        Parameters
        ----------
        table
            Integers [s, a], or [h, s, a] if they change with the step; −1 where the action is not
            allowed.
        """
        if table.ndim not in (2, 3) or table.dtype.kind not in "iu":
            raise CounselError(
                f"transition is {table.dtype} of shape {table.shape}; next states must be "
                "integers [s, a] or [h, s, a], and probabilities floats"
            )
        L, S, A = table.shape if table.ndim == 3 else (1, *table.shape)
        _check_sizes(L, S, A)
        where = first((table < NO_ROW) | (table >= S))
        if where is not None:
            raise CounselError(
                f"transition{place('hsa'[-table.ndim :], where)} leads to state {table[where]}; "
                f"states run from 0 to {S - 1}"
            )
        exists = table.reshape(-1) != NO_ROW
        return cls._from_csr(
            np.concatenate(([0], np.cumsum(exists))),
            table.reshape(-1)[exists],
            np.ones(int(exists.sum())),
            (L, S, A),
        )

    @classmethod
    def _from_csr(
        cls,
        indptr: Ints,
        index: Ints,
        data: Floats,
        shape: tuple[int, int, int],
        tolerance: float = ROW_TOLERANCE,
    ) -> "Kernel":
        """Check the rows (layer, state, action) of one long sparse table; store each row once."""
        L, S, A = shape
        where = first((index < 0) | (index >= S))
        if where is not None:
            row = int(np.searchsorted(indptr, where[0], side="right")) - 1
            raise CounselError(
                f"transition{_pair(row, shape)} leads to state {index[where[0]]}; "
                f"states run from 0 to {S - 1}"
            )
        indptr = indptr.astype(np.int64)
        index = index.astype(np.int32)
        data = data.copy()
        ends = np.empty_like(indptr)
        fault, at, value = tidy_rows(indptr, index, data, tolerance, ends)
        if fault == BAD_NUMBER:
            row = int(np.searchsorted(indptr, at, side="right")) - 1
            raise CounselError(
                f"transition{_pair(row, shape, int(index[at]))} is {value:.10g}; "
                "a probability must be a number from 0 to 1"
            )
        if fault != GOOD:
            raise CounselError(
                f"transition{_pair(at, shape)} sums to {value:.10g}; "
                "a row of probabilities must sum to 1"
            )
        row_lp = np.empty((L, S * A), dtype=np.int32)
        first_row = np.empty(L + 1, dtype=np.int64)
        keep = share_rows(ends, index, data.view(np.int64), row_lp, first_row)
        kept = np.empty(int(first_row[-1]) + 1, dtype=np.int64)
        keep_rows(keep, ends, index, data, kept)
        index, data = index[: kept[-1]], data[: kept[-1]]
        return cls._adopt(row_lp.reshape(shape), first_row, kept, index, data)

    @classmethod
    def from_rows(
        cls, row: Ints, first_row: Ints, indptr: Ints, next_state: Ints, probability: Floats
    ) -> "Kernel":
        """Build a kernel from its stored arrays, as ``counsel.save`` writes them.

        Parameters
        ----------
        row, first_row, indptr, next_state, probability
            The attributes of the same names; copied.
        """
        parts: tuple[Any, ...] = (row, first_row, indptr, next_state, probability)
        return cls._adopt(*(np.array(part, order="C") for part in parts))

    @classmethod
    def _adopt(
        cls, row: Ints, first_row: Ints, indptr: Ints, next_state: Ints, probability: Floats
    ) -> "Kernel":
        """Check and keep arrays that no other code holds."""
        indices = (row, first_row, indptr, next_state)
        if (
            any(array.dtype.kind not in "iu" for array in indices)
            or probability.dtype.kind != "f"
            or row.ndim != 3
            or 0 in row.shape
        ):
            raise CounselError(
                "transition rows have the wrong type: row must be whole numbers [layer, s, a], "
                "first_row, indptr and next_state whole numbers, and probability floats"
            )
        if any(array.size and array.max() >= 2**31 for array in (row, next_state)):
            raise CounselError(
                "transition rows are out of range: row and next_state must be below 2^31"
            )
        row, next_state = (part.astype(np.int32, "C", copy=False) for part in (row, next_state))
        first_row, indptr = (part.astype(np.int64, "C", copy=False) for part in (first_row, indptr))
        probability = probability.astype(np.float64, "C", copy=False)
        L, S, A = row.shape
        _check_sizes(L, S, A)
        consistent = (
            first_row.shape == (L + 1,)
            and first_row[0] == 0
            and bool((np.diff(first_row) >= 0).all())
            and indptr.shape == (first_row[-1] + 1,)
            and indptr[0] == 0
            and bool((np.diff(indptr) > 0).all())
            and next_state.shape == probability.shape == (indptr[-1],)
            and bool(((row == NO_ROW) | (row >= first_row[:-1, None, None])).all())
            and bool((row < first_row[1:, None, None]).all())
        )
        if not consistent:
            raise CounselError("transition rows do not fit together; the arrays are damaged")
        # A row that was accepted within a tolerance must be accepted again.
        bad_row, total = check_rows(indptr, next_state, probability, S, 4.0 * ROW_TOLERANCE)
        if bad_row >= 0:
            raise CounselError(
                f"transition row {bad_row} is not a distribution over {S} states (sum {total:.10g})"
            )
        parts: tuple[Any, ...] = (row, first_row, indptr, next_state, probability)
        return cls(*map(sealed, parts))

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self.row, self.first_row, self.indptr, self.next_state, self.probability)
        return Kernel.from_rows, parts

    @property
    def n_layers(self) -> int:
        """The number of layers: 1 for a stationary world, else the horizon."""
        return int(self.row.shape[0])

    @property
    def n_states(self) -> int:
        """The number of states."""
        return int(self.row.shape[1])

    @property
    def n_actions(self) -> int:
        """The number of actions."""
        return int(self.row.shape[2])

    @property
    def n_rows(self) -> int:
        """The number of distinct rows."""
        return self.indptr.size - 1

    @property
    def nbytes(self) -> int:
        """The size of all arrays in bytes."""
        return sum(int(getattr(self, name).nbytes) for name in self.__slots__)

    def successors(self, step: int, state: int, action: int) -> tuple[Ints, Floats]:
        """Return the next states of a pair, in ascending order, and their probabilities.

        Both are empty if the action is not allowed.

        Parameters
        ----------
        step
            Counted from 0; ignored in a stationary world.
        state, action
            Counted from 0.
        """
        row = self.row[step if self.n_layers > 1 else 0, state, action]
        if row == NO_ROW:
            return self.next_state[:0], self.probability[:0]
        part = slice(self.indptr[row], self.indptr[row + 1])
        return self.next_state[part], self.probability[part]

    def to_sparse(self) -> "sp.csr_matrix | list[sp.csr_matrix]":
        """Return a matrix [s·A + a, t], or a list of one per step if the world changes."""
        layers = [self._layer_csr(layer) for layer in range(self.n_layers)]
        return layers if self.n_layers > 1 else layers[0]

    def to_dense(self) -> Floats:
        """Return the probabilities [s, a, t], or [h, s, a, t] if the world changes."""
        S, A = self.n_states, self.n_actions
        layers = [self._layer_csr(layer).toarray() for layer in range(self.n_layers)]
        dense: Floats = np.stack(layers).reshape(-1, S, A, S)
        return dense if self.n_layers > 1 else dense[0]

    def to_next_states(self) -> NDArray[np.int64]:
        """Return the next states [s, a] or [h, s, a] of a world without chance, −1 for no row."""
        lengths = np.append(np.diff(self.indptr), 0)
        where = first((self.row >= 0) & (lengths[self.row] > 1))
        if where is not None:
            raise CounselError(
                f"transition{place('hsa', where)} has {lengths[self.row[where]]} next states; "
                "only a world without chance can be a table of next states"
            )
        first_entry = np.append(self.indptr[:-1], self.next_state.size)[self.row]
        table: NDArray[np.int64] = np.append(self.next_state, NO_ROW).astype(np.int64)[first_entry]
        return table if self.n_layers > 1 else table[0]

    def _layer_csr(self, layer: int) -> "sp.csr_matrix":
        indptr, entry = row_entries(self.indptr, self.row[layer].reshape(-1))
        data = (self.probability[entry], self.next_state[entry], indptr)
        return sp.csr_matrix(data, shape=(indptr.size - 1, self.n_states))


def row_entries(indptr: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Return where the entries of each row begin when copied in turn, and which they are.

    A row −1 has no entries.
    """
    lengths = np.append(np.diff(indptr), 0)[rows]
    first_entry = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    begin = np.append(indptr[:-1], 0)[rows]
    return first_entry, np.repeat(begin - first_entry[:-1], lengths) + np.arange(first_entry[-1])


def _check_sizes(layers: int, states: int, actions: int) -> None:
    if layers < 1 or states < 1 or actions < 1:
        raise CounselError(
            f"transition has {layers} steps, {states} states and {actions} actions; "
            "each must be at least 1"
        )
    if actions > MOST_ACTIONS:
        raise CounselError(
            f"transition has {actions} actions; at most {MOST_ACTIONS:,} can be stored"
        )
    if layers * states * actions >= 2**31:
        raise CounselError(
            f"transition has {layers * states * actions} rows; at most 2,147,483,647 can be stored"
        )


def _pair(row: int, shape: tuple[int, int, int], next_state: int | None = None) -> str:
    """Describe the pair of a row of the long table, with its step in a world that changes."""
    index = tuple(int(i) for i in np.unravel_index(row, shape))
    axes = "hsa"
    if shape[0] == 1:
        index, axes = index[1:], axes[1:]
    return place(axes, index) if next_state is None else place(axes + "t", (*index, next_state))
