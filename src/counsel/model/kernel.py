"""The world's transitions p_h(t | s, a) as sparse rows, each distinct row stored once.

Most worlds repeat themselves: in the car world 1,459 distinct rows stand behind 177,150 pairs of
state and action. So a kernel keeps the distinct rows of each layer in compressed sparse form and a
table ``row[layer, state, action]`` that points to them. A world that is the same at every step has
one layer. Where many pairs share a row, planners take the expectation of each row once, before they
look at states; where few do, they take it on the way, while the processor waits for memory anyway.
"""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from counsel._arrays import ROW_TOLERANCE, Bools, Floats, Ints, first, place, sealed
from counsel.errors import CounselError
from counsel.model._kernels import BAD_NUMBER, GOOD, check_rows, keep_rows, share_rows, tidy_rows

NO_ROW = -1
"""Where ``Kernel.row`` points for a pair that leads nowhere (an action that is not allowed)."""

MOST_ACTIONS = 32_766
"""Advice is stored in two bytes, and silence is one more than the actions."""

WORTH_SHARING = 4
"""How many times over the entries of a layer must be used for its rows to be worth taking first."""


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """Transition probabilities, each distinct row stored once.

    Build one with ``read``, which takes any form, or with ``from_dense``, ``from_sparse``,
    ``from_next_states`` or ``from_rows``: these check, the constructor does not.

    Attributes
    ----------
    row
        Number of the row of each [layer, s, a], −1 where there is none. One layer for a world that
        never changes, else one for each step.
    first_row
        Rows ``first_row[l]`` up to ``first_row[l + 1]`` belong to layer ``l``: [layer + 1].
    indptr, next_state, probability
        Row ``i`` holds entries ``indptr[i]`` up to ``indptr[i + 1]`` of the other two.
    shared
        For each layer, whether its rows are used so often that they are worth taking first.

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
    shared: Bools

    @classmethod
    def read(cls, transition: object) -> "Kernel":
        """Read any accepted form of transitions.

        Parameters
        ----------
        transition
            A ``Kernel``; a float array [s, a, t] or [h, s, a, t] of probabilities; an integer array
            [s, a] or [h, s, a] of next states; a scipy.sparse matrix [s·A + a, t], or a list of
            one a step.

        Returns
        -------
        Kernel
            A ``Kernel`` is returned as it is.

        Raises
        ------
        CounselError
            When it has none of these forms, or a row is not a distribution.
        """
        if isinstance(transition, Kernel):
            return transition
        if sp.issparse(transition):
            return cls.from_sparse(transition)
        if isinstance(transition, list | tuple) and any(sp.issparse(m) for m in transition):
            return cls.from_sparse(transition)
        try:
            array = np.asarray(transition)
        except ValueError:
            raise CounselError("transition is ragged: give a full rectangular array") from None
        if array.dtype.kind in "iu":
            if array.ndim == 3 and array.shape[0] == array.shape[2] and _looks_certain(array):
                raise CounselError(
                    "transition holds integers that may be next states [h, s, a] or probabilities "
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
        """Build from probabilities.

        Parameters
        ----------
        transition
            Floats [s, a, t], or [h, s, a, t] when they change with the step. A row of zeros is
            none: the action is not allowed there.

        Returns
        -------
        Kernel
            With one layer, or one for each step.

        Raises
        ------
        CounselError
            When the shape is wrong or a row is not a distribution.
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
        """Build from a matrix whose row s·A + a is p(· | s, a), or a list of one a step.

        Parameters
        ----------
        matrices
            A scipy.sparse matrix [s·A + a, t], or a list of one a step. An empty row is none.
        tolerance
            How far from 1 a row may sum.

        Returns
        -------
        Kernel
            With one layer, or one for each step.

        Raises
        ------
        CounselError
            When the shapes are wrong or a row is not a distribution.
        """
        given = list(matrices) if isinstance(matrices, list | tuple) else [matrices]
        if not given or not all(sp.issparse(matrix) for matrix in given):
            raise CounselError("transition must be sparse matrices, one or one for each step")
        layers = [cast("sp.csr_matrix", sp.csr_matrix(matrix)) for matrix in given]
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
        starts = np.cumsum([0] + [matrix.nnz for matrix in layers])
        indptr = np.concatenate(
            [m.indptr[:-1].astype(np.int64) + n for m, n in zip(layers, starts[:-1], strict=True)]
            + [starts[-1:]]
        )
        if L == 1:
            index, data = layers[0].indices, layers[0].data.astype(np.float64, copy=False)
        else:
            index = np.concatenate([matrix.indices for matrix in layers])
            data = np.concatenate([matrix.data for matrix in layers]).astype(np.float64)
        return cls._from_csr(indptr, index, data, (L, S, A), tolerance)

    @classmethod
    def from_next_states(cls, table: Ints) -> "Kernel":
        """Build from a table of certain next states.

        Parameters
        ----------
        table
            Integers [s, a], or [h, s, a] when they change with the step; −1 where the action is
            not allowed.

        Returns
        -------
        Kernel
            With one layer, or one for each step.

        Raises
        ------
        CounselError
            When the shape is wrong or there is no such state.
        """
        if table.ndim not in (2, 3) or table.dtype.kind not in "iu":
            raise CounselError(
                f"transition is {table.dtype} of shape {table.shape}; a table of next states is "
                "integers [s, a] or [h, s, a] (probabilities must be floats)"
            )
        L, S, A = table.shape if table.ndim == 3 else (1, *table.shape)
        _check_sizes(L, S, A)
        where = first((table < NO_ROW) | (table >= S))
        if where is not None:
            raise CounselError(
                f"transition{place('hsa'[-table.ndim :], where)} leads to state {table[where]}; "
                f"states run from 0 to {S - 1}"
            )
        there = table.reshape(-1) != NO_ROW
        return cls._from_csr(
            np.concatenate(([0], np.cumsum(there))),
            table.reshape(-1)[there],
            np.ones(int(there.sum())),
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
        """Check, tidy and share the rows (layer, state, action) of one long sparse table."""
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
        fault, at, number = tidy_rows(indptr, index, data, tolerance, ends)
        if fault == BAD_NUMBER:
            row = int(np.searchsorted(indptr, at, side="right")) - 1
            raise CounselError(
                f"transition{_pair(row, shape, int(index[at]))} is {number:.10g}; "
                "a probability must be a number from 0 to 1"
            )
        if fault != GOOD:
            raise CounselError(
                f"transition{_pair(at, shape)} sums to {number:.10g}; "
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
        """Build from the stored form (what ``counsel.save`` writes); everything is checked.

        Parameters
        ----------
        row, first_row, indptr, next_state, probability
            As the attributes; copied.

        Returns
        -------
        Kernel
            With the same rows.

        Raises
        ------
        CounselError
            When the arrays do not fit together or a row is not a distribution.
        """
        row, first_row, indptr, next_state = (
            np.array(part, order="C") for part in (row, first_row, indptr, next_state)
        )
        return cls._adopt(row, first_row, indptr, next_state, np.array(probability, order="C"))

    @classmethod
    def _adopt(
        cls, row: Ints, first_row: Ints, indptr: Ints, next_state: Ints, probability: Floats
    ) -> "Kernel":
        """Check and keep arrays that nobody else holds."""
        indices = (row, first_row, indptr, next_state)
        if (
            any(array.dtype.kind not in "iu" for array in indices)
            or probability.dtype.kind != "f"
            or row.ndim != 3
            or 0 in row.shape
        ):
            raise CounselError(
                "transition rows are of the wrong kind: row must be whole numbers [layer, s, a], "
                "first_row, indptr and next_state whole numbers, probability floats"
            )
        if any(array.size and array.max() >= 2**31 for array in (row, next_state)):
            raise CounselError("transition rows point too far: row and next_state stay below 2^31")
        row = row.astype(np.int32, copy=False)
        layer_rows = first_row.astype(np.int64)
        indptr = indptr.astype(np.int64, copy=False)
        next_state = next_state.astype(np.int32, copy=False)
        probability = probability.astype(np.float64, copy=False)
        L, S, A = row.shape
        _check_sizes(L, S, A)
        used = row != NO_ROW
        sound = (
            layer_rows.shape == (L + 1,)
            and layer_rows[0] == 0
            and bool((np.diff(layer_rows) >= 0).all())
            and indptr.shape == (layer_rows[-1] + 1,)
            and indptr[0] == 0
            and bool((np.diff(indptr) > 0).all())
            and next_state.shape == probability.shape == (indptr[-1],)
            and bool((~used | (row >= layer_rows[:-1, None, None])).all())
            and bool((row < layer_rows[1:, None, None]).all())
        )
        if not sound:
            raise CounselError(
                "transition rows do not fit together; the file or arrays are damaged"
            )
        # A row that was taken in within a tolerance must be taken in again.
        bad, total = check_rows(indptr, next_state, probability, S, 4.0 * ROW_TOLERANCE)
        if bad >= 0:
            raise CounselError(
                f"transition row {bad} is not a distribution over {S} states (sum {total:.10g})"
            )
        return cls(
            row=sealed(np.ascontiguousarray(row)),
            first_row=sealed(layer_rows),
            indptr=sealed(np.array(indptr, dtype=np.int64, copy=None)),
            next_state=sealed(np.ascontiguousarray(next_state)),
            probability=sealed(np.ascontiguousarray(probability)),
            shared=sealed(_shared(row, layer_rows, indptr)),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self.row, self.first_row, self.indptr, self.next_state, self.probability)
        return Kernel.from_rows, parts

    @property
    def n_layers(self) -> int:
        """One for a world that never changes, else the horizon."""
        return int(self.row.shape[0])

    @property
    def n_states(self) -> int:
        """How many states."""
        return int(self.row.shape[1])

    @property
    def n_actions(self) -> int:
        """How many actions."""
        return int(self.row.shape[2])

    @property
    def n_rows(self) -> int:
        """How many distinct rows are stored."""
        return self.indptr.size - 1

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(int(getattr(self, name).nbytes) for name in self.__slots__)

    def successors(self, step: int, state: int, action: int) -> tuple[Ints, Floats]:
        """Return where one action leads from one state.

        Parameters
        ----------
        step
            Counted from 0; ignored where there is one layer.
        state, action
            Counted from 0.

        Returns
        -------
        next_state : ndarray
            The next states, in ascending order; none where the action is not allowed.
        probability : ndarray
            Their probabilities.
        """
        row = self.row[step if self.n_layers > 1 else 0, state, action]
        if row == NO_ROW:
            return self.next_state[:0], self.probability[:0]
        part = slice(self.indptr[row], self.indptr[row + 1])
        return self.next_state[part], self.probability[part]

    def to_sparse(self) -> "sp.csr_matrix | list[sp.csr_matrix]":
        """Return the probabilities as sparse matrices.

        Returns
        -------
        scipy.sparse.csr_matrix or list of them
            [s·A + a, t]; a list of one a step when they change with the step.
        """
        layers = [self._layer_csr(layer) for layer in range(self.n_layers)]
        return layers if self.n_layers > 1 else layers[0]

    def to_dense(self) -> Floats:
        """Return the probabilities as an array.

        Returns
        -------
        ndarray
            [s, a, t], or [h, s, a, t] when they change with the step.
        """
        S, A = self.n_states, self.n_actions
        layers = [self._layer_csr(layer).toarray() for layer in range(self.n_layers)]
        dense: Floats = np.stack(layers).reshape(-1, S, A, S)
        return dense if self.n_layers > 1 else dense[0]

    def to_next_states(self) -> NDArray[np.int64]:
        """Return the table of next states of a world without chance.

        Returns
        -------
        ndarray
            Integers [s, a], or [h, s, a] when they change with the step; −1 where there is no row.

        Raises
        ------
        CounselError
            When some row has several next states.
        """
        lengths = np.append(np.diff(self.indptr), 0)
        chancy = (self.row >= 0) & (lengths[self.row] > 1)
        where = first(chancy)
        if where is not None:
            raise CounselError(
                f"transition{place('hsa', where)} has {lengths[self.row[where]]} next states; "
                "only a world without chance is a table of next states"
            )
        first_entry = np.append(self.indptr[:-1], self.next_state.size)[self.row]
        table: NDArray[np.int64] = np.append(self.next_state, NO_ROW).astype(np.int64)[first_entry]
        return table if self.n_layers > 1 else table[0]

    def _layer_csr(self, layer: int) -> "sp.csr_matrix":
        rows = self.row[layer].reshape(-1)
        lengths = np.append(np.diff(self.indptr), 0)[rows]
        indptr = np.concatenate(([0], np.cumsum(lengths)))
        begin = np.where(rows >= 0, self.indptr[rows], 0)
        take = np.repeat(begin - indptr[:-1], lengths) + np.arange(indptr[-1])
        shape = (rows.size, self.n_states)
        return sp.csr_matrix((self.probability[take], self.next_state[take], indptr), shape=shape)


def _check_sizes(layers: int, states: int, actions: int) -> None:
    if layers < 1 or states < 1 or actions < 1:
        raise CounselError(
            f"transition has {layers} steps, {states} states and {actions} actions; "
            "each must be at least 1"
        )
    if actions > MOST_ACTIONS:
        raise CounselError(
            f"transition has {actions} actions; there may be at most {MOST_ACTIONS:,}"
        )
    if layers * states * actions >= 2**31:
        raise CounselError(
            f"transition has {layers * states * actions} rows; at most 2,147,483,647 can be stored"
        )


def _looks_certain(array: Ints) -> bool:
    """Tell whether integers could be probabilities: a single one in every row."""
    return bool((array >= 0).all() and (array.sum(axis=-1) == 1).all())


def _pair(row: int, shape: tuple[int, int, int], next_state: int | None = None) -> str:
    """Spell where a row of the long table stands; the step only where there are several."""
    index = tuple(int(i) for i in np.unravel_index(row, shape))
    axes = "hsa"
    if shape[0] == 1:
        index, axes = index[1:], axes[1:]
    return place(axes, index) if next_state is None else place(axes + "t", (*index, next_state))


def _shared(row: Ints, first_row: Ints, indptr: Ints) -> Bools:
    """Tell for each layer whether its entries are used many times over."""
    lengths = np.append(np.diff(indptr), 0)
    stored = indptr[first_row[1:]] - indptr[first_row[:-1]]
    used = np.array([lengths[layer].sum() for layer in row])
    shared: Bools = used >= WORTH_SHARING * np.maximum(stored, 1)
    return shared
