"""The tables of the service, one set for SQLite and PostgreSQL.

Everything belongs to a *tenant*, and a key gives access to one tenant only. ``decisions`` and
``outcomes`` are the log: rows are added, and what an adviser has learnt is a function of them
alone. ``seq`` rises in the order in which rows become durable and is never used twice, so a reader
who has read up to a number has missed nothing. A corrected outcome is a new row with the next
``version``; the row before keeps its values, and ``replaced_by`` is the ``seq`` of the new one.
Silence is NULL. Where the model's person has a memory, ``decisions.level`` is the level that the
record had when the decision was made. A later outcome may tell another level: ``level_changes`` has
it, and the last change counts. What was spent is a cost, which need not be whole: SQLite stores
fractions in a column of integers, too. ``stretches`` has what was spent of a limit that the
episodes of an adviser share, and the numbers from which its price follows, without people.

When a person is deleted, all their rows are; ``erasures`` has their number, so that every service
forgets what it has learnt of them. What people wrote (``people.name``, ``remarks``) is in small
tables of its own, which can be written anew when somebody is erased; PostgreSQL keeps no statistics
of these columns, because they would have what people wrote. ``snapshots`` only save time and may be
deleted. ``audit`` says which key changed what, without names of people.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.schema import SchemaItem

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(column_0_label)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Sequence = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""SQLite numbers rows itself only where the key is an INTEGER."""


def _table(name: str, *columns: SchemaItem, **options: Any) -> sa.Table:  # noqa: ANN401
    return sa.Table(name, metadata, *columns, **options)


def _needed(name: str, kind: Any, **options: Any) -> sa.Column[Any]:  # noqa: ANN401 (as in SQLAlchemy)
    return sa.Column(name, kind, nullable=False, **options)


def _counter(name: str) -> sa.Column[Any]:
    return sa.Column(name, Sequence, primary_key=True, autoincrement=True)


def _parent(name: str, column: str, *, index: bool = False) -> sa.Column[Any]:
    """Return a column whose rows are deleted with the row they refer to."""
    parent = sa.ForeignKey(column, ondelete="CASCADE")
    return sa.Column(name, parent, nullable=False, index=index or None)


tenants = _table("tenants", _counter("id"), _needed("name", sa.String(200), unique=True))

keys = _table(
    "keys",
    _counter("id"),
    _parent("tenant", "tenants.id"),
    _needed("name", sa.String(200)),
    _needed("role", sa.String(10)),
    _needed("digest", sa.String(64), unique=True),
    _needed("created", sa.Float),
    sa.Column("revoked", sa.Float),
    sa.Column("expires", sa.Float),
    sa.Column("last_used", sa.Float),
)

models = _table(
    "models",
    sa.Column("id", sa.String(32), primary_key=True),
    _parent("tenant", "tenants.id", index=True),
    _needed("name", sa.String(200)),
    _needed("content", sa.LargeBinary),
    _needed("created", sa.Float),
    sa.Column("archived", sa.Float),
)

outlines = _table(
    "outlines",
    sa.Column("model", sa.ForeignKey("models.id", ondelete="CASCADE"), primary_key=True),
    _needed("content", sa.Text),
)
"""What is used instead of a model that can no longer be read."""

model_pieces = _table(
    "model_pieces",
    sa.Column("model", sa.String(32), primary_key=True),  # which may not be there yet
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    _needed("content", sa.LargeBinary),
    _needed("at", sa.Float),
)
"""The files of models whose own ``content`` is empty, because they are large."""

advisers = _table(
    "advisers",
    sa.Column("id", sa.String(32), primary_key=True),
    _parent("tenant", "tenants.id"),
    _needed("name", sa.String(200)),
    _needed("settings", sa.Text),
    # Episodes charged to an expected budget, and the cost of the advice given in them.
    _needed("paced_episodes", sa.BigInteger, default=0),
    _needed("paced_pieces", sa.Float().with_variant(sa.BigInteger, "sqlite"), default=0),
    _needed("created", sa.Float),
    sa.Column("archived", sa.Float),
    sa.Index("ix_advisers_tenant_created", "tenant", "created", "id"),
)

DELETING = -1.0
"""When an adviser was archived, while it is being deleted."""

IS_KEPT = advisers.c.archived.is_(None) | (advisers.c.archived != DELETING)
"""The condition that an adviser is not being deleted."""

people = _table(
    "people",
    _counter("id"),
    _parent("tenant", "tenants.id"),
    _needed("name", sa.String(200)),
    _needed("created", sa.Float),
    sa.UniqueConstraint("tenant", "name"),
    sqlite_autoincrement=True,
)

erasures = _table(
    "erasures",
    _counter("seq"),
    _needed("person", sa.BigInteger),
    _needed("at", sa.Float),
    sqlite_autoincrement=True,
)

episodes = _table(
    "episodes",
    _counter("number"),
    _needed("id", sa.String(32), unique=True),
    _parent("adviser", "advisers.id"),
    _parent("person", "people.id", index=True),
    _needed("held_out", sa.Boolean),
    # The adviser's mode when the episode started.
    _needed("mode", sa.String(10)),
    # What advice may cost in this episode, where that differs from the adviser's limit.
    sa.Column("limit", sa.Text),
    # The cost of the advice so far: the number of pieces if every piece costs 1.
    _needed("spent", sa.Float().with_variant(sa.Integer, "sqlite")),
    _needed("started", sa.Float),
    sa.Column("ended", sa.Float),
    sa.Column("terminated", sa.Boolean),
    # The level of the person's memory at the start, where it lasts over episodes.
    sa.Column("level", sa.Integer),
    # The digest of the caller's idempotency key: a start that is sent again is the same episode.
    sa.Column("request", sa.String(64)),
    sa.Index("ix_episodes_adviser_number", "adviser", "number"),
    sa.Index("ix_episodes_request", "adviser", "request", unique=True),
    sqlite_autoincrement=True,
)

decisions = _table(
    "decisions",
    _counter("seq"),
    _parent("episode", "episodes.number"),
    _needed("step", sa.Integer),
    _needed("state", sa.Integer),
    sa.Column("advice", sa.Integer),
    _needed("shown", sa.Boolean),
    # Must-say advice, which is not charged to the budget.
    _needed("must", sa.Boolean),
    _needed("probability", sa.Float),
    _needed("reason", sa.Text),
    _needed("at", sa.Float),
    # The level of the person's memory; NULL without a memory.
    sa.Column("level", sa.Integer),
    sa.UniqueConstraint("episode", "step"),
    sqlite_autoincrement=True,
)

level_changes = _table(
    "level_changes",
    _counter("seq"),
    _needed("episode", Sequence),
    _needed("step", sa.Integer),
    _needed("level", sa.Integer),
    sa.ForeignKeyConstraint(
        ["episode", "step"], ["decisions.episode", "decisions.step"], ondelete="CASCADE"
    ),
    sa.Index("ix_level_changes_episode", "episode", "step"),
    sqlite_autoincrement=True,
)

stretches = _table(
    "stretches",
    sa.Column("adviser", sa.ForeignKey("advisers.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("seconds", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("start", sa.BigInteger, primary_key=True, autoincrement=False),
    # The shared limit, the cost charged to it, and the sum of the prices of all offers.
    _needed("pieces", sa.Float),
    _needed("spent", sa.Float),
    _needed("priced", sa.Float),
    # From when on offers were counted; the offers of earlier stretches, and of this one, as JSON.
    _needed("opened", sa.Float),
    _needed("memory", sa.Text),
    _needed("seen", sa.Text),
)

IS_REPLACED = sa.text("replaced_by IS NOT NULL")

outcomes = _table(
    "outcomes",
    _counter("seq"),
    _needed("episode", Sequence),
    _needed("step", sa.Integer),
    _needed("action", sa.Integer),
    sa.Column("reward", sa.Float),
    sa.Column("next_state", sa.Integer),
    _needed("seen", sa.Boolean),
    _needed("at", sa.Float),
    _needed("version", sa.Integer, server_default="1"),
    sa.Column("replaced_by", sa.BigInteger),
    sa.UniqueConstraint("episode", "step", "version"),
    sa.ForeignKeyConstraint(
        ["episode", "step"], ["decisions.episode", "decisions.step"], ondelete="CASCADE"
    ),
    sa.Index(
        "ix_outcomes_replaced_by",
        "replaced_by",
        sqlite_where=IS_REPLACED,
        postgresql_where=IS_REPLACED,
    ),
    sqlite_autoincrement=True,
)

remarks = _table(
    "remarks",
    sa.Column("episode", Sequence, primary_key=True, autoincrement=False),
    sa.Column("step", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("reason_code", sa.String(100)),
    sa.Column("comment", sa.String(1000)),
    sa.ForeignKeyConstraint(
        ["episode", "step", "version"],
        ["outcomes.episode", "outcomes.step", "outcomes.version"],
        ondelete="CASCADE",
    ),
)

audit = _table(
    "audit",
    _counter("seq"),
    _needed("at", sa.Float),
    sa.Column("tenant", sa.BigInteger),
    sa.Column("key", sa.BigInteger),
    _needed("action", sa.String(40)),
    _needed("target", sa.String(64)),
    sa.Column("details", sa.Text),
    sa.Index("ix_audit_tenant_seq", "tenant", "seq"),
    sqlite_autoincrement=True,
)

probes = _table("probes", sa.Column("at", sa.Float, primary_key=True, autoincrement=False))
"""Written by the readiness check, and read by nobody."""

snapshots = _table(
    "snapshots",
    sa.Column("up_to", Sequence, primary_key=True, autoincrement=False),
    _needed("erased", sa.BigInteger),
    _needed("content", sa.LargeBinary),
    _needed("at", sa.Float),
)
