"""Compiled loops of learners of adherence, whose advice may change with every episode.

``ucb_episodes`` plays the world and the learner in turn. The learner's part reads what it saw and
what it was built with; only the world's part reads the truth.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel._jit import as_int64, kernel, rebuilt
from counsel.estimate._bound_kernels import KL_LEVEL, Rule, upper_bound
from counsel.model._kernels import layer_of
from counsel.planning._cell_kernels import CellPlan, replan_cells
from counsel.simulate._episode_kernels import Scene, draw_action, draw_row, draw_start

CUSTOM = Rule(KL_LEVEL, 0.0, 0.0)
"""The rule of a bound of one's own, which like ``KL()`` may change with the level."""


class Groups(NamedTuple):
    """Which pairs share one adherence, and where that enters the plan.

    ``bin_lsa`` is where a match is counted, −1 where it says nothing: bins of one group differ in
    what the person does alone. The bins of group g are ``first_bin[g]`` up to ``first_bin[g + 1]``
    and its cells in the plan ``cell[first_cell[g]:first_cell[g + 1]]``, numbered as ``pull`` is
    laid out; ``own`` and ``rest`` are π and Σ_{b≠a} π(b), of a bin or of a cell.
    """

    bin_lsa: Ints
    group_of_bin: Ints
    first_bin: Ints
    own_of_bin: Floats
    rest_of_bin: Floats
    first_cell: Ints
    cell: Ints
    own_of_cell: Floats
    rest_of_cell: Floats
    shares_lift: bool


class Belief(NamedTuple):
    """The counts of each bin and their upper bound: of the adherence, or of the lift.

    ``dirty`` marks bins that were counted in since their bound was computed.
    """

    given: Ints
    matched: Ints
    upper: Floats
    dirty: Bools


@kernel
def set_group(groups: Groups, belief: Belief, g: int, pull: Floats) -> None:
    """Carry the upper bound of a group into the plan: the least of its bins holds."""
    upper = np.inf
    for i in range(groups.first_bin[g], groups.first_bin[g + 1]):
        upper = min(upper, belief.upper[i])
    for j in range(groups.first_cell[g], groups.first_cell[g + 1]):
        lift = upper
        if not groups.shares_lift:
            own, rest = groups.own_of_cell[j], groups.rest_of_cell[j]
            lift = 1.0 if upper == 1.0 else (upper - own) / rest
        # Advice is taken not to repel; where the bound says so all the same it is left out.
        pull[groups.cell[j]] = min(lift, 1.0) if lift > 0.0 else np.nan


@kernel
def set_groups(groups: Groups, belief: Belief, pull: Floats) -> None:
    """Carry all bounds into the plan."""
    for g in range(groups.first_bin.size - 1):
        set_group(groups, belief, g, pull)


@kernel
def set_bin(rule: Rule, groups: Groups, belief: Belief, i: int, level: float) -> bool:
    """Compute the bound of one bin; return whether it has changed."""
    theta = upper_bound(rule, belief.matched[i], belief.given[i], level)
    upper = theta
    if groups.shares_lift and theta < 1.0:
        upper = (theta - groups.own_of_bin[i]) / groups.rest_of_bin[i]
    moved = upper != belief.upper[i]
    belief.upper[i] = upper
    return bool(moved)


@kernel
def set_all(rule: Rule, groups: Groups, belief: Belief, level: float, pull: Floats) -> None:
    """Compute the bounds of all bins."""
    for i in range(belief.upper.size):
        set_bin(rule, groups, belief, i, level)
    set_groups(groups, belief, pull)


@kernel
def ucb_episodes(
    scene: Scene,
    u_nw: Floats,
    rule: Rule,
    groups: Groups,
    belief: Belief,
    plan: CellPlan,
    clock: Ints,
    every: int,
    first: int,
) -> int:
    """Play episodes from ``first`` on; after every ``every``, bound what was seen and plan again.

    Returns the first episode whose advice is new, before it is played, or the number of episodes.
    ``clock`` holds the episodes so far, what is due, and the last power of two. Due is nothing (0),
    or a plan and the bounds of the bins where something was seen, which ``dirty`` marks (1), or a
    plan and all bounds (2).
    """
    H = plan.advice_hs.shape[0]
    A = scene.person_lsc.shape[2] // 2
    draws = (u_nw.shape[1] - 2) // H
    dirty, listed, n_dirty = np.empty(belief.given.size, np.int64), belief.dirty, 0
    for i in range(listed.size):
        if listed[i]:
            dirty[n_dirty] = i
            n_dirty += 1
    pull = plan.pull_ca.reshape(-1)
    for n in range(first, u_nw.shape[0]):
        if clock[1] and clock[0] % every == 0:
            level = np.log1p(float(clock[2]))
            if clock[1] == 2:
                set_all(rule, groups, belief, level, pull)
            for j in range(n_dirty):
                i = dirty[j]
                listed[i] = False
                if clock[1] == 1 and set_bin(rule, groups, belief, i, level):
                    set_group(groups, belief, groups.group_of_bin[i], pull)
            n_dirty, clock[1] = 0, 0
            if replan_cells(plan):
                return n
        s = draw_start(scene, u_nw[n, 1])
        for h in range(H):
            b = plan.advice_hs[h, s]
            layer = layer_of(scene.person_lsc.shape[0], h)
            a = draw_action(scene.person_lsc, layer, s, b, u_nw[n, 2 + draws * h])
            t = as_int64(scene.leads_lsa[layer_of(scene.leads_lsa.shape[0], h), s, a])
            if t < 0:
                t = draw_row(scene, -1 - t, u_nw[n, 3 + draws * h])
            if b < A:
                i = groups.bin_lsa[layer_of(groups.bin_lsa.shape[0], h), s, b]
                if i >= 0:
                    belief.given[i] += 1
                    belief.matched[i] += a == b
                    if not listed[i]:
                        listed[i] = True
                        dirty[n_dirty] = i
                        n_dirty += 1
            s = t
        clock[0] += 1
        if n_dirty > 0 and clock[1] == 0:
            clock[1] = 1
        if clock[0] == 2 * clock[2] or clock[0] == 1:
            clock[2] = clock[0]
            if rule.kind == KL_LEVEL:
                clock[1] = 2
    return int(u_nw.shape[0])


@lru_cache(maxsize=8)
def ucb_episodes_with(upper_end: Callable[[float, int, float], float]) -> Any:  # noqa: ANN401
    """Return ``ucb_episodes`` compiled with a Numba function in place of the built-in bounds.

    As a rule it takes ``CUSTOM``.
    """

    def bound(rule: Rule, k: float, n: int, level: float) -> float:
        return upper_end(float(k), n, level) if n > 0 else 1.0

    set_own_bin = rebuilt(set_bin, upper_bound=rebuilt(bound))
    set_own_bins = rebuilt(set_all, set_bin=set_own_bin)
    return rebuilt(ucb_episodes, set_bin=set_own_bin, set_all=set_own_bins)
