"""Decide on one step of one episode, and give the reason."""

import json
import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from counsel._arrays import at_cell
from counsel.learning.population import Limit
from counsel.model.advantage import gain_of
from counsel.model.problem import AdviceProblem
from counsel.planning.explain import NOTICEABLE
from counsel.planning.gains import gains_at, nearest_advice
from counsel.service.core.episode import Episode
from counsel.service.core.explained_plan import ExplainedPlan
from counsel.service.core.live_adviser import LiveAdviser
from counsel.service.core.shared_limit import Offer, Stretch, offer_of
from counsel.service.db.queries import Amount

REST_REASON = "letting them rest"
"""How the reason begins where advice would pay, were it not for what it costs later."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision: advice by its index, or None for silence, and the reason.

    Advice is not ``shown`` in shadow mode and in silent episodes. ``must`` marks must-say advice,
    which is not charged to the budget. ``offer`` is what the plan would say under a shared limit.
    """

    id: str
    advice: int | None
    shown: bool
    probability: float
    reason: dict[str, Any]
    must: bool = False
    offer: Offer | None = None

    @property
    def shown_advice(self) -> int | None:
        """The advice that the person is shown, or None."""
        return self.advice if self.shown else None


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """A step of an episode on which to decide.

    ``draw`` is uniform on [0, 1) and settles decisions left to chance. ``person_plan`` is None if
    no plan can be made.
    """

    episode: Episode
    person_plan: ExplainedPlan | None
    step: int
    state: int
    draw: float
    at: float


def index_of_advice(advice: int | None, problem: AdviceProblem) -> int:
    """Return advice as arrays index it: silence is the index after the last action."""
    return problem.defer if advice is None else advice


def decide(
    request: DecisionRequest,
    spent: Amount,
    level: int | None = None,
    stretch: Stretch | None = None,
) -> Decision:
    """Decide on one step, given the cost of the advice in the episode before.

    ``level`` is the level of the person's memory, if there is one, and ``stretch`` the account of
    the adviser's shared limit, which this leaves as it is.
    """
    episode, person_plan = request.episode, request.person_plan
    settings, cell = episode.live.settings, (request.step, request.state)
    id_ = episode.decision_id(request.step)
    if settings.mode == "off":
        reason = {"why": "the adviser is off"} | _memory(episode.live, level)
        return Decision(id_, None, shown=False, probability=1.0, reason=reason)
    is_live, limit = settings.mode == "live", episode.limit
    left = None
    if limit.hard and limit.budget is not None:
        left = max(int(limit.budget) - int(spent), 0)  # the budget may have been lowered
    account: dict[str, Any] = {"spent": spent} if left is None else {"spent": spent, "left": left}
    if level is not None:
        account |= _memory(episode.live, level)
    must = episode.live.population.must_say.get(request.state)
    if must is not None:
        reason = account | _must_say_reason(request, must, level) | _cost(request, must)
        return Decision(id_, must, is_live, 1.0, reason, must=True)
    if person_plan is None:
        reason = account | {"why": "no plan can be made at present; only what must be said is said"}
        return Decision(id_, None, shown=False, probability=1.0, reason=reason)
    defer = episode.live.mdp.defer
    chances = {defer: 1.0}
    if left is None or left > 0:
        policy = person_plan.plan.policy
        chances = policy.at(request.step, request.state, policy.left_after(int(spent)), level)
    room: float | None = left
    offer = None
    if stretch is not None:
        offer = offer_of(person_plan, episode.live, (*cell, level), chances, left)
        chances = stretch.thin(chances, offer, request.at, defer)
        room = stretch.left if left is None else min(left, stretch.left)
        account |= stretch.numbers(request.at)
    explored = _explore(chances, request, room)
    index, probability = _pick(explored, request.draw)
    advice = None if index == defer else index
    considered = offer.advice if advice is None and offer is not None else advice
    reason = account | _reason(person_plan, (*cell, level), considered, limit, left)
    reason |= _cost(request, reason["considered"])
    if stretch is not None and offer is not None and advice is None:
        reason["why"] = stretch.why_silent(offer)
    if explored is not chances:
        reason["why"] = "this decision is left to chance, to learn what advice is worth"
    if probability < 1.0:
        reason["drawn"] = request.draw
    if left is not None:
        reason["left"] = left - episode.live.cost_of(*cell, advice)
        if left <= 0:
            reason["why"] = "the budget is spent" if limit.budget else "there is no budget"
    is_shown = is_live and not episode.held_out
    if stretch is not None:
        charged = episode.live.cost_of(*cell, advice) if is_shown else 0
        reason["shared_left"] = stretch.left_after(charged)
    if episode.held_out:
        reason["why"] = "this episode is kept silent to measure what advice is worth"
        if is_live:
            reason["silence"] = explored.get(defer, 0.0)
    return Decision(id_, advice, is_shown, probability, reason, offer=offer)


def _explore(
    chances: dict[int, float], request: DecisionRequest, left: float | None
) -> dict[int, float]:
    """Return the probabilities of a plan mixed with those of a trial; the same without a trial."""
    live = request.episode.live
    schedule, share = live.schedule.get(request.state), live.settings.explore
    if not schedule or share == 0.0:
        return chances
    mixed = {option: (1.0 - share) * chance for option, chance in chances.items()}
    silence = share
    for advice, chance in schedule.items():
        if left is None or live.cost_of(request.step, request.state, advice) <= left:
            mixed[advice] = mixed.get(advice, 0.0) + share * chance
            silence -= share * chance
    mixed[live.mdp.defer] = mixed.get(live.mdp.defer, 0.0) + max(silence, 0.0)
    return {option: chance for option, chance in mixed.items() if chance > 0.0}


def _pick(chances: dict[int, float], draw: float) -> tuple[int, float]:
    """Return the option on which a uniform draw falls, and its probability."""
    picked = (0, 0.0)
    for picked in chances.items():
        draw -= picked[1]
        if draw < 0.0:
            break
    return picked


def _memory(live: LiveAdviser, level: int | None) -> dict[str, Any]:
    """Return the level of the person's memory, and how rested they are on it."""
    return {} if level is None else {"level": level, "rested": live.rested(level)}


def _cost(request: DecisionRequest, advice: int) -> dict[str, Amount]:
    """Return what the considered advice costs, unless that is 1."""
    cost = request.episode.live.cost_of(request.step, request.state, advice)
    return {} if cost == 1 else {"cost": cost}


def _must_say_reason(request: DecisionRequest, advice: int, level: int | None) -> dict[str, Any]:
    """Return the numbers behind must-say advice.

    In the planner's world the person already acts as advised there. From that advantage, A', the
    advantage over being left alone is A' / (1 − λ). Without a plan there are no numbers; with a
    memory there is only the lift, because plans do not foresee what must-say advice costs later.
    """
    person_plan, cell = request.person_plan, (request.step, request.state)
    if person_plan is None:
        return {"why": "this must be said", "considered": advice}
    lift = float(person_plan.estimate.planned_lift[advice])
    fading = request.episode.live.population.fading
    if fading is not None and level is not None:
        lift = min(float(fading[level]) * lift, 1.0)
        return {"why": "this must be said", "considered": advice, "lift": lift}
    folded = _finite(float(person_plan.advantage[(*cell, advice)]))
    advantage = folded / (1.0 - lift) if lift < 1.0 else None
    return {
        "why": "this must be said",
        "considered": advice,
        "lift": lift,
        "advantage": advantage,
        "gain": None if advantage is None else float(gain_of(np.array(lift), np.array(advantage))),
    }


def _reason(
    person_plan: ExplainedPlan,
    place: tuple[int, int, int | None],
    advice: int | None,
    limit: Limit,
    left: int | None,
) -> dict[str, Any]:
    """Return the numbers behind a decision: of the advice given, or of the best one withheld.

    ``place`` is the step, the state and, with a memory, the level.
    """
    plan, problem, (step, state, level) = person_plan.plan, person_plan.problem, place
    cost = problem.cost[step, state]
    if level is not None or (left is not None and left > 0):
        most = pieces = plan.policy.budget
        if most is not None and left is not None:
            pieces = min(left, most)  # a plan has no more than its steps
        advantage, gain, price, burden = gains_at(problem, plan, step, state, pieces, level)
    else:
        advantage, gain = person_plan.advantage[step, state], person_plan.gain[step, state]
        price, burden = plan.price_at(step) * cost, None
    considered = advice
    if advice is None:
        considered = nearest_advice(gain, price)
        if left is not None and left > 0 and gain[considered] <= 0.0:
            dear = np.where(cost > left, gain, 0.0)  # helps, but costs more than is left
            considered = int(dear.argmax()) if dear.max() > 0.0 else considered
    its_price, its_gain = float(price[considered]), float(gain[considered])
    its_burden = 0.0 if burden is None else float(burden[considered])
    its_cost, has_penalty = float(cost[considered]), limit.penalty is not None
    piece = "a piece" if its_cost == 1.0 else "its cost"
    price_of = "it costs" if has_penalty else f"{piece} is worth elsewhere"
    if limit.always:
        why = "this adviser always speaks"
    elif advice is not None:
        why = f"what it gains exceeds what {price_of}"
    elif its_burden >= NOTICEABLE and its_gain + its_burden > its_price:
        why = f"{REST_REASON}: speaking now costs more of later listening than it gains"
        if its_gain > 0.0:
            net = "what it gains, less what it costs of later listening"
            why = f"{REST_REASON}: {net}, does not exceed what {price_of}"
    elif its_gain <= 0.0:
        why = "no advice helps here"
    elif has_penalty:
        why = "advice costs more here than it gains"
    elif left is not None and 0 < left < its_cost:
        why = "it costs more than is left of the budget"
    elif its_cost != 1.0:
        why = "its cost is worth more elsewhere"
    else:
        why = "a piece of advice is worth more elsewhere"
    lift = at_cell(problem.human.level_lift[level or 0], step, state)
    reason = {
        "why": why,
        "considered": considered,
        "lift": float(lift[considered]),
        "advantage": _finite(float(advantage[considered])),
        "gain": its_gain,
        "criticality": person_plan.criticality_at(step, state, level),
        "price": its_price if math.isfinite(its_price) else None,
    }
    return reason if level is None else reason | {"burden": its_burden}


def _finite(number: float) -> float:
    """Return a number as JSON can have it: NaN as 0, infinities as the largest number."""
    if math.isnan(number):
        return 0.0
    return min(max(number, -sys.float_info.max), sys.float_info.max)


def to_row(request: DecisionRequest, decision: Decision) -> dict[str, Any]:
    """Return a decision's row in the database."""
    return {
        "episode": request.episode.number,
        "step": request.step,
        "state": request.state,
        "advice": decision.advice,
        "shown": decision.shown,
        "must": decision.must,
        "probability": decision.probability,
        "reason": json.dumps(decision.reason),
        "at": request.at,
        "level": decision.reason.get("level"),
    }


def from_row(row: sa.Row[Any], episode: Episode) -> Decision:
    """Return a decision as the database has it."""
    reason = json.loads(row.reason)
    id_ = episode.decision_id(row.step)
    return Decision(id_, row.advice, row.shown, row.probability, reason, row.must)
