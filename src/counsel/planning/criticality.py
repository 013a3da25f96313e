"""Criticality: how much advice is worth in each cell, as the penalty it can bear.

The criticality of (h, s) is the supremum of the penalties β at which advising there still beats
silence, with what follows planned at the same β. It ranks cells by where advice matters most, also
cells that no optimal policy reaches. It is a supremum and not a threshold: a cell may be silent at
a low penalty, because other help comes later, and advised at a higher one.

For every cell V_β(h, s) is convex and piecewise linear in β. Its pieces are carried backwards
exactly: sums over next states, then the upper envelope of silence and of each advice less β. Where
there are too many pieces the criticality is bracketed on a grid of penalties instead, and says so:
the cell is advised at ``lower`` and silent at every grid penalty from ``upper`` on.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import Floats, by_step, layers, sealed, whole
from counsel.model.problem import AdviceProblem
from counsel.planning._piecewise_kernels import step_pieces
from counsel.planning.advice_rules import Rules
from counsel.planning.backward import Planner

MOST_KINKS = 4_000_000
"""Kinks of all functions of a step beyond which a grid is used."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Criticality:
    """The largest penalty at which advice still pays, for each cell: what ``criticality`` returns.

    Attributes
    ----------
    lower, upper
        Bounds [h, s], the same where ``exact``. Else they are what a grid of penalties shows:
        advised at ``lower``, silent at each penalty of the grid from ``upper`` on. 0 where advice
        never pays, infinite where something must be said.
    exact
        Whether the two are the same.

    Examples
    --------
    Where memory is short a grid of penalties brackets it:

    >>> import counsel
    >>> from counsel.worlds import make
    >>> problem = make("night-shift")
    >>> exact, rough = counsel.criticality(problem), counsel.criticality(problem, max_kinks=0)
    >>> exact, rough
    (Criticality(12 steps, 4 states, exact), Criticality(12 steps, 4 states, bracketed))
    >>> [round(float(x), 3) for x in (rough.lower[6, 2], exact.lower[6, 2], rough.upper[6, 2])]
    [0.436, 0.447, 0.45]
    """

    lower: Floats
    upper: Floats
    exact: bool

    def __repr__(self) -> str:
        H, S = self.lower.shape
        return f"Criticality({H} steps, {S} states, {'exact' if self.exact else 'bracketed'})"


def criticality(  # noqa: PLR0913 (the masks of solve, and the two sizes)
    problem: AdviceProblem,
    *,
    forbidden: ArrayLike | None = None,
    required: ArrayLike | None = None,
    allow_reverse: bool = True,
    max_kinks: int = MOST_KINKS,
    grid: int = 64,
) -> Criticality:
    """Return the largest penalty at which advice still pays, for each step and state.

    Parameters
    ----------
    problem
        The world and the person.
    forbidden
        Booleans [s], [h, s] or [h, s, a]: where nothing, or that advice, may be said.
    required
        Booleans [s] or [h, s]: where something must be said.
    allow_reverse
        Whether advice that repels may be used where it leads the person to something better.
    max_kinks
        How many kinks the functions of one step may have in all: limits the memory of the exact
        method.
    grid
        How many penalties are tried where the exact method needs more.

    Returns
    -------
    Criticality
        Its ``lower`` and ``upper`` bounds [h, s].

    Raises
    ------
    CounselError
        When a mask makes no sense, or ``max_kinks`` or ``grid`` is no such number.

    Examples
    --------
    Where advice can bear the highest price:

    >>> import numpy as np
    >>> import counsel
    >>> from counsel.worlds import make
    >>> problem = make("night-shift")
    >>> bears = counsel.criticality(problem).lower
    >>> step, state = np.unravel_index(bears.argmax(), bears.shape)
    >>> print(f"step {step}, {problem.mdp.state_name(state)}: {bears.max():.3f}")
    step 7, failing: 0.454
    """
    rules = Rules.read(problem, forbidden=forbidden, required=required, allow_reverse=allow_reverse)
    most = whole("max_kinks", max_kinks, least=0)
    points = whole("grid", grid, least=1)
    return rank(problem, rules, max_kinks=most, grid=points)


def rank(
    problem: AdviceProblem,
    rules: Rules,
    *,
    max_kinks: int = MOST_KINKS,
    grid: int = 64,
    from_step: int = 0,
) -> Criticality:
    """Return the criticality of the cells from ``from_step`` on; earlier ones are left at 0."""
    planner = Planner(problem, rules)
    exact = _by_pieces(planner, max_kinks, from_step)
    if exact is not None:
        return Criticality(lower=sealed(exact), upper=exact, exact=True)
    lower, upper = _on_grid(planner, grid)
    return Criticality(lower=sealed(lower), upper=sealed(upper), exact=False)


def _by_pieces(planner: Planner, most: int, from_step: int) -> Floats | None:
    """Carry the pieces of V_β(h, s) backwards; None when there are more than ``most``."""
    H, S = planner.advice.shape
    model = planner.model
    if most < S:
        return None
    critical_hs = np.zeros((H, S))
    unit = planner.problem.mdp.reward_size
    begin, last = np.arange(S + 1), np.zeros(S)
    at, value = np.zeros(S), np.zeros(S)
    for h in reversed(range(from_step, H)):
        new_begin, new_last = np.empty(S + 1, dtype=np.int64), np.empty(S)
        at, value = step_pieces(
            by_step(model.row_lsa, H)[h],
            model.indptr,
            model.next_state,
            model.probability,
            by_step(model.reward_lsa, H)[h],
            by_step(model.policy_lsa, H)[h],
            by_step(model.lift_lsa, H)[h],
            by_step(model.speak_lsa, H)[h],
            by_step(model.must_ls, H)[h],
            begin,
            at,
            value,
            last,
            unit,
            most,
            new_begin,
            new_last,
            critical_hs[h],
        )
        if not at.size:
            return None
        begin, last = new_begin, new_last
    return critical_hs


def _on_grid(planner: Planner, points: int) -> tuple[Floats, Floats]:
    """Bracket on equal steps of the penalty up to where silence is best everywhere.

    Above the largest one-step gain over the person's own value no advice pays: the value of never
    advising then satisfies the optimality equation.
    """
    model, silence = planner.model, planner.problem.n_actions
    H, S = planner.advice.shape
    top = _largest_gain(planner)
    lower, upper = np.zeros((H, S)), np.zeros((H, S))
    step = top / points
    for i in range(points + 1):
        planner.penalise(i * step)
        advised = planner.advice < silence
        lower[advised] = i * step
        upper[advised] = (i + 1) * step if i < points else np.inf
    must = np.broadcast_to(model.must_ls, (H, S))
    if must.any():  # advice that spares a later must-say cell may pay at any penalty
        upper[:] = np.inf
    lower[must] = np.inf
    return lower, upper


def _largest_gain(planner: Planner) -> float:
    """Return a penalty at which nothing is said that need not be, within a factor of two.

    No single piece can gain more than the range of what an episode pays.
    """
    model, silence = planner.model, planner.problem.n_actions
    free = ~np.broadcast_to(model.must_ls, planner.advice.shape)
    planner.penalise(0.0)
    if not bool(((planner.advice < silence) & free).any()):
        return 0.0
    reward = layers(planner.problem.mdp.reward)
    penalty = max(float(np.ptp(reward)), 1e-300) * planner.problem.horizon
    while True:
        planner.penalise(penalty / 2)
        if bool(((planner.advice < silence) & free).any()):
            return penalty
        penalty /= 2
