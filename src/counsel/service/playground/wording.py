"""What the machine says in a game: sentences for whoever plays, and the numbers behind them."""

from typing import Any

import numpy as np

from counsel._arrays import Floats
from counsel.service.core.adviser import Advising, Limit
from counsel.service.core.live_adviser import Live
from counsel.service.playground.flights import Move, crash_of, lands_on_star
from counsel.worlds.flappy_bird import next_states
from counsel.worlds.grid_map import MOVES, GridMap

WORDS = {"Up": "up", "Up-Up": "up two", "Down": "down"}


def kind_of(limit: Limit) -> str:
    """Return the adviser that was chosen on the page: "aware", "always" or "never"."""
    if limit.always:
        return "always"
    return "never" if limit.hard and limit.budget == 0.0 else "aware"


def stars(score: float) -> str:
    """Return a score in words."""
    return "1 star" if score == 1.0 else f"{score:g} stars"


def advice_shown(
    grid: GridMap, live: Live, made: Advising, now: Move, limit: Limit
) -> dict[str, Any]:
    """Return what is advised, or why nothing is, in a sentence and in numbers."""
    told = {
        name: now.reason.get(name) for name in ("gain", "lift", "advantage", "criticality", "price")
    }
    habit = made.believed.habit[now.state]
    if now.advice is not None:
        sentence = _speaks(grid, live, now, habit)
        return {"advice": live.action_names[now.advice], "sentence": sentence, **told}
    return {"advice": None, "sentence": _silent(grid, made, now, limit), **told}


def _speaks(grid: GridMap, live: Live, now: Move, habit: Floats) -> str:
    advice = int(now.advice or 0)
    name, likely = live.action_names[advice], int(habit.argmax())
    gain = float(now.reason.get("gain") or 0.0)
    worth = f"worth +{gain:.1f}" if gain >= 0.05 else "worth little"
    if likely == advice:
        other = f"{100.0 * (1.0 - habit[advice]):.0f} %"
        return f"{name}. {other} of the time you would do otherwise; {worth}."
    would = f"You would likely go {WORDS[live.action_names[likely]]}"
    crash = crash_of(grid, now.state, likely)
    if crash:
        would += " into the wall" if crash == "wall" else " out of the map"
    elif lands_on_star(grid, now.state, advice) and not lands_on_star(grid, now.state, likely):
        would += " and miss a star"
    return f"{name}. {would}; {worth}."


def _silent(grid: GridMap, made: Advising, now: Move, limit: Limit) -> str:
    if kind_of(limit) == "never":
        return "Silent: this adviser never speaks."
    left = now.reason.get("left")
    if left is not None and left <= 0:
        return "Silent: the budget is spent."
    gain = float(now.reason.get("gain") or 0.0)
    if gain < 0.05:
        return "Silent: you do well here."
    if limit.penalty is not None:
        return f"Silent: advice would gain {gain:.1f} here, less than its price."
    ahead = _next_piece(grid, made, now)
    pieces = "the last piece" if left == 1 else "advice"
    where = "later" if ahead is None else f"column {ahead + 1}"
    return f"Silent: saving {pieces} for {where}."


def _next_piece(grid: GridMap, made: Advising, now: Move) -> int | None:
    """Return the column ahead where advice gains most where one is likely to get."""
    reach = np.zeros(grid.rows * grid.columns + 1)
    reach[now.state] = 1.0
    then, habit = next_states(grid), made.believed.habit
    best, found = 0.0, None
    for column in range(now.step + 1, grid.columns - 1):
        step = np.zeros_like(reach)
        for action in range(len(MOVES)):
            np.add.at(step, then[:, action], reach * habit[:, action])
        reach = step
        gain = float((reach * made.gain[column].max(axis=1)).sum())
        if gain > best:
            best, found = gain, column
    return found
