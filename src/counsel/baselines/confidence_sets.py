"""What learners share that plan for the best world within intervals of single probabilities.

Setting: the machine's time-dependent MDP as a black box, known rewards in [0, 1], and C, how many
states can follow one at most (all, unless ``support`` says which). With

    U = S B H log₂(4 S² H² / ε),   δ₁ = δ / (2 U C),   ℓ = c ln(k / δ₁)

each p_h(t | s, b) lies within an interval round p̂ (``_interval_kernels.py``) with probability
1 − δ, all at once; k is the number of bounds the intervals are made of. U is that of the authors'
code for time-dependent worlds: one factor H more than in the paper's stationary ones.

``Phases`` is the rule of the papers for when what was seen counts: once a row was seen as often as
before, and at least m w times, with w = ε / (4 H S) and

    m = 512 (log₂ log₂ H)² (C H² / ε²) log₂²(8 H² S² / ε) ln(6 C S B log₂²(4 S² H² / ε) / δ)

until n ≥ m S H (of UC-CFH a factor C more). For five steps, 35 states of which seven can follow,
ε = 1 and δ = 0.5, m w is nine hundred thousand visits: nothing is learnt in any experiment. Without
phases everything counts at every update. Below four steps (log₂ log₂ H)² would be less than 1 and
is 1; ε is taken for rewards in [0, 1], and at most H.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator
from numpy.typing import ArrayLike

from counsel._arrays import Bools, Floats, Ints, first, place, positive, rectangular
from counsel.baselines.black_box import Counted
from counsel.errors import CounselError
from counsel.learning._transition_kernels import (
    Chains,
    add_times,
    all_links,
    are_chains,
    with_room,
)
from counsel.learning.inputs import require_rewards
from counsel.model.problem import Shape
from counsel.simulate.episodes import Episodes


@dataclass(frozen=True, slots=True)
class Phases:
    """The rule of the papers for when what was seen counts: once a row was seen as often again.

    For ``UCFH`` and ``UCCFH``. Without it everything counts at every update.

    Parameters
    ----------
    least
        How often a row (step, state, advice) must be seen before it counts for the first time,
        above 0; None is m w of the papers.

    Raises
    ------
    CounselError
        When ``least`` is not above 0 and finite.

    Examples
    --------
    By the papers' rule nothing counts before some million visits, even in a world of four states:

    >>> import numpy as np
    >>> from counsel import UCFH
    >>> from counsel.worlds import make
    >>> problem = make("night-shift")
    >>> known = dict(rng=np.random.default_rng(0), reward=problem.machine().reward)
    >>> for phases in (Phases(), Phases(least=20)):
    ...     print(f"{UCFH(problem.shape, phases=phases, **known).least_visits:,.0f}")
    17,519,488
    20
    """

    least: float | None = None

    def __post_init__(self) -> None:
        if self.least is not None:
            positive("least", self.least)


class Plausible(Counted):
    """Plans for the best world within intervals."""

    growing: ClassVar[tuple[str, ...]] = (*Counted.growing, "_new_links")
    arrays: ClassVar[tuple[str, ...]] = (
        *Counted.arrays,
        "_new_visits",
        "_new_head",
        "_new_used",
        "_new_links",
    )

    bounds: ClassVar[int]
    """How many bounds the intervals are made of (k), each counted on both sides."""

    def __init__(  # noqa: PLR0913 (the settings of the theorem)
        self,
        shape: Shape,
        *,
        rng: Generator,
        reward: ArrayLike,
        epsilon: float = 1.0,
        delta: float = 0.1,
        scale: float = 1.0,
        penalty: float = 0.0,
        budget: float | None = None,
        support: "ArrayLike | sp.spmatrix | None" = None,
        phases: Phases | None = None,
        known_zero: ArrayLike | None = None,
    ) -> None:
        super().__init__(
            shape,
            rng=rng,
            reward=require_rewards(reward),
            penalty=penalty,
            budget=budget,
            known_zero=known_zero,
        )
        self.epsilon, self.delta = positive("epsilon", epsilon), positive("delta", delta, 1.0)
        self.scale, self.phases = positive("scale", scale), phases
        self.support = _read_support(support, shape.n_states)
        self._new_visits = np.zeros(self._visits.shape if phases is not None else 0, np.int64)
        self._new_head = np.full(self._new_visits.shape, -1, dtype=np.int64)
        self._new_links: Ints = np.zeros((0, 3), dtype=np.int64)
        self._new_used = np.zeros(1, dtype=np.int64)

    @property
    def most_successors(self) -> int:
        """How many states can follow one at most (C)."""
        if self.support is None:
            return self.shape.n_states
        return int(np.diff(self.support.indptr).max())

    @property
    def log(self) -> float:
        """ℓ, the number the intervals are made with."""
        H, S, A = self._sizes
        rows = S * (A + 1) * H * math.log2(4.0 * S * S * H * H / self._asked)
        return self.scale * math.log(self.bounds * 2.0 * rows * self.most_successors / self.delta)

    @property
    def m(self) -> float:
        """How much has to be seen (m of the papers)."""
        H, S, A = self._sizes
        C, e = self.most_successors, self._asked
        slow = max(math.log2(max(math.log2(H), 1.0)), 1.0) ** 2
        sides = math.log(6.0 * C * S * (A + 1) * math.log2(4.0 * S * S * H * H / e) ** 2)
        wide = math.log2(8.0 * H * H * S * S / e) ** 2
        return 512.0 * slow * C * (H / e) * (H / e) * wide * (sides - math.log(self.delta))

    @property
    def least_visits(self) -> float:
        """How often a row must be seen before it counts for the first time, given phases."""
        H, S, _ = self._sizes
        if self.phases is not None and self.phases.least is not None:
            return self.phases.least
        return self.m * self._asked / (4.0 * H * S)

    @property
    def _asked(self) -> float:
        """ε for rewards in [0, 1]; more than H would ask nothing."""
        return min(self.epsilon / self._unit, float(self.shape.horizon))

    def _take_in(self, batch: Episodes, paid: Floats) -> None:
        """Count what followed; with phases, only rows that were seen as often again count."""
        if self.phases is None:
            super()._take_in(batch, paid)
            return
        self._new_links = with_room(self._new_links, int(self._new_used[0]), batch.state.size)
        self._note(batch, paid, self._new_chains)
        enough = self.m * self.shape.n_states * self.shape.horizon
        ripe = self._new_visits >= np.maximum(self.least_visits, self._visits)
        ripe &= self._visits < enough
        if ripe.any():
            self._fold_in(ripe)
            self._forget_plans()

    def _fold_in(self, ripe: Bools) -> None:
        """Let what was seen of ripe rows count, and begin anew there."""
        row, t, times = all_links(self._new_head, self._new_links)
        counts = ripe.reshape(-1)[row]
        self._links = with_room(self._links, int(self._used[0]), int(counts.sum()))
        add_times(self._chains, row[counts], t[counts], times[counts])
        self._new_visits[:], self._new_head[:], self._new_used[:] = 0, -1, 0
        add_times(self._new_chains, row[~counts], t[~counts], times[~counts])

    @property
    def _seen(self) -> Ints:
        """How often each row was seen, whether that counts yet or not."""
        return self._visits if self.phases is None else self._visits + self._new_visits

    def update(self, batch: Episodes) -> None:
        """Learn from whole episodes.

        Parameters
        ----------
        batch
            What ``Simulator.play`` returned.

        Raises
        ------
        CounselError
            When the episodes do not fit the problem's sizes, or a state follows another that
            ``support`` rules out.
        """
        batch.check_fits(*self._sizes)
        self._check_support(batch)
        super().update(batch)

    def _check_support(self, batch: Episodes) -> None:
        if self.support is None:
            return
        S = self.shape.n_states
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

    @property
    def _new_chains(self) -> Chains:
        return Chains(self._new_visits, self._new_head, self._new_links, self._new_used)

    def sound(self, state: dict[str, Any]) -> bool:
        """Tell whether chains lead somewhere and come to an end.

        Parameters
        ----------
        state
            What ``state`` returned.

        Returns
        -------
        bool
            Whether the arrays that grow can be trusted by compiled loops.
        """
        head, links, used = state["_new_head"], state["_new_links"], int(state["_new_used"][0])
        S = self.shape.n_states
        return super().sound(state) and are_chains(state["_new_visits"], head, links, used, S)

    def _follows(self) -> tuple[Ints, Ints]:
        """Return the states that can follow each, laid out by state; both empty where all can."""
        if self.support is None:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        return self.support.indptr.astype(np.int64), self.support.indices.astype(np.int64)


def _read_support(given: "ArrayLike | sp.spmatrix | None", n_states: int) -> "sp.csr_matrix | None":
    """Return which states can follow which [s, t], sparse; None where all can."""
    if given is None:
        return None
    table: Any = given
    if not sp.issparse(given):
        table = rectangular("support", given)
    if table.dtype != np.bool_ or table.shape != (n_states, n_states):
        raise CounselError(
            f"support is {table.dtype} of shape {table.shape}; "
            f"expected booleans [s, t] = {(n_states, n_states)}, dense or sparse"
        )
    support = sp.csr_matrix(table)
    support.eliminate_zeros()
    support.sort_indices()
    dead: Bools = np.diff(support.indptr) == 0
    where = first(dead)
    if where is not None:
        raise CounselError(f"support{place('s', where)} is empty: some state must follow")
    return support
