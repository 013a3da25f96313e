"""Plan advice on a fitted model.

*Cautious* plans advise only where the data leave little doubt that advice helps: people are drawn
with replacement (``bootstrap.py``), the model is fitted and planned at the same price on each draw,
and advice is given where its gain is larger than chance explains. Many pieces are judged at once,
and the luckiest of many looks good without any effect; so the limit is the one that the *largest*
of all gains, each in units of its standard error over the draws, exceeds by chance in one log of
twenty. Advice that one draw in twenty lacks in a state is not given there.

Reverse advice, which works by repelling, is given only on request: a table of past decisions does
not justify it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from counsel._arrays import Bools, Floats, check_rng
from counsel.errors import CounselError
from counsel.logs.bootstrap import TallySampler, few_blocks_factor, keep_half
from counsel.logs.fitted_model import Fit
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.planning.criticality import Criticality, criticality
from counsel.planning.evaluate import evaluate
from counsel.planning.gains import gains
from counsel.planning.plan import Plan
from counsel.planning.solve import solve

DRAWS = 200
"""Draws of the episodes behind a cautious plan."""

DOUBT = 0.05
"""The share of logs without any effect in which a cautious plan may advise at all."""

MOST_GAINS = 50_000_000
"""The most gains that are kept of all draws: of longer episodes, only some steps are drawn."""


@dataclass(frozen=True, slots=True, eq=False)
class LogPlan:
    """A plan on a fitted model.

    ``plan.policy`` is the advice, by the numbers of states and actions in ``fit.tally``;
    ``criticality`` is the largest penalty at which advice still pays [h, s], with a memory
    [m, h, s]; ``doubtful`` is the advice [h, s, a] that caution forbids, None for a plan that is
    not cautious. ``endless`` is the problem without end that was planned, if it was.
    """

    fit: Fit
    plan: Plan
    criticality: Criticality
    doubtful: Bools | None = None
    budget: float | None = None
    allow_reverse: bool = False
    endless: AdviceProblem | None = None

    @property
    def problem(self) -> AdviceProblem:
        """The problem that was planned."""
        return self.endless or self.fit.problem

    @property
    def has_costs(self) -> bool:
        """Whether some advice costs more or less than 1."""
        return not self.problem.has_unit_cost

    @property
    def advice_cost(self) -> float | None:
        """The cost of advice per episode; None if every piece costs 1."""
        return self.plan.advice_cost if self.has_costs else None

    @property
    def logged_cost(self) -> float | None:
        """The cost of advice per episode of the log; None if every piece costs 1."""
        return self.fit.logged_cost if self.has_costs else None

    @property
    def value_alone(self) -> float:
        """The reward per episode without advice, in the model.

        Where nobody was left without advice, what was done there is kept.
        """
        return evaluate(
            self.problem, quiet_policy(self.fit, endless=self.endless is not None)
        ).value

    @property
    def keeps_states(self) -> tuple[str, ...]:
        """The states where nobody was left without advice, so that the plan keeps what was done."""
        required = kept_advice(self.fit).get("required")
        if required is None:
            return ()
        states = np.flatnonzero(required.any(axis=0)).tolist()
        return tuple(self.fit.tally.states[s] for s in states)

    @property
    def keeps_all(self) -> bool:
        """Whether nobody was left without advice wherever there was any: nothing is planned."""
        given = self.fit.estimates.sent[..., :-1].sum(axis=(0, 2)) > 0.0
        kept = set(self.keeps_states)
        states = np.array(self.fit.tally.states)[given].tolist()
        return bool(kept) and all(state in kept for state in states)

    @property
    def share_of_unlimited(self) -> float | None:
        """The share of the value of unlimited advice that the plan keeps; None if that is 0."""
        return share_of(self.plan.value, self.value_alone, self._unlimited().value)

    @property
    def kept_cells(self) -> tuple[int, int]:
        """The number of steps and states where caution leaves some advice, and of all."""
        cells = self.fit.problem.horizon * len(self.fit.tally.states)
        if self.doubtful is None:
            return cells, cells
        return int((~self.doubtful & self.fit.problem.mdp.allowed).any(axis=2).sum()), cells

    @property
    def silence_reason(self) -> str:
        """Why the plan gives no advice, if it gives none."""
        if not self.fit.estimates.usable.any():
            return "the data do not show that any advice moves people"
        if self.doubtful is not None and self.doubtful.all():
            return "chance may explain the gain of every piece of advice"
        if self._unlimited().advice_count > 0.0:
            return "within this limit silence is best"
        return "silence is best everywhere"

    def _unlimited(self) -> Plan:
        masks = plan_masks(self.fit, endless=self.endless is not None)
        return solve(self.problem, allow_reverse=False, **masks)


def share_of(value: float, alone: float, best: float) -> float | None:
    """Return the share of the gain from ``alone`` to ``best`` that ``value`` keeps; None if 0."""
    if best - alone <= 1e-9 * (1.0 + abs(best)):
        return None
    return (value - alone) / (best - alone)


def plan_advice(  # noqa: PLR0913 (the options of solve, and caution)
    fit: Fit,
    *,
    penalty: float | None = None,
    budget: float | None = None,
    hard: bool = False,
    cautious: bool = False,
    allow_reverse: bool = False,
    discount: float | None = None,
    average: bool = False,
    rng: np.random.Generator | None = None,
    show: Callable[[int], None] | None = None,
) -> LogPlan:
    """Plan advice on a fitted model.

    Parameters
    ----------
    fit
        The model, from ``counsel.fit``.
    penalty
        The penalty for each piece of advice, in units of reward; not with a budget. A piece that
        costs c is charged c times.
    budget
        Pieces of advice per episode, on average. A piece that costs c counts c times.
    hard
        Whether no episode may exceed the budget, which is then a whole number.
    cautious
        Whether to give only advice whose gain chance does not explain; takes 200 fits.
    allow_reverse
        Whether to give advice that works by repelling, as in ``solve``.
    discount, average
        Plan work without end on the fitted model: a reward t steps from now counts the discount to
        the power of t, or the average per step counts. Not for a model that changes with the step.
    rng
        The random generator of a cautious plan; by default the results are always the same.
    show
        Called with the number of draws that are done, of 200.

    Returns
    -------
    LogPlan
        The plan, with the criticality of each step and state.

    Raises
    ------
    CounselError
        If the penalty or the budget is invalid, ``rng`` is not a generator, a cautious plan is
        asked for people with a memory or for work without end, or the model cannot be endless.

    Examples
    --------
    Advice pays at an alarm; in a quiet hour it makes no difference:

    >>> from counsel import fit
    >>> from counsel.logs.example_log import alarm_log
    >>> model = fit(alarm_log())
    >>> plan = plan_advice(model, budget=0.25)
    >>> round(plan.plan.price, 2), plan.plan.advice_count
    (0.49, 0.25)
    >>> dict(zip(model.tally.states, plan.criticality.lower[0].round(2).tolist()))
    {'alarm': 0.49, 'quiet': 0.0}
    """
    if cautious and fit.problem.memory is not None:
        raise CounselError(
            f"a cautious plan cannot be made for people with a memory ({fit.problem.memory.name}); "
            "leave out cautious, or fit without a memory"
        )
    limit: dict[str, Any] = {"penalty": penalty, "budget": budget, "hard": hard}
    limit["allow_reverse"] = allow_reverse
    rng = np.random.default_rng(0) if rng is None else rng
    check_rng(rng)
    if discount is not None or average:
        return _plan_without_end(fit, limit, discount, average=average, cautious=cautious)
    masks = kept_advice(fit)
    _check_enough(fit, masks, budget)
    best = solve(fit.problem, **limit, **masks)
    doubtful = None
    if cautious:
        doubtful = _doubtful_advice(fit, best, rng, show, allow_reverse=allow_reverse)
        masks = _with_doubt(masks, doubtful)
        best = solve(fit.problem, **limit, **masks)
    critical = criticality(fit.problem, allow_reverse=allow_reverse, **masks)
    return LogPlan(fit, best, critical, doubtful, budget, allow_reverse)


def _plan_without_end(
    fit: Fit, limit: dict[str, Any], discount: float | None, *, average: bool, cautious: bool
) -> LogPlan:
    """Plan the same model as work without end."""
    if cautious:
        raise CounselError(
            "a cautious plan needs a horizon; leave out cautious, or the discount and the average"
        )
    endless = endless_problem(fit, discount, average=average)
    masks = plan_masks(fit, endless=True)
    best = solve(endless, **limit, **masks)
    critical = criticality(endless, allow_reverse=limit["allow_reverse"], **masks)
    limits = (None, limit["budget"], limit["allow_reverse"])
    return LogPlan(fit, best, critical, *limits, endless=endless)


def endless_problem(fit: Fit, discount: float | None, *, average: bool) -> AdviceProblem:
    """Return the problem of a fit as work without end."""
    endless = fit.problem.without_end(discount, average=average)
    if average and endless.mdp.over.any():
        raise CounselError(
            "episodes of this log end, and nothing is earned after the end, so its average per "
            "step for ever is 0; give a discount instead"
        )
    return endless


def plan_masks(fit: Fit, *, endless: bool) -> dict[str, Any]:
    """Return the masks of ``kept_advice``, without steps for work without end."""
    masks = kept_advice(fit)
    return {name: mask[0] for name, mask in masks.items()} if endless else masks


def _check_enough(fit: Fit, masks: dict[str, Any], budget: float | None) -> None:
    """Raise an error if a budget is too small for the advice that is kept."""
    if not masks or not isinstance(budget, int | float):
        return
    cost = evaluate(fit.problem, quiet_policy(fit)).advice_cost
    if budget < cost:
        state = fit.tally.states[int(np.flatnonzero(masks["required"].any(axis=0))[0])]
        raise CounselError(
            f"budget is {budget:g}, and keeping the advice where nobody was left without any (for "
            f"example in {state!r}) costs {cost:.3g} per episode; raise the budget, or leave some "
            "people there without advice to learn what they do"
        )


def _with_doubt(masks: dict[str, Any], doubtful: Bools) -> dict[str, Any]:
    """Return masks that also forbid doubtful advice, except where advice is kept."""
    if not masks:
        return {"forbidden": doubtful}
    here = masks["required"][..., None]
    return {**masks, "forbidden": np.where(here, masks["forbidden"], doubtful)}


def quiet_policy(fit: Fit, *, endless: bool = False) -> Policy:
    """Return silence, except where nobody was left without advice: there what was done is kept.

    For work without end the policy has one step.
    """
    masks, (A, S) = kept_advice(fit), (fit.problem.n_actions, fit.problem.n_states)
    if endless:
        masks = {name: mask[:1] for name, mask in masks.items()}
    if not masks:
        steps = 1 if endless else fit.problem.horizon
        return Policy.never(horizon=steps, n_states=S, n_actions=A)
    advice = np.where(masks["required"], (~masks["forbidden"]).argmax(axis=2), A)
    return Policy(advice, n_actions=A)


def kept_advice(fit: Fit) -> dict[str, Any]:
    """Return where a plan must keep what was done: masks for ``solve``, empty if nowhere.

    Where nobody was left without advice, what silence brings is unknown, so the advice that was
    sent most is required there and any other is forbidden.
    """
    estimates, problem = fit.estimates, fit.problem
    L, S, A = estimates.lift.shape
    allowed = problem.mdp.allowed[:, :S]
    sent = np.broadcast_to(estimates.sent, (problem.horizon if L > 1 else L, S, A + 1))
    known = estimates.habit.known.reshape(L, S)
    advised = np.where(allowed[:L], sent[..., :A], 0.0)
    kept = ~known.any(axis=0) & (advised.sum(axis=2) > 0.0)
    if not kept.any():
        return {}
    required = np.zeros((problem.horizon, problem.n_states), dtype=np.bool_)
    required[:, :S] = kept
    forbidden = np.zeros((problem.horizon, problem.n_states, A), dtype=np.bool_)
    other = np.arange(A) != advised.argmax(axis=2)[..., None]
    forbidden[:, :S] = kept[..., None] & other
    return {"required": required, "forbidden": forbidden}


def choose_advice(
    plan: LogPlan, half: int, problem: AdviceProblem, rng: np.random.Generator
) -> Policy:
    """Return what one half of the log, with its own model, suggests within the limit of a plan."""
    best = best_plan(plan, problem)
    if plan.doubtful is not None:
        allow_reverse = plan.allow_reverse
        doubtful = _doubtful_advice(plan.fit, best, rng, allow_reverse=allow_reverse, half=half)
        best = best_plan(plan, problem, doubtful)
    return best.policy


def best_plan(plan: LogPlan, problem: AdviceProblem, doubtful: Bools | None = None) -> Plan:
    """Return the best plan in another model of the same log, within the limit of a plan."""
    masks = kept_advice(plan.fit)
    if doubtful is None:
        doubtful = plan.doubtful
    if doubtful is not None:
        masks = _with_doubt(masks, doubtful)
    limit: dict[str, Any] = {"allow_reverse": plan.allow_reverse, "hard": plan.plan.hard}
    limit |= {"penalty": plan.plan.penalty} if plan.budget is None else {"budget": plan.budget}
    if plan.budget is not None and "required" in masks:
        # What must be kept may cost a little more in this model.
        least = evaluate(problem, quiet_policy(plan.fit)).advice_cost
        limit["budget"] = max(plan.budget, math.ceil(least) if plan.plan.hard else least + 1e-9)
    return solve(problem, **limit, **masks)


def _doubtful_advice(  # noqa: PLR0913 (a fit, its plan, and how to draw)
    fit: Fit,
    best: Plan,
    rng: np.random.Generator,
    show: Callable[[int], None] | None = None,
    *,
    allow_reverse: bool,
    half: int | None = None,
) -> Bools:
    """Return the advice [h, s, a] of which the draws do not show that it helps."""
    tally = fit.tally if half is None else keep_half(fit.tally, half)
    own = fit.estimate(tally)
    price = 0.0 if best.hard else best.price

    def gain_of_advice(problem: AdviceProblem) -> Floats:
        values = solve(problem, penalty=price, allow_reverse=allow_reverse).values
        return gains(problem, values)[1]

    S, H = len(fit.tally.states), fit.problem.horizon
    given = np.broadcast_to(own.given, (len(own.given), S, fit.problem.n_actions)) > 0.5
    most = int(np.clip(MOST_GAINS // (DRAWS * max(int(given.sum()), 1)), 1, H))
    steps = np.unique(np.linspace(0, H - 1, most).astype(np.int64))
    layer = steps if len(given) > 1 else np.zeros_like(steps)
    cells = np.nonzero(given[layer] & fit.problem.mdp.allowed[steps, :S])
    pairs = (layer[cells[0]], cells[1], cells[2])
    cells = (steps[cells[0]], cells[1], cells[2])
    doubtful: Bools = np.ones(fit.problem.mdp.allowed.shape, dtype=np.bool_)
    if not cells[0].size:
        return doubtful
    found = gain_of_advice(own.problem)
    drawn = np.empty((DRAWS, cells[0].size), dtype=np.float32)
    missing = np.zeros(cells[0].size)
    sampler = TallySampler.of(tally)
    for i in range(DRAWS):
        resampled = fit.estimate(sampler.draw(rng))
        drawn[i] = gain_of_advice(resampled.problem)[cells]
        missing += resampled.given[pairs] < 0.5
        if show is not None:
            show(i + 1)
    apart = drawn - found[cells]
    error = np.maximum(apart.std(axis=0, ddof=1), 1e-12)
    largest = (apart / error).max(axis=1)
    blocks = tally.n_blocks if half is None else tally.n_blocks // 2
    limit = np.quantile(largest, 1.0 - DOUBT, method="weibull") * few_blocks_factor(max(blocks, 2))
    # Steps between those that were drawn have the error of the last one before.
    least = np.full((len(steps), *found.shape[1:]), np.inf)
    at = (np.searchsorted(steps, cells[0]), cells[1], cells[2])
    least[at] = np.where(missing <= DOUBT * DRAWS, limit * error, np.inf)
    near = np.searchsorted(steps, np.arange(H), side="right") - 1
    return np.asarray(found <= least[near])
