"""The best plan within an expected budget, for the better end of each interval of lifts.

For a person with a memory every advice stands twice in the plan, with both ends of the interval of
its lift (``level_plan.py``). The plan is optimistic within a budget, too: the law of the person's
action, P(a) = λ 1{a = b} + (1 − λ) π(a), is linear in λ, and the level that follows depends on the
advice and the action alone. So a machine that draws the end, with chances whose mean is the true
lift, meets a person who does exactly what the true person does. Every policy for the true person
has such a twin, with the same reward and the same cost, so the best plan over both ends is worth at
least as much as the best plan for the true person, within any budget.
"""

from dataclasses import replace

import numpy as np

from counsel._arrays import Floats, layers, one_type, unlayered
from counsel.learning.double_actions import double_actions
from counsel.model.advice_costs import given_cost
from counsel.model.human import Human
from counsel.model.mdp import MDP
from counsel.model.memory import Memory
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.planning.budget import blend, bracket, covers, ends
from counsel.planning.constraints import Constraints
from counsel.planning.evaluate import forward
from counsel.planning.level_planner import LevelPlanner
from counsel.planning.prepared_problem import Part, prepare


def within_level_budget(  # noqa: PLR0913 (the world, the person and the limit)
    mdp: MDP,
    own_lsa: Floats,
    memory: Memory,
    lifts_emhsa: Floats,
    *,
    cost: Floats,
    budget: float,
) -> tuple[float, Policy]:
    """Return the value and the policy of the best plan within an expected budget.

    ``lifts_emhsa`` are both ends of each lift, NaN for advice that is left out. The policy is
    silent in all cells that the plan does not expect to reach.
    """
    A, M = mdp.n_actions, memory.n_levels
    person = Human(unlayered(own_lsa), lift=0.0, memory=memory)
    prepared = prepare(AdviceProblem(mdp, person, cost))
    ends_hsmea = np.moveaxis(lifts_emhsa, (0, 1), (3, 2))
    H, S = ends_hsmea.shape[:2]
    left_out = ~np.broadcast_to(layers(mdp.allowed), (H, S, A))[:, :, None, None]
    lift_hsx = np.where(left_out, np.nan, ends_hsmea).reshape(H, S, M * 2 * A)
    model = prepared.whole.model._replace(lift_lsa=lift_hsx, pull_lsa=np.ones((1, S, 2 * A)))
    planner = LevelPlanner(
        doubled := _doubled(mdp, own_lsa, memory, cost),
        Constraints.read(doubled),
        prepared=replace(prepared, whole=Part(one_type(model), prepared.whole.start)),
    )
    left, right = ends(planner)
    if covers(budget, right.cost):
        left = right
    else:
        left, right = bracket(planner, left, right, budget)
    _, share, policy, *_ = blend(planner, left, right, budget)
    value = (1.0 - share) * left.value + share * right.value
    reached_hms = forward(doubled, planner.prepared.whole.model, policy).level_occupancy > 0.0
    policy = policy.silent_where(~reached_hms.swapaxes(0, 1))
    return value, _single(policy, A)


def _doubled(mdp: MDP, own_lsa: Floats, memory: Memory, cost: Floats) -> AdviceProblem:
    """Return a problem with the sizes of the plan, in which each advice stands twice."""
    own, price = np.concatenate((np.zeros(own_lsa.shape), own_lsa), axis=2), given_cost(cost)
    twice = np.concatenate((price, price), axis=-1) if price.ndim else price
    person = Human(unlayered(own), lift=0.0, memory=memory)
    return AdviceProblem(double_actions(mdp), person, twice)


def _single(policy: Policy, n_actions: int) -> Policy:
    """Return the policy for people: both ends of an advice are the same advice."""
    chances = policy.probabilities()
    table = chances[..., :n_actions] + chances[..., n_actions:-1]
    return Policy.from_probabilities(
        np.concatenate((table, chances[..., -1:]), axis=-1), levels=policy.levels
    )
