"""API keys: each belongs to a tenant and has a role.

A key is 32 random bytes, shown once; its SHA-256 is stored, which is enough for a secret that
nobody can guess. *read* may read, *advise* may also ask for advice and report outcomes, *admin* may
also create and change advisers, upload models and delete people.

A key has an id, by which it is listed, rotated and revoked, and may expire. Rotating a key creates
another with the same tenant, role and name; the old key expires after an overlap, in which callers
change over.
"""

import hashlib
import math
import re
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from counsel.errors import CounselError
from counsel.service.db.tables import keys, tenants

ROLES = ("read", "advise", "admin")
PREFIX = "counsel_"
"""The beginning of every key, which shows what the key is for."""

NOTED_EVERY = 60.0
"""Seconds between two writes of when a key was last used."""

UNITS = {"m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
"""Seconds of a minute, an hour, a day and a week."""

LONGEST = 100 * 365 * UNITS["d"]
"""The longest duration that is accepted, in seconds."""

LARGEST_ID = 2**63 - 1


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """The holder of a key: the tenant, the role, and the id of the key if there is one."""

    tenant: int
    role: str
    key: int | None = None

    def may(self, role: str) -> bool:
        """Whether this role includes another."""
        return ROLES.index(self.role) >= ROLES.index(role)


def digest_of(key: str) -> str:
    """Return the digest of a key, which is stored."""
    return hashlib.sha256(key.encode()).hexdigest()


def add_key(
    connection: sa.Connection, *, tenant: str, role: str, name: str, expires: float | None = None
) -> str:
    """Create a key and return it; it cannot be shown again.

    ``name`` is its name in lists, ``expires`` when it stops working, in seconds since 1970.
    """
    if role not in ROLES:
        raise CounselError(f"role is {role!r}; it must be one of {', '.join(ROLES)}")
    for what, text in (("tenant", tenant), ("name", name)):
        if not text.strip() or len(text) > 200 or not text.isprintable():
            raise CounselError(f"{what} is {text[:40]!r}; give 1 to 200 characters")
    return _add(connection, tenant_of(connection, tenant), role, name, expires)


def _add(
    connection: sa.Connection, tenant: int, role: str, name: str, expires: float | None
) -> str:
    key, now = PREFIX + secrets.token_urlsafe(32), time.time()
    if expires is not None and expires <= now:
        raise CounselError(f"the key would expire at {_date(expires)}, which is in the past")
    row = {"tenant": tenant, "name": name, "role": role, "created": now, "expires": expires}
    connection.execute(sa.insert(keys), row | {"digest": digest_of(key)})
    return key


def tenant_of(connection: sa.Connection, name: str) -> int:
    """Return the number of a tenant, which is created if it does not exist."""
    query = sa.select(tenants.c.id).where(tenants.c.name == name)
    if connection.scalar(query) is None:
        connection.execute(sa.insert(tenants).values(name=name))
    return int(connection.execute(query).scalar_one())


def rotate_key(
    connection: sa.Connection, id_: int, *, overlap: float, expires: float | None = None
) -> str:
    """Create a key like another, which expires after ``overlap`` seconds, and return it.

    Without ``expires`` the new key lives as long as the old one was to live.
    """
    old, now = key_of(connection, id_), time.time()
    state = state_of(old, now)
    if state != "valid":
        raise CounselError(f"key {id_} is {state}; create another with counsel keys add")
    if expires is None and old["expires"] is not None:
        expires = now + old["expires"] - old["created"]
    key = _add(connection, old["tenant"], old["role"], old["name"], expires)
    ends = min(now + overlap, math.inf if old["expires"] is None else old["expires"])
    connection.execute(sa.update(keys).where(keys.c.id == id_).values(expires=ends))
    return key


def revoke_key(connection: sa.Connection, *, tenant: str, name: str) -> list[int]:
    """Revoke the valid keys of a name and return their ids."""
    owner = sa.select(tenants.c.id).where(tenants.c.name == tenant).scalar_subquery()
    query = sa.select(keys.c.id).where(keys.c.tenant == owner, keys.c.name == name, _is_valid())
    ids = sorted(connection.scalars(query))
    for id_ in ids:
        revoke_key_by_id(connection, id_)
    return ids


def revoke_key_by_id(connection: sa.Connection, id_: int) -> None:
    """Revoke a key."""
    if key_of(connection, id_)["revoked"] is not None:
        raise CounselError(f"key {id_} is revoked already")
    connection.execute(sa.update(keys).where(keys.c.id == id_).values(revoked=time.time()))


def key_of(connection: sa.Connection, id_: int) -> dict[str, Any]:
    """Return the row of a key."""
    query = sa.select(keys).where(keys.c.id == id_)
    row = connection.execute(query).mappings().first() if 0 < id_ <= LARGEST_ID else None
    if row is None:
        raise CounselError(f"there is no key {id_}; see counsel keys list")
    return dict(row)


def list_keys(connection: sa.Connection, *, tenant: str) -> list[dict[str, Any]]:
    """Return the ids, names, roles, dates and states of a tenant's keys, oldest first."""
    columns = ("id", "name", "role", "created", "expires", "last_used", "revoked")
    query = (
        sa.select(*(keys.c[name] for name in columns))
        .join(tenants, tenants.c.id == keys.c.tenant)
        .where(tenants.c.name == tenant)
        .order_by(keys.c.id)
    )
    rows = [dict(row) for row in connection.execute(query).mappings()]
    return [row | {"state": state_of(row)} for row in rows]


def state_of(row: dict[str, Any], now: float | None = None) -> str:
    """Return whether a key is ``valid``, ``expired`` or ``revoked``."""
    if row["revoked"] is not None:
        return "revoked"
    now = time.time() if now is None else now
    return "expired" if row["expires"] is not None and row["expires"] <= now else "valid"


def any_key(connection: sa.Connection) -> bool:
    """Whether there is a valid key."""
    return connection.scalar(sa.select(keys.c.id).where(_is_valid()).limit(1)) is not None


def holder_of(connection: sa.Connection, key: str) -> KeyHolder | None:
    """Return the holder of a key, or None if the key is not valid."""
    query = sa.select(keys.c.tenant, keys.c.role, keys.c.id)
    row = connection.execute(query.where(keys.c.digest == digest_of(key), _is_valid())).first()
    return None if row is None else KeyHolder(int(row.tenant), str(row.role), int(row.id))


def note_use(connection: sa.Connection, id_: int, at: float) -> None:
    """Write when a key was used, unless that was written less than a minute before."""
    is_due = keys.c.last_used.is_(None) | (keys.c.last_used <= at - NOTED_EVERY)
    connection.execute(sa.update(keys).where(keys.c.id == id_, is_due).values(last_used=at))


def read_duration(what: str, text: str) -> float:
    """Return the seconds of a duration such as ``90d``."""
    parts = re.fullmatch(r"(\d{1,9})([mhdw])", text.strip(), re.ASCII)
    seconds = int(parts[1]) * UNITS[parts[2]] if parts else math.inf
    if seconds > LONGEST:
        raise CounselError(
            f"{what} is {text[:40]!r}; give minutes, hours, days or weeks, e.g. 30m, 12h, 90d, 2w"
        )
    return seconds


def read_expiry(text: str, now: float | None = None) -> float:
    """Return when a key expires, from a duration (``90d``) or a date, in seconds since 1970."""
    now = time.time() if now is None else now
    try:
        date = datetime.fromisoformat(text.strip())
    except ValueError:
        try:
            return now + read_duration("expires", text)
        except CounselError:
            raise CounselError(
                f"expires is {text[:40]!r}; give a duration (12h, 90d) or a date (2030-01-31)"
            ) from None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    if date.timestamp() <= now:
        raise CounselError(f"expires is {text[:40]!r}, which is in the past")
    return date.timestamp()


def _is_valid() -> sa.ColumnElement[bool]:
    """Return the condition of keys that are neither revoked nor expired."""
    return keys.c.revoked.is_(None) & (keys.c.expires.is_(None) | (keys.c.expires > time.time()))


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
