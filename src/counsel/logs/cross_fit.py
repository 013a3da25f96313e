"""The value of a plan, chosen on one half of the log and judged on the other.

A plan is the best of many in the model of its log, so that model praises it too much: what looks
best is partly what chance favoured. People (or episodes) are therefore put into two halves. The
plan that one half suggests is judged on the other, in the model of that half and by its episodes,
and the other way round; the mean of both is the *cross-fitted* value. It is that of plans from half
as many data, so it errs on the safe side.

Both halves choose and both judge, so the two values are not independent: where a half favours some
advice by chance, it also praises the other half's plan for it. In resampled logs the plans are
therefore chosen anew; with the plans of the log kept, intervals were a sixth too narrow where
advice has no effect.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from counsel.logs.bootstrap import Draws, half_of, keep_half
from counsel.logs.count import Tally
from counsel.logs.evaluate_log import TRUSTED_SAMPLE, Difference
from counsel.logs.evidence import Evidence
from counsel.logs.plan import LogPlan, best_plan, choose_advice, quiet_policy
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
    silence: Difference  # the value of no advice
    today_beyond_silence: Difference  # of the log beyond no advice
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

    def in_models(self, tally: Tally, *, replan: bool = False) -> tuple[float, float, float]:
        """Return the value of the plan, of silence and of the log, judged on the halves of counts.

        The counts are those of the fit, or drawn from them; with ``replan``, the plan is chosen on
        each half of these counts anew. Lifts are not pooled: pooled ones are drawn together, and a
        plan that advises where they are large would be judged too harshly.
        """
        fit, quiet = self.plan.fit, quiet_policy(self.plan.fit)
        halves = [keep_half(tally, half) for half in HALVES]
        problems = [fit.estimate(half, shrink=False).problem for half in halves]
        policies = self.policies
        if replan:
            policies = tuple(best_plan(self.plan, problem).policy for problem in problems)
        values, episodes = np.zeros(3), 0.0
        for half, problem, policy in zip(halves, problems, reversed(policies), strict=True):
            played = (evaluate(problem, one).value for one in (policy, quiet))
            mine = fit.of_context(half)
            values += mine.episodes * np.array([*played, logged_return(mine)])
            episodes += mine.episodes
        chosen, alone, logged = values / max(episodes, 1e-300)
        return float(chosen), float(alone), float(logged)

    def worth(self, evidence: Evidence, drawn: Sequence[tuple[float, float, float]]) -> PlanWorth:
        """Return what the plan is worth, given the results of ``in_models`` on drawn counts."""
        model: tuple[Draws | None, ...] = (None, None, None)
        if self.plan.fit.is_trusted:
            tally = self.plan.fit.tally
            found = zip(self.in_models(tally), np.array(drawn).T, strict=True)
            model = tuple(
                Draws(x, draws - draws.mean() + x, tally.n_blocks, len(HALVES))
                for x, draws in found
            )
        robust, effective = self._by_episodes(evidence)
        chosen, alone, logged = zip(model, robust, strict=True)
        return PlanWorth(
            value=Difference.between(chosen),
            beyond_today=Difference.between(chosen, logged),
            beyond_silence=Difference.between(chosen, alone),
            silence=Difference.between(alone),
            today_beyond_silence=Difference.between(logged, alone),
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
            is_known = is_known and evidence.fit.weighting_refusal is None
            values.append(evidence.doubly_robust(sums) if is_known else None)
        return (*values, evidence.today()), sizes[0]
