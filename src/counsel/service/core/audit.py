"""The audit trail: which key changed what, and when.

A change and its row are written in one transaction, so neither exists without the other. Rows are
added and never changed. The key is missing where a command or the service itself made the change,
or where the service asks for no keys. Of a person who was erased the row has the number, which
nothing refers to any more; a name of a person never gets here.

Actions are: adviser created, switched, edited, archived, restored, deleted; model uploaded,
renamed, archived, restored, deleted; person erased; key created, rotated, revoked.
"""

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from counsel.service.db.api_keys import KeyHolder
from counsel.service.db.tables import audit, keys, tenants


def record(
    connection: sa.Connection,
    holder: KeyHolder,
    action: str,
    target: object,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Add a row: ``holder`` did ``action`` to ``target``, which is an id or a number.

    To be called inside the transaction that makes the change. ``details`` say what changed and
    contain no names of people.
    """
    row = {
        "at": time.time(),
        "tenant": holder.tenant,
        "key": holder.key,
        "action": action,
        "target": str(target),
        "details": None if details is None else json.dumps(details, ensure_ascii=False),
    }
    connection.execute(sa.insert(audit), row)


def page_of_audit(
    connection: sa.Connection, tenant: int, after: int, limit: int
) -> list[dict[str, Any]]:
    """Return the rows of a tenant after a sequence number, oldest first."""
    query = _ROWS.where(audit.c.tenant == tenant, audit.c.seq > after)
    return list(_rows(connection, query.order_by(audit.c.seq).limit(limit)))


def last_of_audit(
    connection: sa.Connection, tenant: str | None, limit: int
) -> list[dict[str, Any]]:
    """Return the last rows of a tenant, or of all tenants, oldest first."""
    query = _ROWS if tenant is None else _ROWS.where(tenants.c.name == tenant)
    return list(_rows(connection, query.order_by(audit.c.seq.desc()).limit(limit)))[::-1]


_ROWS = (
    sa.select(audit, keys.c.name.label("key_name"), tenants.c.name.label("tenant_name"))
    .join(keys, keys.c.id == audit.c.key, isouter=True)
    .join(tenants, tenants.c.id == audit.c.tenant, isouter=True)
)


def _rows(connection: sa.Connection, query: sa.Select[Any]) -> Iterator[dict[str, Any]]:
    for row in connection.execute(query).mappings():
        details = row["details"]
        yield {
            "seq": row["seq"],
            "at": row["at"],
            "tenant": row["tenant_name"],
            "key": row["key"],
            "key_name": row["key_name"],
            "action": row["action"],
            "target": row["target"],
            "details": None if details is None else json.loads(details),
        }
