"""The rewards of an adviser's episodes, with advice and kept silent, over the whole log.

What advice is worth needs, for either kind, the number of episodes, the sum of their rewards and
the sum of squares. The first time they are summed by the database; after that only episodes that
have outcomes since the last time are read, with their rewards as they were then and as they are
now, because an outcome may be late or replace an earlier version. A person who is erased is left
out: everything is summed anew. The reward of an open episode is what was reported so far.
"""

import threading
from typing import Any

import sqlalchemy as sa

from counsel.estimate.confidence_sequences import Sums
from counsel.service.db import queries
from counsel.service.db.tables import episodes, erasures, outcomes

_ADVISER: sa.BindParameter[str] = sa.bindparam("adviser")
_CENTRE: sa.BindParameter[float] = sa.bindparam("centre", type_=sa.Float)
_BEFORE: sa.BindParameter[int] = sa.bindparam("before")
_LAST: sa.BindParameter[int] = sa.bindparam("last")
_LAST_SEQ = sa.select(sa.func.max(outcomes.c.seq))


def _reward(at: sa.BindParameter[int]) -> sa.ColumnElement[float | None]:
    """Return the reward of an episode as it was when ``at`` was the last outcome."""
    is_last = outcomes.c.replaced_by.is_(None) | (outcomes.c.replaced_by > at)
    return sa.func.sum(sa.case(((outcomes.c.seq <= at) & is_last, outcomes.c.reward)))


def _sums(episode: sa.Subquery) -> sa.Select[Any]:
    """Return the growth of counts, sums and sums of squares by kind of episode."""
    counts, totals, squares = [], [], []
    for reward, sign in ((episode.c.new, 1), (episode.c.old, -1)):
        far = sa.func.coalesce(reward - _CENTRE, 0.0)
        counts.append(sign * sa.func.count(reward))
        totals.append(sign * sa.func.sum(far))
        squares.append(sign * sa.func.sum(far * far))
    parts = (sum(columns[1:], columns[0]) for columns in (counts, totals, squares))
    return sa.select(episode.c.held_out, *parts).group_by(episode.c.held_out)


_REWARDS = (
    sa.select(episodes.c.held_out, _reward(_LAST).label("new"), _reward(_BEFORE).label("old"))
    .join(outcomes, outcomes.c.episode == episodes.c.number)
    .where(
        episodes.c.adviser == _ADVISER,
        episodes.c.mode == "live",
        episodes.c.person.not_in(sa.select(erasures.c.person)),
    )
    .group_by(episodes.c.number, episodes.c.held_out)
)
_RECENT = sa.select(outcomes.c.episode).where(outcomes.c.seq > _BEFORE, outcomes.c.seq <= _LAST)
_ALL_SUMS = _sums(_REWARDS.subquery())
_NEW_SUMS = _sums(_REWARDS.where(episodes.c.number.in_(_RECENT)).subquery())


class EpisodeReturns:
    """Sums of the rewards of an adviser's live episodes, kept up to date by reading what is new."""

    def __init__(self, adviser: str) -> None:
        self.adviser = adviser
        self._lock = threading.Lock()
        self._read_up_to = self._erased_up_to = 0
        self._centre = 0.0
        self._sums = {False: (0, 0.0, 0.0), True: (0, 0.0, 0.0)}

    def read(self, connection: sa.Connection, centre: float) -> tuple[Sums, Sums]:
        """Return the sums of episodes with advice and of those kept silent.

        Both are of rewards less the same number, which is near ``centre``: squares of large
        numbers would lose the digits in which rewards differ.
        """
        with self._lock:
            last = connection.scalar(_LAST_SEQ) or 0
            erased, people = queries.erased_since(connection, self._erased_up_to)
            if people or last < self._read_up_to or not self._read_up_to:
                self._read_up_to, self._centre = 0, centre
                self._sums = {False: (0, 0.0, 0.0), True: (0, 0.0, 0.0)}
            if last > self._read_up_to:
                query = _NEW_SUMS if self._read_up_to else _ALL_SUMS
                values = {"adviser": self.adviser, "centre": self._centre}
                values |= {"before": self._read_up_to, "last": last}
                for held_out, *growth in connection.execute(query, values):
                    grown = zip(self._sums[bool(held_out)], growth, strict=True)
                    self._sums[bool(held_out)] = tuple(old + new for old, new in grown)
            self._read_up_to, self._erased_up_to = last, erased
            return Sums(*self._sums[False]), Sums(*self._sums[True])
