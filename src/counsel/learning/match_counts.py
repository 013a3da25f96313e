"""Counts of matches for each group of pairs that share one adherence or one lift.

A match says something about the adherence unless the person would take the advised action for
certain. Where a group shares one *lift* its pairs may differ in what the person does alone; a match
then has probability π + λ (1 − π), so matches are counted in one bin for each π, each bin bounds λ,
and the least bound holds.

For a person with a memory the pairs of each level are counted apart, unless a group shares them:
all tables [layer, s, a] then have M · A columns, that of action a on level m being m · A + a.
"""

import numpy as np

from counsel._arrays import Floats, Ints, layers
from counsel.errors import CounselError
from counsel.learning._adherence_kernels import Belief, Groups, set_groups
from counsel.learning.charges import Penalty
from counsel.learning.level_plan import LevelPlan
from counsel.learning.levels import columns_by_level
from counsel.learning.replanning import AdvicePlan, TwoSidedPlan, plan_for
from counsel.model._kernels import sum_others
from counsel.model.setting import Setting


class MatchCounts:
    """Counts of matches, the bounds they give, and the plan for these bounds.

    With ``two_sided`` the plan takes both ends of an interval of each lift.
    """

    def __init__(self, setting: Setting, *, penalty: Penalty, two_sided: bool = False) -> None:
        self._n_actions, memory = setting.policy.shape[2], setting.memory
        group, M = setting.groups, 1
        if memory is not None:
            group, M = columns_by_level(group), memory.n_levels
        if (group == group[:1]).all():
            group = group[:1]
        tables = np.broadcast_arrays(np.tile(layers(setting.policy), M), group)
        own_lsa = np.ascontiguousarray(tables[0], dtype=np.float64)
        group_lsa, rest_lsa = tables[1], np.empty(own_lsa[..., : self._n_actions].shape)
        self.own_lsa = np.ascontiguousarray(own_lsa[..., : self._n_actions])
        sum_others(self.own_lsa, rest_lsa)
        rest_lsa, allowed = np.tile(rest_lsa, M), np.tile(layers(setting.mdp.allowed), M)
        ever_allowed = allowed if len(own_lsa) > 1 else allowed.any(axis=0, keepdims=True)
        informative = ever_allowed & (rest_lsa > 0.0)
        if not informative.any():
            raise CounselError("this person does the same whatever is advised: nothing to learn")
        habit = np.zeros(own_lsa.shape, dtype=np.int64)
        if setting.shares_lift:
            habit = np.unique(own_lsa, return_inverse=True)[1].reshape(own_lsa.shape)
        bins, bin_of_pair = np.unique(
            np.stack((group_lsa[informative], habit[informative])), axis=1, return_inverse=True
        )
        bin_lsa = np.full(informative.shape, -1, dtype=np.int32)
        bin_lsa[informative] = bin_of_pair.reshape(-1)
        ids, group_of_bin = np.unique(bins[0], return_inverse=True)
        pair_of_bin = np.empty(bins.shape[1], dtype=np.int64)
        pair_of_bin[bin_of_pair.reshape(-1)] = np.flatnonzero(informative)
        self.plan: AdvicePlan
        if memory is not None:
            self.plan = LevelPlan(
                setting.mdp,
                self.own_lsa,
                memory,
                penalty=penalty,
                cost=setting.cost,
                two_sided=two_sided,
            )
        else:
            build = TwoSidedPlan if two_sided else plan_for
            self.plan = build(setting.mdp, own_lsa, penalty=penalty, cost=setting.cost)
        bin_of_cell = self.plan.aligned(bin_lsa)
        counted = (bin_of_cell >= 0) & self.plan.aligned(allowed)
        group_of_cell = np.where(counted, group_of_bin[bin_of_cell], -1)
        order = np.argsort(group_of_cell, kind="stable")
        order = order[group_of_cell[order] >= 0]
        self.groups = Groups(
            bin_lsa=bin_lsa,
            group_of_bin=group_of_bin,
            first_bin=_firsts(group_of_bin, ids.size),
            own_of_bin=own_lsa.reshape(-1)[pair_of_bin],
            rest_of_bin=rest_lsa.reshape(-1)[pair_of_bin],
            first_cell=_firsts(group_of_cell[order], ids.size),
            cell=order,
            own_of_cell=self.plan.aligned(own_lsa)[order],
            rest_of_cell=self.plan.aligned(rest_lsa)[order],
            shares_lift=bool(setting.shares_lift),
        )
        size = group_of_bin.size
        given, matched = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        self.belief = Belief(given, matched, np.ones(size), np.zeros(size, dtype=np.bool_))

    @property
    def n_bins(self) -> int:
        """The number of adherences that are bounded at once."""
        return self.belief.upper.size

    def count(
        self, step: Ints, state: Ints, advice: Ints, action: Ints, level: Ints | None = None
    ) -> None:
        """Count pieces of advice and matches; ``level`` is that of a person with a memory."""
        advised = np.flatnonzero(advice < self._n_actions)
        column = advice if level is None else level * np.int64(self._n_actions) + advice
        columns = (step, state, advice, action, column)
        step, state, advice, action, column = (each[advised] for each in columns)
        bins = self.groups.bin_lsa[step if len(self.groups.bin_lsa) > 1 else 0, state, column]
        informative = bins >= 0
        self.belief.given[:] += np.bincount(bins[informative], minlength=self.n_bins)
        matched = bins[informative & (action == advice)]
        self.belief.matched[:] += np.bincount(matched, minlength=self.n_bins)

    def set_bounds(self, upper: Floats) -> None:
        """Take upper bounds of the adherence of each bin, and copy them into the plan."""
        groups = self.groups
        if groups.shares_lift:
            with np.errstate(over="ignore"):  # habits may be all but certain
                lift = (upper - groups.own_of_bin) / groups.rest_of_bin
            upper = np.where(upper < 1.0, lift, upper)
        self.belief.upper[:] = upper
        self.set_plan()

    def set_plan(self) -> None:
        """Copy the upper bounds into the plan as lifts."""
        set_groups(self.groups, self.belief, self.plan.pull)

    def upper_lifts(self) -> Floats:
        """Return the upper bounds as lifts of the cells, where groups share one lift."""
        groups, upper = self.groups, self.belief.upper
        upper_g = np.minimum(np.minimum.reduceat(upper, groups.first_bin[:-1]), 1.0)
        lift: Floats = np.repeat(upper_g, np.diff(groups.first_cell))
        return lift

    def lower_lifts(self, low: Floats) -> Floats:
        """Return lower bounds of the bins as lifts of the cells: the largest of a group holds."""
        groups = self.groups
        if groups.shares_lift:
            low = (low - groups.own_of_bin) / groups.rest_of_bin
        low = np.repeat(np.maximum.reduceat(low, groups.first_bin[:-1]), np.diff(groups.first_cell))
        lift: Floats = low
        if not groups.shares_lift:
            lift = (low - groups.own_of_cell) / groups.rest_of_cell
        return lift


def _firsts(groups: Ints, count: int) -> Ints:
    """Return where each group begins in a sorted list, and the end."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(np.bincount(groups, minlength=count))))
