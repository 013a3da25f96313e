"""Counts of transitions, laid out as ``_transition_kernels.py`` describes."""

from typing import Any

import numpy as np

from counsel._arrays import Bools, Ints
from counsel.learning._transition_kernels import Chains, add_times
from counsel.learning.saved_state import SavedState


class TransitionCounts:
    """Visits [h, s, x] of each row and chains of the states that followed it; they grow."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.visits = np.zeros(shape, dtype=np.int64)
        self.head = np.full(shape, -1, dtype=np.int64)
        self.links: Ints = np.zeros((0, 3), dtype=np.int64)
        self.used = np.zeros(1, dtype=np.int64)

    def save_in(self, saved: SavedState, prefix: str = "_") -> None:
        """Register all arrays under names that begin with a prefix."""
        saved.add(self, {f"{prefix}{name}": name for name in ("visits", "head", "used")})
        saved.add(self, {f"{prefix}links": "links"}, growing=True)

    @property
    def chains(self) -> Chains:
        """The counts as kernels take them; call ``make_room`` before kernels that count."""
        return Chains(self.visits, self.head, self.links, self.used)

    def make_room(self, more: int) -> None:
        """Provide links for so many more transitions."""
        used = int(self.used[0])
        if used + more > len(self.links):
            links = np.zeros((max(used + more, 2 * used), 3), dtype=np.int64)
            links[:used] = self.links[:used]
            self.links = links

    def entries(self) -> tuple[Ints, Ints, Ints]:
        """Return the row number, next state and count of every transition that was counted."""
        return _entries(self.head, self.links)

    def move_rows(self, chosen: Bools, target: "TransitionCounts") -> None:
        """Move the counts of chosen rows [h, s, x] to other counts."""
        row, state, times = self.entries()
        moves = chosen.reshape(-1)[row]
        target.make_room(int(moves.sum()))
        add_times(target.chains, row[moves], state[moves], times[moves])
        self.visits[:], self.head[:], self.used[:] = 0, -1, 0
        add_times(self.chains, row[~moves], state[~moves], times[~moves])


def are_consistent(state: dict[str, Any], n_states: int, prefix: str = "_") -> bool:
    """Return whether saved counts are such as kernels make them.

    Links lead to older links, and the counts of a row add up to its visits.
    """
    visits, head, links, used = (
        state[f"{prefix}{name}"] for name in ("visits", "head", "links", "used")
    )
    n_links = int(used[0])
    if links.ndim != 2 or links.shape[1] != 3 or not 0 <= n_links <= len(links):
        return False
    next_state, times, onward = links[:n_links].T
    in_range = bool(
        ((head >= -1) & (head < n_links)).all()
        and ((next_state >= 0) & (next_state < n_states)).all()
        and (times > 0).all()
        and ((onward >= -1) & (onward < np.arange(n_links))).all()
    )
    if not in_range:
        return False
    row, _, counts = _entries(head, links)
    sums = np.bincount(row, counts, minlength=visits.size)
    return bool((sums == visits.reshape(-1)).all())


def _entries(head: Ints, links: Ints) -> tuple[Ints, Ints, Ints]:
    """Return row number, next state and count of each link."""
    link = head.reshape(-1)
    row = np.flatnonzero(link >= 0)
    link = link[row]
    rows: list[Ints] = [np.zeros(0, np.int64)]
    links_of_row: list[Ints] = [np.zeros(0, np.int64)]
    while row.size:
        rows.append(row)
        links_of_row.append(link)
        onward = links[link, 2]
        row, link = row[onward >= 0], onward[onward >= 0]
    table = links[np.concatenate(links_of_row)]
    return np.concatenate(rows), table[:, 0], table[:, 1]
