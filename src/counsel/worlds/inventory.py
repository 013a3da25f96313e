"""Inventory: a shop that orders for ever, with a manager who orders too little.

Each evening the manager of a shop may order; what is ordered arrives overnight and must fit the
shelves. Demand the next day is random. A sold item earns its price, an item on the shelf overnight
costs its keep, and an order costs a fixed sum and a price per item. The manager orders small and
late; a system that knows the demand may advise an order. The work is discounted and has no last
day.
"""

from math import exp

import numpy as np

from counsel._arrays import Floats, positive, real, whole
from counsel.errors import CounselError
from counsel.model.human import Human
from counsel.model.mdp import MDP
from counsel.model.problem import AdviceProblem

SALE, KEEP, ORDER, ITEM = 8.0, 0.5, 3.0, 4.0
"""What an item earns when sold, costs overnight, and what an order and each item in it cost."""


def inventory(
    *, shelves: int = 12, demand: float = 4.0, discount: float = 0.98, lift: float = 0.5
) -> AdviceProblem:
    """Return a shop with room for ``shelves`` items and a Poisson ``demand`` per day.

    ``lift`` is how much the manager listens.
    """
    N, mean = whole("shelves", shelves, least=2), positive("demand", demand, most=100.0)
    if not 0.0 <= real("lift", lift) <= 1.0:
        raise CounselError(f"lift is {lift:g}; it must be from 0 to 1")
    chance_d = _poisson(mean, N)
    P, reward = np.zeros((N + 1, N + 1, N + 1)), np.zeros((N + 1, N + 1))
    habit = np.zeros((N + 1, N + 1))
    allowed = np.add.outer(np.arange(N + 1), np.arange(N + 1)) <= N
    for s in range(N + 1):
        for order in range(N + 1 - s):
            stock = s + order
            sold = np.minimum(np.arange(N + 1), stock)
            np.add.at(P[s, order], stock - sold, chance_d)
            kept = stock - float(chance_d @ sold)
            reward[s, order] = SALE * float(chance_d @ sold) - KEEP * kept
            reward[s, order] -= ITEM * order + (ORDER if order else 0.0)
        # The manager orders three items, and only once the shelves are nearly empty.
        few = min(3, N - s)
        often = 0.9 if s == 0 else 0.5 if s <= N // 4 else 0.05
        habit[s, few] += often
        habit[s, 0] += 1.0 - often
    mdp = MDP(
        P,
        reward,
        discount=discount,
        start=N // 2,
        allowed=allowed,
        state_labels=[f"{s} on the shelf" for s in range(N + 1)],
        action_labels=["order nothing", *(f"order {n}" for n in range(1, N + 1))],
    )
    return AdviceProblem(mdp, Human(habit, lift=lift))


def _poisson(mean: float, most: int) -> Floats:
    """Return the probabilities of a demand of 0 to ``most``; the last holds all larger ones."""
    chance = exp(-mean) * np.cumprod(np.append(1.0, mean / np.arange(1.0, most)))
    return np.append(chance, max(1.0 - chance.sum(), 0.0))
