"""Silence at every step: what all advice is measured against."""

from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.planning.evaluate import evaluate


def never_advise(problem: AdviceProblem) -> Policy:
    """Return the policy of a problem that never advises."""
    return Policy.never(
        horizon=problem.horizon, n_states=problem.n_states, n_actions=problem.n_actions
    )


def value_alone(problem: AdviceProblem) -> float:
    """Return what the person earns in an episode without advice."""
    return evaluate(problem, never_advise(problem)).value
