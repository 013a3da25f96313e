"""Where episodes begin, and from which step on nothing more can happen in a state."""

import numpy as np

from counsel._arrays import Floats
from counsel.learning._rfe_kernels import mark_ends
from counsel.learning.saved_state import SavedState
from counsel.model.setting import Shape
from counsel.simulate.episodes import Episodes


class StartsAndEnds:
    """Counts of first states, and the states in which episodes were reported to end.

    ``starts`` [s] is how many episodes began in each state, ``idle`` [1] how many had no decision,
    ``ended`` [h, s] whether nothing more can happen, with one step more.
    """

    def __init__(self, shape: Shape) -> None:
        self._horizon, self._start = shape.horizon, shape.start
        self.starts = np.zeros(shape.n_states, dtype=np.int64)
        self.idle = np.zeros(1, dtype=np.int64)
        self.ended = np.zeros((shape.horizon + 1, shape.n_states), dtype=np.bool_)

    def save_in(self, saved: SavedState) -> None:
        """Register all arrays."""
        saved.add(self, {"_starts": "starts", "_idle": "idle", "_ended": "ended"})

    def count(self, batch: Episodes) -> None:
        """Count the first states and mark the last states of whole episodes."""
        live = batch.lengths > 0
        np.add.at(self.starts, batch.state[batch.first[:-1][live]], 1)
        self.idle[0] += (~live).sum()
        ends = live & batch.terminated
        mark_ends(batch.lengths[ends], batch.next_state[batch.first[1:][ends] - 1], self.ended)

    @property
    def episodes(self) -> int:
        """The number of episodes counted."""
        return int(self.starts.sum() + self.idle[0])

    def law(self) -> tuple[Floats, float]:
        """Return the empirical law of the first state, and the share of episodes already over.

        Before the first episode all states are equally likely.
        """
        size, n = self.starts.size, self.episodes
        if self._start is not None:
            law = np.zeros(size)
            law[self._start] = 1.0
            return law, 0.0
        if n == 0:
            return np.full(size, 1.0 / size), 0.0
        return self.starts / n, float(self.idle[0] / n)

    def law_with_unknown(self) -> Floats:
        """Return the empirical law of the first state, with the unknown state last.

        Of an episode without a decision only that it began where nothing can happen is known: any
        such state stands for it, and before one is known these episodes are left out.
        """
        start = np.append(self.starts, 0).astype(np.float64)
        over = np.flatnonzero(self.ended[0])
        if over.size:
            start[over[0]] += self.idle[0]
        if self._start is not None or not start.any():
            start[-1 if self._start is None else self._start] = 1.0
        law: Floats = start / start.sum()
        return law

    def uncertainty(self, most_s: Floats, width: float) -> float:
        """Return W before the first state is drawn, from W of each state.

        The law of the first state is one row more, visited in every episode; ``width`` is its own
        uncertainty. If every episode begins in one state there is no such row.
        """
        H, n = self._horizon, self.episodes
        if self._start is not None:
            return float(most_s[self._start])
        if n == 0:
            return float(H)
        return min(float(H), width + (1.0 + 1.0 / H) * float(self.starts @ most_s) / n)
