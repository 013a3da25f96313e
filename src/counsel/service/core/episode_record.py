"""Everything on record of one episode: its decisions, their outcomes, and what people said."""

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from counsel.service.core.desk import Desk
from counsel.service.core.episode_levels import EpisodeLevels
from counsel.service.core.listings import episode_fields
from counsel.service.core.live_adviser import LiveAdviser
from counsel.service.db.level_queries import Step
from counsel.service.db.queries import REMARK
from counsel.service.db.tables import advisers, decisions, episodes, outcomes, people, remarks
from counsel.service.errors import NotFoundError


def describe_episode(desk: Desk, tenant: int, id_: str) -> dict[str, Any]:
    """Return an episode with its decisions, oldest first, and all versions of their outcomes."""
    which = (
        sa.select(episodes, people.c.name)
        .join(people, people.c.id == episodes.c.person)
        .join(advisers, advisers.c.id == episodes.c.adviser)
        .where(episodes.c.id == id_, advisers.c.tenant == tenant)
    )
    with desk.reading.connect() as connection:
        row = connection.execute(which).first()
        if row is None:
            raise NotFoundError(f"there is no episode {id_[:40]!r}")
        decided = connection.execute(
            sa.select(decisions).where(decisions.c.episode == row.number).order_by(decisions.c.step)
        ).all()
        reported = connection.execute(
            sa.select(outcomes, remarks.c.reason_code, remarks.c.comment)
            .join(remarks, REMARK, isouter=True)
            .where(outcomes.c.episode == row.number)
            .order_by(outcomes.c.version)
        ).all()
    live = desk.live(tenant, row.adviser)
    levels, now = level_fields(live, row, decided, reported)
    versions = dict[int, list[dict[str, Any]]]()
    for outcome in reported:
        versions.setdefault(outcome.step, []).append(_outcome(outcome, live))
    return (
        episode_fields(row)
        | now
        | {
            "adviser": row.adviser,
            "decisions": [
                _decision(id_, each, versions.get(each.step, []), live) | levels.get(each.step, {})
                for each in decided
            ],
        }
    )


def level_fields(
    live: LiveAdviser,
    episode: sa.Row[Any],
    decided: Sequence[sa.Row[Any]],
    reported: Sequence[sa.Row[Any]],
) -> tuple[dict[int, dict[str, Any]], dict[str, Any]]:
    """Return the level of each decision, and the level after the last; empty without a memory.

    The levels are those that the record has now: a decision may have been made on another, before
    an outcome was reported or corrected.
    """
    if live.moves is None:
        return {}, {}
    last = {row.step: row for row in reported}  # the last version of each comes last
    steps = [
        Step(
            row.step,
            row.level,
            row.advice if row.shown else None,
            last[row.step].action if row.step in last else None,
            last[row.step].seen if row.step in last else None,
        )
        for row in decided
    ]
    levels = EpisodeLevels(live.moves, episode.id, episode.level, steps)
    by_step = levels.up_to(levels.last_step + 1)
    fields = [live.level_fields(level) for level in by_step]
    return {row.step: fields[row.step] for row in decided}, fields[-1]


def _decision(
    episode: str, row: sa.Row[Any], versions: list[dict[str, Any]], live: LiveAdviser
) -> dict[str, Any]:
    reason = json.loads(row.reason)
    reason = live.name_reason(reason)
    return {
        "id": f"{episode}-{row.step}",
        "at": row.at,
        "step": row.step,
        "state": live.state_names[row.state],
        "advice": live.action_name(row.advice),
        "shown": row.shown,
        "must": row.must,
        "probability": row.probability,
        "reason": reason,
        "outcome": versions[-1] if versions else None,
        "earlier": versions[:-1],
    }


def _outcome(row: sa.Row[Any], live: LiveAdviser) -> dict[str, Any]:
    return {
        "version": row.version,
        "at": row.at,
        "action": live.action_name(row.action),
        "reward": row.reward,
        "next_state": None if row.next_state is None else live.state_names[row.next_state],
        "seen": row.seen,
        "reason_code": row.reason_code,
        "comment": row.comment,
    }
