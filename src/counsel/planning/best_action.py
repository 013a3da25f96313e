"""Always the best action: what a machine would do itself, said at every step.

It plans as if it acted alone, never stays silent, and so is what advice looks like when nobody asks
who listens.
"""

import numpy as np

from counsel._arrays import Floats
from counsel.errors import CounselError
from counsel.model.policy import Advice, Policy
from counsel.model.problem import AdviceProblem


def always_best_action(problem: AdviceProblem) -> Policy:
    """Return the policy that always advises the best action of the world itself.

    Among equals it advises the action with the lowest index. It is silent only where nothing can
    happen any more.

    Parameters
    ----------
    problem
        The world and the person; how much they listen does not matter.

    Returns
    -------
    Policy
        Advice [h, s].

    Raises
    ------
    CounselError
        When it is given anything but a problem.

    Examples
    --------
    It earns as much as the best plan without limit, but when each piece costs 0.1 it is left with
    far less than the best plan at that penalty:

    >>> import counsel
    >>> from counsel.worlds import make
    >>> problem = make("night-shift")
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
