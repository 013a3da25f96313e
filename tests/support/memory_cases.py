"""Small problems of people with a memory whose criticality is known by hand."""

import numpy as np

from tests.support.memory_model import Problem, pieces, since


def pays_off_and_on(*, by_level):
    """One state; the person always takes action 0, which is worth 0. Criticality is 1.5 at first.

    Although advice does not pay at some lower penalties:

    - by level: ``since(2)``, unit costs. Advice is worth 1.5 now, 1.2 at step 1 if the person was
      not advised for long, and 1.2 at step 2 if they were advised just now. Silence at step 0 is
      worth 2.4 − 2β, up to 1.2; advice max(2.7 − 3β, 1.5 − β). It pays on [0, 0.3] and [0.9, 1.5].
    - else by cost: ``pieces(1)``, where only the first piece works. Now it is worth 3 at cost 3
      (action 2) or 1.5 at cost 1, later 2.4 at cost 2. It pays on [0, 0.6] and [0.9, 1.5].
    """
    memory = since(2) if by_level else pieces(1)
    H, A, M = (3, 2, 3) if by_level else (2, 3, 2)
    habit, r = np.zeros((2, H, 1, A))
    habit[..., 0] = 1
    lift, cost = np.zeros((M, H, 1, A)), np.ones((H, 1, A))
    forbidden = np.zeros((H, 1, A), dtype=bool)
    forbidden[..., 0] = True
    if by_level:
        r[:, 0, 1] = 1.5, 1.2, 1.2
        lift[:, 0, 0, 1] = lift[2, 1, 0, 1] = lift[0, 2, 0, 1] = 1
    else:
        r[0, 0, 1], r[0, 0, 2], r[1, 0, 1] = 1.5, 3, 2.4
        cost[0, 0, 2], cost[1, 0, 1] = 3, 2
        lift[0, :, 0, 1:] = 1
    matrices = (memory.K0, memory.Kplus, memory.Kminus, memory.start)
    allowed = np.ones((H, 1, A), dtype=bool)
    world = (np.ones((H, 1, A, 1)), r, np.ones(1), allowed)
    return Problem(*world, habit, lift, *matrices, cost, forbidden)


def saves_required_advice(price, loss):
    """Advice at step 0 leads away from a state whose required advice costs 2.

    If it costs 1 it pays at every high penalty, even if it takes a reward of ``loss`` away; if it
    costs 3 and takes a reward away, it never pays.
    """
    p = np.zeros((2, 2, 2, 2))
    p[:, :, 0, 0] = p[:, :, 1, 1] = 1
    habit, r, cost = np.zeros((2, 2, 2)), np.zeros((2, 2, 2)), np.ones((2, 2, 2))
    habit[..., 0], r[0, :, 1] = 1, -loss
    cost[0], cost[1, 0] = price, 2
    required, forbidden = np.zeros((2, 2), dtype=bool), np.zeros((2, 2, 2), dtype=bool)
    required[1, 0] = forbidden[0, :, 0] = True
    world = (p, r, np.array([1.0, 0.0]), np.ones((2, 2, 2), dtype=bool))
    one_level = (np.ones((1, 1)), np.ones((1, 1)), np.ones((1, 1)), 0)
    return Problem(*world, habit, np.ones((1, 2, 2, 2)), *one_level, cost, forbidden, required)
