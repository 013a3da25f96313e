"""What advice is charged: the penalty per unit of cost times the cost."""

import numpy as np

from counsel._arrays import Floats
from counsel.model.advice_costs import cost_table, given_cost
from counsel.model.setting import Shape
from counsel.planning.evaluate import Evaluation

Penalty = float | Floats
"""One penalty per unit of cost, or one for each step [h]."""


def charge_of(evaluation: Evaluation, penalty: Penalty) -> float:
    """Return the expected charge per episode for the advice of a policy."""
    if isinstance(penalty, np.ndarray):
        return float((penalty * evaluation.cost).sum())
    return penalty * evaluation.advice_cost


def net_value(evaluation: Evaluation, penalty: Penalty) -> float:
    """Return the expected reward per episode of a policy less the charge for its advice."""
    return evaluation.value - charge_of(evaluation, penalty)


def most_cost(shape: Shape) -> float:
    """Return the largest cost of a piece of advice."""
    return float(given_cost(shape.cost).max())


def charge_table(shape: Shape, penalty: Penalty) -> Floats:
    """Return the charge for each advice [layer, s, b], silence last, which is free."""
    charge = np.reshape(penalty, (-1, 1, 1)) * cost_table(shape.cost)
    L, S, A = len(charge), shape.n_states, shape.n_actions
    return np.concatenate((np.broadcast_to(charge, (L, S, A)), np.zeros((L, S, 1))), axis=2)
