"""Follow what other services on the same database change: advisers, people, and the log.

Once per second the advisers in use are compared with their rows. A change of the mode is taken over
at once; an adviser with other settings is woken anew, beside the one that answers meanwhile. The
log itself is read at the end of every transaction (``learnt_counts.py``).
"""

import logging
import threading
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from counsel._arrays import brief
from counsel.errors import CounselError
from counsel.service.core.live_adviser import LiveAdviser
from counsel.service.core.settings import read_stored
from counsel.service.db import queries
from counsel.service.db.engine import read
from counsel.service.db.tables import DELETING, advisers

if TYPE_CHECKING:
    from counsel.service.core.desk import Desk

LOG = logging.getLogger("counsel.service")

POLL_SECONDS = 1.0
"""Seconds between polls for changes by other services."""

SNAPSHOT_EVERY = 100_000
"""Outcomes after which a snapshot is saved, so that a restart need not read the whole log."""

AT_ONCE = 500
"""Advisers that are looked up in one query."""

_WATCHED = (
    advisers.c.id,
    advisers.c.settings,
    advisers.c.archived,
    advisers.c.paced_episodes,
)


class Follower:
    """Polls for a desk, in a thread of its own."""

    def __init__(self, desk: "Desk") -> None:
        self._desk = desk
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="poller", daemon=True)
        self._thread.start()

    def close(self, timeout: float) -> None:
        """Stop; give up waiting after ``timeout`` seconds."""
        self._stopping.set()
        self._thread.join(timeout)

    def _poll(self) -> None:
        """Take over what other services on this database have changed, and save snapshots."""
        while not self._stopping.wait(POLL_SECONDS):
            try:
                take_over = partial(self.take_over_changes, changed=self._changed_advisers())
                for row in self._desk.committer.submit(take_over).result():
                    self._wake_anew(row)
                if self._desk.learnt.read_up_to - self._desk.learnt.saved_up_to >= SNAPSHOT_EVERY:
                    self._desk.save_snapshot().result()
            except (sa.exc.SQLAlchemyError, CounselError) as fault:
                reason = brief(str(getattr(fault, "orig", fault)))
                LOG.warning("the database does not answer: %s", reason)
            except Exception:
                LOG.warning("changes of other services cannot be taken over", exc_info=True)

    def _changed_advisers(self) -> list[str]:
        """Return the advisers that are not as they were, read while others write."""
        in_use, unchanged = self._desk.in_use(), set[str]()
        known = list({*in_use, *self._desk.learnt.advisers()})
        for some in _portions(known):
            for row in read(
                self._desk.reading, sa.select(*_WATCHED).where(advisers.c.id.in_(some))
            ):
                live = in_use.get(row.id)
                if live is not None:
                    live.paced_episodes = row.paced_episodes
                if row.archived == DELETING:
                    continue
                if live is None or (live.stored, live.archived) == (row.settings, row.archived):
                    unchanged.add(row.id)
        return [id_ for id_ in known if id_ not in unchanged]

    def take_over_changes(
        self, connection: sa.Connection, changed: Iterable[str] | None = None
    ) -> list[sa.Row[Any]]:
        """Take over changes of advisers; the log is read at the end of every transaction.

        Returns the rows of those that must be woken anew: more than their mode has changed.
        """
        in_use = self._desk.in_use()
        ids = list(in_use) if changed is None else list(changed)
        outdated, gone = list[sa.Row[Any]](), set(ids)
        for some in _portions(ids):
            for row in connection.execute(sa.select(advisers).where(advisers.c.id.in_(some))):
                live = in_use.get(row.id)
                if row.archived == DELETING:
                    continue
                gone.remove(row.id)
                if live is not None and not _follow(live, row):
                    outdated.append(row)
        for id_ in gone:
            self._desk.forget_adviser(id_)
        if queries.highest_seq(connection) < self._desk.learnt.read_up_to:
            LOG.warning("the database has fewer outcomes than it had: everything is counted again")
            with self._desk.reading.connect() as reader:
                self._desk.learnt.recount(reader)
        return outdated

    def _wake_anew(self, row: sa.Row[Any]) -> None:
        """Replace an adviser by one with the settings in its row, unless they changed again."""
        try:
            live = self._desk.wake_row(row)
        except CounselError as fault:
            LOG.warning("adviser %s keeps its settings: %s", row.id, brief(str(fault)))
            in_use = self._desk.in_use().get(row.id)
            if in_use is not None:
                in_use.stored = row.settings  # so that the log has it once
            return
        stored = sa.select(advisers.c.settings).where(advisers.c.id == row.id)

        def take_over(connection: sa.Connection) -> None:
            if connection.scalar(stored) == row.settings:
                self._desk.put_to_use(live)

        self._desk.committer.submit(take_over).result()


def _portions(ids: list[str]) -> Iterator[list[str]]:
    """Yield some ids at a time: a database takes only so many in one query."""
    return (ids[i : i + AT_ONCE] for i in range(0, len(ids), AT_ONCE))


def _follow(live: LiveAdviser, row: sa.Row[Any]) -> bool:
    """Take over a row as far as that needs no other plans; return whether that is all of it."""
    live.archived, live.paced_episodes = row.archived, row.paced_episodes
    if live.stored == row.settings:
        return True
    settings, fault = read_stored(row.settings)
    is_whole = fault is None and live.fault is None
    if not is_whole or settings.with_mode(live.settings.mode) != live.settings:
        return False
    live.settings, live.stored = settings, row.settings
    return True
