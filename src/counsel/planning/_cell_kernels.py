"""Compiled plans over cells, a step and a state each, for callers that plan repeatedly.

Cells are numbered through all steps, so that the successors of a cell have larger numbers; the last
number means after the end. The rules are those of ``choose`` in ``_backward_kernels.py``.
"""

from typing import NamedTuple

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel._jit import as_int64, inlined, kernel
from counsel.model._kernels import layer_of
from counsel.planning._choice_kernels import TIE, Aim, break_tie
from counsel.planning._gain_kernels import gain


class CellWorld(NamedTuple):
    """A world and a person's own policy over cells c.

    The successors of action a in cell c are entries ``first[c·A + a]`` to ``first[c·A + a + 1]`` of
    ``cell`` and ``probability``; its predecessors are entries ``first_before[c]`` to
    ``first_before[c + 1]`` of ``before``. ``start`` is the probability of each cell at the first
    step, and ``cost_ca`` what each advice costs.
    """

    own_ca: Floats
    allowed_ca: Bools
    reward_ca: Floats
    cost_ca: Floats
    first: Ints
    cell: Ints
    probability: Floats
    first_before: Ints
    before: Ints
    start: Floats


@inlined
def look_ahead(
    world: CellWorld, c: int, V_c2: Floats, weights: tuple[float, float], q_2a: Floats
) -> tuple[float, float]:
    """Fill both values of each action; return the two values of silence."""
    A = world.own_ca.shape[1]
    alone0, alone1 = 0.0, 0.0
    for a in range(A):
        q_2a[0, a] = q_2a[1, a] = 0.0
        if world.allowed_ca[c, a]:
            e0, e1 = weights[0] * world.reward_ca[c, a], weights[1] * world.reward_ca[c, a]
            for j in range(world.first[c * A + a], world.first[c * A + a + 1]):
                t, p = world.cell[j], world.probability[j]
                e0 += p * V_c2[t, 0]
                e1 += p * V_c2[t, 1]
            q_2a[0, a], q_2a[1, a] = e0, e1
            alone0 += world.own_ca[c, a] * e0
            alone1 += world.own_ca[c, a] * e1
    return alone0, alone1


class CellPlan(NamedTuple):
    """A plan over cells for lifts that change, and its working space.

    ``pull_ca`` are the lifts to plan for, NaN for advice that is left out. ``planned_ca``, ``V_c2``
    and ``advice_hs`` are the lifts, values and advice of the last plan. A cell that is ``stale_c``
    is planned again even if its lifts are the same.
    """

    world: CellWorld
    aim: Aim
    pull_ca: Floats
    planned_ca: Floats
    stale_c: Bools
    V_c2: Floats
    q_2a: Floats
    step_c: Ints
    state_c: Ints
    advice_hs: Ints


@kernel
def replan_cells(plan: CellPlan) -> bool:
    """Plan cells whose lifts have changed, or the values of whose successors; then none is stale.

    All other cells would be planned as before. Returns whether any advice has changed.
    """
    world, aim, q_2a, stale_c = plan.world, plan.aim, plan.q_2a, plan.stale_c
    pull_ca, planned_ca, V_c2 = plan.pull_ca, plan.planned_ca, plan.V_c2
    step_c, state_c, advice_hs = plan.step_c, plan.state_c, plan.advice_hs
    C, A = world.own_ca.shape
    near, prices = TIE * (A + 1) * aim.most0, aim.price0_h.size
    changed = False
    V_c2[C, 0] = V_c2[C, 1] = 0.0
    for c in range(C - 1, -1, -1):
        for a in range(A):
            pull, planned = pull_ca[c, a], planned_ca[c, a]
            if pull != planned and (pull == pull or planned == planned):
                planned_ca[c, a] = pull
                stale_c[c] = True
        if not stale_c[c]:
            continue
        stale_c[c] = False
        alone0, alone1 = look_ahead(world, c, V_c2, (aim.weight0, aim.weight1), q_2a)
        price = aim.price0_h[layer_of(prices, step_c[c])]
        best, top, second, next_best = A, 0.0, 0.0, -np.inf
        for a in range(A):
            pull = pull_ca[c, a]
            if pull == pull:
                net = gain(world.own_ca, c, a, pull, q_2a, 0, alone0) - price * world.cost_ca[c, a]
                if net > top:
                    next_best, best, top = max(next_best, top), a, net
                else:
                    next_best = max(next_best, net)
        if next_best >= top - near:
            alone = (alone0, alone1)
            best, top, second = break_tie(
                world.own_ca, pull_ca, world.cost_ca, c, q_2a, alone, aim, price, False
            )
        elif best < A:
            second = gain(world.own_ca, c, best, pull_ca[c, best], q_2a, 1, alone1)
            second -= aim.price1 * world.cost_ca[c, best]
        if advice_hs[step_c[c], state_c[c]] != best:
            advice_hs[step_c[c], state_c[c]] = best
            changed = True
        if V_c2[c, 0] != alone0 + top or V_c2[c, 1] != alone1 + second:
            V_c2[c, 0], V_c2[c, 1] = alone0 + top, alone1 + second
            for j in range(world.first_before[c], world.first_before[c + 1]):
                stale_c[world.before[j]] = True
    return changed


@kernel
def value_cells(plan: CellPlan, lift_ca: Floats, amount_ca: Floats) -> tuple[float, float]:
    """Return the expected reward of the planned advice, for other lifts, and its expected amount.

    The amount of an advice is 1 to count pieces, or its cost.
    """
    world, q_2a = plan.world, plan.q_2a
    C, A = world.own_ca.shape
    V_c2 = np.zeros((C + 1, 2))
    reward, amount = 0.0, 0.0
    for c in range(C - 1, -1, -1):
        alone0, alone1 = look_ahead(world, c, V_c2, (1.0, 0.0), q_2a)
        b = as_int64(plan.advice_hs[plan.step_c[c], plan.state_c[c]])
        if b < A:
            lift = lift_ca[c, b]
            alone0 += gain(world.own_ca, c, b, lift, q_2a, 0, alone0)
            alone1 += gain(world.own_ca, c, b, lift, q_2a, 1, alone1) + amount_ca[c, b]
        V_c2[c, 0], V_c2[c, 1] = alone0, alone1
        reward += world.start[c] * alone0
        amount += world.start[c] * alone1
    return reward, amount
