"""Off-policy evaluation: what a policy would have been worth, from a log of another.

Three estimates that fail in different ways:

* *model-based*: the policy played in the fitted model. Valid if the model is: states hold all that
  matters, and the adherence law holds.
* *weighted importance sampling*: episodes of the log, weighted by how much likelier the policy
  makes their advice. With ρ the probability of the advice under the policy over that under the
  log's, W_t = ρ_0 ⋯ ρ_t and n episodes,

      value = Σ_t Σ_i W_it r_it / Σ_i W_it

  Valid if advice depended only on the state and the step (and, if its probability is recorded, has
  that probability). It needs no model of the world or of people.
* *doubly robust* (the weighted form of Thomas and Brunskill, 2016): the model's prediction plus the
  weighted errors of the model. With V and Q of the policy in the model and w_it = W_it / Σ_j W_jt,
  w_i,−1 = 1 / n,

      value = Σ_i Σ_t w_it (r_it − Q_t(s_it, b_it)) + w_i,t−1 V_t(s_it)

  Valid if either the model or the probabilities are.

95 % intervals are bootstrapped over people (``bootstrap.py``). Where the effective sample size
(``importance_weights.py``) is too small, or the policy advises what the log never advised, the
log cannot say what the policy is worth, and the evaluation gives the reason instead of a number.

Only complete episodes are weighted: those without gaps that end or reach the horizon. A decision
without a reward has the reward of the model.
"""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from counsel._arrays import Floats, brief
from counsel._files import check_exists
from counsel.errors import CounselError
from counsel.logs.bootstrap import BlockDraws, ValueEstimate, estimate_from_draws
from counsel.logs.check import check_log
from counsel.logs.decisions import Decisions, load_decisions, refuse_unknown
from counsel.logs.fit import Fit, fit, refuse_faults
from counsel.logs.importance_weights import (
    effective_sample_size,
    importance_weights,
    logged_chances,
    policy_values,
)
from counsel.logs.read import Log, as_log
from counsel.logs.read_policy import read_policy
from counsel.logs.self_check import SelfCheck
from counsel.model.policy import Policy
from counsel.planning.evaluate import evaluate
from counsel.planning.reference_policies import always_best_action, never_advise

LEAST_SAMPLE = 50.0
"""The log says nothing about a policy with a smaller effective sample size."""

TRUSTED_SAMPLE = 200.0
"""From this effective sample size on, intervals are tested to cover."""

MOST_NEW = 0.02
"""The largest share of a policy's decisions that may be new to the log."""

MODELS = 200
"""Models of resampled logs behind the interval of the model-based estimate."""


@dataclass(frozen=True, slots=True)
class PolicyEstimate:
    """Estimates of the value of one policy.

    The weighted and the doubly robust estimates are None if the effective sample is below 50, the
    model-based one if the model contradicts its log.
    """

    name: str
    pieces: float  # pieces of advice per episode, in the model
    cost: float  # their cost
    model: ValueEstimate | None
    weighted: ValueEstimate | None
    doubly_robust: ValueEstimate | None
    effective: float  # the effective sample size, in episodes
    new: float  # the share of decisions whose advice, or silence, never occurs in that state

    @property
    def is_disputed(self) -> bool:
        """Whether the intervals of the model-based and the doubly robust estimate are disjoint."""
        if self.model is None or self.doubly_robust is None:
            return False
        one, other = self.model, self.doubly_robust
        return one.high < other.low or other.high < one.low


@dataclass(frozen=True, slots=True)
class LogEvaluation:
    """Estimates of a policy, beside silence, the best action at all times, and the log itself.

    ``whole`` episodes have no gaps and run to their end or the horizon; ``logged`` is their mean
    reward, None if there are none. ``recorded`` says whether the log holds the probability of its
    advice; otherwise the probability is estimated by state and step. ``refusal`` is why the log
    cannot say what the policy is worth; None if it can.
    """

    policy: PolicyEstimate
    never: PolicyEstimate
    always: PolicyEstimate
    logged: ValueEstimate | None
    logged_pieces: float
    logged_cost: float
    episodes: int
    whole: int
    recorded: bool
    refusal: str | None
    self_check: SelfCheck | None = None  # the model confronted with the log it was fitted to

    @property
    def disputed(self) -> tuple[PolicyEstimate, ...]:
        """The policies about which the model and the episodes of the log disagree."""
        return tuple(p for p in (self.policy, self.never, self.always) if p.is_disputed)

    @property
    def model_is_trusted(self) -> bool:
        """Whether the log does not contradict the model."""
        return self.self_check is None or self.self_check.is_trusted

    @property
    def is_trusted(self) -> bool:
        """Whether the effective sample is large enough for the intervals to cover."""
        return self.policy.effective >= TRUSTED_SAMPLE

    @property
    def has_costs(self) -> bool:
        """Whether the cost of advice differs from the number of pieces."""
        policies = (self.policy, self.never, self.always)
        costs = ((self.logged_pieces, self.logged_cost), *((p.pieces, p.cost) for p in policies))
        return any(pieces != cost for pieces, cost in costs)


def evaluate_policy(  # noqa: PLR0913 (a log, a policy, a model and how to draw)
    source: object,
    policy: Policy | str | os.PathLike[str],
    *,
    fitted: Fit | None = None,
    cost: Mapping[str, float] | None = None,
    rng: np.random.Generator | None = None,
    show: Callable[[int], None] | None = None,
) -> LogEvaluation:
    """Estimate what a policy would have been worth to the people in a log.

    Parameters
    ----------
    source
        The log: a path or a table as in ``fit``, or the result of ``read_log``, which maps columns
        and bins.
    policy
        A table written by ``counsel plan``, or a policy for the states and actions of the fit.
    fitted
        The model to judge the policy in, by default fitted to this log.
    cost
        Without ``fitted``: what a piece of each advice costs, as in ``fit``.
    rng
        The random generator; by default the results are always the same.
    show
        Called with the number of resampled models that are done, of 200.

    Returns
    -------
    LogEvaluation
        Estimates of the policy, of silence and of the best action at all times, or the reason why
        the log cannot answer.

    Raises
    ------
    CounselError
        If the log cannot be read or fitted, or the policy is invalid or does not fit the model.

    Examples
    --------
    Alerts at alarms only, evaluated on a log with alerts at any time:

    >>> import counsel
    >>> from counsel.logs.example_log import alarm_log
    >>> fit = counsel.fit(alarm_log())
    >>> policy = counsel.solve(fit.problem).policy
    >>> estimate = evaluate_policy(alarm_log(), policy, fitted=fit).policy
    >>> for value in (estimate.model, estimate.weighted, estimate.doubly_robust):
    ...     print(f"{value.value:.2f}, between {value.low:.1f} and {value.high:.1f}")
    0.62, between 0.6 and 0.7
    0.62, between 0.6 and 0.7
    0.62, between 0.6 and 0.7
    >>> round(estimate.effective), round(estimate.pieces, 2)
    (200, 0.5)
    """
    if not isinstance(policy, Policy | str | os.PathLike):
        raise CounselError(f"policy is {brief(policy)}; give a policy or the path of its table")
    log = as_log(source, None, None)
    if isinstance(policy, str | os.PathLike):
        check_exists(policy)
    if fitted is None:
        fitted = fit(log, cost=cost)
    else:
        refuse_faults(log, check_log(log))
        refuse_unknown(log, fitted)
    problem = fitted.problem
    if isinstance(policy, str | os.PathLike):
        policy = read_policy(Path(policy), fitted)
    problem.check_fits(policy)
    rng = np.random.default_rng(0) if rng is None else rng
    policies: dict[str, Policy] = {
        "policy": policy,
        "never advise": never_advise(problem),
        "always the best action": always_best_action(problem),
    }
    values = _values_in_models(fitted, list(policies.values()), rng, show)
    evidence = _Evidence.load(log, fitted, rng)
    estimates = [
        _estimate(
            name,
            policies[name],
            estimate_from_draws(drawn[0], drawn[1:], fitted.tally.n_blocks)
            if fitted.is_trusted
            else None,
            evidence,
        )
        for name, drawn in zip(policies, values.T, strict=True)
    ]
    return LogEvaluation(
        policy=estimates[0],
        never=estimates[1],
        always=estimates[2],
        logged=evidence.mean_return(),
        logged_pieces=evidence.mean_pieces(1.0),
        logged_cost=evidence.mean_pieces(problem.cost),
        episodes=evidence.decisions.all_episodes,
        whole=evidence.decisions.n_episodes,
        recorded=evidence.is_recorded,
        refusal=_refusal(estimates[0], evidence),
        self_check=fitted.self_check,
    )


def evaluate_by_episodes(
    log: Log, policy: Policy, fitted: Fit, rng: np.random.Generator
) -> tuple[PolicyEstimate, str | None]:
    """Estimate one policy from the episodes of its log; also return why they cannot, or None.

    No models are resampled, so the model-based estimate has no interval.
    """
    evidence = _Evidence.load(log, fitted, rng)
    model = ValueEstimate(evaluate(fitted.problem, policy).value, math.nan, math.nan)
    estimate = _estimate("policy", policy, model, evidence)
    return estimate, _refusal(estimate, evidence)


@dataclass(frozen=True, slots=True, eq=False)
class _Evidence:
    """A fitted log, its complete episodes, the probabilities of their advice, and their draws."""

    fit: Fit
    decisions: Decisions
    chance: Floats
    is_recorded: bool
    draws: BlockDraws

    @classmethod
    def load(cls, log: Log, fitted: Fit, rng: np.random.Generator) -> "_Evidence":
        decisions = load_decisions(log, fitted)
        chance, is_recorded = logged_chances(decisions, fitted.problem)
        draws = BlockDraws.draw(decisions.cluster, rng)
        return cls(fitted, decisions, chance, is_recorded, draws)

    def mean_return(self) -> ValueEstimate | None:
        """Return the mean reward per complete episode; None if there are none."""
        rows = self.decisions
        if not rows.n_episodes:
            return None
        returns = np.bincount(rows.episode, rows.reward, rows.n_episodes)
        sums = np.zeros((self.draws.n_blocks, 2))
        np.add.at(sums, self.draws.block, np.stack((returns, np.ones(returns.size)), axis=1))
        return self.draws.estimate(sums, lambda total: total[..., 0] / total[..., 1])

    def mean_pieces(self, cost: Floats | float) -> float:
        """Return the pieces of advice per complete episode, each counted by its cost [h, s, b]."""
        rows = self.decisions
        spoken = rows.advice < self.fit.problem.n_actions
        cell = (rows.place[spoken], rows.state[spoken], rows.advice[spoken])
        each = np.broadcast_to(cost, self.fit.problem.cost.shape)[cell]
        return float(each.sum() / max(rows.n_episodes, 1))


def _refusal(estimate: PolicyEstimate, evidence: _Evidence) -> str | None:
    """Return why the log cannot answer, in one sentence."""
    complete, episodes = evidence.decisions.n_episodes, evidence.decisions.all_episodes
    if complete == 0:
        return f"none of the {episodes:,} episodes is complete (without gaps, to its end)"
    if estimate.new > MOST_NEW:
        return (
            f"{estimate.new:.0%} of the policy's decisions give advice, or stay silent, where the "
            "log never does so in that state"
        )
    if estimate.effective < LEAST_SAMPLE:
        return (
            f"the effective sample is {estimate.effective:.3g} of {complete:,} episodes (at least "
            f"{LEAST_SAMPLE:g} are needed): too few episodes went as the policy would have advised"
        )
    return None


def _values_in_models(
    fitted: Fit,
    policies: list[Policy],
    rng: np.random.Generator,
    show: Callable[[int], None] | None,
) -> Floats:
    """Return the value of each policy in the model, first, and in models of resampled logs."""
    values = [[evaluate(fitted.problem, policy).value for policy in policies]]
    for i, (_, resampled) in enumerate(fitted.resample(MODELS, rng)):
        values.append([evaluate(resampled.problem, policy).value for policy in policies])
        if show is not None:
            show(i + 1)
    return np.array(values)


def _estimate(
    name: str, policy: Policy, model: ValueEstimate | None, evidence: _Evidence
) -> PolicyEstimate:
    problem, rows, chance = evidence.fit.problem, evidence.decisions, evidence.chance
    outcome = evaluate(problem, policy)
    weight = importance_weights(policy, rows, chance)
    effective = effective_sample_size(weight, policy, problem, rows, chance)
    weighted = robust = None
    if effective >= LEAST_SAMPLE:
        weighted, robust = _weighted_estimates(policy, weight, evidence)
    return PolicyEstimate(
        name=name,
        pieces=outcome.advice_count,
        cost=outcome.advice_cost,
        model=model,
        weighted=weighted,
        doubly_robust=robust,
        effective=effective,
        new=_share_new(policy, evidence.fit),
    )


def _weighted_estimates(
    policy: Policy, weight: Floats, evidence: _Evidence
) -> tuple[ValueEstimate, ValueEstimate]:
    """Return the weighted and the doubly robust estimate from sums over blocks."""
    rows, draws = evidence.decisions, evidence.draws
    q, v = policy_values(evidence.fit.problem, policy, rows)
    before = np.concatenate((np.ones((rows.n_episodes, 1)), weight[:, :-1]), axis=1)
    now, then = weight[rows.episode, rows.place], before[rows.episode, rows.place]
    sums = np.zeros((draws.n_blocks, 5, rows.horizon))
    where = (draws.block[rows.episode], rows.place)
    for i, column in enumerate((now * rows.reward, now * q, then * v)):
        np.add.at(sums[:, i], where, column)
    np.add.at(sums[:, 3], draws.block, weight)
    np.add.at(sums[:, 4], draws.block, before)

    def importance_sampling(total: Floats) -> Floats:
        paid: Floats = (total[..., 0, :] / np.maximum(total[..., 3, :], 1e-300)).sum(axis=-1)
        return paid

    def doubly_robust(total: Floats) -> Floats:
        error = (total[..., 0, :] - total[..., 1, :]) / np.maximum(total[..., 3, :], 1e-300)
        predicted = total[..., 2, :] / np.maximum(total[..., 4, :], 1e-300)
        value: Floats = (error + predicted).sum(axis=-1)
        return value

    return draws.estimate(sums, importance_sampling), draws.estimate(sums, doubly_robust)


def _share_new(policy: Policy, fitted: Fit) -> float:
    """Return the share of the policy's decisions that never occur in that state of the log."""
    occurs_sb = fitted.estimates.sent.sum(axis=0) > 0.0
    S = len(occurs_sb)
    outcome = evaluate(fitted.problem, policy)
    decisions = float(outcome.occupancy[:, :S].sum())
    silent = outcome.occupancy[:, :S].sum(axis=0) - outcome.pieces[:S].sum(axis=1)
    given = np.concatenate((outcome.pieces[:S], np.maximum(silent, 0.0)[:, None]), axis=1)
    return float(given[~occurs_sb].sum()) / max(decisions, 1e-300)
