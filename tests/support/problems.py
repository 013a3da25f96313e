"""The same problem for the oracles (dense arrays) and for Counsel."""

from dataclasses import replace

import numpy as np

import counsel
from tests.support import examples, memory_model, oracles


def adapt(dense: oracles.Problem) -> counsel.AdviceProblem:
    """Build Counsel's problem from the oracle's arrays."""
    mdp = counsel.MDP(
        dense.P_hsat,
        dense.r_hsa,
        horizon=len(dense.r_hsa),
        start=dense.start_s,
        allowed=dense.allowed_hsa,
    )
    return counsel.AdviceProblem(mdp, counsel.Human(dense.pi_hsa, dense.theta_hsa))


def adapt_memory(
    dense: memory_model.Problem,
) -> tuple[counsel.AdviceProblem, dict[str, np.ndarray]]:
    """Build Counsel's problem, and the masks of ``solve``, from the tables of the oracle."""
    mdp = counsel.MDP(dense.p, dense.r, horizon=dense.H, start=dense.start, allowed=dense.allowed)
    memory = counsel.Memory(dense.K0, dense.Kplus, dense.Kminus, start=dense.start_level)
    human = counsel.Human(dense.habit, lift=dense.lift, memory=memory)
    masks = {"forbidden": dense.forbidden, "required": dense.required}
    return counsel.AdviceProblem(mdp, human, cost=dense.cost), masks


def without_slips(dense: memory_model.Problem) -> memory_model.Problem:
    """Return the problem with lifts at their lowest rounded down, so that the adherence is 0.

    There λ + (1 − λ) π may round to 1e-16 or to −1e-16. The oracle takes only the second for 0, and
    whether an action is possible at all decides whether a hard budget can be kept.
    """
    lift = dense.lift.copy()
    is_lowest = (lift < 0.0) & (np.abs(lift + (1 - lift) * dense.habit) < 1e-15)
    lift[is_lowest] *= 1 + 1e-15
    return replace(dense, lift=lift)


def draw(seed: int, *, most: tuple[int, int, int] = (4, 3, 4)) -> oracles.Problem:
    """Draw a small problem; seeds cycle through masks, certain people, reactance and forks."""
    rng = np.random.default_rng(seed)
    if seed % 7 == 0:
        return examples.random_fork(rng)
    S, A, H = (int(rng.integers(1, n + 1)) for n in most)
    return oracles.random_problem(
        rng,
        S,
        A,
        H,
        deterministic_people=seed % 3 == 0,
        masks=seed % 2 == 1,
        repel=seed % 5 == 0,
    )


def masked_problem(states: int | list[int] = 1, *, reward: float = 0.0) -> counsel.AdviceProblem:
    """Two steps, two states; action 1 is not allowed in state 1 (or in ``states``) at step 1."""
    allowed = np.ones((2, 2, 2), dtype=bool)
    allowed[1, states, 1] = False
    rewards = np.full((2, 2), reward)
    mdp = counsel.MDP(np.array([[0, 1], [0, 1]]), rewards, horizon=2, allowed=allowed)
    return counsel.AdviceProblem(mdp, counsel.Human(np.eye(2)[[0, 0]], 0.5))
