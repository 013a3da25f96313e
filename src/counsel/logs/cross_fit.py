"""The value of a plan, chosen on one half of the log and judged on the other.

A plan is the best of many in the model of its log, so that model praises it too much: what looks
best is partly what chance favoured. People (or episodes) are therefore put into two halves. The
plan that one half suggests is judged on the other, in the model of that half and by its episodes,
and the other way round; the mean of both is the *cross-fitted* value. It is that of plans from half
as many data, so it errs on the safe side.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from counsel.logs.bootstrap import Draws, half_of, keep_half
from counsel.logs.count import Tally
from counsel.logs.evaluate_log import TRUSTED_SAMPLE, Difference
from counsel.logs.evidence import Evidence
from counsel.logs.plan import LogPlan, choose_advice, quiet_policy
from counsel.logs.self_check import logged_return
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.planning.evaluate import evaluate

HALVES = (0, 1)


@dataclass(frozen=True, slots=True)
class PlanWorth:
    """What a plan is worth, cross-fitted: in the model, and by the episodes (doubly robust).

    The model's numbers are None if the log contradicts it, those of the episodes if too few went as
    the plan would have advised, or if those with advice differ from the others in what is not
    recorded.
    """

    value: Difference
    beyond_today: Difference  # beyond the return of the log
    beyond_silence: Difference  # beyond no advice
    effective: float  # the effective sample size, in episodes


@dataclass(frozen=True, slots=True, eq=False)
class CrossFit:
    """The plan that each half of a log suggests, and the model of each half."""

    plan: LogPlan
    policies: tuple[Policy, ...]
    problems: tuple[AdviceProblem, ...]

    @classmethod
    def of(cls, plan: LogPlan, rng: np.random.Generator) -> "CrossFit":
        """Fit and plan on each half, within the limit of a plan."""
        fit = plan.fit
        halves = [fit.estimate(keep_half(fit.tally, half)).problem for half in HALVES]
        chosen = [choose_advice(plan, half, halves[half], rng) for half in HALVES]
        return cls(plan, tuple(chosen), tuple(halves))

    @property
    def value(self) -> float:
        """The reward per episode of the plan, in the models."""
        return self.in_models(self.plan.fit.tally)[0]

    def in_models(self, tally: Tally) -> tuple[float, float, float]:
        """Return the value of the plan, of silence and of the log, judged on the halves of counts.

        The counts are those of the fit, or drawn from them. Lifts are not pooled: pooled ones are
        drawn together, and a plan that advises where they are large would be judged too harshly.
        """
        values, quiet = np.zeros(3), quiet_policy(self.plan.fit)
        for half, policy in zip(HALVES, reversed(self.policies), strict=True):
            mine = keep_half(tally, half)
            problem = self.plan.fit.estimate(mine, shrink=False).problem
            played = (evaluate(problem, one).value for one in (policy, quiet))
            values += (*played, logged_return(mine))
        chosen, alone, logged = values / len(HALVES)
        return float(chosen), float(alone), float(logged)

    def worth(self, evidence: Evidence, drawn: Sequence[tuple[float, float, float]]) -> PlanWorth:
        """Return what the plan is worth, given the results of ``in_models`` on drawn counts."""
        model: tuple[Draws | None, ...] = (None, None, None)
        if self.plan.fit.is_trusted:
            found = zip(self.in_models(self.plan.fit.tally), np.array(drawn).T, strict=True)
            model = tuple(
                Draws(x, draws, self.plan.fit.tally.n_blocks, len(HALVES)) for x, draws in found
            )
        robust, effective = self._by_episodes(evidence)
        chosen, alone, logged = zip(model, robust, strict=True)
        return PlanWorth(
            value=Difference.between(chosen),
            beyond_today=Difference.between(chosen, logged),
            beyond_silence=Difference.between(chosen, alone),
            effective=effective,
        )

    def _by_episodes(self, evidence: Evidence) -> tuple[tuple[Draws | None, ...], float]:
        """Return the doubly robust value of the plan, of silence and of the log.

        Episodes of one half are weighted by the plan of the other half, and compared with its
        model. Also return the effective sample size of the plan.
        """
        half = half_of(evidence.rows.block)
        mine = [half == 1 - which for which in HALVES]
        quiet = quiet_policy(evidence.fit)
        sizes, values = [], list[Draws | None]()
        for policies in (self.policies, (quiet, quiet)):
            sizes.append(evidence.sample_size(policies, mine))
            parts = zip(policies, self.problems, mine, strict=True)
            sums = np.sum([evidence.sums(*part) for part in parts], axis=0)
            is_known = evidence.is_fair and sizes[-1] >= TRUSTED_SAMPLE
            values.append(evidence.values(sums)[1] if is_known else None)
        return (*values, evidence.today()), sizes[0]
