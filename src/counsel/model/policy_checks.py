"""Whether a policy fits a problem: its sizes, the actions that it advises, and what they cost."""

from typing import TYPE_CHECKING

import numpy as np

from counsel._arrays import first
from counsel.errors import CounselError
from counsel.model.machine import with_silence
from counsel.model.policy import Policy

if TYPE_CHECKING:
    from counsel.model.problem import AdviceProblem


def check_policy(problem: "AdviceProblem", policy: Policy) -> None:
    """Raise unless a policy has the problem's sizes and advises only allowed actions."""
    H, S, A = problem.n_steps, problem.n_states, problem.n_actions
    check_policy_sizes(problem, policy)
    if policy.budget is not None and not problem.has_unit_cost:
        _check_affordable(problem, policy)
    if problem.mdp.allowed.all():
        return
    allowed = with_silence(problem.mdp.allowed).reshape(H * S, A + 1)
    fixed, random = policy.advice.reshape(-1), policy.random
    for cell, advice in (
        (np.arange(fixed.size) % (H * S), fixed),
        (random.cell_of_entry % (H * S), random.advice),
    ):
        where = first(~allowed[cell, advice])
        if where is not None:
            h, s = divmod(int(cell[where]), S)
            raise CounselError(
                f"the policy advises an action that is not allowed at [h={h}, s={s}]; "
                "allow the action or change the policy"
            )


def check_policy_sizes(problem: "AdviceProblem", policy: Policy) -> None:
    """Raise unless a policy has the problem's sizes."""
    steps = policy.advice.shape[-2]
    if problem.discount is not None and steps > 1:
        raise CounselError(
            f"the policy is for {steps} steps, but the problem has no end; give a policy with "
            "one step, which is followed for ever"
        )
    policy.check_fits(problem.n_steps, problem.n_states, problem.n_actions)
    if policy.levels is None:
        return
    if problem.memory is None:
        raise CounselError(
            f"the policy is for {policy.levels} levels of memory; the person has no memory"
        )
    if policy.levels != problem.n_levels:
        raise CounselError(
            f"the policy is for {policy.levels} levels of memory; the person has {problem.n_levels}"
        )


def _check_affordable(problem: "AdviceProblem", policy: Policy) -> None:
    """Raise if a policy with a hard budget advises what costs more than is left."""
    problem.whole_costs()
    cost_hsb = np.pad(problem.cost, ((0, 0), (0, 0), (0, 1)))
    random = policy.random
    for cell, advice in (
        (np.arange(policy.planes.size), policy.planes.reshape(-1)),
        (random.cell_of_entry, random.advice),
    ):
        plane, h, s = np.unravel_index(cell, policy.planes.shape)
        k, cost = plane // (policy.levels or 1), cost_hsb[h, s, advice]
        where = first(cost > k)
        if where is not None:
            n = where[0]
            raise CounselError(
                f"the policy advises what costs {cost[n]:g} at [k={k[n]}, h={h[n]}, s={s[n]}], "
                "more than the budget that is left; advise what it can pay for"
            )
