"""Criticality: the largest penalty at which advice still pays, for each cell.

The criticality of (h, s) is the supremum of the penalties β at which advising there still beats
silence, with the following steps planned at the same β. For a person with a memory every level m
has its own, (m, h, s). It ranks cells by how much advice matters,
also cells that no optimal policy visits. It is a supremum and not a threshold: a cell may be silent
at a low penalty, because advice follows later, and advised at a higher penalty.

For every cell V_β(h, s) is convex and piecewise linear in β. These functions are carried backwards
exactly: sums over next states, then the upper envelope of silence and of each advice minus β. If
they have too many kinks, the criticality is bracketed on a grid of penalties instead: the cell is
advised at ``lower`` and silent at every grid penalty from ``upper`` on.

In work without end the functions come from a walk along the penalty
(``discounted_criticality.py``).
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import Bools, Floats, layers, one_type, sealed, whole
from counsel._jit import cores, run_jobs, split
from counsel.model._kernels import layer_of
from counsel.model.advice_costs import given_cost
from counsel.model.problem import AdviceProblem
from counsel.planning._backward_kernels import Model, rows_of
from counsel.planning._level_kernels import Levels
from counsel.planning._piecewise_kernels import Functions, expect_functions, step_back
from counsel.planning.backward import Planner
from counsel.planning.constraints import Constraints, documented
from counsel.planning.discounted import DiscountedPlanner
from counsel.planning.discounted_criticality import exact_criticality
from counsel.planning.level_planner import LevelPlanner
from counsel.planning.planners import AnyPlanner, planner_for
from counsel.planning.relative_planner import RelativePlanner

WORTH_THREADS = 50_000
"""With fewer kinks in a step threads cost more than they save."""

WORTH_SHARING = 3
"""Functions of rows are computed first if entries are used at least this often on average.

Elsewhere they are computed state by state, which takes less memory.
"""

MOST_KINKS = 4_000_000
"""A grid is used if the functions of a step have more kinks in total."""


MOST_DOUBLED = 60
"""How often the largest penalty of a grid is doubled where values are relative."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Criticality:
    """The largest penalty at which advice still pays, for each cell: the result of ``criticality``.

    Attributes
    ----------
    lower, upper
        Bounds [h, s], with a memory [m, h, s], equal if ``exact``. Otherwise they come from a grid
        of penalties: the cell is advised at ``lower`` and silent at each grid penalty from
        ``upper`` on. 0 where advice never pays, infinite where advice is required.
    exact
        Whether the bounds are equal.

    Examples
    --------
    If memory is short, a grid of penalties brackets the criticality:

    >>> import counsel
    >>> problem = counsel.make("night-shift")
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
        H, S = self.lower.shape[-2:]
        return f"Criticality({H} steps, {S} states, {'exact' if self.exact else 'bracketed'})"


@documented
def criticality(  # noqa: PLR0913 (the masks of solve, and two sizes)
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
    max_kinks
        The largest number of kinks of all functions of one step: it limits the memory of the exact
        method.
    grid
        The number of penalties to try if the exact method needs more kinks.

    Returns
    -------
    Criticality
        Its ``lower`` and ``upper`` bounds [h, s]; for a person with a memory [m, h, s].

    Raises
    ------
    CounselError
        If a mask, ``max_kinks`` or ``grid`` is invalid.

    Examples
    --------
    The cell where advice stays worthwhile up to the highest penalty:

    >>> import numpy as np
    >>> import counsel
    >>> problem = counsel.make("night-shift")
    >>> penalty = counsel.criticality(problem).lower
    >>> step, state = np.unravel_index(penalty.argmax(), penalty.shape)
    >>> print(f"step {step}, {problem.mdp.state_name(state)}: {penalty.max():.3f}")
    step 7, failing: 0.454
    """
    constraints = Constraints.read(
        problem, forbidden=forbidden, required=required, allow_reverse=allow_reverse
    )
    most = whole("max_kinks", max_kinks, least=0)
    planner = planner_for(problem, constraints)
    return criticality_from(planner, 0, most, whole("grid", grid, least=1))


def criticality_from(planner: AnyPlanner, step: int, max_kinks: int, grid: int) -> Criticality:
    """Return the criticality of the cells from ``step`` on; that of earlier cells is 0."""
    if isinstance(planner, DiscountedPlanner):
        exact = exact_criticality(planner, max_kinks)
    else:
        exact = _exact(planner, max_kinks, step)
    if exact is not None:
        return Criticality(lower=sealed(exact), upper=exact, exact=True)
    lower, upper = _on_grid(planner, grid)
    return Criticality(lower=sealed(lower), upper=sealed(upper), exact=False)


def _exact(planner: Planner | LevelPlanner, most: int, from_step: int) -> Floats | None:
    """Carry the functions V_β(h, s) backwards; None if they have more than ``most`` kinks."""
    levels, by_row_l = planner.prepared.levels, _rows_first(planner.part.model)
    model, M = _on_levels(planner.part.model, levels), planner.problem.n_levels
    H, X = planner.problem.horizon, M * planner.part.start.size
    if most < X:
        return None
    critical_hx, limits = np.zeros((H, X)), (planner.problem.mdp.reward_size, most)
    functions = Functions(np.arange(X + 1), *np.zeros((3, X)))
    no_functions, D = Functions(np.arange(0), *np.zeros((3, 0))), levels.indptr.size - 1
    for h in reversed(range(from_step, H)):
        threads = cores() if functions.at.size >= WORTH_THREADS else 1
        expected: Functions | None = no_functions
        if by_row_l[layer_of(by_row_l.size, h)]:
            here, R = np.arange(*rows_of(model, h), dtype=np.int64), int(model.first_row_l[-1])
            rows = (np.arange(D)[:, None] * R + here).reshape(-1)
            parts = [rows[slice(*run)] for run in split(0, rows.size, threads)]
            jobs = [partial(expect_functions, model, part, functions, limits) for part in parts]
            expected = _joined(run_jobs(threads, jobs), most)
        if expected is None:
            return None
        arguments = (functions, expected, limits, critical_hx[h])
        runs = split(0, X, threads)
        jobs = [partial(step_back, model, levels, h, run, *arguments) for run in runs]
        back = run_jobs(threads, jobs)
        joined = _joined(back, most)
        if joined is None:
            return None
        functions = joined
    critical_mhs = critical_hx.reshape(H, M, -1).swapaxes(0, 1)
    if planner.part.kind_s is not None:
        critical_mhs = critical_mhs.take(planner.part.kind_s, axis=2, mode="clip")
    return np.ascontiguousarray(critical_mhs if planner.problem.memory else critical_mhs[0])


def _on_levels(model: Model, levels: Levels) -> Model:
    """Return the model with its rows to the states of every level, for each row of levels.

    Row i with row d of levels has the number d · R + i, where R is the number of rows; state s of
    level m is m · S + s.
    """
    S = model.policy_lsa.shape[1]
    if levels.indptr.size == 2:  # without a memory
        return model
    lengths, parts = np.diff(model.indptr), []
    for d in range(levels.indptr.size - 1):
        mix = slice(levels.indptr[d], levels.indptr[d + 1])
        level, weight = levels.level[mix], levels.weight[mix]
        next_state = (level[:, None] * S + model.next_state).T.reshape(-1)
        probability = (weight[:, None] * model.probability).T.reshape(-1)
        parts.append((lengths * level.size, next_state, probability))
    counts, next_states, probabilities = (np.concatenate(part) for part in zip(*parts, strict=True))
    indptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    kernel = (indptr, next_states.astype(model.next_state.dtype), probabilities)
    return one_type(model._replace(indptr=kernel[0], next_state=kernel[1], probability=kernel[2]))


def _rows_first(model: Model) -> Bools:
    """Return for each layer whether its entries are used so often that rows are computed first."""
    lengths, first_row_l = np.append(np.diff(model.indptr), 0), model.first_row_l
    stored = model.indptr[first_row_l[1:]] - model.indptr[first_row_l[:-1]]
    used = np.array([lengths[row_sa].sum() for row_sa in model.row_lsa])
    by_row: Bools = used >= WORTH_SHARING * np.maximum(stored, 1)
    return by_row


def _joined(parts: list[Functions], most: int) -> Functions | None:
    """Return functions computed in runs, one after the other; None if they have too many kinks."""
    if sum(part.at.size for part in parts) > most or not all(part.begin.size for part in parts):
        return None
    if len(parts) == 1:
        return parts[0]
    offset, begins = 0, [parts[0].begin[:1]]
    for part in parts:
        begins.append(part.begin[1:] + offset)
        offset += part.at.size
    points = (np.concatenate(arrays) for arrays in zip(*(part[1:] for part in parts), strict=True))
    return Functions(np.concatenate(begins), *points)


def _on_grid(planner: AnyPlanner, points: int) -> tuple[Floats, Floats]:
    """Bracket the criticality on equal steps of the penalty up to where silence is always best.

    Above the largest one-step gain over the person's own value no advice pays: the value of silence
    then satisfies the optimality equation.
    """
    step = _largest_gain(planner) / points
    lower, upper = np.zeros(planner.advice.shape), np.zeros(planner.advice.shape)
    for i in range(points + 1):
        planner.penalise(i * step)
        advised = planner.advice < planner.problem.defer
        lower[advised] = i * step
        upper[advised] = (i + 1) * step if i < points else np.inf
    required = np.broadcast_to(planner.constraints.required, lower.shape)
    if required.any():  # advice that avoids a later cell that requires advice may always pay
        upper[:] = np.inf
    lower[required] = np.inf
    return lower, upper


def _largest_gain(planner: AnyPlanner) -> float:
    """Return a penalty at which only required advice is given, within a factor of two.

    No piece of advice can gain more than the range of the reward of an episode. Advice that costs
    nothing is given at every penalty.
    """
    problem = planner.problem
    optional = ~np.broadcast_to(planner.constraints.required, (problem.n_steps, problem.n_states))

    def advises(penalty: float) -> bool:
        planner.penalise(penalty)
        return bool(((planner.advice < problem.defer) & optional).any())

    if not advises(0.0):
        return 0.0
    cost = given_cost(problem.cost)
    least_cost = float(cost[cost > 0.0].min(initial=1.0))
    steps = planner.prepared.horizon
    penalty = max(float(np.ptp(layers(problem.mdp.reward))), 1e-300) * steps / least_cost
    is_relative = isinstance(planner, RelativePlanner)
    for _ in range(MOST_DOUBLED if is_relative else 0):  # no number bounds these beforehand
        if not advises(penalty):
            break
        penalty *= 2
    while not advises(penalty / 2):
        penalty /= 2
    return penalty
