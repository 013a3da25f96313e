"""The tables of the service, one set for SQLite and PostgreSQL.

Everything belongs to a *tenant*, and a key gives access to one tenant only. ``decisions`` and
``outcomes`` are the log: rows are added and never changed, and what an adviser has learnt is a
function of them alone. ``seq`` rises in the order in which rows become durable and is never used
twice, so a reader who has read up to a number has missed nothing. Silence is NULL.

When a person is deleted, all their rows are; ``erasures`` has their number, so that every service
forgets what it has learnt of them. ``snapshots`` only save time and may be deleted.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(column_0_label)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Sequence = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers rows itself only where the key is an INTEGER."""

tenants = Table(
    "tenants",
    metadata,
    Column("id", Sequence, primary_key=True, autoincrement=True),
    Column("name", String(200), nullable=False, unique=True),
)

keys = Table(
    "keys",
    metadata,
    Column("id", Sequence, primary_key=True, autoincrement=True),
    Column("tenant", ForeignKey("tenants.id", ondelete="CASCADE"), nullable=False),
    Column("name", String(200), nullable=False),
    Column("role", String(10), nullable=False),
    Column("digest", String(64), nullable=False, unique=True),
    Column("created", Float, nullable=False),
    Column("revoked", Float),
)

models = Table(
    "models",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("tenant", ForeignKey("tenants.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("name", String(200), nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("created", Float, nullable=False),
)

advisers = Table(
    "advisers",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("tenant", ForeignKey("tenants.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("name", String(200), nullable=False),
    Column("settings", Text, nullable=False),
    # Episodes charged to an expected budget, and the pieces of advice given in them.
    Column("paced_episodes", BigInteger, nullable=False, default=0),
    Column("paced_pieces", BigInteger, nullable=False, default=0),
    Column("created", Float, nullable=False),
)

people = Table(
    "people",
    metadata,
    Column("id", Sequence, primary_key=True, autoincrement=True),
    Column("tenant", ForeignKey("tenants.id", ondelete="CASCADE"), nullable=False),
    Column("name", String(200), nullable=False),
    Column("created", Float, nullable=False),
    UniqueConstraint("tenant", "name"),
    sqlite_autoincrement=True,
)

erasures = Table(
    "erasures",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("person", BigInteger, nullable=False),
    Column("at", Float, nullable=False),
    sqlite_autoincrement=True,
)

episodes = Table(
    "episodes",
    metadata,
    Column("number", Sequence, primary_key=True, autoincrement=True),
    Column("id", String(32), nullable=False, unique=True),
    Column("adviser", ForeignKey("advisers.id", ondelete="CASCADE"), nullable=False),
    Column("person", ForeignKey("people.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("held_out", Boolean, nullable=False),
    # The adviser's mode when the episode started.
    Column("mode", String(10), nullable=False),
    # What advice may cost in this episode, where that differs from the adviser's limit.
    Column("limit", Text),
    Column("spent", Integer, nullable=False),
    Column("started", Float, nullable=False),
    Column("ended", Float),
    Column("terminated", Boolean),
    Index("ix_episodes_adviser_number", "adviser", "number"),
    sqlite_autoincrement=True,
)

decisions = Table(
    "decisions",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("episode", ForeignKey("episodes.number", ondelete="CASCADE"), nullable=False),
    Column("step", Integer, nullable=False),
    Column("state", Integer, nullable=False),
    Column("advice", Integer),
    Column("shown", Boolean, nullable=False),
    # Must-say advice, which is not charged to the budget.
    Column("must", Boolean, nullable=False),
    Column("probability", Float, nullable=False),
    Column("reason", Text, nullable=False),
    Column("at", Float, nullable=False),
    UniqueConstraint("episode", "step"),
    sqlite_autoincrement=True,
)

outcomes = Table(
    "outcomes",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("episode", Sequence, nullable=False),
    Column("step", Integer, nullable=False),
    Column("action", Integer, nullable=False),
    Column("reward", Float),
    Column("next_state", Integer),
    Column("seen", Boolean, nullable=False),
    Column("reason_code", String(100)),
    Column("comment", String(1000)),
    Column("at", Float, nullable=False),
    UniqueConstraint("episode", "step"),
    ForeignKeyConstraint(
        ["episode", "step"], ["decisions.episode", "decisions.step"], ondelete="CASCADE"
    ),
    sqlite_autoincrement=True,
)

snapshots = Table(
    "snapshots",
    metadata,
    Column("up_to", Sequence, primary_key=True, autoincrement=False),
    Column("erased", BigInteger, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("at", Float, nullable=False),
)
