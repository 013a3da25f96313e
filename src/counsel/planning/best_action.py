"""Always the best action: what a machine would do itself, said at every step.

It plans as if it acted alone, never stays silent, and so is what advice looks like when nobody asks
who listens.
"""

import numpy as np

from counsel._arrays import Floats
from counsel.model.policy import Advice, Policy
from counsel.model.problem import AdviceProblem


def always_best_action(problem: AdviceProblem) -> Policy:
    """Return the policy that always advises the best action of the world itself.

    Where nothing may be advised the person acts alone, and it is silent, as it is where nothing can
    happen any more. Among equals the action with the lowest index.
    """
    mdp = problem.mdp
    H, S, A = problem.horizon, problem.n_states, problem.n_actions
    allowed, reward, over = mdp.allowed, mdp.reward, mdp.over
    matrices = mdp.kernel.to_sparse()
    advice: Advice = np.full((H, S), A, dtype=np.int16)
    value: Floats = np.zeros(S)
    for h in range(H - 1, -1, -1):
        matrix = matrices[h] if isinstance(matrices, list) else matrices
        Q = reward[h] + (matrix @ value).reshape(S, A)
        alone = (problem.policy[h] * Q).sum(axis=1)
        best = np.where(allowed[h], Q, -np.inf).argmax(axis=1)
        speaks = allowed[h].any(axis=1)
        value = np.where(speaks, Q[np.arange(S), best], alone)
        speaks &= ~over[h]
        advice[h] = np.where(speaks, best, A)
    return Policy.trusted(advice, n_actions=A)
