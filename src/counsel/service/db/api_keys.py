"""API keys: each belongs to a tenant and has a role.

A key is 32 random bytes, shown once; its SHA-256 is stored, which is enough for a secret that
nobody can guess. *read* may read, *advise* may also ask for advice and report outcomes, *admin* may
also create and change advisers, upload models and delete people.
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
"""The beginning of every key, which shows what the key is for."""


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """The holder of a key: the tenant and the role."""

    tenant: int
    role: str

    def may(self, role: str) -> bool:
        """Whether this role includes another."""
        return ROLES.index(self.role) >= ROLES.index(role)


def digest_of(key: str) -> str:
    """Return the digest of a key, which is stored."""
    return hashlib.sha256(key.encode()).hexdigest()


def add_key(connection: sa.Connection, *, tenant: str, role: str, name: str) -> str:
    """Create a key and return it; it cannot be shown again. ``name`` is its name in lists."""
    if role not in ROLES:
        raise CounselError(f"role is {role!r}; it must be one of {', '.join(ROLES)}")
    for what, text in (("tenant", tenant), ("name", name)):
        if not text.strip() or len(text) > 200 or not text.isprintable():
            raise CounselError(f"{what} is {text[:40]!r}; give 1 to 200 characters")
    key = PREFIX + secrets.token_urlsafe(32)
    row = {"tenant": tenant_of(connection, tenant), "name": name, "role": role}
    row |= {"digest": digest_of(key), "created": time.time()}
    connection.execute(sa.insert(keys), row)
    return key


def tenant_of(connection: sa.Connection, name: str) -> int:
    """Return the number of a tenant, which is created if it does not exist."""
    query = sa.select(tenants.c.id).where(tenants.c.name == name)
    if connection.scalar(query) is None:
        connection.execute(sa.insert(tenants).values(name=name))
    return int(connection.execute(query).scalar_one())


def revoke_key(connection: sa.Connection, *, tenant: str, name: str) -> int:
    """Revoke the keys of a name and return how many there were."""
    owner = sa.select(tenants.c.id).where(tenants.c.name == tenant).scalar_subquery()
    revoked = connection.execute(
        sa.update(keys)
        .where(keys.c.tenant == owner, keys.c.name == name, keys.c.revoked.is_(None))
        .values(revoked=time.time())
    )
    return int(revoked.rowcount)


def list_keys(connection: sa.Connection, *, tenant: str) -> list[dict[str, Any]]:
    """Return the names, roles and dates of a tenant's keys, oldest first."""
    query = (
        sa.select(keys.c.name, keys.c.role, keys.c.created, keys.c.revoked)
        .join(tenants, tenants.c.id == keys.c.tenant)
        .where(tenants.c.name == tenant)
        .order_by(keys.c.id)
    )
    return [dict(row._mapping) for row in connection.execute(query)]


def any_key(connection: sa.Connection) -> bool:
    """Whether there is a valid key."""
    query = sa.select(keys.c.id).where(keys.c.revoked.is_(None)).limit(1)
    return connection.scalar(query) is not None


def holder_of(connection: sa.Connection, key: str) -> KeyHolder | None:
    """Return the holder of a key, or None if the key is not valid."""
    row = connection.execute(
        sa.select(keys.c.tenant, keys.c.role).where(
            keys.c.digest == digest_of(key), keys.c.revoked.is_(None)
        )
    ).first()
    return None if row is None else KeyHolder(int(row.tenant), str(row.role))
