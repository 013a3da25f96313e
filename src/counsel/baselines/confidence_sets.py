"""Confidence sets of the machine's world: an interval of each transition probability.

Setting: ``black_box.py``, known rewards in [0, 1], and C, how many states can follow one at most
(all, unless ``support`` says which). With

    U = S B H log₂(4 S² H² / ε),   δ₁ = δ / (2 U C),   ℓ = c ln(k / δ₁)

each p_h(t | s, b) lies within an interval round p̂ (``_confidence_set_kernels.py``) with probability
1 − δ, all at once; k is the number of bounds the intervals are made of. U is that of the authors'
code for time-dependent worlds: one factor H more than in the paper's stationary ones.

``Phases`` is the rule of the papers for when what was seen counts: once a row was seen as often as
before, and at least m w times, with w = ε / (4 H S) and

    m = 512 (log₂ log₂ H)² (C H² / ε²) log₂²(8 H² S² / ε) ln(6 C S B log₂²(4 S² H² / ε) / δ)

until n ≥ m S H (of UC-CFH a factor C more): so much that nothing is learnt in any experiment.
Without phases everything counts at every update. Below four steps (log₂ log₂ H)² would be less than
1 and is 1; ε is taken for rewards in [0, 1], and at most H.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from counsel._arrays import Bools, Floats, Ints, first, place, positive, rectangular
from counsel.baselines.advice_counts import AdviceCounts
from counsel.errors import CounselError
from counsel.learning.saved_state import SavedState
from counsel.learning.transition_counts import TransitionCounts, are_consistent
from counsel.model.setting import Shape
from counsel.simulate.episodes import Episodes


@dataclass(frozen=True, slots=True)
class Phases:
    """The rule of the papers for when counts take effect: once a row was visited as often again.

    Parameters
    ----------
    least
        The visits of a row (step, state, advice) before its counts take effect for the first time,
        above 0; None is m w of the papers.

    Raises
    ------
    CounselError
        If ``least`` is not above 0 and finite.

    Examples
    --------
    By the papers' rule no count takes effect before millions of visits, even with four states:

    >>> import numpy as np
    >>> import counsel
    >>> from counsel.baselines import UCFH
    >>> problem = counsel.make("night-shift")
    >>> known = dict(rng=np.random.default_rng(0), reward=problem.machine().reward)
    >>> for phases in (Phases(), Phases(least=20)):
    ...     print(f"{UCFH(problem.shape, phases=phases, **known).sets.least_visits:,.0f}")
    17,519,488
    20
    """

    least: float | None = None

    def __post_init__(self) -> None:
        if self.least is not None:
            positive("least", self.least)


class Guarantee(NamedTuple):
    """ε for rewards in [0, 1], δ, and the number ℓ is multiplied by."""

    epsilon: float
    delta: float
    scale: float


class ConfidenceSets:
    """Counts of transitions, the intervals they give, and the phases in which counts take effect.

    ``waiting`` are transitions of rows whose phase is not over, ``most_successors`` is C, ``log``
    is ℓ, ``m`` has a factor C more with ``m_times_successors``, and ``least_visits`` is how often a
    row must be visited before it counts for the first time, given phases.
    """

    def __init__(  # noqa: PLR0913 (the settings of the theorem)
        self,
        shape: Shape,
        guarantee: Guarantee,
        *,
        bounds: int,
        support: "ArrayLike | sp.spmatrix | None",
        phases: Phases | None,
        m_times_successors: bool = False,
    ) -> None:
        self.phases = phases
        self.support = _read_support(support, shape.n_states)
        H, S, B = rows = shape.horizon, shape.n_states, shape.n_actions + 1
        self.counts = AdviceCounts(rows)
        self.waiting = TransitionCounts((0,) if phases is None else rows)
        C = self.most_successors = S
        if self.support is not None:
            C = self.most_successors = int(np.diff(self.support.indptr).max())
        e = min(guarantee.epsilon, float(H))  # more than H would ask nothing
        tried = S * B * H * math.log2(4.0 * S * S * H * H / e)
        self.log = guarantee.scale * math.log(bounds * 2.0 * tried * C / guarantee.delta)
        slow = max(math.log2(max(math.log2(H), 1.0)), 1.0) ** 2
        sides = math.log(6.0 * C * S * B * math.log2(4.0 * S * S * H * H / e) ** 2)
        wide = math.log2(8.0 * H * H * S * S / e) ** 2
        m = 512.0 * slow * C * (H / e) * (H / e) * wide * (sides - math.log(guarantee.delta))
        self.m = m * C if m_times_successors else m
        self.least_visits = self.m * e / (4.0 * H * S)
        if phases is not None and phases.least is not None:
            self.least_visits = phases.least
        self._enough = self.m * S * H
        self._n_states = S

    def save_in(self, saved: SavedState) -> None:
        self.counts.save_in(saved)
        self.waiting.save_in(saved, "_new_")

    def is_consistent(self, state: dict[str, Any]) -> bool:
        S = self._n_states
        return are_consistent(state, S) and are_consistent(state, S, "_new_")

    def add(self, batch: Episodes, paid: Floats) -> bool:
        """Count whole episodes; with phases, only rows that were seen as often again count."""
        if self.phases is None:
            return self.counts.add(batch, paid)
        self.counts.add(batch, paid, into=self.waiting)
        visits = self.counts.transitions.visits
        ripe = self.waiting.visits >= np.maximum(self.least_visits, visits)
        ripe &= visits < self._enough
        if ripe.any():
            self.waiting.move_rows(ripe, self.counts.transitions)
            return True
        return False

    @property
    def row_visits(self) -> Ints:
        """How often each row was visited, whether that counts yet or not."""
        visits = self.counts.transitions.visits
        return visits if self.phases is None else visits + self.waiting.visits

    def check(self, batch: Episodes) -> None:
        if self.support is None:
            return
        S = self._n_states
        keys = np.repeat(np.arange(S), np.diff(self.support.indptr)) * S + self.support.indices
        moves = batch.state.astype(np.int64) * S + batch.next_state
        off: Bools = keys[np.minimum(np.searchsorted(keys, moves), keys.size - 1)] != moves
        where = first(off)
        if where is not None:
            s, t = int(batch.state[where]), int(batch.next_state[where])
            raise CounselError(
                f"support{place('st', (s, t))} is False but state {t} followed state {s}; "
                "declare every state that can follow"
            )

    def successors(self) -> tuple[Ints, Ints]:
        """Return the states that can follow each, laid out by state; both empty if all can."""
        if self.support is None:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        return self.support.indptr.astype(np.int64), self.support.indices.astype(np.int64)


def _read_support(
    support: "ArrayLike | sp.spmatrix | None", n_states: int
) -> "sp.csr_matrix | None":
    """Return which states can follow which [s, t], sparse; None where all can."""
    if support is None:
        return None
    table: Any = support
    if not sp.issparse(support):
        table = rectangular("support", support)
    if table.dtype != np.bool_ or table.shape != (n_states, n_states):
        raise CounselError(
            f"support is {table.dtype} of shape {table.shape}; "
            f"expected booleans [s, t] = {(n_states, n_states)}, dense or sparse"
        )
    matrix = sp.csr_matrix(table)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    where = first(np.diff(matrix.indptr) == 0)
    if where is not None:
        raise CounselError(f"support{place('s', where)} is empty: some state must follow")
    return matrix
