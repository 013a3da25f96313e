"""Quotas: how many advisers, models and people a tenant may have.

Advisers and models are few and rarely added, so they are counted when one is added, inside the
transaction that adds it. People are many and are added by starts of episodes, which nobody may slow
down: they are counted now and then outside of transactions, and additions in between are added to
the last count. Several services may together exceed a quota of people by what they add meanwhile.
"""

import math
import time

import sqlalchemy as sa

from counsel.service.db.tables import advisers, models, people
from counsel.service.errors import ConflictError
from counsel.service.settings import ServiceSettings, variable_of

FRESH, FRESH_NEAR_QUOTA = 60.0, 5.0
"""Seconds for which a count of people is used, and for which one near the quota is."""

NEAR = 0.95
"""The share of a quota from which on people are counted more often."""


def check_advisers(connection: sa.Connection, tenant: int, settings: ServiceSettings) -> None:
    """Raise unless a tenant may have another adviser."""
    _check("advisers", _count(connection, advisers, tenant), settings.advisers)


def check_models(connection: sa.Connection, tenant: int, settings: ServiceSettings) -> None:
    """Raise unless a tenant may have another model."""
    _check("models", _count(connection, models, tenant), settings.models)


class PeopleQuota:
    """Counts the people of each tenant, and refuses those beyond ``most``."""

    def __init__(self, reading: sa.Engine, most: int) -> None:
        self.reading, self.most = reading, most
        self._counts: dict[int, tuple[float, int]] = {}  # when they were counted, and how many

    def refresh(self, tenant: int) -> None:
        """Count the people of a tenant, if that was not done recently; outside of transactions."""
        at, count = self._counts.get(tenant, (-math.inf, 0))
        is_near = count >= NEAR * self.most
        if time.monotonic() - at > (FRESH_NEAR_QUOTA if is_near else FRESH):
            now = time.monotonic()
            with self.reading.connect() as connection:
                self._counts[tenant] = now, _count(connection, people, tenant)

    def admit(self, tenant: int) -> None:
        """Count one person more, or raise if the tenant may have no other."""
        at, count = self._counts.get(tenant, (-math.inf, 0))
        _check("people", count, self.most)
        self._counts[tenant] = at, count + 1


def _count(connection: sa.Connection, table: sa.Table, tenant: int) -> int:
    query = sa.select(sa.func.count()).select_from(table).where(table.c.tenant == tenant)
    return int(connection.execute(query).scalar_one())


def _check(what: str, count: int, most: int) -> None:
    if count >= most:
        raise ConflictError(
            f"this tenant has {count:,} {what} and may have {most:,}; delete some, or raise "
            f"{variable_of(what)}"
        )
