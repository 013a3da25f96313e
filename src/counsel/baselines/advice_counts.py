"""Counts of what follows each advice, and of what it pays."""

from typing import Any, Protocol

import numpy as np

from counsel._arrays import Floats, Ints
from counsel.baselines._optimism_kernels import count_advised
from counsel.learning.saved_state import SavedState
from counsel.learning.transition_counts import TransitionCounts, are_consistent
from counsel.simulate.episodes import Episodes


class RowCounts(Protocol):
    """What a black-box learner learns of each row [h, s, b]."""

    @property
    def row_visits(self) -> Ints:
        """How often each row was visited [h, s, b]."""

    def save_in(self, saved: SavedState) -> None:
        """Register all arrays."""

    def is_consistent(self, state: dict[str, Any]) -> bool:
        """Return whether compiled loops can trust the growing arrays of a saved state."""

    def check(self, batch: Episodes) -> None:
        """Raise an error if episodes contradict what is known of the world."""


class AdviceCounts:
    """Transitions and sums of rewards, and of their squares, of each advice [h, s, b]."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self.transitions = TransitionCounts(shape)
        self.paid, self.square = np.zeros(shape), np.zeros(shape)

    @property
    def row_visits(self) -> Ints:
        return self.transitions.visits

    def save_in(self, saved: SavedState) -> None:
        self.transitions.save_in(saved)
        saved.add(self, {"_paid": "paid", "_square": "square"})

    def is_consistent(self, state: dict[str, Any]) -> bool:
        return are_consistent(state, self.transitions.visits.shape[1])

    def check(self, batch: Episodes) -> None:
        pass

    def add(self, batch: Episodes, paid: Floats, into: TransitionCounts | None = None) -> bool:
        """Count whole episodes and their rewards; return whether there was a decision.

        Transitions are counted in ``into`` if it is given.
        """
        transitions = self.transitions if into is None else into
        transitions.make_room(batch.state.size)
        moves = batch.first, batch.state, batch.advice, paid, batch.next_state
        count_advised(*moves, transitions.chains, self.paid, self.square)
        return batch.state.size > 0

    def mean_reward(self) -> Floats:
        """Return the average reward [h, s, b]; 0 where nothing was counted."""
        return self.paid / np.maximum(self.transitions.visits, 1)
