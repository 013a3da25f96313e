"""The extended linear programme: the best plan within a budget in the best plausible world.

Unknowns are the flows z_h(s, b, t), the probability to be in s at step h, advise b and come to t,
and x_h(s, b) = Σ_t z_h(s, b, t). With intervals [low, high] of each p_h(t | s, b) and a budget D,

    max   Σ r_h(s, b) x_h(s, b) + Σ end_h(t) z_h(s, b, t)
    with  Σ_b x_h(s, b) = Σ_{s', b'} z_{h−1}(s', b', s)      (at h = 0: the chance to begin in s)
          low · x_h(s, b) ≤ z_h(s, b, t) ≤ high · x_h(s, b)
          Σ_{b ≠ silence} c_h(s, b) x_h(s, b) ≤ D,   z, x ≥ 0

Flows end in states where nothing more can happen; ``end`` is what the steps left pay there. Then
π_h(b | s) = x_h(s, b) / Σ_b x_h(s, b), and in the world p̃_h(t | s, b) = z_h(s, b, t) / x_h(s, b)
that policy is worth the optimum. Rows whose bound says nothing (high = 1, low = 0) are left out.

The sums x make the rows of the intervals two entries each, instead of as many as states can follow.
The simplex method returns a vertex: the budget then makes π random in at most one cell. Each
programme is solved afresh, so which of several best vertices comes out does not depend on the past.
"""

from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import highspy
import numpy as np
import scipy.sparse as sp

from counsel._arrays import Floats, Ints
from counsel.errors import CounselError

NOTHING = 1e-9  # flows up to this are rounding


class Flows(NamedTuple):
    """The rows (h, s, b) that can occur, and each flow out of them; rewards in any one unit.

    Row g is ``step[g]``, ``state[g]``, ``advice[g]``, which pays ``reward[g]`` and costs
    ``cost[g]``; entries ``indptr[g]`` up to ``indptr[g + 1]`` of the other arrays are its flows: to
    ``follows``, with an interval from ``low`` to ``high``. ``ends`` is what comes after where the
    flow ends, NaN where it goes on.
    """

    step: Ints
    state: Ints
    advice: Ints
    reward: Floats
    cost: Floats
    indptr: Ints
    follows: Ints
    low: Floats
    high: Floats
    ends: Floats


class ExtendedSolution(NamedTuple):
    """The optimum of the programme: its value, x of each row and z of each flow."""

    value: float
    advice_count: float
    advice_cost: float
    price: float
    x: Floats
    z: Floats


def solve_extended(
    flows: Flows, start_s: Floats, *, n_states: int, defer: int, budget: float | None
) -> ExtendedSolution:
    """Return the best plan of the best world within the intervals; ``defer`` costs nothing."""
    if flows.step.size == 0:
        return ExtendedSolution(0.0, 0.0, 0.0, 0.0, np.zeros(0), np.zeros(0))
    model, rows = _model(flows, start_s, n_states, defer, budget)
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.silent()
    solver.setOptionValue("solver", "simplex")
    solver.passModel(model)
    _run(solver)
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        status = solver.modelStatusToString(solver.getModelStatus()).lower()
        raise CounselError(
            f"the linear programme of {flows.follows.size:,} flows with budget {budget} could not "
            f"be solved ({status}); rewards or budget may be of extreme size"
        )
    solution = solver.getSolution()
    column, G = np.maximum(np.asarray(solution.col_value), 0.0), flows.step.size
    x, value = column[:G], float(solver.getObjectiveValue())
    price = 0.0 if budget is None else abs(float(solution.row_dual[rows - 1]))
    count = float(x[flows.advice != defer].sum())
    cost = float((flows.cost * x).sum())
    return ExtendedSolution(value, count, cost, price, x, column[G:])


def _run(solver: Any) -> None:  # noqa: ANN401 (highspy ships no types)
    """Solve; Ctrl-C is heard meanwhile and stops the solver."""
    solver.HandleUserInterrupt = True  # without it cancelSolve does nothing
    with ThreadPoolExecutor(1) as aside:
        solving = aside.submit(solver.run)
        try:
            while not solving.done():
                wait([solving], timeout=0.2)
        except BaseException:
            solver.cancelSolve()
            raise
        solving.result()


def _model(
    flows: Flows, start_s: Floats, n_states: int, defer: int, budget: float | None
) -> tuple[Any, int]:
    """Return the programme for HiGHS and how many rows it has; the budget is the last."""
    G, Z = flows.step.size, flows.follows.size
    of = np.repeat(np.arange(G), np.diff(flows.indptr))
    flow = G + np.arange(Z)
    cell = flows.step * n_states + flows.state
    cells, place = np.unique(cell, return_inverse=True)
    onward = np.isnan(flows.ends)
    to = np.searchsorted(cells, (flows.step[of] + 1) * n_states + flows.follows)
    upper, lower = np.flatnonzero(flows.high < 1.0), np.flatnonzero(flows.low > 0.0)
    spoken = np.flatnonzero(flows.advice != defer)
    C, U, L = cells.size, upper.size, lower.size
    at = np.cumsum([0, C, G, U, L])
    entries = [
        (place, np.arange(G), np.ones(G)),
        (to[onward], flow[onward], np.full(int(onward.sum()), -1.0)),
        (at[1] + np.arange(G), np.arange(G), np.full(G, -1.0)),
        (at[1] + of, flow, np.ones(Z)),
        (at[2] + np.arange(U), flow[upper], np.ones(U)),
        (at[2] + np.arange(U), of[upper], -flows.high[upper]),
        (at[3] + np.arange(L), flow[lower], np.ones(L)),
        (at[3] + np.arange(L), of[lower], -flows.low[lower]),
    ]
    first = np.where(cells < n_states, start_s[cells % n_states], 0.0)
    row_low = np.concatenate((first, np.zeros(G), np.full(U, -np.inf), np.zeros(L)))
    row_high = np.concatenate((first, np.zeros(G), np.zeros(U), np.full(L, np.inf)))
    if budget is not None:
        entries.append((np.full(spoken.size, at[4]), spoken, flows.cost[spoken]))
        row_low, row_high = np.append(row_low, -np.inf), np.append(row_high, budget)
    row, column, value = (np.concatenate(part) for part in zip(*entries, strict=True))
    matrix = sp.csc_matrix((value, (row, column)), shape=(row_low.size, G + Z))
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = matrix.shape
    model.sense_ = highspy.ObjSense.kMaximize
    model.col_cost_ = np.concatenate((flows.reward, np.where(onward, 0.0, flows.ends)))
    model.col_lower_, model.col_upper_ = np.zeros(G + Z), np.full(G + Z, highspy.kHighsInf)
    model.row_lower_, model.row_upper_ = row_low, row_high
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = matrix.indptr
    model.a_matrix_.index_ = matrix.indices
    model.a_matrix_.value_ = matrix.data
    return model, row_low.size
