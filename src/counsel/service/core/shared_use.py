"""How much of a shared limit is used, now and in the last stretches, and at which price."""

from typing import Any

import sqlalchemy as sa

from counsel.service.core.live_adviser import LiveAdviser
from counsel.service.core.shared_limit import Stretch, from_row, open_stretch, stretch_start
from counsel.service.db import stretch_queries
from counsel.service.db.queries import amount
from counsel.service.db.stretch_queries import StretchKey

SHOWN = 30
"""Stretches that a summary has."""


def describe_shared_limit(
    connection: sa.Connection, live: LiveAdviser, now: float
) -> dict[str, Any]:
    """Return the field ``shared_limit`` of a summary; empty without a shared limit."""
    limit = live.settings.shared_limit
    if limit is None:
        return {}
    key = StretchKey(live.id, limit.seconds, stretch_start(now, limit.seconds))
    rows = stretch_queries.last_stretches(connection, live.id, limit.seconds, SHOWN)
    last = [from_row(row) for row in rows]
    current = next((one for one in last if one.key == key), None)
    if current is None:
        current = open_stretch(connection, key, limit, now)
        last.append(current)
    current.pieces = limit.pieces
    expected = current.expected(now)
    return {
        "shared_limit": {
            "pieces": limit.pieces,
            "per": limit.per,
            "spent": amount(current.spent),
            "left": current.left_after(0),
            "price": current.price(now).bid,
            "expected": expected,
            "stretches": [_use(one) for one in last if one.key.start <= key.start][-SHOWN:],
            **({"unit": "cost"} if live.has_costs else {}),
        }
    }


def _use(stretch: Stretch) -> dict[str, Any]:
    offers = stretch.seen.offers
    return {
        "from": float(stretch.key.start),
        "to": float(stretch.end),
        "pieces": stretch.pieces,
        "spent": amount(stretch.spent),
        "offered": stretch.seen.cost,
        "price": stretch.priced / offers if offers else None,
    }
