"""Advantage and gain of every piece of advice in every cell, for given values of what follows.

advantage_h(s, b) = Q_h(s, b) − Σ_a π_h(a | s) Q_h(s, a),     gain = lift × advantage
"""

import numpy as np

from counsel._arrays import Floats
from counsel.model.human import advantages
from counsel.model.problem import AdviceProblem
from counsel.planning._backward_kernels import action_values
from counsel.planning.advice_rules import Rules
from counsel.planning.backward import model_of


def gains(problem: AdviceProblem, values: Floats) -> tuple[Floats, Floats]:
    """Return advantages and gains [h, s, a]; NaN and 0 for actions that are not allowed.

    Parameters
    ----------
    problem
        The world and the person.
    values
        What is earned from each state on, [h, s] with one row after the last step: ``plan.values``,
        say.
    """
    rules = Rules.read(problem, forbidden=None, required=None, allow_reverse=True)
    model = model_of(problem, rules)
    H, S, A = problem.horizon, problem.n_states, problem.n_actions
    advantage, states, q_sa = np.empty((H, S, A)), np.arange(S), np.empty((S, A))
    for h in range(H):
        action_values(model, h, values[h + 1], states, q_sa)
        advantage[h] = advantages(problem.policy[h], q_sa)
        advantage[h][~problem.mdp.allowed[h]] = np.nan
    gain = np.where(np.isnan(advantage), 0.0, problem.lift * advantage)
    return advantage, gain
