"""Encounters: calls that belong together, of callers who count neither episodes nor steps.

Such a caller gives a name that is the same in all calls of an encounter. Each person has episodes
of their own in it. A step is over once its outcome is reported or the state has changed: until then
a call is answered as the one before, so that a chart that is opened again, or a call that is sent
again, takes nothing from the budget. Where an episode has ended, or has had all its steps, the
encounter continues in another one: whatever must be said is said in every call.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass

import sqlalchemy as sa

from counsel.service.core.decide import Decision
from counsel.service.core.desk import Desk
from counsel.service.core.episode import Episode, digest_of_request
from counsel.service.db.engine import read
from counsel.service.db.queries import LAST_OUTCOME
from counsel.service.db.tables import decisions, episodes, outcomes
from counsel.service.errors import ConflictError

ATTEMPTS = 5
"""How often a call looks for a step that no other call takes at the same moment."""

BATCH = 64
"""Episodes of an encounter that are looked up at once."""

FIRST, MOST_BITS = 24, 40
"""Episodes that most encounters do not exceed, and the bits of the largest number of them."""


@dataclass(frozen=True, slots=True)
class Encounter:
    """The encounter of a person with an adviser, under the caller's name for it."""

    adviser: str
    person: str
    name: str

    def request(self, part: int) -> str:
        """Return the idempotency key of one of its episodes."""
        return json.dumps(["encounter", self.person, self.name, part])


def advise(
    desk: Desk, tenant: int, encounter: Encounter, state: int, step: int | None = None
) -> Decision:
    """Decide on a step of the encounter's first episode, or on its next step if there is none."""
    if step is not None:
        return desk.advise(tenant, _episode(desk, tenant, encounter, 0).id, step, state)
    fault = ConflictError("other calls of this encounter are being answered; try again")
    for _ in range(ATTEMPTS):
        part = max(_episodes_so_far(desk, encounter) - 1, 0)
        episode = _episode(desk, tenant, encounter, part)
        following = _next_step(desk, episode, state)
        if following is None:
            episode, following = _episode(desk, tenant, encounter, part + 1), 0
        try:
            return desk.advise(tenant, episode.id, following, state)
        except ConflictError as other:  # another call took this step, or ended the episode
            fault = other
    raise fault


def _episode(desk: Desk, tenant: int, encounter: Encounter, part: int) -> Episode:
    for id_ in _ids(desk, encounter, [part]).values():
        return desk.episode(tenant, id_)
    return desk.start(tenant, encounter.adviser, encounter.person, request=encounter.request(part))


def _episodes_so_far(desk: Desk, encounter: Encounter) -> int:
    """Return how many episodes an encounter has had: the first part that has not been started.

    An encounter may last for months, so few parts are looked up: the first ones and powers of two,
    then evenly between the last of these that was started and the next.
    """
    parts = [*range(FIRST), *(2**i for i in range(FIRST.bit_length(), MOST_BITS))]
    started, missing = 0, 2**MOST_BITS
    while started < missing:
        found = len(_ids(desk, encounter, parts))
        if found:
            started = parts[found - 1] + 1
        if found < len(parts):
            missing = parts[found]
        parts = list(range(started, missing, -(-(missing - started) // BATCH) or 1))
    return started


def _ids(desk: Desk, encounter: Encounter, parts: Iterable[int]) -> dict[str, str]:
    """Return the ids of those episodes of an encounter that have been started."""
    digests = [digest_of_request(encounter.request(part)) for part in parts]
    query = sa.select(episodes.c.request, episodes.c.id).where(
        episodes.c.adviser == encounter.adviser, episodes.c.request.in_(digests)
    )
    return {row.request: row.id for row in read(desk.engine, query)}


def _next_step(desk: Desk, episode: Episode, state: int) -> int | None:
    """Return the step that a call in this state is about; None if there is none left."""
    query = (
        sa.select(episodes.c.ended, decisions.c.step, decisions.c.state, outcomes.c.action)
        .select_from(episodes)
        .join(decisions, decisions.c.episode == episodes.c.number, isouter=True)
        .join(outcomes, LAST_OUTCOME, isouter=True)
        .where(episodes.c.number == episode.number)
        .order_by(decisions.c.step.desc())
        .limit(1)
    )
    for row in read(desk.engine, query):
        if row.ended is not None:
            return None
        if row.step is None:
            return 0
        if row.state == state and row.action is None:
            return int(row.step)
        return int(row.step) + 1 if row.step + 1 < episode.live.mdp.horizon else None
    return None  # the person was erased in the meantime
