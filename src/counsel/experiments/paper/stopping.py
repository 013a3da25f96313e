"""The stopping times of RFE-AD and RFE-β: run where the rule fires, computed where it does not.

RFE-AD stops when W_1 + 4 e √W_1 ≤ ε / 2, RFE-β when it is at most ε / (2 H), so that penalties up
to H − 1 are served. Both explore in the same way, so one run has both stopping times. With the
bonus of the theorem (factor 1) neither rule fires in fewer than 10⁸ episodes; runs use ``FACTOR``
of it, at which both fire on small worlds, and the times for factor 1 are computed.

``equal_counts_time`` computes the time after which the rule fires if all rows of a step are seen
equally often: B rows at the first step, where all episodes are in one state, and S B at the others.

The bounds are those of the formal Theorem 2 and, for RFE-AD, of the lemma behind it, with |Ā| = B
and the constant that only the lemma prints:

    τ ≤ H^k S B / ε² (6 log(4 H S B / (ε δ)) + S) C_1 + 1,   k = 3 (RFE-AD) or 5 (RFE-β),
    C_1 = 9000 e⁶ log²(e¹⁸ (log(4 H S B τ / δ) + S) H⁴ S B / ε),   ε / H for ε in C_1 (RFE-β)
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from counsel.experiments.paper.scaling_worlds import mixing_problem
from counsel.experiments.rows import Rows
from counsel.learning._rfe_kernels import phi
from counsel.learning.reward_free import error_bound
from counsel.learning.rfe import RFE, bonus_constants
from counsel.simulate.simulator import Simulator

DELTA = 0.1
ACTIONS = 2
CHOICES = ACTIONS + 1  # B: all advice, and silence
FACTOR = 1e-6  # of the bonus, in runs
BLOCK = 50  # the rule is checked whenever the episodes have grown by one part in so many


@dataclass(frozen=True, slots=True)
class Rule:
    """A stopping rule: its label, and whether it serves all penalties below H."""

    label: str
    serves_penalties: bool

    def most_penalty(self, H: int) -> float:
        """Return the largest penalty that is served."""
        return H - 1.0 if self.serves_penalties else 0.0

    @property
    def power(self) -> int:
        """The power of H in the theorem."""
        return 5 if self.serves_penalties else 3


RULES = {"rfe-ad": Rule("RFE-AD", False), "rfe-beta": Rule("RFE-β", True)}  # noqa: FBT003 (a table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """One exploration: the episodes after which each rule fires.

    NaN where that takes more than ``episodes``; it is not tried where the computed time is longer.
    """

    id: str
    horizon: int
    states: int
    epsilon: float
    episodes: int
    seed: int

    def rows(self) -> Rows:
        H, S = self.horizon, self.states
        problem = mixing_problem(H, S, ACTIONS, self.seed)
        own, play = np.random.default_rng(self.seed).spawn(2)
        learner = RFE(problem.shape, rng=own, delta=DELTA, epsilon=self.epsilon, scale=FACTOR)
        simulator = Simulator(problem)
        times = {}
        for name, rule in RULES.items():
            learner.most_penalty = rule.most_penalty(H)
            computed = equal_counts_time(rule, H, S, self.epsilon, factor=FACTOR)
            most = self.episodes if computed <= self.episodes else 0
            while not learner.done and learner.episode < most:
                left = most - learner.episode
                block = min(max(1, learner.episode // BLOCK), left)
                learner.explore(simulator, episodes=block, rng=play)
            times[name] = np.array([float(learner.episode) if learner.done else np.nan])
        return times


@cache
def equal_counts_time(rule: Rule, H: int, S: int, epsilon: float, *, factor: float = 1.0) -> float:
    """Return the episodes after which a rule fires if all rows of a step have equal counts."""
    B = CHOICES
    scale, base = bonus_constants((H, S, B), epsilon=epsilon, delta=DELTA, scale=factor)
    threshold = epsilon / (2.0 * (1.0 + rule.most_penalty(H)))
    later = sum((1.0 + 1.0 / H) ** h for h in range(1, H))

    def goes_on(episodes: float) -> bool:
        first, other = (
            scale * phi(episodes / rows, base, S) * rows / episodes for rows in (B, S * B)
        )
        return error_bound(first + later * other) > threshold

    low, high = 1.0, 1.0
    while goes_on(high):
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if goes_on(middle) else (low, middle)
    return high


def theorem_bound(rule: Rule, H: int, S: int, epsilon: float, episodes: float) -> float:
    """Return the bound of the formal theorem on the stopping time; ``episodes`` is τ in C_1."""
    B, e = CHOICES, epsilon / (1.0 + rule.most_penalty(H))
    wide = math.log(4.0 * H * S * B * episodes / DELTA) + S
    constant = 9000.0 * math.exp(6.0) * (18.0 + math.log(wide * H**4 * S * B / e)) ** 2
    spread = 6.0 * math.log(4.0 * H * S * B / (epsilon * DELTA)) + S
    return float(H) ** rule.power * S * B / epsilon**2 * spread * constant + 1.0
