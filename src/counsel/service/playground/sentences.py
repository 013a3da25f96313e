"""The sentences that the machine says in a game, and the numbers behind them."""

from typing import Any

import numpy as np

from counsel._arrays import Floats
from counsel.learning.population import Limit
from counsel.service.core.decide import REST_REASON
from counsel.service.core.explained_plan import ExplainedPlan
from counsel.service.core.live_adviser import LiveAdviser
from counsel.service.playground.rules import Move, crash_of, kind_of, lands_on_star
from counsel.worlds.flappy_bird import next_states
from counsel.worlds.grid_map import MOVES, GridMap

WORDS = {"Up": "up", "Up-Up": "up two", "Down": "down"}


def result_sentence(score: float, pieces: int, alone: float) -> str:
    """Return the result of a game in words."""
    stars = "1 star" if score == 1.0 else f"{score:g} stars"
    advice = f"with {pieces} piece{'' if pieces == 1 else 's'} of advice"
    return (
        f"{stars} {advice if pieces else 'without advice'}. "
        f"Alone it would have been about {alone:.1f}."
    )


def rest_line(live: LiveAdviser, level: int, *, is_watched: bool) -> dict[str, Any]:
    """Return how rested the machine takes the player to be, in words and as a share."""
    rested = live.rested(level) or 0.0
    whom = "this person" if is_watched else "you"
    sentence = f"Rested: advice moves {whom} as well as ever."
    if rested < 1.0:
        sentence = (
            f"Tired of advice: a piece moves {whom} {100.0 * rested:.0f} % as well as when rested."
        )
    return {"level": live.level_name(level), "rested": rested, "sentence": sentence}


def advice_line(
    grid: GridMap, live: LiveAdviser, person_plan: ExplainedPlan, now: Move, limit: Limit
) -> dict[str, Any]:
    """Return the advice, or the reason for silence, as a sentence and as numbers."""
    if now.advice is None:
        sentence = _silent_sentence(grid, person_plan, now, limit)
    else:
        sentence = _advice_sentence(grid, live, now, now.advice, person_plan.estimate.habit)
    numbers = ("gain", "lift", "advantage", "criticality", "price", "burden")
    return {
        "advice": live.action_name(now.advice),
        "sentence": sentence,
        **{name: now.reason.get(name) for name in numbers},
    }


def _advice_sentence(
    grid: GridMap, live: LiveAdviser, now: Move, advice: int, habit: Floats
) -> str:
    chances = habit[now.state]
    name, likely = live.action_names[advice], int(chances.argmax())
    gain = float(now.reason.get("gain") or 0.0)
    worth = f"worth +{gain:.1f}" if gain >= 0.05 else "worth little"
    if likely == advice:
        other = f"{100.0 * (1.0 - chances[advice]):.0f} %"
        return f"{name}. {other} of the time you would do otherwise; {worth}."
    prediction = f"You would likely go {WORDS[live.action_names[likely]]}"
    crash = crash_of(grid, now.state, likely)
    if crash:
        prediction += " into the wall" if crash == "wall" else " out of the map"
    elif lands_on_star(grid, now.state, advice) and not lands_on_star(grid, now.state, likely):
        prediction += " and miss a star"
    return f"{name}. {prediction}; {worth}."


def _silent_sentence(grid: GridMap, person_plan: ExplainedPlan, now: Move, limit: Limit) -> str:
    if kind_of(limit) == "never":
        return "Silent: this adviser never speaks."
    left = now.reason.get("left")
    if left is not None and left <= 0:
        return "Silent: the budget is spent."
    gain = float(now.reason.get("gain") or 0.0)
    if str(now.reason.get("why")).startswith(REST_REASON):
        burden = float(now.reason["burden"])
        return (
            f"Silent: letting you rest. Advice would gain {gain + burden:.2g} now and cost "
            f"{burden:.2g} of later listening."
        )
    if gain < 0.05:
        return "Silent: you do well here."
    if limit.penalty is not None:
        return f"Silent: advice would gain {gain:.1f} here, less than its price."
    column = _best_column(grid, person_plan, now)
    pieces = "the last piece" if left == 1 else "advice"
    place = "later" if column is None else f"column {column + 1}"
    return f"Silent: saving {pieces} for {place}."


def _best_column(grid: GridMap, person_plan: ExplainedPlan, now: Move) -> int | None:
    """Return the column ahead where advice gains most in expectation."""
    reach = np.zeros(grid.rows * grid.columns + 1)
    reach[now.state] = 1.0
    following, habit = next_states(grid), person_plan.estimate.habit
    best, best_column = 0.0, None
    for column in range(now.step + 1, grid.columns - 1):
        step = np.zeros_like(reach)
        for action in range(len(MOVES)):
            np.add.at(step, following[:, action], reach * habit[:, action])
        reach = step
        gain = float((reach * person_plan.gain[column].max(axis=1)).sum())
        if gain > best:
            best, best_column = gain, column
    return best_column
