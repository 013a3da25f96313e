"""A summary of what an adviser did and learnt: the numbers behind the dashboard.

Counts of matches and what advice is worth are of the whole log. What has to be read row by row
(spending, changes over time) is of the last ``LAST`` episodes, so that a summary takes no longer
the longer a service has run. ``api.schemas.Summary`` describes every field.

``low`` and ``high`` are intervals for one planned look. A dashboard is looked at every day:
``always_low`` and ``always_high`` hold at all looks at once (``estimate/confidence_sequences.py``).
"""

import json
import time
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from counsel._arrays import Floats
from counsel.estimate.confidence_sequences import (
    AdviceCounts,
    Sums,
    difference_sequence,
    lift_sequence,
    share_sequence,
)
from counsel.estimate.intervals import wilson
from counsel.estimate.people_counts import DecisionCounts
from counsel.learning.population import NOBODY
from counsel.planning.evaluate import evaluate
from counsel.planning.frontier import frontier
from counsel.planning.reference_policies import always_best_action, value_alone
from counsel.planning.solve import solve
from counsel.service.core.desk import Desk
from counsel.service.core.explained_plan import RANKED, ExplainedPlan
from counsel.service.core.kept_plans import PlanKey
from counsel.service.core.live_adviser import LiveAdviser
from counsel.service.core.person_beliefs import lift_rows
from counsel.service.core.shared_use import describe_shared_limit
from counsel.service.db.queries import LAST_OUTCOME
from counsel.service.db.tables import decisions, episodes, outcomes, people
from counsel.service.errors import BusyError

LAST = 1000
"""Episodes that are read row by row."""

BINS, MOST = 30, 20
"""Points in time, and rows of a table, at most."""

ENOUGH = 5
"""Pieces from which on a person or a state counts as known."""

Z = 1.96

COUNTS = ("decisions", "shown", "must", "seen", "matched")
HISTORY = ("number", "held_out", "live", "started", *COUNTS, "reward", "cost", "must_cost")
"""The columns of the history, one row per episode; the last two are of advice that was shown."""


def summarise(desk: Desk, tenant: int, adviser: str) -> dict[str, Any]:
    """Return the numbers behind the dashboard of an adviser."""
    live = desk.live(tenant, adviser)
    person_plan = desk.plans.wait_for(PlanKey(adviser, NOBODY, live.settings.limit))
    if person_plan is None:
        raise BusyError("no plan can be made at present; the log of the service says why")
    with desk.reading.connect() as connection:
        history = _history(connection, live)
        returns = live.returns.read(connection, _centre(history))
        recent = _recent(connection, live)
        totals = _totals(connection, adviser)
        shared = describe_shared_limit(connection, live, time.time())
    _, everybody = live.population.counts_of(NOBODY)
    given, matched = everybody.given, everybody.matched
    support = (everybody.silent + everybody.refusing + matched).sum(axis=1)
    impossible = live.population.counts.count_impossible(live.population.possible)
    shown, decided = (history["shown"] + history["must"]).sum(), history["decisions"].sum()
    states = np.argsort(-given.sum(axis=1), kind="stable")[:MOST]
    return {
        **totals,
        "decisions": int(support.sum()),
        "impossible": impossible,
        "considered": int(history.size),
        "listening": _listening(int(matched.sum()), int(given.sum())),
        "worth": _worth(*returns, person_plan),
        "spending": _spending(history, live),
        **shared,
        "advice_rate": float(shown / decided) if decided else None,
        "over_time": _over_time(history),
        "by_advice": _by_advice(live, everybody),
        "by_state": [
            {"state": live.state_names[s], **_share(int(matched[s].sum()), int(given[s].sum()))}
            for s in states
            if given[s].sum()
        ],
        **_by_level(live),
        "by_person": _by_person(live),
        "where": _where(live, person_plan, support),
        "frontier": _frontier(history, live, person_plan),
        "recent": recent,
        "unknown": _unknown(given, history, impossible),
    }


def _totals(connection: sa.Connection, adviser: str) -> dict[str, int]:
    count, persons = sa.func.count(), sa.func.count(sa.distinct(episodes.c.person))
    query = sa.select(count.label("episodes"), persons.label("people"))
    row = connection.execute(query.where(episodes.c.adviser == adviser)).one()
    return dict(row._mapping)


def _last(adviser: str) -> sa.Subquery:
    """Return the last episodes of an adviser as a subquery."""
    mine = sa.select(episodes).where(episodes.c.adviser == adviser)
    return mine.order_by(episodes.c.number.desc()).limit(LAST).subquery()


def _history(connection: sa.Connection, live: LiveAdviser) -> NDArray[Any]:
    """Return the last episodes, oldest first, as an array with one row per episode."""
    last = _last(live.id)
    has_advice = decisions.c.shown & decisions.c.advice.is_not(None)
    is_seen = has_advice & outcomes.c.seen

    def count(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
        return sa.func.coalesce(sa.func.sum(sa.case((condition, 1), else_=0)), 0)

    query = (
        sa.select(
            last.c.number,
            last.c.held_out,
            sa.case((last.c.mode == "live", 1), else_=0),
            last.c.started,
            sa.func.count(decisions.c.seq),
            count(has_advice & ~decisions.c.must),
            count(has_advice & decisions.c.must),
            count(is_seen),
            count(is_seen & (outcomes.c.action == decisions.c.advice)),
            sa.func.sum(outcomes.c.reward),
        )
        .select_from(last)
        .join(decisions, decisions.c.episode == last.c.number, isouter=True)
        .join(outcomes, LAST_OUTCOME, isouter=True)
        .group_by(last.c.number, last.c.held_out, last.c.mode, last.c.started)
        .order_by(last.c.number)
    )
    rows = [
        (*(np.nan if value is None else float(value) for value in row), 0.0, 0.0)
        for row in connection.execute(query)
    ]
    history = np.array(rows, dtype=[(name, np.float64) for name in HISTORY])
    history["cost"], history["must_cost"] = history["shown"], history["must"]
    if live.has_costs:
        _add_costs(connection, live, history)
    return history


def _add_costs(connection: sa.Connection, live: LiveAdviser, history: NDArray[Any]) -> None:
    """Replace the pieces of each episode by their cost."""
    last = _last(live.id)
    cell = (decisions.c.step, decisions.c.state, decisions.c.advice)
    query = (
        sa.select(last.c.number, decisions.c.must, *cell)
        .join(decisions, decisions.c.episode == last.c.number)
        .where(decisions.c.shown & decisions.c.advice.is_not(None))
    )
    place = {int(number): i for i, number in enumerate(history["number"])}
    costs = np.zeros((2, history.size))
    for number, must, step, state, advice in connection.execute(query):
        if number in place:
            costs[int(must), place[number]] += live.cost[step, state, advice]
    history["cost"], history["must_cost"] = costs


def _share(matched: int, pieces: int) -> dict[str, Any]:
    """Return the share of matches among pieces of advice, with its interval."""
    share = low = high = None
    if pieces:
        share, (low, high) = matched / pieces, map(float, wilson(matched, pieces))
    return {"share": share, "low": low, "high": high, "matched": matched, "pieces": pieces}


def _always(low: float, high: float) -> dict[str, float | None]:
    """Return the ends of a confidence sequence, None where it is not bounded."""
    ends = {"always_low": float(low), "always_high": float(high)}
    return {name: end if np.isfinite(end) else None for name, end in ends.items()}


def _listening(matched: int, pieces: int) -> dict[str, Any]:
    """Return the share of matches with both intervals."""
    ends = share_sequence(matched, pieces) if pieces else (-np.inf, np.inf)
    return _share(matched, pieces) | _always(float(ends[0]), float(ends[1]))


def _by_advice(live: LiveAdviser, everybody: DecisionCounts) -> list[dict[str, Any]]:
    """Return the lift of each advice over all people, with both intervals."""
    rows = lift_rows(
        live,
        "lift",
        *live.population.population_lift(),
        everybody,
        live.population.faded_interval(None),
    )
    if live.population.memory is not None:  # the sequences are of the lift over all levels
        return [row | _always(-np.inf, np.inf) for row in rows]
    silent = everybody.silent.sum(axis=1)
    habit = live.population.setting.policy[0].T if live.settings.knows_habit else None
    counts = AdviceCounts(everybody.given.T, everybody.matched.T, silent, everybody.silent.T)
    low, high = lift_sequence(counts, habit)
    for row, *ends in zip(rows, low, high, strict=True):
        row |= _always(*ends) if row["pieces"] else _always(-np.inf, np.inf)
    return rows


def _mean(values: Floats) -> tuple[float | None, float | None]:
    """Return a mean and its standard error, each None where there are too few values."""
    if values.size == 0:
        return None, None
    error = float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else None
    return float(values.mean()), error


def _advised(history: NDArray[Any]) -> NDArray[Any]:
    """Return the episodes in which advice was shown where the plan had any."""
    advised: NDArray[Any] = history[(history["live"] > 0) & (history["held_out"] == 0)]
    return advised


def _centre(history: NDArray[Any]) -> float:
    """Return a number near the rewards of episodes."""
    known = history["reward"][~np.isnan(history["reward"])]
    return float(known.mean()) if known.size else 0.0


def _worth(advised: Sums, silent: Sums, person_plan: ExplainedPlan) -> dict[str, Any]:
    """Return what advice adds to an episode: measured against silent episodes, or as planned."""
    (n1, total1, _), (n0, total0, _) = advised.arrays(), silent.arrays()
    if min(n1, n0) < 2.0:
        worth = person_plan.plan.value - value_alone(person_plan.problem)
        unknown = {"low": None, "high": None, **_always(-np.inf, np.inf)}
        return {"how": "model", "estimate": worth, **unknown}
    variances = [
        float(np.maximum(squares - total**2 / n, 0.0) / (n - 1.0) / n)
        for n, total, squares in (advised.arrays(), silent.arrays())
    ]
    worth, error = float(total1 / n1 - total0 / n0), Z * float(np.sqrt(sum(variances)))
    low, high = difference_sequence(advised, silent)
    return {
        "how": "measured",
        "estimate": worth,
        "low": worth - error,
        "high": worth + error,
        **_always(float(low), float(high)),
        "advised": int(n1),
        "held_out": int(n0),
    }


def _spending(history: NDArray[Any], live: LiveAdviser) -> dict[str, Any]:
    advised = _advised(history)
    mean, error = _mean(advised["cost"])
    must, _ = _mean(advised["must_cost"])
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
        **_unit(live),
    }


def _unit(live: LiveAdviser) -> dict[str, str]:
    """Return the unit of budgets and spending, unless that is pieces."""
    return {"unit": "cost"} if live.has_costs else {}


def _over_time(history: NDArray[Any]) -> list[dict[str, Any]]:
    """Return the history in consecutive bins with equally many episodes."""
    if not history.size:
        return []
    bins = []
    for group in np.array_split(history, min(BINS, max(history.size // ENOUGH, 1))):
        sums = {name: int(group[name].sum()) for name in ("decisions", "shown", "seen", "matched")}
        bins.append(
            {
                "from": float(group["started"].min()),
                "to": float(group["started"].max()),
                "decisions": sums["decisions"],
                "shown": sums["shown"] + int(group["must"].sum()),
                "seen": sums["seen"],
                **_share(sums["matched"], sums["seen"]),
                "episodes": int(group.size),
                "per_episode": _mean(_advised(group)["cost"])[0],
            }
        )
    return bins


def _by_level(live: LiveAdviser) -> dict[str, Any]:
    """Return the share of matches on each level, where people have a memory."""
    memory = live.population.memory
    if memory is None:
        return {}
    _, counts = live.population.counts.by_level(NOBODY, live.population.possible)
    given, matched = (
        np.bincount(counts.level, weights, memory.n_levels).astype(np.int64)
        for weights in (counts.given, counts.matched)
    )
    rows = [
        live.level_fields(m) | _share(int(matched[m]), int(given[m]))
        for m in range(memory.n_levels)
        if given[m] or memory.n_levels <= MOST
    ]
    return {"by_level": rows[:MOST]}


def _by_person(live: LiveAdviser) -> dict[str, Any]:
    """Return how many people match which share of the advice they see, without names."""
    shares = []
    with live.population.counts.lock:
        for counts in live.population.counts.people.values():
            if counts.pieces >= ENOUGH:
                matches = (n for (_, heard, action), n in counts.cells.items() if heard == action)
                shares.append(sum(matches) / counts.pieces)
    count, edges = np.histogram(shares, bins=10, range=(0.0, 1.0))
    return {"edges": edges.round(2).tolist(), "count": count.tolist()}


def _where(
    live: LiveAdviser, person_plan: ExplainedPlan, support: NDArray[np.int64]
) -> list[dict[str, Any]]:
    """Return the cells in which advice gains most per episode."""
    net = person_plan.gain
    if live.has_costs:
        price = [person_plan.plan.price_at(step) for step in range(live.mdp.horizon)]
        net = net - np.nan_to_num(price, posinf=0.0)[:, None, None] * live.cost
    best = net.argmax(axis=2)
    gain = np.take_along_axis(person_plan.gain, best[..., None], axis=2)[..., 0]
    occupancy = evaluate(person_plan.problem, person_plan.plan.policy).occupancy
    order = np.argsort(-(occupancy * gain).reshape(-1), kind="stable")[:MOST]
    return [
        {
            "step": int(step),
            "state": live.state_names[state],
            "advice": live.action_names[best[step, state]],
            "gain": float(gain[step, state]),
            "criticality": person_plan.criticality_at(step, state),
            "met": float(occupancy[step, state]),
            "support": int(support[state]),
        }
        for step, state in zip(*np.unravel_index(order, gain.shape), strict=True)
        if occupancy[step, state] * gain[step, state] > 0.0
    ]


def _frontier(
    history: NDArray[Any], live: LiveAdviser, person_plan: ExplainedPlan
) -> dict[str, Any]:
    """Return the frontier as believed, with marks for policies and for the episodes so far."""
    problem, chosen = person_plan.problem, person_plan.plan
    if live.settings.limit.is_paced:  # plans aim at more or less than the budget
        chosen = solve(problem, budget=live.settings.budget, allow_reverse=False)
    always = evaluate(problem, always_best_action(problem))
    marks = [
        {"name": name, "pieces": float(count), "value": float(value)}
        for name, value, count in (
            ("never", value_alone(problem), 0.0),
            ("always", always.value, always.advice_cost),
            ("chosen", chosen.value, chosen.advice_cost),
        )
    ]
    known = _advised(history)
    known = known[~np.isnan(known["reward"])]
    value, error = _mean(known["reward"])
    if value is not None:
        now = {"name": "now", "pieces": float(known["cost"].mean()), "value": value}
        if error is not None:
            now |= {"low": value - Z * error, "high": value + Z * error}
        marks.append(now)
    is_small = problem.horizon * problem.n_states <= RANKED
    vertices = frontier(problem).vertices if is_small else ()
    return {
        "pieces": [vertex.advice_cost for vertex in vertices],
        "value": [vertex.value for vertex in vertices],
        "marks": marks,
        **_unit(live),
    }


def _recent(connection: sa.Connection, live: LiveAdviser) -> list[dict[str, Any]]:
    """Return the last decisions with their reasons, newest first."""
    last, who = _last(live.id), people.c.name.label("who")
    query = (
        sa.select(decisions, last.c.id, last.c.held_out, who, outcomes.c.action, outcomes.c.reward)
        .join(last, last.c.number == decisions.c.episode)
        .join(people, people.c.id == last.c.person)
        .join(outcomes, LAST_OUTCOME, isouter=True)
        .order_by(decisions.c.seq.desc())
        .limit(50)
    )
    recent = []
    for row in connection.execute(query):
        reason = live.name_reason(json.loads(row.reason))
        recent.append(
            {
                "at": row.at,
                "person": row.who,
                "episode": row.id,
                "step": row.step,
                "state": live.state_names[row.state],
                "advice": live.action_name(row.advice),
                "shown": row.shown,
                "must": row.must,
                "held_out": row.held_out,
                "action": live.action_name(row.action),
                "reward": row.reward,
                "reason": reason,
            }
        )
    return recent


def _unknown(given: NDArray[np.int64], history: NDArray[Any], impossible: int) -> list[str]:
    """Return in sentences what the data does not show."""
    sentences = []
    if impossible:
        outcomes = "1 outcome reports" if impossible == 1 else f"{impossible} outcomes report"
        sentences.append(
            f"{outcomes} an action that the model rules out in its state: kept on record, and not "
            "learnt from."
        )
    pieces = given.sum(axis=1)
    if few := int(((pieces > 0) & (pieces < ENOUGH)).sum()):
        states = "1 state has" if few == 1 else f"{few} states have"
        sentences.append(f"{states} fewer than {ENOUGH} pieces of advice.")
    if history.size and not (history["held_out"] * history["live"]).any():
        sentences.append(
            "No episode was kept silent, so what advice is worth is what the model expects."
        )
    if missing := int(np.isnan(history["reward"]).sum()):
        sentences.append(f"{missing} of the last {history.size} episodes have no reward on record.")
    return sentences
