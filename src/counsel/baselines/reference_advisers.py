"""Advisers that do not learn: baselines for every comparison.

*Never advise* is ``Policy.never``, *the optimum* ``solve``, *always the best action*
``always_best_action``. *As if all listened* is the plan for θ = 1, met by people as they are: it
advises where a match would pay, not where advice does. ``Fixed`` gives any policy the interface of
learners.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import brief, check_rng, generator_from, unlayered
from counsel.errors import CounselError
from counsel.learning.arguments import read_limit, shared_parameters
from counsel.learning.learner import Learner, LevelLearner, Resumable, documented_by
from counsel.model.advice_costs import given_cost
from counsel.model.human import Human
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.planning.solve import solve
from counsel.simulate.episodes import Episodes
from counsel.simulate.move import Move


@shared_parameters
def as_if_all_listened(
    problem: AdviceProblem, *, penalty: ArrayLike | None = None, budget: float | None = None
) -> Policy:
    """Return the best policy for the same person if they took all advice (θ = 1).

    Parameters
    ----------
    problem
        The world and the person, whose adherence does not matter.
    budget
        The expected cost of advice per episode if all were matched.

    Returns
    -------
    Policy
        Advice [h, s], random in at most one cell.

    Raises
    ------
    CounselError
        If the penalty or the budget is invalid, or both are given.

    Examples
    --------
    Met by people as they are it overspends its budget: what is not taken has to be said again.

    >>> import counsel
    >>> problem = counsel.make("night-shift")
    >>> counsel.evaluate(problem, counsel.baselines.as_if_all_listened(problem, budget=1))
    Evaluation(value 11.29, 1.113 pieces of advice)
    >>> counsel.evaluate(problem, counsel.solve(problem, budget=1).policy)
    Evaluation(value 11.2669, 1 pieces of advice)
    """
    listens = Human(unlayered(problem.human.policy), 1.0)
    imagined = AdviceProblem(problem.mdp, listens, given_cost(problem.cost))
    return solve(imagined, penalty=penalty, budget=budget).policy


@documented_by(LevelLearner, Learner, Resumable)
@shared_parameters
class Fixed:
    """A policy with the interface of learners, for ``learn`` to evaluate: it learns nothing.

    Parameters
    ----------
    policy
        The policy to advise by.
    budget
        The expected cost of advice per episode of the policy it is compared with; not with a
        penalty.
    rng
        The generator of live advice; needed only where a policy is random.

    Raises
    ------
    CounselError
        If ``policy`` is no ``Policy``, ``rng`` no generator, or the limit is invalid.

    Examples
    --------
    Where a piece of advice costs 0.05, to advise the best action at all times is worse than
    silence:

    >>> from numpy.random import default_rng
    >>> from counsel import Policy, Simulator, learn, make
    >>> from counsel.baselines import always_best_action
    >>> problem = make("night-shift")
    >>> never = Policy.never(horizon=12, n_states=4, n_actions=3)
    >>> for policy in (never, always_best_action(problem)):
    ...     learner = Fixed(policy, penalty=0.05)
    ...     *_, last = learn(learner, Simulator(problem), episodes=100, rng=default_rng(0))
    ...     print(round(last.advice_count), round(last.value_gap, 2))
    0 0.38
    12 0.46
    """

    def __init__(
        self,
        policy: Policy,
        *,
        penalty: ArrayLike = 0.0,
        budget: float | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        if not isinstance(policy, Policy):
            raise CounselError(f"policy is {brief(policy)}; give a Policy")
        if policy.budget is not None:
            raise CounselError("policy has a hard budget; a learner does not count its pieces")
        if rng is not None:
            check_rng(rng)
        self._policy, self.rng = policy, rng
        self.penalty, self.budget = read_limit(penalty, budget, policy.planes.shape[1])

    @property
    def policy(self) -> Policy:
        return self._policy

    def update(self, batch: Episodes) -> None:
        pass

    def advise(self, step: int, state: int, level: int | None = None) -> int:
        return self._policy.draw(step, state, self.rng, level=level)

    def observe(self, move: Move) -> None:
        pass

    def finish(self, *, terminated: bool = False) -> None:
        pass

    def state(self) -> dict[str, Any]:
        return {"chance": None if self.rng is None else self.rng.bit_generator.state}

    def restore(self, state: dict[str, Any]) -> None:
        if self.rng is not None and state["chance"] is not None:
            self.rng = generator_from(state["chance"])
