"""Rewards that are not known: their averages, and an optimistic estimate.

A reward is random, its mean r_h(s, a) unknown, its range [low, high] known. After n payments that
average r̂, counted in units of the range, the estimate is the upper end of a confidence bound of a
probability: low + (high − low) · max{q : n kl(r̂, q) ≤ level}. The bounds of ``KL`` hold for any
random variable in [0, 1], not only for yes and no: given X in [0, 1] with mean μ, the expectation
of (q/μ)^X ((1−q)/(1−μ))^(1−X) is at most 1, as the exponential is convex. (The third line of
``Theory`` needs yes and no, so with that bound rewards are bounded by ``KL`` at the same δ.)
Adherence and rewards fail together with probability 2 δ at most. That the bound of ``KL(delta=…)``
holds at all n at once needs ∫ q^k (1−q)^(n−k) dq ≥ p^k (1−p)^(n−k) / (n+1) also for k that are not
whole: the n-th root of the integrand is concave in q and so lies above a tent. Where nothing more
can happen nothing is paid, and that is known.
"""

import numpy as np

from counsel._arrays import Floats, Ints, layers, unlayered
from counsel.estimate.bounds import KL, Bound, GroupBounds, Theory, level_at
from counsel.model.mdp import MDP
from counsel.model.problem import Setting
from counsel.model.rewards import check_observed


class OptimisticRewards:
    """How often each action [layer, s, a] was taken, and its total reward in units of the range."""

    def __init__(self, setting: Setting, bound: Bound) -> None:
        self._range = setting.reward_range
        self._low = self._range[0]
        self._span = self._range[1] - self._low
        self._mdp = setting.mdp
        shape = layers(setting.mdp.reward).shape
        self.times, self.paid = np.zeros(shape, dtype=np.int64), np.zeros(shape)
        reward_bound = KL(delta=bound.delta) if isinstance(bound, Theory) else bound
        self._bounds = GroupBounds(
            reward_bound, groups=self.times.size, horizon=setting.mdp.horizon
        )
        self._over = setting.mdp.over[: shape[0]]

    def count(self, step: Ints, state: Ints, action: Ints, reward: Floats) -> None:
        """Add the rewards of some decisions."""
        check_observed(step, state, action, reward, self._range)
        where = (step if len(self.times) > 1 else np.zeros_like(step), state, action)
        np.add.at(self.times, where, 1)
        np.add.at(self.paid, where, (reward - self._low) / self._span if self._span else 0.0)

    def upper(self, episode: int) -> Floats:
        """Return the optimistic rewards [layer, s, a]."""
        top = self._bounds.upper(self.paid, self.times, level_at(episode))
        rewards: Floats = self._low + self._span * top
        rewards[self._over] = 0.0
        return rewards

    def world(self, episode: int) -> MDP:
        """Return the world with optimistic rewards."""
        return self._mdp.paying(unlayered(self.upper(episode)))
