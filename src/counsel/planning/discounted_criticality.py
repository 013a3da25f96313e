"""Criticality in work without end: walk along the penalty from policy to policy.

A stationary policy earns R − βC in each cell, with R its expected discounted reward and C its cost
of advice (their biases where the average per step counts): two solutions of linear equations. The
policy that is best just above a penalty stays best until some other choice k in some cell overtakes
its own choice,

    β' = (gain_R − gain_R of k) / (cost + gain_C − (cost + gain_C) of k),

the least such number above β, where gain_R and gain_C are the gains of choices over silence in
reward and in later cost. At β' the best plan with the least cost is best just above β'. The
criticality of a cell is the end of the last interval of penalties whose policy advises there.
"""

import numpy as np

from counsel._arrays import Floats
from counsel.model.advice_costs import cost_table
from counsel.model.problem import AdviceProblem
from counsel.planning.average import AveragePlanner
from counsel.planning.discounted import DiscountedPlanner
from counsel.planning.gains import gains, level_gains

MOST_CELLS = 1000
"""With more cells (a state, on a level of a memory) a walk takes too long."""

NUDGE = 1e-11
"""The share of a penalty, or of the largest reward, to step on if rounding hides that another
choice has overtaken; steps that change nothing double."""


def exact_criticality(planner: DiscountedPlanner, most: int) -> Floats | None:
    """Return the criticality [1, s], with a memory [m, 1, s]; None if it has too many kinks."""
    problem = planner.problem
    X = problem.n_levels * problem.n_states
    if X > MOST_CELLS or most < X:
        return None
    unpaid = AdviceProblem(problem.mdp.paying(np.zeros(problem.n_states)), problem.human)
    cost_sa = np.broadcast_to(cost_table(problem.cost)[0], (problem.n_states, problem.n_actions))
    permitted_sa = planner.constraints.permitted[0]
    required_s = planner.constraints.required[0]
    critical_x, penalty, before = np.zeros(X), 0.0, np.zeros(0, dtype=np.int16)
    kept, steps = before, 0
    for _ in range(most // X):
        planner.penalise(penalty)
        if isinstance(planner, AveragePlanner) and planner.is_changed:
            return None  # a choice that leads to the best class may itself be overtaken at once
        advice_x = planner.advice.reshape(-1)
        if np.array_equal(advice_x, before):  # rounding hid what has overtaken
            steps = steps + 1 if np.array_equal(advice_x, kept) else 0
            penalty += 2.0**steps * NUDGE * max(penalty, problem.mdp.reward_size or 1.0)
            before, kept = before[:0], before
            continue
        before = advice_x
        earned, spent = (planner.parts(*terms) for terms in ((1.0, 0.0), (0.0, -1.0)))
        gain_xk = _with_silence(_gains(problem, earned))
        spend_xk = _with_silence(np.tile(cost_sa, (problem.n_levels, 1)) + _gains(unpaid, spent))
        own = (np.arange(X), advice_x)
        more_x = spend_xk[own][:, None] - spend_xk  # what the own choice spends more
        lead_x = gain_xk[own][:, None] - gain_xk  # and earns more
        possible = np.tile(np.hstack((permitted_sa, ~required_s[:, None])), (problem.n_levels, 1))
        size = np.abs(spend_xk[own]).max() + 1.0
        overtakes = possible & (more_x > 1e-11 * size)
        crossing = np.where(overtakes, lead_x / np.where(overtakes, more_x, 1.0), np.inf)
        following = max(float(crossing.min(initial=np.inf)), penalty)
        critical_x[advice_x < problem.defer] = following
        if following == np.inf:
            shape = planner.advice.shape
            return critical_x.reshape(shape)
        penalty = following
    return None


def _with_silence(table_xa: Floats) -> Floats:
    """Append silence, which gains and spends nothing."""
    return np.hstack((table_xa, np.zeros((len(table_xa), 1))))


def _gains(problem: AdviceProblem, values_ms: Floats) -> Floats:
    """Return the gain over silence of each advice [m · s, a], for values of every cell."""
    rows_mhs = np.repeat(values_ms[:, None], 2, axis=1)
    if problem.memory is None:
        tables = [gains(problem, rows_mhs[0])[1][0]]
    else:
        tables = [level_gains(problem, rows_mhs, m)[1][0] for m in range(problem.n_levels)]
    gain_xa: Floats = np.concatenate(tables)
    return gain_xa
