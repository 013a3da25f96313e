"""Policies of advice: what to say at each step in each state.

Advice is a small integer: an action, or ``defer`` (the index after the last action) for silence.

A policy is a table with planes. A plain policy has a single plane [h, s]. Under a hard budget of D
pieces per episode there are D + 1 planes, one for each number k of pieces left: giving advice leads
from plane k to plane k − 1, and plane 0 is silent. For a person with a memory there is one plane
for each level m. With both, there is one for each pair, (k, m).
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import (
    Bools,
    Floats,
    check_distributions,
    first,
    index_in,
    numbers,
    place,
    rectangular,
    sealed,
    whole,
)
from counsel.errors import CounselError
from counsel.model.kernel import MOST_ACTIONS
from counsel.model.random_cells import NO_RANDOM_CELLS, Advice, RandomCells, check_random_cells


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class Policy:
    """Advice for each step and state, each number of pieces left, and each level of a memory.

    Parameters
    ----------
    advice
        Whole numbers: an action, or ``n_actions`` for silence; in a random cell, the likeliest.
        [h, s] for a plain policy, or [k, h, s] under a hard budget, where k runs from 0 pieces
        left, where the policy is silent, to the budget. With ``levels``: [m, h, s] or
        [k, m, h, s].
    n_actions
        The number of actions of the person.
    random
        The random cells; by default there are none. ``from_probabilities`` builds them.
    levels
        The number of levels of the person's memory, if advice depends on the level.

    Raises
    ------
    CounselError
        If the advice has another shape, is out of range, or is not silent with no piece left, or
        the random cells do not fit the advice.

    Examples
    --------
    Two steps and two states; with two actions, 2 is silence:

    >>> import counsel
    >>> policy = counsel.Policy([[0, 2], [2, 1]], n_actions=2)
    >>> policy
    Policy(2 steps, 2 states, advises in 50% of cells, 0 random)
    >>> policy.at(0, 1) == {policy.defer: 1.0}
    True

    A cell that advises with a probability below 1 is a random cell:

    >>> counsel.Policy.from_probabilities([[[0.25, 0.0, 0.75]]]).at(0, 0)
    {0: 0.25, 2: 0.75}

    At most one piece of advice per night: with a failing patient the policy keeps the piece in the
    first hour and spends it in the sixth; afterwards it is silent.

    >>> policy = counsel.solve(counsel.make("night-shift"), budget=1, hard=True).policy
    >>> policy
    Policy(12 steps, 4 states, at most 1 pieces, advises in 19% of cells, 0 random)
    >>> [policy.at(step, 2, pieces_left=1) for step in (0, 5)], policy.defer
    ([{3: 1.0}, {2: 1.0}], 3)
    >>> policy.at(5, 2, pieces_left=0)
    {3: 1.0}
    """

    n_actions: int
    advice: Advice
    random: RandomCells
    levels: int | None

    def __init__(
        self,
        advice: ArrayLike,
        *,
        n_actions: int,
        random: RandomCells | None = None,
        levels: int | None = None,
    ) -> None:
        actions = whole("n_actions", n_actions, least=1)
        if actions > MOST_ACTIONS:
            raise CounselError(f"n_actions is {actions}; it may be at most {MOST_ACTIONS:,}")
        if levels is not None:
            levels = whole("levels", levels, least=1)
        table = _read_advice(advice, actions, levels)
        if random is not None:
            check_random_cells(random, table.shape, actions, _axes(table.ndim, levels))
        self._set(actions, table, NO_RANDOM_CELLS if random is None else random, levels)

    def _set(self, n_actions: int, advice: Advice, random: RandomCells, levels: int | None) -> None:
        object.__setattr__(self, "n_actions", n_actions)
        object.__setattr__(self, "advice", advice)
        object.__setattr__(self, "random", random)
        object.__setattr__(self, "levels", levels)

    @classmethod
    def trusted(
        cls,
        advice: Advice,
        *,
        n_actions: int,
        random: RandomCells = NO_RANDOM_CELLS,
        levels: int | None = None,
    ) -> "Policy":
        """Wrap advice that a planner has computed, without a check or a copy.

        Parameters
        ----------
        advice
            Two-byte integers in the shapes of the constructor that no other code writes to; made
            read-only.
        n_actions, random, levels
            As in the constructor.
        """
        policy = object.__new__(cls)
        policy._set(n_actions, sealed(advice), random, levels)
        return policy

    @classmethod
    def never(cls, *, horizon: int, n_states: int, n_actions: int) -> "Policy":
        """Return the policy that is silent in every cell.

        Parameters
        ----------
        horizon, n_states, n_actions
            Sizes of the problem.
        """
        return cls(np.full((horizon, n_states), n_actions), n_actions=n_actions)

    @classmethod
    def from_probabilities(cls, probability: ArrayLike, *, levels: int | None = None) -> "Policy":
        """Build a policy from a distribution over advice in each cell.

        A cell with several possible pieces of advice becomes a random cell.

        Parameters
        ----------
        probability
            [h, s, advice] or [k, h, s, advice], with ``levels`` [m, h, s, advice] or
            [k, m, h, s, advice]: each row is a distribution over the actions and, last, silence.
        levels
            As in the constructor.
        """
        table = numbers("probability", probability)
        shapes = (_axes(2 + (levels is not None), levels), _axes(3 + (levels is not None), levels))
        if table.ndim - 1 not in map(len, shapes) or table.shape[-1] < 2 or 0 in table.shape:
            plain, hard = (", ".join((*axes, "advice")) for axes in shapes)
            raise CounselError(
                f"probability has shape {table.shape}; expected [{plain}] or [{hard}] with silence "
                "last"
            )
        check_distributions("probability", table, _axes(table.ndim - 1, levels) + "a")
        flat = table.reshape(-1, table.shape[-1])
        cells = np.nonzero((flat > 0.0).sum(axis=1) > 1)[0]
        row, advice = np.nonzero(flat[cells])
        random = RandomCells(
            cells,
            np.concatenate(([0], np.cumsum(np.bincount(row, minlength=cells.size)))),
            advice.astype(np.int16),
            flat[cells][row, advice],
        )
        advice = table.argmax(axis=-1)
        return cls(advice, n_actions=table.shape[-1] - 1, random=random, levels=levels)

    def __reduce__(self) -> tuple[Any, ...]:
        settings: dict[str, Any] = {
            "n_actions": self.n_actions,
            "random": self.random,
            "levels": self.levels,
        }
        return partial(Policy, **settings), (self.advice,)

    @property
    def defer(self) -> int:
        """The index that means silence."""
        return self.n_actions

    @property
    def planes(self) -> Advice:
        """The advice as [plane, h, s]; a plain policy has one plane.

        Plane k · M + m is that of k pieces left and level m of M.
        """
        return self.advice.reshape(-1, *self.advice.shape[-2:])

    @property
    def budget(self) -> int | None:
        """The pieces of advice at the start of an episode; None without a hard budget."""
        is_hard = self.advice.ndim > 2 + (self.levels is not None)
        return len(self.advice) - 1 if is_hard else None

    def left_after(self, spent: int) -> int | None:
        """Return ``pieces_left`` as ``at`` and ``draw`` take it: None for a plain policy.

        Parameters
        ----------
        spent
            Pieces of advice given so far in the episode, possibly more than the budget.
        """
        return None if self.budget is None else max(self.budget - spent, 0)

    def plane_of(self, pieces_left: int | None, level: int | None = None) -> int:
        """Return the index into ``planes`` for a number of pieces left and a level of memory.

        Parameters
        ----------
        pieces_left
            From 0 to ``budget`` under a hard budget; else None.
        level
            From 0 up to ``levels`` if advice depends on the level; else it does not matter.
        """
        return self._left_plane(pieces_left) * (self.levels or 1) + self._level_plane(level)

    def _left_plane(self, pieces_left: int | None) -> int:
        if self.budget is None:
            if pieces_left is not None:
                raise CounselError("pieces_left is for a hard budget; leave it out for this policy")
            return 0
        if pieces_left is None:
            raise CounselError(
                f"the policy has a hard budget; give pieces_left, from 0 to {self.budget}"
            )
        return index_in("pieces_left", pieces_left, self.budget + 1)

    def _level_plane(self, level: int | None) -> int:
        if self.levels is None:
            return 0
        if level is None:
            raise CounselError(
                "the policy depends on the level of the person's memory; give level, from 0 to "
                f"{self.levels - 1}"
            )
        return index_in("level", level, self.levels)

    def check_fits(self, horizon: int, n_states: int, n_actions: int) -> None:
        """Raise unless the policy is for a problem of this size.

        Parameters
        ----------
        horizon, n_states, n_actions
            Sizes of the problem.
        """
        own = (*self.advice.shape[-2:], self.n_actions)
        if own != (horizon, n_states, n_actions):
            raise CounselError(
                f"the policy is for {own[0]} steps, {own[1]} states and {own[2]} actions; "
                f"the problem has {horizon}, {n_states} and {n_actions}"
            )

    def silent_where(self, mask_hs: Bools) -> "Policy":
        """Return the same policy, silent in the cells of a mask.

        Parameters
        ----------
        mask_hs
            Booleans [h, s]; for a policy with levels, [m, h, s] too.
        """
        advice = np.where(mask_hs, self.defer, self.advice).astype(np.int16)
        cell, lengths = self.random.cell, np.diff(self.random.indptr)
        keep = ~np.asarray(mask_hs).reshape(-1)[cell % np.size(mask_hs)]
        entry = np.repeat(keep, lengths)
        random = RandomCells(
            cell[keep],
            np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths[keep]))),
            self.random.advice[entry],
            self.random.probability[entry],
        )
        return Policy.trusted(advice, n_actions=self.n_actions, random=random, levels=self.levels)

    def probabilities(self) -> Floats:
        """Return the distribution over advice in each cell, silence last: [h, s, advice].

        Under a hard budget [k, h, s, advice]; ``levels`` come before h.
        """
        table = np.zeros((self.advice.size, self.n_actions + 1))
        table[np.arange(self.advice.size), self.advice.reshape(-1)] = 1.0
        table[self.random.cell] = 0.0
        table[self.random.cell_of_entry, self.random.advice] = self.random.probability
        return table.reshape(*self.advice.shape, -1)

    def at(
        self, step: int, state: int, pieces_left: int | None = None, level: int | None = None
    ) -> dict[int, float]:
        """Return each possible advice of one cell with its probability.

        Parameters
        ----------
        step, state
            The cell, counted from 0.
        pieces_left
            Under a hard budget: from 0 to ``budget``.
        level
            Where advice depends on it: the level of the person's memory.
        """
        plane = self.plane_of(pieces_left, level)
        _, H, S = self.planes.shape
        step, state = index_in("step", step, H), index_in("state", state, S)
        cell = (plane * H + step) * S + state
        i = int(np.searchsorted(self.random.cell, cell))
        if i == self.random.cell.size or self.random.cell[i] != cell:
            return {int(self.planes[plane, step, state]): 1.0}
        part = slice(self.random.indptr[i], self.random.indptr[i + 1])
        pairs = zip(self.random.advice[part], self.random.probability[part], strict=True)
        return {int(advice): float(probability) for advice, probability in pairs}

    def draw(
        self,
        step: int,
        state: int,
        rng: np.random.Generator | None,
        pieces_left: int | None = None,
        level: int | None = None,
    ) -> int:
        """Return the advice of one cell, drawn if the cell is random.

        Parameters
        ----------
        step, state
            As in ``at``.
        rng
            The random generator; may be None if the cell is not random.
        pieces_left, level
            As in ``at``.
        """
        chances = self.at(step, state, pieces_left, level)
        if len(chances) == 1:
            return next(iter(chances))
        if rng is None:
            raise CounselError(f"advice{place('hs', (step, state))} is random; give rng")
        return int(rng.choice(list(chances), p=list(chances.values())))

    def __repr__(self) -> str:
        H, S = self.advice.shape[-2:]
        limit = "" if self.budget is None else f", at most {self.budget} pieces"
        limit += "" if self.levels is None else f", {self.levels} levels"
        share = float((self.advice != self.defer).mean())
        return (
            f"Policy({H} steps, {S} states{limit}, advises in {share:.0%} of cells, "
            f"{self.random.cell.size} random)"
        )


def _axes(axes: int, levels: int | None) -> str:
    """Return the letters of the axes of a table of advice."""
    return ("khs" if levels is None else "kmhs")[-axes:]


def _read_advice(advice: ArrayLike, n_actions: int, levels: int | None) -> Advice:
    """Return a table of advice as two-byte integers."""
    table, least = rectangular("advice", advice), 2 + (levels is not None)
    fits = table.ndim in (least, least + 1) and 0 not in table.shape and table.dtype.kind in "iu"
    if not fits or (levels is not None and table.shape[-3] != levels):
        plain, hard = (", ".join(_axes(least + more, levels)) for more in (0, 1))
        count = "" if levels is None else f" with {levels} levels m"
        raise CounselError(
            f"advice is {table.dtype} of shape {table.shape}; "
            f"expected whole numbers [{plain}] or [{hard}]{count}"
        )
    axes = _axes(table.ndim, levels)
    where = first((table < 0) | (table > n_actions))
    if where is not None:
        raise CounselError(
            f"advice{place(axes, where)} is {table[where]}; "
            f"advice runs from 0 to {n_actions - 1}, and {n_actions} is silence"
        )
    where = first(table[:1] != n_actions) if table.ndim > least else None
    if where is not None:
        raise CounselError(
            f"advice{place(axes, where)} is not silent with no piece left; give {n_actions} there"
        )
    return sealed(table.astype(np.int16, copy=False))
