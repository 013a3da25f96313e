"""One linear programme for a whole team, and brute force for two people."""

from itertools import product

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import block_diag, csr_matrix, hstack, vstack

import counsel
from tests.support import drawn_memories
from tests.support.memory_model import action_probabilities, choices, level_row
from tests.support.memory_oracle import occupancies
from tests.support.problems import adapt_memory


def team_lp(problems, counts, *, budget=None, per_step=None, floors=None):
    """Return the value, the price (or prices by step) and the cost of each kind of person.

    Everybody of a kind has the same occupancies, so a kind enters with its count. The expected cost
    of all is at most ``budget``, or at most ``per_step`` at every step. Each person of kind i costs
    at least ``floors[i]``.
    """
    parts = [occupancies(P) for P in problems]
    gain = np.concatenate([n * part[1] for n, part in zip(counts, parts, strict=True)])
    cost = np.concatenate([n * part[2] for n, part in zip(counts, parts, strict=True)])
    if budget is not None:
        limits, most = csr_matrix(cost[None, :]), [budget]
    else:
        H = problems[0].H
        by_step = []
        for n, (names, _, one, _, _) in zip(counts, parts, strict=True):
            step = np.array([name[0] for name in names])
            by_step.append(csr_matrix((step[None, :] == np.arange(H)[:, None]) * n * one))
        limits, most = hstack(by_step).tocsr(), np.full(H, float(per_step))
    n_limits = limits.shape[0]
    if floors is not None:
        least = block_diag([-part[2][None, :] for part in parts])
        limits, most = vstack([limits, least]).tocsr(), np.append(most, -np.asarray(floors))
    out = linprog(
        -gain,
        A_ub=limits,
        b_ub=most,
        A_eq=block_diag([part[3] for part in parts]).tocsr(),
        b_eq=np.concatenate([part[4] for part in parts]),
        bounds=(0, None),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if out.status == 2:
        return -np.inf, np.nan, None
    if out.status != 0:
        raise RuntimeError(out.message)
    ends = np.cumsum([part[1].size for part in parts])
    spent = [float(part[2] @ x) for part, x in zip(parts, np.split(out.x, ends[:-1]), strict=True)]
    return -float(out.fun), -out.ineqlin.marginals[:n_limits], spent


def pair_value(two, policy=None):
    """Return the value of two people of whom one may be advised at each step, by brute force.

    ``policy(h, cells)`` lists choices with probabilities, (probability, (c, d)); by default the
    best choice is taken. A cell is a level and a state.
    """
    first, second = two
    cells = [[(m, s) for m in range(P.M) for s in range(P.S)] for P in two]
    V = dict.fromkeys(product(*cells), 0.0)
    for h in reversed(range(first.H)):
        V = {
            pair: _pair_step(two, h, pair, V, None if policy is None else policy(h, pair))
            for pair in product(*cells)
        }
    return sum(
        first.start[s] * second.start[t] * V[(first.start_level, s), (second.start_level, t)]
        for s in range(first.S)
        for t in range(second.S)
    )


def _pair_step(two, h, pair, V, mixture):
    """Return the value of a pair of cells from a step on."""

    def worth(c, d):
        ends = [_outcomes(P, h, *cell, o) for P, cell, o in zip(two, pair, (c, d), strict=True)]
        earned = sum(reward for reward, _ in ends)
        (_, then), (_, also) = ends
        return earned + sum(p * q * V[x, y] for x, p in then.items() for y, q in also.items())

    if mixture is not None:
        return sum(share * worth(*said) for share, said in mixture)
    A, B = (P.A for P in two)
    alone = [(c, B) for c in choices(two[0], h, pair[0][1])]
    other = [(A, d) for d in choices(two[1], h, pair[1][1])]
    return max(worth(*said) for said in alone + other)


def _outcomes(P, h, m, s, c):
    """Return the expected reward and the distribution over the next cells after a choice."""
    reward, then = 0.0, {}
    for a, p in enumerate(action_probabilities(P, m, h, s, c)):
        if p <= 0.0:
            continue
        reward += p * P.r[h, s, a]
        for n, q in enumerate(level_row(P, m, c, a)):
            for t, r in enumerate(P.p[h, s, a]):
                if q * r > 0.0:
                    then[n, t] = then.get((n, t), 0.0) + p * q * r
    return reward, then


def ranked(plan):
    """Return the policy of a plan for two people with one piece per step, for ``pair_value``."""
    tables = [
        [table.reshape(-1, *table.shape[-2:]) for table in (m.advice, m.rank, m.chance)]
        for m in plan.members
    ]
    silence = [member.problem.defer for member in plan.members]

    def policy(h, pair):
        said, rank, chance = zip(
            *[[t[m, h, s] for t in three] for three, (m, s) in zip(tables, pair, strict=True)],
            strict=True,
        )
        turns = [(said[0], silence[1]), (silence[0], said[1])]
        if max(rank) == 0:
            return [(1.0, tuple(silence))]
        if min(rank) == 0 or rank[0] != rank[1]:
            return [(1.0, turns[min((r or 10**9, i) for i, r in enumerate(rank))[1]])]
        first = 0.5 + 0.5 * (chance[0] * (1 - chance[1]) - chance[1] * (1 - chance[0]))
        return [(first, turns[0]), (1.0 - first, turns[1])]

    return policy


def drawn_team(seed, size, **options):
    """Draw people of one horizon without required advice, as the oracle and as Counsel takes them.

    Some have masks, and enter as frontiers.
    """
    rng = np.random.default_rng(seed)
    H = options.pop("H", int(rng.integers(2, 6)))
    drawn, people = [], []
    for i in range(size):
        masks = bool(rng.random() < 0.5)
        P = drawn_memories.draw(
            1000 * seed + i, H=H, masks=masks, required=False, costs="one", **options
        )
        problem, given = adapt_memory(P)
        drawn.append(P)
        people.append(counsel.frontier(problem, max_vertices=2, **given) if masks else problem)
    return drawn, people, rng.integers(1, 4, size).tolist(), rng
