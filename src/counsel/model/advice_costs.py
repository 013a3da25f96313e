"""Costs of advice by its label, as logs and the command line give them."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from counsel._arrays import Floats, brief, not_negative
from counsel.errors import CounselError
from counsel.model.mdp import MDP
from counsel.model.problem import AdviceProblem


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


def with_costs(problem: AdviceProblem, costs: Mapping[str, float]) -> AdviceProblem:
    """Return the problem with these costs instead of its own, by label or number of the advice."""
    return replace(problem, cost=advice_costs(costs, _labels(problem.mdp)))


def _labels(mdp: MDP) -> tuple[str, ...]:
    return mdp.action_labels or tuple(map(str, range(mdp.n_actions)))
