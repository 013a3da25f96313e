"""What people did, counted from the log: what every adviser has learnt.

Counts are a function of the log alone. They are read from the last snapshot and the outcomes since
then, and kept up to date after every transaction: an outcome that was replaced by another version
is taken back, and a person who was erased is subtracted, without reading anything else again. Where
people have a memory, a piece is counted on the level on which it found the person.
"""

import time
from collections.abc import Callable, Iterable

import sqlalchemy as sa

from counsel.estimate.people_counts import PeopleCounts
from counsel.service.core.count_snapshot import pack, unpack
from counsel.service.db import queries
from counsel.service.db.tables import snapshots


class LearntCounts:
    """The counts of all advisers.

    ``on_erasure`` is called with the number of an erased person and the advisers who knew them.
    """

    def __init__(self, on_erasure: Callable[[int, list[str]], None]) -> None:
        self._read_up_to = queries.ReadUpTo()
        self.saved_up_to = 0
        self._by_adviser: dict[str, PeopleCounts] = {}
        self._erased_up_to = 0
        self._erased = set[int]()
        self._on_erasure = on_erasure

    @property
    def read_up_to(self) -> int:
        """The sequence number of the last outcome that was counted."""
        return self._read_up_to.outcome

    def of(self, adviser: str) -> PeopleCounts:
        """Return the counts of an adviser, which grow as outcomes arrive."""
        return self._by_adviser.setdefault(adviser, PeopleCounts())

    def advisers(self) -> list[str]:
        """Return the advisers of which something was counted."""
        known = list(self._by_adviser.items())
        return [adviser for adviser, counts in known if counts.everybody.decisions]

    def forget_adviser(self, adviser: str) -> None:
        """Forget the counts of an adviser that was deleted; call it where transactions run."""
        self._by_adviser.pop(adviser, None)

    def load(self, connection: sa.Connection) -> None:
        """Count everything on record, from the last snapshot on."""
        query = sa.select(snapshots).order_by(snapshots.c.up_to.desc()).limit(1)
        row = connection.execute(query).first()
        if row is not None:
            snapshot = unpack(row.content)
            self._read_up_to = queries.ReadUpTo(row.up_to, snapshot.changes)
            self._erased_up_to = row.erased
            snapshot.add_to(self.of)
        self.read(connection)()
        self.saved_up_to = self.read_up_to

    def read(self, connection: sa.Connection) -> Callable[[], None]:
        """Read what is new in the log; the function returned learns it once it is durable."""
        last, observed = queries.outcomes_since(connection, self._read_up_to)
        erased, people = queries.erased_since(connection, self._erased_up_to)

        def learn() -> None:
            self._read_up_to, self._erased_up_to = last, erased
            self._erased.update(people)
            self._add(observed)
            for person in people:
                self._forget(person)

        return learn

    def recount(self, connection: sa.Connection) -> None:
        """Count everything anew, because an older copy of the database was restored."""
        last, observed = queries.outcomes_since(connection, queries.ReadUpTo())
        for counts in list(self._by_adviser.values()):
            counts.clear()
        self._erased_up_to, people = queries.erased_since(connection, 0)
        self._read_up_to, self._erased = last, set(people)
        self._add(observed)

    def save(self, connection: sa.Connection) -> None:
        """Save a snapshot, so that the next start need not read the whole log."""
        erased, _ = queries.erased_since(connection, self._erased_up_to)
        saved = connection.scalar(sa.select(sa.func.max(snapshots.c.up_to))) or 0
        self.saved_up_to = self.read_up_to
        if erased != self._erased_up_to or saved >= self.read_up_to:
            return  # it has somebody in it who must be forgotten, or is saved already
        numbers = {"up_to": self.read_up_to, "erased": self._erased_up_to, "at": time.time()}
        connection.execute(sa.delete(snapshots))
        content = pack(self._by_adviser, self._read_up_to.change)
        connection.execute(sa.insert(snapshots), numbers | {"content": content})

    def _add(self, observed: Iterable[queries.Observed]) -> None:
        for adviser, person, state, heard, action, level, times in observed:
            if person not in self._erased:  # its rows are about to be deleted
                self.of(adviser).add(person, (state, heard, action), times, level)

    def _forget(self, person: int) -> None:
        known = list(self._by_adviser.items())  # an adviser may be woken meanwhile
        affected = [name for name, counts in known if counts.forget(person)]
        self._on_erasure(person, affected)
