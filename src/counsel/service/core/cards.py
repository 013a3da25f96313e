"""Cards: shown advice under a UUID, from which its decision can be found again.

A client of CDS Hooks knows a piece of advice by the UUID of its card, and what the card suggests by
another. Both are made of the id of the decision alone, in the layout that RFC 9562 leaves to its
users (version 8):

    eeeeeeee-eeee-8eee-8eee-eeeeeeesssss    a card
    eeeeeeee-eeee-8eee-9eee-eeeeeeesssss    its suggestion

with e the first 25 hexadecimal digits of the episode's id, which are random, and s the step.
"""

import re
from dataclasses import dataclass
from uuid import UUID

import sqlalchemy as sa

from counsel.service.core.desk import Desk
from counsel.service.db.engine import read
from counsel.service.db.tables import advisers, decisions, episodes
from counsel.service.errors import NotFoundError

CARD, SUGGESTION = "8", "9"
DIGITS = 25
"""Digits of the episode's id in a UUID."""

_CARD = re.compile(r"([0-9a-f]{12})8([0-9a-f]{3})8([0-9a-f]{10})([0-9a-f]{5})")


@dataclass(frozen=True, slots=True)
class Card:
    """A piece of advice that was shown: its decision, where it was given, and the advice."""

    decision: str
    step: int
    state: int
    advice: int


def card_uuid(decision: str) -> str:
    """Return the UUID of the card of a decision."""
    return _uuid(decision, CARD)


def suggestion_uuid(decision: str) -> str:
    """Return the UUID of what the card of a decision suggests."""
    return _uuid(decision, SUGGESTION)


def find_card(desk: Desk, tenant: int, adviser: str, uuid: str) -> Card:
    """Return the card of an adviser by its UUID."""
    matched = _CARD.fullmatch(uuid.lower().replace("-", ""))
    if matched is not None:
        start, step = "".join(matched.groups()[:3]), int(matched[4], 16)
        rest = 32 - DIGITS
        query = (
            sa.select(episodes.c.id, decisions.c.state, decisions.c.advice)
            .join(decisions, decisions.c.episode == episodes.c.number)
            .join(advisers, advisers.c.id == episodes.c.adviser)
            .where(
                advisers.c.id == adviser,
                advisers.c.tenant == tenant,
                episodes.c.id.between(start + rest * "0", start + rest * "f"),
                decisions.c.step == step,
                decisions.c.shown,
                decisions.c.advice.is_not(None),
            )
        )
        for row in read(desk.engine, query):
            return Card(f"{row.id}-{step}", step, row.state, row.advice)
    raise NotFoundError(f"there is no card {uuid[:40]!r}")


def _uuid(decision: str, kind: str) -> str:
    episode, _, step = decision.rpartition("-")
    return str(UUID(f"{episode[:12]}8{episode[12:15]}{kind}{episode[15:DIGITS]}{int(step):05x}"))
