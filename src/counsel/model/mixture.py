"""Mixtures: one of several policies is drawn for each episode."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np

from counsel._arrays import ROW_TOLERANCE, brief
from counsel.errors import CounselError
from counsel.model.policy import Policy


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Policies, one of which is drawn by weight for each episode.

    Parameters
    ----------
    policies
        Policies for one problem.
    weights
        The probability of each policy; the weights sum to 1.

    Raises
    ------
    CounselError
        If there is not one weight per policy, the weights are not a distribution, or the policies
        are for problems of different sizes.

    Examples
    --------
    The best advice in half of all episodes, silence in the other half:

    >>> import counsel
    >>> problem = counsel.make("flappy-bird-budget/greedy")
    >>> best = counsel.solve(problem).policy
    >>> never = counsel.Policy.never(horizon=8, n_states=57, n_actions=3)
    >>> for policy in (best, never, counsel.Mixture((best, never), (0.5, 0.5))):
    ...     print(counsel.evaluate(problem, policy))
    Evaluation(value 2.6, 2 pieces of advice)
    Evaluation(value 1, 0 pieces of advice)
    Evaluation(value 1.8, 1 pieces of advice)
    """

    policies: tuple[Policy, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.policies) != len(self.weights) or not self.policies:
            raise CounselError(
                f"a mixture needs one weight per policy, not {len(self.weights)} weights "
                f"for {len(self.policies)} policies"
            )
        for i, policy in enumerate(self.policies):
            if not isinstance(policy, Policy):
                raise CounselError(f"policies[{i}] is {brief(policy)}; give a Policy")
        for i, weight in enumerate(self.weights):
            if not isinstance(weight, int | float) or not 0.0 <= weight <= 1.0:
                raise CounselError(
                    f"weights[{i}] is {brief(weight)}; a weight must be a number from 0 to 1"
                )
        if abs(fsum(self.weights) - 1.0) > ROW_TOLERANCE:
            raise CounselError(f"weights sum to {fsum(self.weights):.10g}; they must sum to 1")
        shapes = {(policy.advice.shape[-2:], policy.n_actions) for policy in self.policies}
        if len(shapes) > 1:
            raise CounselError(f"policies are for {len(shapes)} problem sizes; give one problem's")

    @classmethod
    def of(cls, policies: Sequence[Policy], weights: Sequence[float]) -> "Mixture":
        """Build a mixture of the policies whose weight is above 0.

        Parameters
        ----------
        policies, weights
            As in the constructor, in any sequence.
        """
        checked = cls(tuple(policies), tuple(np.asarray(weights).tolist()))
        kept = [(p, w) for p, w in zip(checked.policies, checked.weights, strict=True) if w > 0.0]
        return cls(tuple(p for p, _ in kept), tuple(float(w) for _, w in kept))
