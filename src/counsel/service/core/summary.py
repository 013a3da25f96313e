"""What an adviser did and learnt, summed up: the numbers behind the dashboard.

Counts of who listened are those of the whole log. What takes reading rows (rewards, spending, the
course of time) is of the last ``LAST`` episodes, so that it takes no longer the longer a service
has run.
"""

import json
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from counsel._arrays import Floats
from counsel.estimate.intervals import wilson
from counsel.model.policy import Policy
from counsel.planning.best_action import always_best_action
from counsel.planning.evaluate import evaluate
from counsel.planning.frontier import frontier
from counsel.planning.silence import value_alone
from counsel.planning.solve import solve
from counsel.service.core.adviser import NOBODY, RANKED, Advising
from counsel.service.core.desk import Desk
from counsel.service.core.live_adviser import Live
from counsel.service.core.people import beta_interval
from counsel.service.core.plan_cache import PlanKey
from counsel.service.db.queries import SAME_STEP
from counsel.service.db.tables import decisions, episodes, outcomes, people

LAST = 1000
"""Episodes that are looked at one by one."""

BINS = 30
"""Points of time that are told apart."""

ENOUGH = 5
"""Pieces from which on somebody, or some state, is counted as known."""

MOST = 20
"""Rows of a table."""

Z = 1.96


def summarise(desk: Desk, tenant: int, adviser: str) -> dict[str, Any]:
    """Return the numbers behind the dashboard of an adviser."""
    live = desk.live(tenant, adviser)
    made = desk.plans.of(PlanKey(adviser, NOBODY, live.settings.limit))
    with desk.engine.connect() as connection:
        course = _course(connection, adviser)
        recent = _recent(connection, adviser, live)
        totals = _totals(connection, adviser)
    _, everybody = live.adviser.seen.tables(NOBODY, live.problem.n_states, live.problem.n_actions)
    given, matched = everybody.given, everybody.matched
    pieces, hits = int(given.sum()), int(matched.sum())
    support = (everybody.silent + everybody.refusing + matched).sum(axis=1)
    shown = course["shown"].sum() if course.size else 0
    taken = course["decisions"].sum() if course.size else 0
    states = np.argsort(-given.sum(axis=1), kind="stable")[:MOST]
    return {
        **totals,
        "decisions": int(support.sum()),
        "considered": int(course.size),
        "listening": _share(hits, pieces),
        "worth": _worth(course, made),
        "spending": _spending(course, live),
        "advice_rate": float(shown / taken) if taken else None,
        "over_time": _over_time(course),
        "by_advice": _by_advice(live, given.sum(axis=0), matched.sum(axis=0)),
        "by_state": [
            {"state": live.state_names[s], **_share(int(matched[s].sum()), int(given[s].sum()))}
            for s in states
            if given[s].sum()
        ],
        "by_person": _by_person(live),
        "where": _where(live, made, support),
        "frontier": _frontier(course, live, made),
        "recent": recent,
        "unknown": _unknown(given, course),
    }


def _totals(connection: sa.Connection, adviser: str) -> dict[str, int]:
    query = sa.select(
        sa.func.count(episodes.c.number), sa.func.count(sa.distinct(episodes.c.person))
    ).where(episodes.c.adviser == adviser)
    count, persons = connection.execute(query).one()
    return {"episodes": int(count), "people": int(persons)}


def _last(adviser: str) -> sa.Subquery:
    """Return the last episodes of an adviser, to be joined to."""
    mine = sa.select(episodes).where(episodes.c.adviser == adviser)
    return mine.order_by(episodes.c.number.desc()).limit(LAST).subquery()


def _course(connection: sa.Connection, adviser: str) -> NDArray[Any]:
    """Return the last episodes, oldest first, one row each."""
    last = _last(adviser)
    spoken = decisions.c.shown & decisions.c.advice.is_not(None)
    heard = spoken & outcomes.c.seen

    def count(what: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
        return sa.func.coalesce(sa.func.sum(sa.case((what, 1), else_=0)), 0)

    query = (
        sa.select(
            last.c.held_out,
            sa.case((last.c.mode == "live", 1), else_=0),
            last.c.started,
            sa.func.count(decisions.c.seq),
            count(spoken & ~decisions.c.must),
            count(spoken & decisions.c.must),
            count(heard),
            count(heard & (outcomes.c.action == decisions.c.advice)),
            sa.func.sum(outcomes.c.reward),
        )
        .select_from(last)
        .join(decisions, decisions.c.episode == last.c.number, isouter=True)
        .join(outcomes, SAME_STEP, isouter=True)
        .group_by(last.c.number, last.c.held_out, last.c.mode, last.c.started)
        .order_by(last.c.number)
    )
    names = [
        "held_out",
        "live",
        "started",
        "decisions",
        "shown",
        "must",
        "seen",
        "matched",
        "reward",
    ]
    kinds = [(name, np.float64) for name in names]
    rows = [
        tuple(np.nan if one is None else float(one) for one in row)
        for row in connection.execute(query)
    ]
    return np.array(rows, dtype=kinds)


def _share(hits: int, pieces: int) -> dict[str, Any]:
    if not pieces:
        return {"share": None, "low": None, "high": None, "matched": 0, "pieces": 0}
    low, high = wilson(hits, pieces)
    told = {"share": hits / pieces, "low": float(low), "high": float(high)}
    return {**told, "matched": hits, "pieces": pieces}


def _mean(values: Floats) -> tuple[float | None, float | None]:
    """Return a mean and its standard error, where there are enough values."""
    if values.size == 0:
        return None, None
    error = float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else None
    return float(values.mean()), error


def _advised(course: NDArray[Any]) -> NDArray[Any]:
    """Return the episodes whose people were to be advised."""
    advised: NDArray[Any] = course[(course["live"] > 0) & (course["held_out"] == 0)]
    return advised


def _worth(course: NDArray[Any], made: Advising) -> dict[str, Any]:
    """Return what advice adds to an episode: measured against silent ones, or as planned."""
    known = course[(course["live"] > 0) & ~np.isnan(course["reward"])]
    if known.size:
        held = known["held_out"] > 0
        (silent, e0), (advised, e1) = _mean(known["reward"][held]), _mean(known["reward"][~held])
        if silent is not None and advised is not None and e0 is not None and e1 is not None:
            worth, error = advised - silent, Z * float(np.hypot(e0, e1))
            return {
                "how": "measured",
                "estimate": worth,
                "low": worth - error,
                "high": worth + error,
                "advised": int((~held).sum()),
                "held_out": int(held.sum()),
            }
    problem = made.problem
    worth = made.plan.value - value_alone(problem)
    return {"how": "model", "estimate": worth, "low": None, "high": None}


def _spending(course: NDArray[Any], live: Live) -> dict[str, Any]:
    advised = _advised(course)
    mean, error = _mean(advised["shown"])
    must, _ = _mean(advised["must"])
    low = high = None
    if mean is not None and error is not None:
        low, high = max(mean - Z * error, 0.0), mean + Z * error
    return {
        "per_episode": mean,
        "low": low,
        "high": high,
        "budget": live.settings.budget,
        "hard": live.settings.hard,
        "must_say": must,
        "episodes": int(advised.size),
    }


def _over_time(course: NDArray[Any]) -> list[dict[str, Any]]:
    """Return the course in consecutive groups of as many episodes each."""
    if not course.size:
        return []
    told = []
    for group in np.array_split(course, min(BINS, max(course.size // ENOUGH, 1))):
        seen, matched = int(group["seen"].sum()), int(group["matched"].sum())
        advised = _advised(group)
        told.append(
            {
                "from": float(group["started"].min()),
                "to": float(group["started"].max()),
                "decisions": int(group["decisions"].sum()),
                "shown": int(group["shown"].sum() + group["must"].sum()),
                "seen": seen,
                **_share(matched, seen),
                "episodes": int(group.size),
                "per_episode": float(advised["shown"].mean()) if advised.size else None,
            }
        )
    return told


def _by_advice(
    live: Live, given: NDArray[np.int64], matched: NDArray[np.int64]
) -> list[dict[str, Any]]:
    lift, room = live.adviser.common_lift()
    low, high = beta_interval(lift, room)
    return [
        {
            "advice": name,
            "lift": float(lift[b]),
            "low": float(low[b]),
            "high": float(high[b]),
            "pieces": int(given[b]),
            "matched": int(matched[b]),
        }
        for b, name in enumerate(live.action_names)
    ]


def _by_person(live: Live) -> dict[str, Any]:
    """Return how many people match which share: a distribution, no names."""
    shares = []
    with live.adviser.seen.lock:
        for counts in live.adviser.seen.people.values():
            if counts.pieces >= ENOUGH:
                hits = sum(n for (_, heard, action), n in counts.cells.items() if heard == action)
                shares.append(hits / counts.pieces)
    count, edges = np.histogram(shares, bins=10, range=(0.0, 1.0))
    return {"edges": edges.round(2).tolist(), "count": count.tolist()}


def _where(live: Live, made: Advising, support: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Return where advice pays most over an episode."""
    best = made.gain.argmax(axis=2)
    gain = np.take_along_axis(made.gain, best[..., None], axis=2)[..., 0]
    met = evaluate(made.problem, made.plan.policy).occupancy
    order = np.argsort(-(met * gain).reshape(-1), kind="stable")[:MOST]
    told = []
    for step, state in zip(*np.unravel_index(order, gain.shape), strict=True):
        if met[step, state] * gain[step, state] > 0.0:
            bears = made.criticality
            told.append(
                {
                    "step": int(step),
                    "state": live.state_names[state],
                    "advice": live.action_names[best[step, state]],
                    "gain": float(gain[step, state]),
                    "criticality": None if bears is None else float(bears[step, state]),
                    "met": float(met[step, state]),
                    "support": int(support[state]),
                }
            )
    return told


def _frontier(course: NDArray[Any], live: Live, made: Advising) -> dict[str, Any]:
    """Return value against pieces as believed, and where we are on it."""
    problem, chosen = made.problem, made.plan
    if live.settings.limit.paced:  # plans aim at more or less than that
        chosen = solve(problem, budget=live.settings.budget, allow_reverse=False)
    marks = [
        {"name": name, "pieces": float(pieces), "value": float(value)}
        for name, pieces, value in (
            ("never", 0.0, value_alone(problem)),
            ("always", *_point(made, always_best_action(problem))),
            ("chosen", chosen.advice_count, chosen.value),
        )
    ]
    known = _advised(course)
    known = known[~np.isnan(known["reward"])]
    if known.size:
        value, error = float(known["reward"].mean()), _mean(known["reward"])[1]
        now = {"name": "now", "pieces": float(known["shown"].mean()), "value": value}
        if error is not None:
            now |= {"low": value - Z * error, "high": value + Z * error}
        marks.append(now)
    curve: dict[str, list[float]] = {"pieces": [], "value": []}
    if problem.horizon * problem.n_states <= RANKED:
        points = [(one.advice_count, one.value) for one in frontier(problem).vertices]
        curve = {"pieces": [x for x, _ in points], "value": [y for _, y in points]}
    return {**curve, "marks": marks}


def _point(made: Advising, policy: Policy) -> tuple[float, float]:
    worth = evaluate(made.problem, policy)
    return worth.advice_count, worth.value


def _recent(connection: sa.Connection, adviser: str, live: Live) -> list[dict[str, Any]]:
    """Return the last decisions with their reasons, newest first."""
    last = _last(adviser)
    query = (
        sa.select(
            decisions,
            last.c.id,
            last.c.held_out,
            people.c.name.label("who"),
            outcomes.c.action,
            outcomes.c.reward,
        )
        .join(last, last.c.number == decisions.c.episode)
        .join(people, people.c.id == last.c.person)
        .join(outcomes, SAME_STEP, isouter=True)
        .order_by(decisions.c.seq.desc())
        .limit(50)
    )
    told = []
    for row in connection.execute(query):
        reason = json.loads(row.reason)
        if reason.get("considered") is not None:
            reason["considered"] = live.action_names[reason["considered"]]
        told.append(
            {
                "at": row.at,
                "person": row.who,
                "episode": row.id,
                "step": row.step,
                "state": live.state_names[row.state],
                "advice": None if row.advice is None else live.action_names[row.advice],
                "shown": row.shown,
                "must": row.must,
                "held_out": row.held_out,
                "action": None if row.action is None else live.action_names[row.action],
                "reward": row.reward,
                "reason": reason,
            }
        )
    return told


def _unknown(given: NDArray[np.int64], course: NDArray[Any]) -> list[str]:
    """Return in sentences what the data cannot tell."""
    told = []
    pieces = given.sum(axis=1)
    few = int(((pieces > 0) & (pieces < ENOUGH)).sum())
    if few:
        states = "1 state has" if few == 1 else f"{few} states have"
        told.append(f"{states} fewer than {ENOUGH} pieces of advice.")
    if course.size and not (course["held_out"] * course["live"]).any():
        told.append(
            "No episode was kept silent, so what advice is worth is what the model expects."
        )
    if course.size and np.isnan(course["reward"]).any():
        missing = int(np.isnan(course["reward"]).sum())
        told.append(f"{missing} of the last {course.size} episodes have no reward on record.")
    return told
