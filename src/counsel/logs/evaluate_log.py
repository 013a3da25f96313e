"""What a policy would have been worth, from a log of another.

Three answers that fail in different ways:

* *model-based*: the policy played in the fitted model. Right if the model is: states tell all that
  matters, and the adherence law holds.
* *weighted importance sampling*: episodes of the log, weighted by how much likelier the policy
  makes what was said in them. With ρ the probability of what was said under the policy over that
  under the log's, W_t = ρ_0 ⋯ ρ_t and n episodes,

      value = Σ_t Σ_i W_it r_it / Σ_i W_it

  Right if advice depended on nothing but the state and the step (and, where it is recorded, has the
  probability it is said to have). No model of the world or of people is needed.
* *doubly robust* (the weighted form of Thomas and Brunskill, 2016): the same, with the model taken
  off first, so that only what it gets wrong is weighted. With V and Q of the policy in the model
  and w_it = W_it / Σ_j W_jt, w_i,−1 = 1 / n,

      value = Σ_i Σ_t w_it (r_it − Q_t(s_it, b_it)) + w_i,t−1 V_t(s_it)

  Right if either the model or the probabilities are.

95 % intervals come from drawing episodes with replacement: for the model by blocks of episodes (see
``counts.py``), for the others by up to 500 random blocks, whose sums are all that is needed.

The effective sample is (Σ W)² / Σ W² over whole episodes. Weights of many steps multiply, so it
shrinks fast with the horizon: then the log cannot say what the policy is worth, and this is said
instead of a number. Where a few rare episodes should carry most of the weight and none of them
happened to occur, the sample looks better than it is; so n / E W² is worked out in the model too,

    E W² = Σ_s start(s) u_0(s),   u_h(s) = Σ_b e(b | s)² / μ(b | s) Σ_t p^M(t | s, b) u_{h+1}(t)

for a policy e and a log that says b with probability μ, and the smaller of the two counts. (On the
ward, with silence in a crisis once in ten times, intervals for "never advise" covered 48 % of the
time at a sample of 168 by weights alone; the model puts it below 1.) A policy that says what the
log never said cannot be judged either.

Only whole episodes are weighted: those without gaps that ended or reached the horizon. A decision
without a reward has that of the model.
"""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from counsel._arrays import Floats, Ints, brief
from counsel._files import check_exists
from counsel.errors import CounselError
from counsel.logs.fit import Fit, fit
from counsel.logs.importance_weights import (
    Decisions,
    decisions_of,
    logged_chances,
    policy_chances,
    policy_values,
    second_moment,
)
from counsel.logs.read import Log, as_log
from counsel.logs.read_policy import read_policy
from counsel.logs.schema import Bins, Columns
from counsel.model.policy import Policy
from counsel.planning.best_action import always_best_action
from counsel.planning.evaluate import evaluate as value_of
from counsel.planning.silence import never_advise

REFUSED = 50.0
"""The effective sample below which nothing is said."""

TRUSTED = 200.0
"""The effective sample from which on intervals are tested to cover."""

NEW = 0.02
"""The share of what a policy does that may be new to the log."""

FEWEST = 10
"""Blocks of episodes below which drawing them says nothing."""

MODELS, DRAWS, BLOCKS = 200, 2000, 500
"""Draws of the model, draws of the weighted episodes, and into how many blocks these are put."""


@dataclass(frozen=True, slots=True)
class Worth:
    """An estimate of the reward of an episode, with its 95 % interval.

    Attributes
    ----------
    value
        The estimate.
    low
        The lower end of the interval; infinite where there are too few episodes to draw from.
    high
        The upper end.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Judged:
    """What one policy is worth.

    Attributes
    ----------
    name
        What it is called.
    pieces
        Pieces of advice an episode, in the model.
    model
        Worth in the model.
    weighted
        Worth by importance sampling; None where the effective sample is below 50.
    doubly_robust
        Worth by importance sampling of what the model gets wrong; None where the effective sample
        is below 50.
    effective
        The effective sample, in episodes; 0 where nothing could be weighted.
    new
        The share of its decisions that say what the log never said in that state.
    """

    name: str
    pieces: float
    model: Worth
    weighted: Worth | None
    doubly_robust: Worth | None
    effective: float
    new: float


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A policy beside what else could be done.

    Attributes
    ----------
    policy
        The policy.
    never
        Silence at all times.
    always
        The best action at all times.
    logged
        What the log itself brought: the mean over whole episodes; None where no episode is whole.
    logged_pieces
        Pieces of advice an episode in the log.
    episodes
        How many there are.
    whole
        How many of them are whole: without gaps, to their end or the horizon.
    recorded
        Whether the log records the probability of what was said; else it is estimated by state and
        step.
    refusal
        Why the log cannot say what the policy is worth; None where it can.
    """

    policy: Judged
    never: Judged
    always: Judged
    logged: Worth | None
    logged_pieces: float
    episodes: int
    whole: int
    recorded: bool
    refusal: str | None


def evaluate(  # noqa: PLR0913 (the log, how it is read, and what is asked)
    source: object,
    policy: Policy | str | os.PathLike[str],
    *,
    columns: Columns | str | None = None,
    bins: Bins | None = None,
    fitted: Fit | None = None,
    rng: np.random.Generator | None = None,
    show: Callable[[int], None] | None = None,
) -> Evaluated:
    """Estimate what a policy would have been worth to those in a log.

    Parameters
    ----------
    source
        The log, as for ``fit``.
    policy
        A table that ``counsel plan`` wrote, or a policy for the states and actions of the fit.
    columns
        Which columns are which, where they are called otherwise.
    bins
        Where columns of numbers are cut.
    fitted
        The model of this very log, where there is one already.
    rng
        Where draws come from; always the same when not given.
    show
        Called with the number of draws of the model that are done, of 200.

    Returns
    -------
    Evaluated
        The policy, silence and always the best action, each by three estimates that fail in
        different ways; or why the log cannot tell.

    Raises
    ------
    CounselError
        When the log cannot be read or fitted, or the policy is none or does not fit the model.

    Examples
    --------
    Alerts that go out at alarms only, judged from a log in which they went out at any time:

    >>> import pyarrow as pa
    >>> from counsel.logs import fit, plan
    >>> table = pa.table(
    ...     {
    ...         "episode": range(400),
    ...         "step": [0] * 400,
    ...         "state": ["alarm"] * 200 + ["quiet"] * 200,
    ...         "advice": (4 * [None] + 4 * ["check"]) * 50,
    ...         "action": ["check", "wait", "wait", "wait", "check", "check", "check", "wait"] * 50,
    ...         "reward": [1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0] * 25 + [0.5] * 200,
    ...     }
    ... )
    >>> found = fit(table)
    >>> judged = evaluate(table, plan(found).plan.policy, fitted=found).policy
    >>> for worth in (judged.model, judged.weighted, judged.doubly_robust):
    ...     print(f"{worth.value:.2f}, between {worth.low:.1f} and {worth.high:.1f}")
    0.62, between 0.6 and 0.7
    0.62, between 0.6 and 0.7
    0.62, between 0.6 and 0.7
    >>> round(judged.effective), round(judged.pieces, 2)
    (200, 0.5)
    """
    if not isinstance(policy, Policy | str | os.PathLike):
        raise CounselError(f"policy is {brief(policy)}; give a policy or a table of one")
    log = as_log(source, columns, bins)
    if isinstance(policy, str | os.PathLike):
        check_exists(policy)
    found = fit(log) if fitted is None else fitted
    problem = found.problem
    if isinstance(policy, str | os.PathLike):
        policy = read_policy(Path(policy), found)
    problem.check_fits(policy)
    rng = np.random.default_rng(0) if rng is None else rng
    asked: dict[str, Policy] = {
        "policy": policy,
        "never advise": never_advise(problem),
        "always the best action": always_best_action(problem),
    }
    models = _in_models(found, list(asked.values()), rng, show)
    rows = decisions_of(log, found)
    chance, recorded = logged_chances(rows, problem)
    # The same draws for all: policies that are the same get the same intervals.
    blocks, filled, times = _redrawn(rows, rng)
    judged = []
    for (name, one), values in zip(asked.items(), models.T, strict=True):
        low, high = ends_of(values[1:], found.tally.n_blocks)
        model = Worth(float(values[0]), float(low), float(high))
        judged.append(_judge(name, one, found, model, rows, chance, blocks, times))
    logged = None
    if rows.n_episodes:
        returns = np.bincount(rows.episode, rows.reward, rows.n_episodes)
        sums = np.zeros((filled, 2))
        np.add.at(sums, blocks, np.stack((returns, np.ones(returns.size)), axis=1))
        logged = _interval(sums, lambda total: total[..., 0] / total[..., 1], times)
    return Evaluated(
        policy=judged[0],
        never=judged[1],
        always=judged[2],
        logged=logged,
        logged_pieces=found.logged_pieces,
        episodes=round(found.tally.episodes),
        whole=rows.n_episodes,
        recorded=recorded,
        refusal=_refusal(judged[0], rows.n_episodes, round(found.tally.episodes)),
    )


def weigh(
    log: Log, policy: Policy, found: Fit, rng: np.random.Generator
) -> tuple[Judged, str | None]:
    """Judge one policy by the episodes of its log; or say why they cannot tell.

    No models are drawn, so that its worth in the model has no interval.

    Parameters
    ----------
    log
        The log.
    policy
        A policy for the states and actions of the fit.
    found
        The model of this very log.
    rng
        Where draws come from.
    """
    rows = decisions_of(log, found)
    chance, _ = logged_chances(rows, found.problem)
    blocks, _, times = _redrawn(rows, rng)
    model = Worth(value_of(found.problem, policy).value, math.nan, math.nan)
    judged = _judge("policy", policy, found, model, rows, chance, blocks, times)
    return judged, _refusal(judged, rows.n_episodes, round(found.tally.episodes))


def _redrawn(rows: Decisions, rng: np.random.Generator) -> tuple[Ints, int, Ints]:
    """Return the block of each episode, how many there are, and how often each is drawn [n, b]."""
    blocks = rng.permutation(rows.n_episodes) % BLOCKS
    filled = max(min(rows.n_episodes, BLOCKS), 1)
    return blocks, filled, rng.multinomial(filled, np.full(filled, 1.0 / filled), size=DRAWS)


def _refusal(judged: Judged, whole: int, episodes: int) -> str | None:
    """Say why the log cannot answer, in one sentence."""
    if whole == 0:
        return (
            f"none of the {episodes:,} episodes is whole: without gaps, to its end or the horizon"
        )
    if judged.new > NEW:
        return (
            f"in {judged.new:.0%} of its decisions the policy advises, or is silent, as the log "
            "never was in that state"
        )
    if judged.effective < REFUSED:
        return (
            f"the effective sample is {judged.effective:.3g} of {whole:,} episodes (at least "
            f"{REFUSED:g} are needed): too few episodes went as the policy would have had them"
        )
    return None


def _in_models(
    found: Fit,
    policies: list[Policy],
    rng: np.random.Generator,
    show: Callable[[int], None] | None,
) -> Floats:
    """Return the value of each policy in the model, first, and in models of resampled episodes."""
    values = [[value_of(found.problem, one).value for one in policies]]
    for i, (_, drawn) in enumerate(found.resampled(MODELS, rng)):
        values.append([value_of(drawn.problem, one).value for one in policies])
        if show is not None:
            show(i + 1)
    return np.array(values)


def _judge(  # noqa: PLR0913 (everything that was worked out before)
    name: str,
    policy: Policy,
    found: Fit,
    model: Worth,
    rows: Decisions,
    chance: Floats,
    blocks: Ints,
    times: Ints,
) -> Judged:
    problem = found.problem
    at = value_of(problem, policy)
    ratio = policy_chances(policy, rows) / chance
    n, H = rows.n_episodes, rows.horizon
    weight: Floats = np.ones((n, H))
    effective, weighted, robust = 0.0, None, None
    weight[rows.episode, rows.place] = ratio
    np.cumprod(weight, axis=1, out=weight)
    if n and weight[:, -1].any():
        final = weight[:, -1]
        foreseen = n / second_moment(policy, problem, rows, chance)
        effective = min(float(final.sum() ** 2 / (final**2).sum()), foreseen)
    if effective >= REFUSED:
        weighted, robust = _weighted(policy, found, rows, weight, blocks, times)
    return Judged(
        name=name,
        pieces=at.advice_count,
        model=model,
        weighted=weighted,
        doubly_robust=robust,
        effective=effective,
        new=_newness(policy, found),
    )


def _weighted(  # noqa: PLR0913
    policy: Policy,
    found: Fit,
    rows: Decisions,
    weight: Floats,
    blocks: Ints,
    times: Ints,
) -> tuple[Worth, Worth]:
    """Return the weighted and the doubly robust estimate from sums over blocks."""
    H = rows.horizon
    q, v = policy_values(found.problem, policy, rows)
    before = np.concatenate((np.ones((rows.n_episodes, 1)), weight[:, :-1]), axis=1)
    now, then = weight[rows.episode, rows.place], before[rows.episode, rows.place]
    sums = np.zeros((times.shape[1], 5, H))
    where = (blocks[rows.episode], rows.place)
    for i, column in enumerate((now * rows.reward, now * q, then * v)):
        np.add.at(sums[:, i], where, column)
    np.add.at(sums[:, 3], blocks, weight)
    np.add.at(sums[:, 4], blocks, before)

    def importance(total: Floats) -> Floats:
        paid: Floats = (total[..., 0, :] / np.maximum(total[..., 3, :], 1e-300)).sum(axis=-1)
        return paid

    def robust(total: Floats) -> Floats:
        off = (total[..., 0, :] - total[..., 1, :]) / np.maximum(total[..., 3, :], 1e-300)
        on: Floats = (off + total[..., 2, :] / np.maximum(total[..., 4, :], 1e-300)).sum(axis=-1)
        return on

    return _interval(sums, importance, times), _interval(sums, robust, times)


def _interval(sums: Floats, estimate: Callable[[Floats], Floats], times: Ints) -> Worth:
    """Return an estimate from sums over blocks, and the middle 95 % of it over draws of blocks."""
    drawn = (times @ sums.reshape(len(sums), -1)).reshape(len(times), *sums.shape[1:])
    low, high = ends_of(estimate(drawn), len(sums))
    return Worth(float(estimate(sums.sum(axis=0))), low, high)


def ends_of(drawn: Floats, blocks: int) -> tuple[float, float]:
    """Return the middle 95 % of draws; without ends where there were too few blocks to draw.

    Weibull's quantiles: of n draws the k-th lies at k / (n + 1), so that few draws are not too
    narrow.
    """
    if blocks < FEWEST:
        return -np.inf, np.inf
    low, high = np.quantile(drawn, (0.025, 0.975), method="weibull")
    return float(low), float(high)


def _newness(policy: Policy, found: Fit) -> float:
    """Return the share of the policy's decisions that say what was never said in that state."""
    ever_sb = found.estimates.sent.sum(axis=0) > 0.0
    S = len(ever_sb)
    at = value_of(found.problem, policy)
    lived = float(at.occupancy[:, :S].sum())
    silent = at.occupancy[:, :S].sum(axis=0) - at.pieces[:S].sum(axis=1)
    said = np.concatenate((at.pieces[:S], np.maximum(silent, 0.0)[:, None]), axis=1)
    return float(said[~ever_sb].sum()) / max(lived, 1e-300)
