"""Random problems of advice to people with a memory, for the oracles of ``memory_model.py``."""

import numpy as np

from tests.support.memory_model import Memory, Problem, check, dose, join, pieces, refusals, since

MEMORIES = ("random", "pieces", "since", "dose", "refusals", "join")
LIFTS = ("levels", "fading", "flat")
COSTS = ("one", "whole", "real")


def draw(
    seed,
    H=None,
    S=None,
    A=None,
    M=None,
    memory=None,
    lifts=None,
    costs=None,
    masks=None,
    required=None,
    negative=None,
    certain=None,
    stationary=None,
    coarse=None,
):
    """Draw a problem; the same for the same seed (or generator) and options.

    Options left at None are drawn:

    - ``memory``: one of MEMORIES, where "random" means three random matrices and a random start
    - ``lifts``: "levels" (drawn for each level), "fading" (fading[m] · one lift) or "flat"
    - ``costs``: "one", "whole" (1 to 3) or "real" (0.3 to 2)
    - ``masks``: whether some actions are not allowed and some advice is forbidden
    - ``required``: whether some cells require advice (there always is some)
    - ``negative``: whether some lifts are negative, some as low as possible, −π / (1 − π)
    - ``certain``: whether some people are certain, with a lift in the table that is not 0
    - ``stationary``: whether only costs and masks of advice may depend on the step
    - ``coarse``: whether numbers are round, so that there are exact ties

    ``info`` says what was drawn, with "fading" [m], "base_lift" [h, s, a] and "memory_object".
    Lifts of actions that are not allowed are 0.
    """
    rng = np.random.default_rng(seed)  # a Generator passes through

    def flip(chance):
        return bool(rng.random() < chance)

    def given(option, drawn):
        return drawn if option is None else option

    # every default is drawn, given or not, so that options do not shift one another
    H = int(given(H, rng.integers(2, 6)))
    S = int(given(S, rng.integers(2, 5)))
    A = int(given(A, rng.integers(2, 5)))
    memory = given(memory, MEMORIES[rng.integers(len(MEMORIES))])
    M = int(given(M, rng.integers(1, 5)))
    lifts = given(lifts, LIFTS[rng.choice(3, p=[0.5, 0.35, 0.15])])
    costs = given(costs, COSTS[rng.integers(3)])
    masks = given(masks, flip(0.5))
    required = given(required, flip(0.4))
    negative = given(negative, flip(0.4))
    certain = given(certain, flip(0.4))
    stationary = given(stationary, flip(0.4))
    coarse = given(coarse, flip(0.25))

    def rows(shape, zeros=0.25):
        """Random distributions along the last axis, with some zeros."""
        x = rng.integers(1, 4, shape).astype(float) if coarse else rng.exponential(size=shape)
        drop = rng.random(shape) < zeros
        keep = rng.integers(shape[-1], size=shape[:-1])
        np.put_along_axis(drop, keep[..., None], False, -1)
        x[drop] = 0.0
        return x / x.sum(-1, keepdims=True)

    # the memory
    if memory == "random":
        mem = Memory(rows((M, M)), rows((M, M)), rows((M, M)), int(rng.integers(M)))
    elif memory == "pieces":
        mem = pieces(M)
    elif memory == "since":
        mem = since(M)
    elif memory == "dose":
        mem = dose(
            float(rng.choice([0.0, 0.5, 0.8])) if coarse else float(rng.uniform(0, 0.9)), M + 1
        )
    elif memory == "refusals":
        mem = refusals(M)
    elif memory == "join":
        parts = [pieces(1), since(int(rng.integers(1, 3))), refusals(1), dose(0.5, 3)]
        i, j = rng.choice(4, 2, replace=False)
        mem = join(parts[i], parts[j])
    else:
        raise ValueError(memory)
    M = mem.levels

    # the world and the person: T tables, one if stationary
    T = 1 if stationary else H
    allowed = np.ones((T, S, A), bool)
    if masks:
        allowed = rng.random((T, S, A)) < 0.75
        np.put_along_axis(allowed, rng.integers(A, size=(T, S))[..., None], True, -1)
    p = rows((T, S, A, S))
    r = rng.integers(0, 3, (T, S, A)).astype(float) if coarse else rng.normal(size=(T, S, A))
    habit = np.zeros((T, S, A))
    for h in range(T):
        for s in range(S):
            can = np.flatnonzero(allowed[h, s])
            if certain and flip(0.35):
                habit[h, s, rng.choice(can)] = 1.0
            else:
                habit[h, s, can] = rows((len(can),))
    start = rows((S,))

    def some_lift():
        """One lift table [T,s,a] within its bounds."""
        out = np.zeros((T, S, A))
        for h, s, a in np.ndindex(T, S, A):
            pi = habit[h, s, a]
            x = float(rng.choice([0.0, 0.25, 0.5, 1.0])) if coarse else rng.random()
            if negative and flip(0.4):
                lowest = -1.0 if pi == 1.0 else max(-pi / (1 - pi), -3.0)
                x = lowest * (1.0 if flip(0.2) else rng.random())
            elif flip(0.08):
                x = 1.0
            out[h, s, a] = x if allowed[h, s, a] else 0.0
        return out

    base = some_lift()
    fading = np.ones(M)
    if lifts == "fading":
        fading = rng.choice([0.0, 0.5, 1.0], M) if coarse else rng.random(M)
    if lifts == "levels":
        lift = np.array([some_lift() for _ in range(M)])
    else:
        lift = np.array([f * base for f in fading])

    def spread(x, axis=0):
        return np.repeat(x, H, axis=axis) if stationary else x

    p, r, allowed, habit, base = (spread(x) for x in (p, r, allowed, habit, base))
    lift = spread(lift, 1)

    # costs and masks on advice
    cost = np.ones((H, S, A))
    if costs == "whole":
        cost = rng.integers(1, 4, (H, S, A)).astype(float)
    elif costs == "real":
        cost = rng.uniform(0.3, 2.0, (H, S, A))
    forbidden = np.zeros((H, S, A), bool)
    if masks:
        forbidden = rng.random((H, S, A)) < 0.25
    must = np.zeros((H, S), bool)
    if required:
        must = rng.random((H, S)) < 0.2
        for h, s in np.ndindex(H, S):
            if must[h, s] and not np.any(allowed[h, s] & ~forbidden[h, s]):
                forbidden[h, s, rng.choice(np.flatnonzero(allowed[h, s]))] = False
    info = {
        "memory": memory,
        "lifts": lifts,
        "costs": costs,
        "masks": masks,
        "required": required,
        "negative": negative,
        "certain": certain,
        "stationary": stationary,
        "coarse": coarse,
        "fading": fading if lifts != "levels" else None,
        "base_lift": base if lifts != "levels" else None,
        "memory_object": mem,
    }
    P = Problem(
        p,
        r,
        start,
        allowed,
        habit,
        lift,
        mem.K0,
        mem.Kplus,
        mem.Kminus,
        mem.start,
        cost,
        forbidden,
        must,
        info,
    )
    check(P)
    return P
