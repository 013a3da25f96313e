"""What the desk does inside a transaction: start episodes, decide, and record outcomes.

The caller holds the database's lock, so what is read stays true until it is written.
"""

from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa

from counsel.service.core.decide import Decision, DecisionRequest, decide, from_row, to_row
from counsel.service.core.episode import Episode
from counsel.service.core.episode_levels import first_level, read_levels, update_levels
from counsel.service.core.live_adviser import LiveAdviser
from counsel.service.core.outcomes import OutcomeReceipt, OutcomeReport
from counsel.service.core.shared_limit import Stretches
from counsel.service.db import queries
from counsel.service.db.tables import advisers, episodes, people
from counsel.service.errors import ConflictError, NotFoundError

MOST_VERSIONS = 20
"""Versions of an outcome on record: every correction reads all of them under the lock."""


def start_episode(
    connection: sa.Connection,
    row: dict[str, Any],
    person: str,
    live: LiveAdviser,
    admit: Callable[[int], None],
) -> Episode:
    """Start an episode, whose ``row`` lacks the person, who is added if the name is new.

    ``admit`` raises if the tenant may have no other person.
    """
    mine = sa.select(episodes).where(episodes.c.id == row["id"])
    known = connection.execute(mine).first()
    if known is None and row["request"] is not None:
        known = queries.find_started(connection, live.id, row["request"])
        if known is not None and queries.person_name(connection, known.person) != person:
            raise ConflictError("this Idempotency-Key started an episode of another person")
    if known is not None:  # started before, though the caller did not hear of it
        return Episode.from_row(known, live)
    _check_in_use(connection, live)
    number = queries.person_number(connection, live.tenant, person)
    if number is None:
        admit(live.tenant)
        new = {"tenant": live.tenant, "name": person, "created": row["started"]}
        connection.execute(sa.insert(people), new)
        number = queries.person_number(connection, live.tenant, person)
    if live.keeps_level and number is not None:
        row = row | {"level": first_level(connection, live, number)}
    connection.execute(sa.insert(episodes), row | {"person": number})
    episode = Episode.from_row(connection.execute(mine).one(), live)
    if episode.is_paced:
        queries.add_paced_episode(connection, live.id)
    return episode


def _check_in_use(connection: sa.Connection, live: LiveAdviser) -> None:
    """Raise if an adviser was archived or deleted, here or by another service."""
    query = sa.select(advisers.c.archived).where(advisers.c.id == live.id)
    row = connection.execute(query).first()
    if row is None:
        raise NotFoundError(f"there is no adviser {live.id!r}")
    if row.archived is not None:
        raise ConflictError(f"adviser {live.name[:40]!r} is archived; restore it to start episodes")


def decide_all(
    connection: sa.Connection, requests: list[DecisionRequest]
) -> list[Decision | Exception]:
    """Decide on each request as if it were alone, in order; a step is decided only once."""
    cells = [(request.episode.number, request.step) for request in requests]
    decided = queries.decided_cells(connection, cells)
    recorded = queries.decisions_at(connection, decided) if decided else {}
    accounts = queries.episode_accounts(connection, (number for number, _ in cells))
    rows = list[dict[str, Any]]()
    spent, paced = dict[int, queries.Amount](), dict[str, queries.Amount]()
    answers = list[Decision | Exception]()
    new = dict[queries.Cell, tuple[Decision, int]]()
    remembering = {one.episode.number: one.episode for one in requests if one.episode.live.moves}
    levels = read_levels(connection, remembering.values()) if remembering else {}
    limited = [(one.episode, one.at) for one in requests if one.episode.live.settings.shared_limit]
    stretches = Stretches(connection, limited) if limited else None
    moved = dict[int, Episode]()  # in which an earlier step than the last was decided
    for request, cell in zip(requests, cells, strict=True):
        episode = request.episode
        account = accounts.get(episode.number)
        if account is None:
            answers.append(NotFoundError(f"there is no episode {episode.id!r}"))
        elif cell in recorded:
            is_same = recorded[cell].state == request.state
            answers.append(from_row(recorded[cell], episode) if is_same else _other_state(request))
        elif cell in new:
            decision, state = new[cell]
            answers.append(decision if state == request.state else _other_state(request))
        elif account.ended:
            answers.append(ConflictError(f"episode {episode.id} has ended; start another"))
        else:
            its_levels, level = levels.get(episode.number), None
            if its_levels is not None:
                level = its_levels.at(request.step)
            stretch = None if stretches is None else stretches.of(episode, request.at)
            decision = decide(request, account.spent + spent.get(episode.number, 0), level, stretch)
            if stretch is not None and decision.offer is not None and decision.shown:
                stretch.add(decision.offer, request.at)
            if its_levels is not None:
                if episode.live.keeps_level or request.step < its_levels.last_step:
                    moved[episode.number] = episode
                its_levels.add(request.step, decision.shown_advice)
            new[cell] = decision, request.state
            answers.append(decision)
            rows.append(to_row(request, decision))
            if decision.advice is not None and not decision.must:
                cost = episode.live.cost_of(request.step, request.state, decision.advice)
                spent[episode.number] = spent.get(episode.number, 0) + cost
                if decision.shown and episode.is_paced:
                    paced[episode.live.id] = paced.get(episode.live.id, 0) + cost
                if decision.shown and stretch is not None:
                    stretch.charge(cost)
    queries.add_decisions(connection, rows, spent)
    queries.add_paced_cost(connection, paced)
    if stretches is not None:
        stretches.save()
    if moved:
        update_levels(connection, moved.values())
    return answers


def record_all(
    connection: sa.Connection, reports: list[OutcomeReport]
) -> list[Exception | OutcomeReceipt]:
    """Record outcomes, report by report: all outcomes of a report or none."""
    cells = {_cell(row) for report in reports for row in report.rows}
    known = queries.decided_cells(connection, cells) if cells else {}
    reported = [cell for cell, is_reported in known.items() if is_reported]
    versions = queries.reported_outcomes(connection, reported) if reported else {}
    answers, new = list[Exception | OutcomeReceipt](), list[dict[str, Any]]()
    remembering = dict[int, Episode]()
    for rows, those_remembering in reports:
        missing = [row["step"] for row in rows if _cell(row) not in known]
        if missing:
            answers.append(NotFoundError(f"no decision was asked for at step {missing[0]}"))
            continue
        try:
            added = _new_versions(rows, versions)
        except ConflictError as fault:
            answers.append(fault)
            continue
        for row in added:
            versions.setdefault(_cell(row), []).append(row)
        new += added
        remembering |= those_remembering
        corrected = sum(row["replaces"] is not None for row in added)
        answers.append(OutcomeReceipt(len(rows), corrected))
    queries.add_outcomes(connection, new)
    if remembering:
        changed = {row["episode"] for row in new}
        update_levels(connection, [one for n, one in remembering.items() if n in changed])
    return answers


def end_all(connection: sa.Connection, ends: list[dict[str, Any]]) -> list[None]:
    """End episodes; those that have ended stay as they are."""
    queries.end_episodes(connection, ends)
    return [None] * len(ends)


def _new_versions(
    rows: list[dict[str, Any]], versions: Mapping[queries.Cell, list[Mapping[str, Any]]]
) -> list[dict[str, Any]]:
    """Return those outcomes of a report that are new, each with its version.

    An outcome that repeats the last version, or the one whose number it has, is not new. One whose
    number is missing on record, below the last, came late: it was replaced before it came.
    """
    added, added_to = list[dict[str, Any]](), dict[queries.Cell, list[Mapping[str, Any]]]()
    for row in rows:
        cell = _cell(row)
        of_cell = [*versions.get(cell, ()), *added_to.get(cell, ())]
        by_version = {known["version"]: known for known in of_cell}
        last = max(by_version, default=0)
        number = row["version"] or last + 1
        known = by_version.get(row["version"] or last)
        if known is not None and all(known[name] == row[name] for name in queries.CONTENT):
            continue
        if number in by_version:
            raise ConflictError(
                f"the outcome of decision {row['decision']} is on record as version {last}, and "
                f"its version {number} is another one than this; versions never change: give "
                f"version {last + 1} only to an outcome that is newer than all on record"
            )
        if len(by_version) >= MOST_VERSIONS:
            raise ConflictError(
                f"the outcome of decision {row['decision']} has {MOST_VERSIONS} versions on record,"
                " which is the most"
            )
        newer = min((version for version in by_version if version > number), default=None)
        replaces = None if newer else last or None
        added.append(row | {"version": number, "replaces": replaces, "replaced": newer})
        added_to.setdefault(cell, []).append(added[-1])
    return added


def _cell(row: Mapping[str, Any]) -> queries.Cell:
    return row["episode"], row["step"]


def _other_state(request: DecisionRequest) -> ConflictError:
    episode = request.episode
    return ConflictError(
        f"step {request.step} of episode {episode.id} is on record with another state than "
        f"{episode.live.state_names[request.state]!r}"
    )
