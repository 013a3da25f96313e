"""Costs of advice: read and checked as tables, or by the label of the advice.

Logs and the command line give costs by label.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import Floats, brief, first, layers, not_negative, numbers, place, sealed
from counsel.errors import CounselError
from counsel.model.mdp import MDP

if TYPE_CHECKING:
    from counsel.model.problem import AdviceProblem

MOST_COST_RATIO = 1e8
"""Costs further apart than this drown in rounding: plans could not tell the small ones from 0."""


def read_cost(cost: ArrayLike, shape: tuple[int, int, int]) -> Floats:
    """Return checked costs of advice as a view [h, s, a], without copies along an axis."""
    _, S, A = shape
    if np.asarray(cost).dtype == np.bool_:
        raise CounselError("cost must be numbers, not bool")
    table = numbers("cost", cost)
    axes = {(): "", (A,): "a", (S, A): "sa", shape: "hsa"}.get(table.shape)
    if axes is None:
        raise CounselError(
            f"cost has shape {table.shape}; expected a number, [a] = {(A,)}, [s, a] = {(S, A)} "
            f"or [h, s, a] = {shape}"
        )
    where = first(~((table >= 0.0) & (table < np.inf)))
    if where is not None:
        raise CounselError(
            f"cost{place(axes, where)} is {table[where]:.10g}; a cost must be a finite number of "
            "at least 0"
        )
    least, most = table[table > 0.0].min(initial=np.inf), table.max()
    if most > MOST_COST_RATIO * least:
        raise CounselError(
            f"costs range from {least:g} to {most:g}; the largest may be at most "
            f"{MOST_COST_RATIO:g} times the smallest above 0"
        )
    return np.broadcast_to(sealed(table), shape)


def given_cost(cost: Floats) -> Floats:
    """Return costs [h, s, a] as they were given: a number, or [a], [s, a] or [h, s, a]."""
    axis = next((axis for axis, stride in enumerate(cost.strides) if stride), cost.ndim)
    given: Floats = cost[(0,) * axis]
    return np.asarray(given)


def cost_table(cost: Floats) -> Floats:
    """Return costs [h, s, a] as [layer, s, a], with one row if they are the same in every state."""
    table = layers(cost)
    return table if table.strides[1] else table[:, :1]


def advice_costs(costs: Mapping[str, float], labels: tuple[str, ...]) -> Floats:
    """Return the cost of each advice [a], or 1 if all cost 1.

    Advice that ``costs`` does not name costs 1.
    """
    if not isinstance(costs, Mapping):
        raise CounselError(f'cost is {brief(costs)}; give costs by label, e.g. {{"page": 3}}')
    cost_a = np.ones(len(labels))
    for label, cost in costs.items():
        if label not in labels:
            some = ", ".join(labels[:8]) + (", …" if len(labels) > 8 else "")
            amount = f"{cost:g}" if isinstance(cost, int | float) else brief(cost)
            raise CounselError(f"cost has {label}={amount}; there is no such advice, only {some}")
        cost_a[labels.index(label)] = not_negative(f"the cost of {label}", cost)
    return cost_a if (cost_a != 1.0).any() else np.ones(())


def with_costs(problem: "AdviceProblem", costs: Mapping[str, float]) -> "AdviceProblem":
    """Return the problem with these costs instead of its own, by label or number of the advice."""
    return replace(problem, cost=advice_costs(costs, _labels(problem.mdp)))


def _labels(mdp: MDP) -> tuple[str, ...]:
    return mdp.action_labels or tuple(map(str, range(mdp.n_actions)))
