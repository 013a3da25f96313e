"""The first tables."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
BIG, INTEGER, FLOAT, BOOLEAN = sa.BigInteger(), sa.Integer(), sa.Float(), sa.Boolean()
TEXT, BYTES = sa.Text(), sa.LargeBinary()
KIND, ID, DIGEST, CODE, NAME, COMMENT = map(sa.String, (10, 32, 64, 100, 200, 1000))

TABLES: dict[str, dict[str, Any]] = {
    "erasures": {"seq": NUMBER, "person": BIG, "at": FLOAT},
    "snapshots": {"up_to": NUMBER, "erased": BIG, "content": BYTES, "at": FLOAT},
    "tenants": {"id": NUMBER, "name": NAME},
    "advisers": {
        "id": ID, "tenant": NUMBER, "name": NAME, "settings": TEXT, "paced_episodes": BIG,
        "paced_pieces": BIG, "created": FLOAT,
    },
    "keys": {
        "id": NUMBER, "tenant": NUMBER, "name": NAME, "role": KIND, "digest": DIGEST,
        "created": FLOAT, "revoked": FLOAT,
    },
    "models": {"id": ID, "tenant": NUMBER, "name": NAME, "content": BYTES, "created": FLOAT},
    "people": {"id": NUMBER, "tenant": NUMBER, "name": NAME, "created": FLOAT},
    "episodes": {
        "number": NUMBER, "id": ID, "adviser": ID, "person": NUMBER, "held_out": BOOLEAN,
        "mode": KIND, "limit": TEXT, "spent": INTEGER, "started": FLOAT, "ended": FLOAT,
        "terminated": BOOLEAN,
    },
    "decisions": {
        "seq": NUMBER, "episode": NUMBER, "step": INTEGER, "state": INTEGER, "advice": INTEGER,
        "shown": BOOLEAN, "must": BOOLEAN, "probability": FLOAT, "reason": TEXT, "at": FLOAT,
    },
    "outcomes": {
        "seq": NUMBER, "episode": NUMBER, "step": INTEGER, "action": INTEGER, "reward": FLOAT,
        "next_state": INTEGER, "seen": BOOLEAN, "reason_code": CODE, "comment": COMMENT,
        "at": FLOAT,
    },
}  # fmt: skip
"""The columns of each table; the first is the primary key."""

OPTIONAL = {
    "keys": {"revoked"},
    "episodes": {"limit", "ended", "terminated"},
    "decisions": {"advice"},
    "outcomes": {"reward", "next_state", "reason_code", "comment"},
}
NEVER_REUSED = {"erasures", "people", "episodes", "decisions", "outcomes"}
"""Tables in which SQLite numbers no row with the number of a deleted one."""

UNIQUE = {
    "tenants": ["name"],
    "keys": ["digest"],
    "people": ["tenant", "name"],
    "episodes": ["id"],
    "decisions": ["episode", "step"],
    "outcomes": ["episode", "step"],
}
PARENTS = {
    **{name: [(["tenant"], ["tenants.id"])] for name in ("advisers", "keys", "models", "people")},
    "episodes": [(["adviser"], ["advisers.id"]), (["person"], ["people.id"])],
    "decisions": [(["episode"], ["episodes.number"])],
    "outcomes": [(["episode", "step"], ["decisions.episode", "decisions.step"])],
}
INDICES = {
    "ix_advisers_tenant": ("advisers", ["tenant"]),
    "ix_models_tenant": ("models", ["tenant"]),
    "ix_episodes_adviser_number": ("episodes", ["adviser", "number"]),
    "ix_episodes_person": ("episodes", ["person"]),
}


def upgrade() -> None:
    """Make the tables as they are from here on."""
    for table, kinds in TABLES.items():
        key, optional = next(iter(kinds)), OPTIONAL.get(table, ())
        numbering: Any = "auto" if table != "snapshots" else False
        columns = [
            sa.Column(name, kind, nullable=name in optional, autoincrement=numbering)
            for name, kind in kinds.items()
        ]
        rules: list[sa.Constraint] = [sa.PrimaryKeyConstraint(key, name=op.f(f"pk_{table}"))]
        for own, parent in PARENTS.get(table, ()):
            name = op.f(f"fk_{table}_{own[0]}")
            rules.append(sa.ForeignKeyConstraint(own, parent, name=name, ondelete="CASCADE"))
        if table in UNIQUE:
            name = op.f(f"uq_{table}_{UNIQUE[table][0]}")
            rules.append(sa.UniqueConstraint(*UNIQUE[table], name=name))
        op.create_table(table, *columns, *rules, sqlite_autoincrement=table in NEVER_REUSED)
    for index, (table, indexed) in INDICES.items():
        op.create_index(op.f(index), table, indexed)
