"""Deleting for good: decisions some at a time, then their old rows in the database's files.

Advice does not wait for a long transaction, however long an episode is. The row of a person or an
adviser goes last, after the files are scrubbed, so that a deletion that a crash interrupted, or
somebody who reads the old rows held up, is found and finished (``finisher.py``).
"""

from collections.abc import Callable, Iterable

import sqlalchemy as sa

from counsel.service.core.desk import Desk
from counsel.service.db.old_rows import scrub
from counsel.service.db.tables import decisions, episodes

AT_ONCE, DECISIONS_AT_ONCE = 50, 500
"""Episodes, and decisions with their outcomes, that are deleted in one transaction."""

RETRY_SECONDS = 5.0
"""Seconds after which an unfinished deletion is tried again."""


def delete_for_good(
    desk: Desk,
    those: Iterable[sa.ColumnElement[bool]],
    finish: Callable[[sa.Connection], object],
) -> list[str]:
    """Delete the episodes of each condition, scrub, and finish; return what could not be done.

    If others keep old rows on disk, ``finish`` is left to a later attempt.
    """
    is_finished = False
    try:
        for condition in those:
            _delete_episodes(desk, condition)
        remains = scrub(desk.engine)
        if not remains.held:
            desk.committer.submit(finish).result()
            is_finished = True
    finally:
        if not is_finished:
            desk.unfinished_deletions.set()
    again = f"the service tries again every {RETRY_SECONDS:.0f} s"
    return [*remains.forbidden, *(f"{held}; {again}" for held in remains.held)]


def _delete_episodes(desk: Desk, condition: sa.ColumnElement[bool]) -> None:
    some = sa.select(episodes.c.number).where(condition).limit(AT_ONCE)

    def delete(connection: sa.Connection) -> bool:
        numbers = list(connection.scalars(some))
        theirs = sa.select(decisions.c.seq).where(decisions.c.episode.in_(numbers))
        rows = list(connection.scalars(theirs.limit(DECISIONS_AT_ONCE)))
        connection.execute(sa.delete(decisions).where(decisions.c.seq.in_(rows)))
        if len(rows) == DECISIONS_AT_ONCE:
            return True
        connection.execute(sa.delete(episodes).where(episodes.c.number.in_(numbers)))
        return len(numbers) == AT_ONCE

    while desk.committer.submit(delete).result():
        pass
