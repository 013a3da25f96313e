"""Reference policies: silence at every step, and the best action at every step.

All advice is measured against silence. Always advising the best action is what a machine does that
plans as if it acted alone and never asks who listens.
"""

import numpy as np

from counsel._arrays import Floats
from counsel.errors import CounselError
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.model.random_cells import Advice
from counsel.planning.evaluate import evaluate


def never_advise(problem: AdviceProblem) -> Policy:
    """Return the policy of a problem that never advises."""
    return Policy.never(
        horizon=problem.n_steps, n_states=problem.n_states, n_actions=problem.n_actions
    )


def value_alone(problem: AdviceProblem) -> float:
    """Return what the person earns in an episode without advice."""
    return evaluate(problem, never_advise(problem)).value


def always_best_action(problem: AdviceProblem) -> Policy:
    """Return the policy that always advises the best action of the world itself.

    Among equally good actions it advises the one with the lowest index. It is silent only where the
    episode is over.

    Parameters
    ----------
    problem
        The world and the person; the adherence does not matter.

    Returns
    -------
    Policy
        Advice [h, s].

    Examples
    --------
    It earns as much as the best plan without a penalty; at a penalty of 0.1 per piece it earns far
    less than the best plan:

    >>> import counsel
    >>> problem = counsel.make("night-shift")
    >>> outcome = counsel.evaluate(problem, counsel.baselines.always_best_action(problem))
    >>> outcome
    Evaluation(value 11.4606, 12 pieces of advice)
    >>> best = counsel.solve(problem, penalty=0.1)
    >>> print(f"{outcome.value - 0.1 * outcome.advice_count:.3f}, {best.penalised_value:.3f}")
    10.261, 11.230
    """
    if not isinstance(problem, AdviceProblem):
        raise CounselError(f"expected an AdviceProblem, not {type(problem).__name__}")
    mdp = problem.mdp
    H, S, A = problem.horizon, problem.n_states, problem.n_actions
    allowed, reward, over = mdp.allowed, mdp.reward, mdp.over
    matrices = mdp.kernel.to_sparse()
    advice: Advice = np.full((H, S), A, dtype=np.int16)
    value: Floats = np.zeros(S)
    for h in range(H - 1, -1, -1):
        matrix = matrices[h] if isinstance(matrices, list) else matrices
        Q = reward[h] + (matrix @ value).reshape(S, A)
        best = np.where(allowed[h], Q, -np.inf).argmax(axis=1)
        value = Q[np.arange(S), best]
        advice[h] = np.where(over[h], A, best)
    return Policy.trusted(advice, n_actions=A)
