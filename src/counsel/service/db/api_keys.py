"""Keys: who may ask, and for whose advisers.

A key is 32 random bytes, shown once. What is stored is its SHA-256, which is enough for a secret
that nobody could guess. *read* may look, *advise* may also ask for advice and report outcomes,
*admin* may also make and change advisers, upload models and delete people.
"""

import hashlib
import secrets
import time
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from counsel.errors import CounselError
from counsel.service.db.tables import keys, tenants

ROLES = ("read", "advise", "admin")
PREFIX = "counsel_"
"""What keys begin with, so that whoever finds one knows what it opens."""


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """Whoever holds a key: whose data they see, and what they may do."""

    tenant: int
    role: str

    def may(self, role: str) -> bool:
        """Whether this role includes another."""
        return ROLES.index(self.role) >= ROLES.index(role)


def digest_of(key: str) -> str:
    """Return what is stored of a key."""
    return hashlib.sha256(key.encode()).hexdigest()


def add_key(connection: sa.Connection, *, tenant: str, role: str, name: str) -> str:
    """Make a key and return it; it cannot be shown again.

    Parameters
    ----------
    connection
        In a transaction.
    tenant
        Whose; made where there is none of that name.
    role
        "read", "advise" or "admin".
    name
        What to call it in lists.
    """
    if role not in ROLES:
        raise CounselError(f"role is {role!r}; it must be one of {', '.join(ROLES)}")
    for what, text in (("tenant", tenant), ("name", name)):
        if not text.strip() or len(text) > 200 or not text.isprintable():
            raise CounselError(f"{what} is {text[:40]!r}; give 1 to 200 characters")
    key = PREFIX + secrets.token_urlsafe(32)
    row = {
        "tenant": tenant_of(connection, tenant),
        "name": name,
        "role": role,
        "digest": digest_of(key),
        "created": time.time(),
    }
    connection.execute(sa.insert(keys), row)
    return key


def tenant_of(connection: sa.Connection, name: str) -> int:
    """Return the number of a tenant, made where there is none of that name."""
    found = connection.scalar(sa.select(tenants.c.id).where(tenants.c.name == name))
    if found is None:
        made = connection.execute(sa.insert(tenants).values(name=name))
        found = made.inserted_primary_key[0] if made.inserted_primary_key else None
    if found is None:
        raise CounselError(f"tenant {name!r} could not be made")
    return int(found)


def revoke_key(connection: sa.Connection, *, tenant: str, name: str) -> int:
    """Make keys of that name useless from now on; return how many."""
    of = sa.select(tenants.c.id).where(tenants.c.name == tenant).scalar_subquery()
    done = connection.execute(
        sa.update(keys)
        .where(keys.c.tenant == of, keys.c.name == name, keys.c.revoked.is_(None))
        .values(revoked=time.time())
    )
    return int(done.rowcount)


def list_keys(connection: sa.Connection, *, tenant: str) -> list[dict[str, Any]]:
    """Return the keys of a tenant, oldest first, without what opens anything."""
    query = (
        sa.select(keys.c.name, keys.c.role, keys.c.created, keys.c.revoked)
        .join(tenants, tenants.c.id == keys.c.tenant)
        .where(tenants.c.name == tenant)
        .order_by(keys.c.id)
    )
    return [dict(row._mapping) for row in connection.execute(query)]


def any_key(connection: sa.Connection) -> bool:
    """Whether there is a key that works."""
    query = sa.select(keys.c.id).where(keys.c.revoked.is_(None)).limit(1)
    return connection.scalar(query) is not None


def holder_of(connection: sa.Connection, key: str) -> KeyHolder | None:
    """Return who holds a key; None where it opens nothing."""
    row = connection.execute(
        sa.select(keys.c.tenant, keys.c.role).where(
            keys.c.digest == digest_of(key), keys.c.revoked.is_(None)
        )
    ).first()
    return None if row is None else KeyHolder(int(row.tenant), str(row.role))
