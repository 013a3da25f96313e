"""Deciding on one step of one episode, and saying why."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from counsel.planning.gains import gains_at
from counsel.service.core.adviser import Advising, Limit, advice_at
from counsel.service.core.live_adviser import Episode, Live


@dataclass(frozen=True, slots=True)
class Said:
    """An answer: advice by its number, or None for silence, and why."""

    id: str
    advice: int | None
    shown: bool
    probability: float
    reason: dict[str, Any]
    must: bool = False


@dataclass(slots=True)
class Ask:
    """A step of an episode that a decision is asked for."""

    episode: Episode
    live: Live
    made: Advising
    step: int
    state: int
    luck: float
    at: float


def decide(ask: Ask, spent: int) -> Said:
    """Decide on one step, so many pieces having been spent."""
    settings, made, cell = ask.live.settings, ask.made, (ask.step, ask.state)
    id_ = f"{ask.episode.id}-{ask.step}"
    if settings.mode == "off":
        return Said(id_, None, shown=False, probability=1.0, reason={"why": "the adviser is off"})
    live, held_out = settings.mode == "live", ask.episode.held_out
    limit = ask.live.limit_in(ask.episode)
    left = None if not limit.hard or limit.budget is None else int(limit.budget) - spent
    account = {"spent": spent} if left is None else {"spent": spent, "left": left}
    must = ask.live.adviser.must_say.get(ask.state)
    if must is not None:
        reason = account | _why_must(made, cell, must)
        return Said(id_, must, live, 1.0, reason, must=True)
    defer, luck = ask.live.problem.defer, ask.luck
    chances = {defer: 1.0}
    if left is None or left > 0:
        chances = advice_at(made.plan, ask.step, ask.state, spent)
    advice, probability = defer, 1.0
    for option, chance in chances.items():
        advice, probability = option, chance
        luck -= chance
        if luck < 0.0:
            break
    said = None if advice == defer else advice
    reason = account | _why(made, cell, said, limit, left)
    if probability < 1.0:
        reason["drawn"] = ask.luck
    if left is not None:
        reason["left"] = left - (said is not None)
        if left <= 0:
            reason["why"] = "the budget is spent" if limit.budget else "there is no budget"
    if held_out:
        reason["why"] = "this episode is kept silent to measure what advice is worth"
        if live:
            reason["silence"] = chances.get(defer, 0.0)
    return Said(id_, said, live and not held_out, probability, reason)


def _why_must(made: Advising, cell: tuple[int, int], advice: int) -> dict[str, Any]:
    """Return the numbers behind what must be said.

    In the planner's world the person already acts as advised there. From that advantage, A', the
    one over being left alone is A' / (1 − λ).
    """
    lift = float(made.believed.optimistic[advice])
    folded = float(np.nan_to_num(made.advantage[(*cell, advice)]))
    advantage = folded / (1.0 - lift) if lift < 1.0 else None
    return {
        "why": "this must be said",
        "considered": advice,
        "lift": lift,
        "advantage": advantage,
        "gain": None if advantage is None else lift * advantage,
    }


def _why(
    made: Advising, cell: tuple[int, int], advice: int | None, limit: Limit, left: int | None
) -> dict[str, Any]:
    """Return the numbers behind a decision: of what is advised, or of the best that is not."""
    advantage, gain, price = made.advantage[cell], made.gain[cell], float(made.plan.price)
    if left is not None and left > 0:
        most = made.plan.policy.budget
        at = left if most is None else min(left, most)  # a plan counts no more than its steps
        advantage, gain, price = gains_at(made.problem, made.plan, *cell, at)
    looked_at = int(gain.argmax()) if advice is None else advice
    costs = limit.penalty is not None
    why = f"what it gains exceeds what {'it costs' if costs else 'a piece is worth elsewhere'}"
    if limit.always:
        why = "this adviser always speaks"
    elif advice is None:
        why = "no advice helps here"
        if gain[looked_at] > 0.0:
            why = "advice costs more here than it gains"
            if not costs:
                why = "a piece of advice is worth more elsewhere"
    bears = made.criticality
    return {
        "why": why,
        "considered": looked_at,
        "lift": float(made.problem.lift[(*cell, looked_at)]),
        "advantage": float(np.nan_to_num(advantage[looked_at])),
        "gain": float(gain[looked_at]),
        "criticality": None if bears is None else float(bears[cell]),
        "price": price if np.isfinite(price) else None,
    }


def to_row(ask: Ask, said: Said) -> dict[str, Any]:
    """Return a decision as it is put on record."""
    return {
        "episode": ask.episode.number,
        "step": ask.step,
        "state": ask.state,
        "advice": said.advice,
        "shown": said.shown,
        "must": said.must,
        "probability": said.probability,
        "reason": json.dumps(said.reason),
        "at": ask.at,
    }


def from_row(row: sa.Row[Any], episode: Episode) -> Said:
    """Return the answer that is on record."""
    reason = json.loads(row.reason)
    id_ = f"{episode.id}-{row.step}"
    return Said(id_, row.advice, row.shown, row.probability, reason, row.must)
