"""What the desk does inside a transaction: episodes begun, decisions made, outcomes taken in.

Whoever is here holds the database's lock, so what is read stays true until it is written.
"""

import json
from typing import Any

import sqlalchemy as sa

from counsel.service.core.adviser import Limit
from counsel.service.core.decide import Ask, Said, decide, from_row, to_row
from counsel.service.core.live_adviser import Episode, Live
from counsel.service.db import queries as record
from counsel.service.db.tables import advisers, episodes, people
from counsel.service.errors import ConflictError, MissingError


def begin(
    connection: sa.Connection,
    row: dict[str, Any],
    who: tuple[int, str],
    live: Live,
) -> Episode:
    """Begin an episode with a person of a tenant, who is made where there is none of that name.

    Parameters
    ----------
    connection
        A transaction under way.
    row
        The episode but for its person.
    who
        The tenant, and the person's name.
    live
        Whose episode it is.
    """
    mine = sa.select(episodes).where(episodes.c.id == row["id"])
    known = connection.execute(mine).first()
    if known is not None:  # done already, though the database's answer was lost
        return to_episode(known)
    tenant, name = who
    query = sa.select(people.c.id).where(people.c.tenant == tenant, people.c.name == name)
    found: Any = connection.scalar(query)
    if found is None:
        new = {"tenant": tenant, "name": name, "created": row["started"]}
        connection.execute(sa.insert(people), new)
        found = connection.scalar(query)
    connection.execute(sa.insert(episodes), row | {"person": found})
    begun = to_episode(connection.execute(mine).one())
    if begun.advised and live.settings.limit.paced:
        count = advisers.c.paced_episodes + 1
        counted = sa.update(advisers).where(advisers.c.id == begun.adviser)
        connection.execute(counted.values(paced_episodes=count))
    return begun


def decide_all(connection: sa.Connection, asks: list[Ask]) -> list[Said | Exception]:
    """Decide what was asked for, each as if alone and in order; the same step gets one answer."""
    cells = [(ask.episode.number, ask.step) for ask in asks]
    before = record.decided(connection, cells)
    stands = record.accounts(connection, (number for number, _ in cells))
    rows, spent, paced = list[dict[str, Any]](), dict[int, int](), dict[str, int]()
    answers, given = list[Said | Exception](), dict[record.Cell, tuple[Said, int]]()
    for ask, cell in zip(asks, cells, strict=True):
        account = stands.get(ask.episode.number)
        if account is None:
            answers.append(MissingError(f"there is no episode {ask.episode.id!r}"))
        elif cell in before:
            same = before[cell].state == ask.state
            answers.append(from_row(before[cell], ask.episode) if same else _other_state(ask))
        elif cell in given:
            said, state = given[cell]
            answers.append(said if state == ask.state else _other_state(ask))
        elif account.ended:
            answers.append(ConflictError(f"episode {ask.episode.id} has ended; start another"))
        else:
            number = ask.episode.number
            said = decide(ask, account.spent + spent.get(number, 0))
            given[cell] = said, ask.state
            answers.append(said)
            rows.append(to_row(ask, said))
            if said.advice is not None and not said.must:
                spent[number] = spent.get(number, 0) + 1
                if said.shown and ask.episode.advised and ask.live.settings.limit.paced:
                    name = ask.episode.adviser
                    paced[name] = paced.get(name, 0) + 1
    record.add_decisions(connection, rows, spent)
    record.count_pieces(connection, paced)
    return answers


def report_all(
    connection: sa.Connection, told: list[list[dict[str, Any]]]
) -> list[Exception | None]:
    """Take in outcomes, request by request: all of one or none."""
    cells = {(row["episode"], row["step"]) for rows in told for row in rows}
    known = record.known_cells(connection, cells) if cells else set()
    answers, fine = list[Exception | None](), list[dict[str, Any]]()
    for rows in told:
        missing = [row for row in rows if (row["episode"], row["step"]) not in known]
        if missing:
            step = missing[0]["step"]
            answers.append(MissingError(f"no decision was asked for at step {step}"))
        else:
            answers.append(None)
            fine += rows
    record.add_outcomes(connection, fine)
    return answers


def to_episode(row: sa.Row[Any]) -> Episode:
    """Return an episode as it is on record."""
    limit = None if row.limit is None else Limit(**json.loads(row.limit))
    return Episode(row.id, row.number, row.adviser, row.person, row.held_out, row.mode, limit)


def _other_state(ask: Ask) -> ConflictError:
    return ConflictError(
        f"step {ask.step} of episode {ask.episode.id} is on record with another state than "
        f"{ask.live.state_names[ask.state]!r}"
    )
