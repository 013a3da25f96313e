"""The prices of pieces at each step: the search for the least upper bound (``per_step.py``)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from counsel._arrays import Floats, Ints, sealed
from counsel.errors import CounselError
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.planning.backward import Planner
from counsel.planning.constraints import Constraints
from counsel.planning.evaluate import Evaluation, forward
from counsel.planning.level_planner import LevelPlanner
from counsel.planning.planners import horizon_planner

GAP = 1e-8
"""The search for prices ends if the bound is within this share of the value of the mixed plans."""

MOST_ROUNDS = 500
"""The search ends after this many rounds; the bound is valid after any number."""

MOST_IDLE = 20
"""A plan without weight in this many rounds is left out of the small programme."""

MOST_GROUPS = 50
"""Kinds of people are planned in at most this many groups, each of which has one mixture."""

GROWS, SHRINKS = 2.0, (0.7, 0.4)
"""How the box of prices changes: after a good prediction, after a bad one, after a very bad one."""


class Kind(NamedTuple):
    """One kind of person, with the planner that is used again at all prices."""

    problem: AdviceProblem
    constraints: Constraints
    people: int
    planner: Planner | LevelPlanner

    def plan(self, price_h: Floats) -> tuple[float, Policy, Evaluation]:
        """Return the value after the prices, the policy, and what it brings."""
        planner = self.planner
        [(net, _)] = planner.run(planner.prepared.free, price_h[None].copy(), with_second=False)
        policy = planner.policy()
        return net, policy, forward(self.problem, planner.prepared.whole.model, policy)


def distinct_kinds(
    team: Sequence[tuple[AdviceProblem, Constraints]], count_n: Ints
) -> tuple[list[Kind], list[int]]:
    """Return the distinct kinds of people, and the kind of each entry."""
    number, kinds, kind_of = dict[tuple[int, int], int](), list[Kind](), []
    for (problem, constraints), count in zip(team, count_n.tolist(), strict=True):
        i = number.setdefault((id(problem), id(constraints)), len(kinds))
        if i == len(kinds):
            kinds.append(Kind(problem, constraints, 0, horizon_planner(problem, constraints)))
        kinds[i] = kinds[i]._replace(people=kinds[i].people + count)
        kind_of.append(i)
    return kinds, kind_of


def in_groups(kinds: int) -> list[Ints]:
    """Return the kinds of each group: groups of one where there are few kinds."""
    return [group for group in np.array_split(np.arange(kinds), MOST_GROUPS) if group.size]


class _Column(NamedTuple):
    """Plans of a group at some prices: their value and pieces per step, and their weight."""

    group: int
    price_h: Floats
    value: float
    pieces_h: Floats
    weight: float


class _Mixture(NamedTuple):
    """What the plans so far show of D: its minimum in a box, where it is, and their weights."""

    value: float
    price_h: Floats
    columns: list[_Column]


class PriceSearch(NamedTuple):
    """The best prices, the bound that they prove, and the mixture of plans that nearly attains it.

    The columns are those of positive weight.
    """

    prices: Floats
    bound: float
    value: float
    columns: list[_Column]


def minimise_bound(
    kinds: Sequence[Kind], groups: Sequence[Ints], k: int, start_h: Floats
) -> PriceSearch:
    """Minimise D(β): plan at the best prices of a box around the best so far, again and again.

    The box grows after a prediction that came true and shrinks after one that did not. If plans at
    all prices within the box are known well enough, the next prices may be anywhere. Columns that
    had no weight for long are left out.
    """
    H, G = kinds[0].problem.horizon, len(groups)
    best_h, everywhere = start_h, (np.zeros(H), np.full(H, np.inf))
    columns = [_silence(kinds, group, j) for j, group in enumerate(groups)]
    bound, new = _plan_all(kinds, groups, k, best_h)
    pieces = sum(float(column.pieces_h.sum()) for column in new)
    earned = sum(column.value for column in new) - sum(column.value for column in columns)
    width = max(earned / max(pieces, 1e-300), 0.0)
    mixture, idle_n = _Mixture(bound, best_h, columns), np.zeros(G)
    for _ in range(MOST_ROUNDS):
        columns, idle_n = columns + new, np.append(idle_n, np.zeros(G))
        box = np.maximum(best_h - width, 0.0), best_h + width
        mixture = _solve_master(columns, G, k, box)
        if bound - mixture.value <= GAP * abs(bound):
            mixture = _solve_master(columns, G, k, everywhere)
            if bound - mixture.value <= GAP * abs(bound):
                break
            width = float(np.abs(mixture.price_h - best_h).max())
        is_used = np.array([column.weight > 0.0 for column in mixture.columns])
        idle_n = np.where(is_used, 0.0, idle_n + 1.0)
        idle_n[:G] = 0.0
        columns = [column for column, idle in zip(columns, idle_n, strict=True) if idle < MOST_IDLE]
        idle_n = idle_n[idle_n < MOST_IDLE]
        total, new = _plan_all(kinds, groups, k, mixture.price_h)
        hoped = bound - mixture.value
        if total < bound:
            width *= GROWS if bound - total > 0.5 * hoped else 1.0
            bound, best_h = total, mixture.price_h
        else:
            width *= SHRINKS[int(total - bound > hoped)]
    used = [column for column in mixture.columns if column.weight > 0.0]
    return PriceSearch(best_h, bound, min(mixture.value, bound), used)


def _silence(kinds: Sequence[Kind], group: Ints, j: int) -> _Column:
    """Return what a group earns without advice: the best at infinite prices."""
    H = kinds[0].problem.horizon
    value = sum(kinds[i].planner.advise_least()[0] * kinds[i].people for i in group)
    return _Column(j, np.full(H, np.inf), value, np.zeros(H), 0.0)


def _plan_all(
    kinds: Sequence[Kind], groups: Sequence[Ints], k: int, price_h: Floats
) -> tuple[float, list[_Column]]:
    """Plan for everybody; return D(β) and a column for each group."""
    total, columns = k * float(price_h.sum()), []
    for j, group in enumerate(groups):
        value, pieces_h = 0.0, np.zeros(price_h.size)
        for i in group:
            net, _, outcome = kinds[i].plan(price_h)
            total += kinds[i].people * net
            value += kinds[i].people * outcome.value
            pieces_h += kinds[i].people * outcome.advice_rate
        columns.append(_Column(j, price_h, value, pieces_h, 0.0))
    return total, columns


def _solve_master(
    columns: Sequence[_Column], groups: int, k: int, box: tuple[Floats, Floats]
) -> _Mixture:
    """Minimise D(β) within a box as far as the plans so far show it.

    Minimise k Σ β_h + Σ_g t_g with t_g ≥ value − β · pieces for every column of group g. The
    minimum is a lower bound on that of D in the box. The first columns are those of silence.
    """
    from scipy.optimize import linprog  # takes a second to import

    value_n = np.array([column.value for column in columns])
    pieces_nh = np.array([column.pieces_h for column in columns])
    of_group = np.array([column.group for column in columns])
    H, N = pieces_nh.shape[1], len(columns)
    scale = max(float(np.ptp(value_n)), 1e-300)  # the programme has numbers of about 1
    first_g = value_n[:groups]  # taken off, so that large values lose no digits
    limits_nx = np.zeros((N, H + groups))
    limits_nx[:, :H] = pieces_nh / -k
    limits_nx[np.arange(N), H + of_group] = -1.0
    low_h, high_h = (side * (k / scale) for side in box)
    outcome = linprog(
        np.ones(H + groups),
        A_ub=limits_nx,
        b_ub=(first_g[of_group] - value_n) / scale,
        bounds=[*zip(low_h, high_h, strict=True), *[(None, None)] * groups],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if outcome.status != 0:
        raise CounselError(f"the prices per step were not found: {outcome.message}")
    price_h = np.maximum(outcome.x[:H], 0.0) * (scale / k)
    weight_n = np.where(outcome.ineqlin.marginals < -1e-12, -outcome.ineqlin.marginals, 0.0)
    value = float(outcome.fun) * scale + float(first_g.sum())
    pairs = zip(columns, weight_n.tolist(), strict=True)
    return _Mixture(value, price_h, [column._replace(weight=weight) for column, weight in pairs])


class Mix(NamedTuple):
    """What the mixture of plans brings one person, and the share that it advises in each cell."""

    value: float
    advice_count: float
    chance: Floats


def mix_plans(
    kinds: Sequence[Kind], groups: Sequence[Ints], columns: Sequence[_Column]
) -> list[Mix]:
    """Return the mixture of each kind of person."""
    mixes = list[Mix]()  # groups are runs of kinds
    for j, group in enumerate(groups):
        used = [column for column in columns if column.group == j]
        total = sum(column.weight for column in used)
        for i in group.tolist():
            problem, H, S = kinds[i].problem, kinds[i].problem.horizon, kinds[i].problem.n_states
            visited_mhs, advised_mhs = np.zeros((2, problem.n_levels, H, S))
            value, count = 0.0, 0.0
            for column in used:
                finite_h = np.where(np.isfinite(column.price_h), column.price_h, 0.0)
                _, policy, outcome = kinds[i].plan(finite_h)
                if not np.isfinite(column.price_h).all():
                    policy = Policy(np.full((H, S), problem.defer), n_actions=problem.n_actions)
                    outcome = forward(problem, kinds[i].planner.prepared.whole.model, policy)
                share, mass_mhs = column.weight / total, outcome.level_occupancy.swapaxes(0, 1)
                visited_mhs += share * mass_mhs
                advised_mhs += share * mass_mhs * (policy.planes < problem.defer)
                value += share * outcome.value
                count += share * outcome.advice_count
            chance = np.divide(
                advised_mhs, visited_mhs, out=np.zeros_like(visited_mhs), where=visited_mhs > 0.0
            )
            shape = (problem.n_levels, H, S) if problem.memory else (H, S)
            mixes.append(Mix(value, count, sealed(np.minimum(chance, 1.0).reshape(shape))))
    return mixes
