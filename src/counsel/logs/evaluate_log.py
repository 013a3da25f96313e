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

If the model has a memory, V and Q are those at the level of the episode so far. Where the memory
goes across episodes, or the model is of people late in the study, only the model answers.

95 % intervals are bootstrapped over people (``bootstrap.py``), and so are differences: all policies
have the same draws. Where the effective sample size (``importance_weights.py``) is too small, or
the policy advises what the log never advised, the log cannot say what the policy is worth, and the
evaluation gives the reason instead of a number.

Episodes that were cut off count up to where they were cut. A decision without a reward has the
reward of the model.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from counsel._arrays import Bools, brief
from counsel._files import check_exists
from counsel.errors import CounselError
from counsel.logs.bootstrap import Draws, ValueEstimate
from counsel.logs.check import check_log
from counsel.logs.decisions import refuse_unknown
from counsel.logs.evidence import Evidence
from counsel.logs.excursion import ExcursionEffect
from counsel.logs.fit import fit, refuse_faults
from counsel.logs.fitted_model import Fit
from counsel.logs.read import as_log
from counsel.logs.read_policy import read_policy
from counsel.logs.self_check import logged_return
from counsel.model.policy import Policy
from counsel.planning.evaluate import evaluate
from counsel.planning.reference_policies import always_best_action, never_advise

LEAST_SAMPLE = 50.0
"""The log says nothing about a policy with a smaller effective sample size."""

TRUSTED_SAMPLE = 200.0
"""From this effective sample size on, intervals are tested to cover: differences, and whether the
model and the log disagree, are decided by the episodes only from here on. Below, ``evaluate`` shows
their estimates with a warning, and a report none."""

MOST_NEW = 0.02
"""The largest share of a policy's decisions that may be new to the log."""

MODELS = 100
"""Models of resampled logs behind the interval of the model-based estimate."""


@dataclass(frozen=True, slots=True)
class Difference:
    """By how much one policy brings more than another, or than the log; None if it is unknown."""

    model: ValueEstimate | None
    doubly_robust: ValueEstimate | None

    @classmethod
    def between(
        cls, one: Sequence[Draws | None], other: Sequence[Draws | None] | None = None
    ) -> "Difference":
        """Return the difference of two values, each by model and doubly robust; or one value."""
        if other is None:
            return cls(*(None if number is None else number.estimate for number in one))
        pairs = zip(one, other, strict=True)
        return cls(*(None if a is None or b is None else (a - b).estimate for a, b in pairs))

    @property
    def is_disputed(self) -> bool:
        """Whether the two intervals are disjoint."""
        one, other = self.model, self.doubly_robust
        if one is None or other is None:
            return False
        return one.high < other.low or other.high < one.low

    @property
    def best(self) -> ValueEstimate | None:
        """The estimate to believe: the doubly robust one if they disagree, else the narrower."""
        one, other = self.model, self.doubly_robust
        if one is None or other is None or self.is_disputed:
            return one if other is None else other
        return one if one.high - one.low < other.high - other.low else other


@dataclass(frozen=True, slots=True)
class PolicyEstimate:
    """Estimates of the value of one policy.

    The weighted and the doubly robust estimates are None if the effective sample is below 50, or if
    episodes with and without advice cannot be compared; the model-based one if the log contradicts
    the model, or the policy does what the log never does.
    """

    name: str
    pieces: float  # pieces of advice per episode, in the model
    cost: float  # their cost
    model: ValueEstimate | None
    weighted: ValueEstimate | None
    doubly_robust: ValueEstimate | None
    effective: float  # the effective sample size, in episodes
    new: float  # the share of decisions whose advice, or silence, never occurs in that state
    beyond_today: Difference = Difference(None, None)  # beyond the log
    beyond_silence: Difference = Difference(None, None)  # beyond no advice

    @property
    def is_disputed(self) -> bool:
        """Whether the intervals of the model-based and the doubly robust estimate are disjoint."""
        is_trusted = self.effective >= TRUSTED_SAMPLE
        return is_trusted and Difference(self.model, self.doubly_robust).is_disputed


@dataclass(frozen=True, slots=True)
class LogEvaluation:
    """Estimates of a policy, beside silence, the best action at all times, and the log itself.

    ``whole`` episodes have no gaps and run to their end or the horizon; ``logged`` is the mean
    return of all over the whole horizon, None if no episode is whole. ``recorded`` says whether the
    log holds the probability of its advice; otherwise the probability is estimated by state and
    step. ``refusal`` is why the log cannot say what the policy is worth; None if it can.
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
    fit: Fit | None = None  # the model
    is_fair: bool = True  # whether episodes with and without advice can be compared
    effects: tuple[ExcursionEffect, ...] = ()  # of sending advice, at once
    other: PolicyEstimate | None = None  # a second policy
    beyond_other: Difference | None = None  # by how much the policy brings more than the second

    @property
    def disputed(self) -> tuple[PolicyEstimate, ...]:
        """The policies about which the model and the episodes of the log disagree."""
        return tuple(p for p in self.policies if p.is_disputed)

    @property
    def policies(self) -> tuple[PolicyEstimate, ...]:
        """All policies, the one in question first."""
        given = (self.policy,) if self.other is None else (self.policy, self.other)
        return (*given, self.never, self.always)

    @property
    def model_is_trusted(self) -> bool:
        """Whether the log does not contradict the model."""
        return self.fit is None or self.fit.is_trusted

    @property
    def is_trusted(self) -> bool:
        """Whether the effective sample is large enough for the intervals to cover."""
        return self.policy.effective >= TRUSTED_SAMPLE

    @property
    def has_costs(self) -> bool:
        """Whether the cost of advice differs from the number of pieces."""
        sent = ((p.pieces, p.cost) for p in self.policies)
        costs = ((self.logged_pieces, self.logged_cost), *sent)
        return any(pieces != cost for pieces, cost in costs)


def evaluate_policy(  # noqa: PLR0913 (a log, a policy, a model and how to draw)
    source: object,
    policy: Policy | str | os.PathLike[str],
    *,
    other: Policy | str | os.PathLike[str] | None = None,
    fitted: Fit | None = None,
    cost: Mapping[str, float] | None = None,
    unit: str = "decision",
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
    other
        A second policy to compare the first with.
    fitted
        The model to judge the policy in, by default fitted to this log.
    cost
        Without ``fitted``: what a piece of each advice costs, as in ``fit``.
    unit
        Without ``fitted``: what advice was assigned to, as in ``fit``.
    rng
        The random generator; by default the results are always the same.
    show
        Called with the number of resampled models that are done, of 100.

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
    given = {"policy": policy} if other is None else {"policy": policy, "other": other}
    for role, one in given.items():
        if not isinstance(one, Policy | str | os.PathLike):
            raise CounselError(f"{role} is {brief(one)}; give a policy or the path of its table")
        if not isinstance(one, Policy):
            check_exists(one)
    log = as_log(source, None, None)
    if fitted is None:
        fitted = fit(log, cost=cost, unit=unit)
    else:
        refuse_faults(log, check_log(log))
        refuse_unknown(log, fitted.tally)
    problem = fitted.problem
    names = _names(given)
    read = (_as_policy(one, fitted) for one in given.values())
    policies = dict(zip(names, read, strict=True))
    policies |= {"never advise": never_advise(problem)}
    policies |= {"always the best action": always_best_action(problem)}
    rng = np.random.default_rng(0) if rng is None else rng
    in_models = _values_in_models(fitted, list(policies.values()), rng, show)
    evidence = Evidence.load(log, fitted, rng)
    trusted = {
        name: fitted.is_trusted and _share_unknown(policy, fitted) <= MOST_NEW
        for name, policy in policies.items()
    }
    judged = {
        name: _Judged.by(policy, model if trusted[name] else None, evidence)
        for (name, policy), model in zip(policies.items(), in_models[:-1], strict=True)
    }
    today = _Judged(in_models[-1] if fitted.is_trusted else None, None, evidence.today(), np.inf)
    quiet = judged["never advise"]
    estimates = {
        name: _estimate(name, policies[name], judged[name], today, quiet, evidence)
        for name in policies
    }
    has_other = other is not None
    return LogEvaluation(
        policy=estimates[names[0]],
        other=estimates[names[1]] if has_other else None,
        beyond_other=judged[names[0]].beyond(judged[names[1]]) if has_other else None,
        never=estimates["never advise"],
        always=estimates["always the best action"],
        logged=evidence.today().estimate if evidence.rows.complete.any() else None,
        logged_pieces=evidence.mean_pieces(1.0),
        logged_cost=evidence.mean_pieces(problem.cost),
        episodes=evidence.rows.n_episodes,
        whole=int(evidence.rows.complete.sum()),
        recorded=evidence.is_recorded,
        refusal=refusal_of(estimates[names[0]].new, estimates[names[0]].effective, evidence),
        fit=fitted,
        is_fair=evidence.is_fair,
        effects=evidence.effects(),
    )


def _names(given: Mapping[str, Policy | str | os.PathLike[str]]) -> list[str]:
    """Return the names of policies in tables: those of their files, if there are two files."""
    stems = ["" if isinstance(one, Policy) else Path(one).stem for one in given.values()]
    return stems if len(set(stems)) == len(stems) > 1 and all(stems) else list(given)


def _as_policy(policy: Policy | str | os.PathLike[str], fitted: Fit) -> Policy:
    """Return a policy, read from its table if need be, that fits a model."""
    if not isinstance(policy, Policy):
        policy = read_policy(Path(policy), fitted)
    fitted.problem.check_fits(policy)
    return policy


@dataclass(frozen=True, slots=True, eq=False)
class _Judged:
    """The values of one policy with their draws, and the effective sample behind the last two."""

    model: Draws | None
    weighted: Draws | None
    robust: Draws | None
    effective: float

    @classmethod
    def by(cls, policy: Policy, model: Draws | None, evidence: Evidence) -> "_Judged":
        everyone = evidence.everyone()
        effective = evidence.sample_size([policy], [everyone])
        weighted = robust = None
        refusal = evidence.fit.weighting_refusal
        if effective >= LEAST_SAMPLE and evidence.is_fair and refusal is None:
            sums = evidence.sums(policy, evidence.fit.problem, everyone)
            weighted, robust = evidence.weighted(sums), evidence.doubly_robust(sums)
        return cls(model, weighted, robust, effective)

    def beyond(self, other: "_Judged") -> Difference:
        """Return the differences to another policy."""
        return Difference.between(*((one.model, one._trusted) for one in (self, other)))

    @property
    def _trusted(self) -> Draws | None:
        return self.robust if self.effective >= TRUSTED_SAMPLE else None


def refusal_of(
    new: float, effective: float, evidence: Evidence, least: float = LEAST_SAMPLE
) -> str | None:
    """Return why the log cannot judge a policy, in one sentence; None if it can.

    ``new`` is the share of its decisions that are new to the log, ``least`` the effective sample
    that is needed.
    """
    complete, episodes = int(evidence.rows.complete.sum()), evidence.rows.n_episodes
    if evidence.fit.weighting_refusal is not None:
        return evidence.fit.weighting_refusal
    if complete == 0:
        return f"none of the {episodes:,} episodes is complete (without gaps, to its end)"
    if new > MOST_NEW:
        return (
            f"{new:.0%} of the policy's decisions give advice, or stay silent, where the "
            "log never does so in that state"
        )
    if effective < least:
        return (
            f"the effective sample is {effective:.3g} of {episodes:,} episodes (at least "
            f"{least:g} are needed): too few episodes went as the policy would have advised"
        )
    return None


def _values_in_models(
    fitted: Fit,
    policies: list[Policy],
    rng: np.random.Generator,
    show: Callable[[int], None] | None,
) -> list[Draws]:
    """Return the value of each policy in the model and in models of resampled logs.

    Last comes the return of the log itself, and of the resampled logs.
    """
    values = [[evaluate(fitted.problem, policy).value for policy in policies]]
    values[0].append(fitted.logged_value)
    for i, (tally, resampled) in enumerate(fitted.resample(MODELS, rng)):
        values.append([evaluate(resampled.problem, policy).value for policy in policies])
        values[-1].append(logged_return(fitted.of_context(tally)))
        if show is not None:
            show(i + 1)
    return [Draws(drawn[0], drawn[1:], fitted.tally.n_blocks) for drawn in np.array(values).T]


def _estimate(  # noqa: PLR0913 (a policy, and all it is compared with)
    name: str,
    policy: Policy,
    judged: _Judged,
    today: _Judged,
    quiet: _Judged,
    evidence: Evidence,
) -> PolicyEstimate:
    outcome = evaluate(evidence.fit.problem, policy)
    values = (judged.model, judged.weighted, judged.robust)
    model, weighted, robust = (None if one is None else one.estimate for one in values)
    return PolicyEstimate(
        name=name,
        pieces=outcome.advice_count,
        cost=outcome.advice_cost,
        model=model,
        weighted=weighted,
        doubly_robust=robust,
        effective=judged.effective,
        new=share_new(policy, evidence.fit),
        beyond_today=judged.beyond(today),
        beyond_silence=judged.beyond(quiet),
    )


def share_new(policy: Policy, fitted: Fit) -> float:
    """Return the share of the policy's decisions that never occur in that state of the log."""
    return _share_without(policy, fitted, fitted.estimates.sent.sum(axis=0) > 0.0)


def _share_unknown(policy: Policy, fitted: Fit) -> float:
    """Return the share of the policy's decisions whose effect the model does not know.

    It does not know what silence brings where the habit is unknown, nor what advice brings that was
    never sent there and has no lift.
    """
    estimates = fitted.estimates
    L, S, _ = estimates.lift.shape
    habit_known: Bools = np.asarray(estimates.habit.known.reshape(L, S).any(axis=0))
    known = np.concatenate((estimates.usable.any(axis=0), habit_known[:, None]), axis=1)
    known[:, :-1] |= estimates.sent[..., :-1].sum(axis=0) > 0.0
    return _share_without(policy, fitted, known)


def _share_without(policy: Policy, fitted: Fit, known_sb: Bools) -> float:
    """Return the share of the policy's decisions that are not among the known ones [s, b]."""
    S = len(known_sb)
    outcome = evaluate(fitted.problem, policy)
    decisions = float(outcome.occupancy[:, :S].sum())
    silent = outcome.occupancy[:, :S].sum(axis=0) - outcome.pieces[:S].sum(axis=1)
    given = np.concatenate((outcome.pieces[:S], np.maximum(silent, 0.0)[:, None]), axis=1)
    return float(given[~known_sb].sum()) / max(decisions, 1e-300)
