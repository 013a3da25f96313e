"""Outcomes have versions and remarks a table of their own; keys expire; changes are audited."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
IS_REPLACED = sa.text("replaced_by IS NOT NULL")


def upgrade() -> None:
    """Change the tables as they are from here on."""
    for table, column, kind in (
        ("keys", "expires", sa.Float()),
        ("keys", "last_used", sa.Float()),
        ("models", "archived", sa.Float()),
        ("advisers", "archived", sa.Float()),
        ("episodes", "request", sa.String(64)),
    ):
        op.add_column(table, sa.Column(column, kind, nullable=True))
    op.create_index("ix_advisers_tenant_created", "advisers", ["tenant", "created", "id"])
    op.drop_index("ix_advisers_tenant", "advisers")
    op.create_index("ix_episodes_request", "episodes", ["adviser", "request"], unique=True)
    op.create_table(
        "audit",
        sa.Column("seq", NUMBER, nullable=False, autoincrement="auto"),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("tenant", sa.BigInteger()),
        sa.Column("key", sa.BigInteger()),
        sa.Column("action", sa.String(40), nullable=False),
        sa.Column("target", sa.String(64), nullable=False),
        sa.Column("details", sa.Text()),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_audit")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_tenant_seq", "audit", ["tenant", "seq"])
    op.create_table(
        "probes",
        sa.Column("at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("at", name=op.f("pk_probes")),
    )
    _give_outcomes_versions()


def _give_outcomes_versions() -> None:
    connection = op.get_bind()
    is_sqlite = connection.dialect.name == "sqlite"
    # SQLite builds the table anew, and would number outcomes from the last that is left.
    last = "SELECT seq FROM sqlite_sequence WHERE name = 'outcomes'"
    number = connection.scalar(sa.text(last)) if is_sqlite else None
    connection.execute(
        sa.text(
            "CREATE TABLE said AS SELECT episode, step, reason_code, comment FROM outcomes "
            "WHERE reason_code IS NOT NULL OR comment IS NOT NULL"
        )
    )
    with op.batch_alter_table("outcomes", table_kwargs={"sqlite_autoincrement": True}) as batch:
        batch.add_column(sa.Column("version", sa.Integer(), nullable=False, server_default="1"))
        batch.add_column(sa.Column("replaced_by", sa.BigInteger(), nullable=True))
        batch.drop_constraint("uq_outcomes_episode", type_="unique")
        batch.create_unique_constraint("uq_outcomes_episode", ["episode", "step", "version"])
        batch.drop_column("reason_code")
        batch.drop_column("comment")
    if number is not None:
        connection.execute(sa.text("DELETE FROM sqlite_sequence WHERE name = 'outcomes'"))
        row = {"number": number}
        add = "INSERT INTO sqlite_sequence (name, seq) VALUES ('outcomes', :number)"
        connection.execute(sa.text(add), row)
    op.create_index(
        "ix_outcomes_replaced_by",
        "outcomes",
        ["replaced_by"],
        sqlite_where=IS_REPLACED,
        postgresql_where=IS_REPLACED,
    )
    op.create_table(
        "remarks",
        sa.Column("episode", NUMBER, nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("reason_code", sa.String(100)),
        sa.Column("comment", sa.String(1000)),
        sa.PrimaryKeyConstraint("episode", "step", "version", name=op.f("pk_remarks")),
        sa.ForeignKeyConstraint(
            ["episode", "step", "version"],
            ["outcomes.episode", "outcomes.step", "outcomes.version"],
            name=op.f("fk_remarks_episode"),
            ondelete="CASCADE",
        ),
    )
    connection.execute(
        sa.text("INSERT INTO remarks SELECT episode, step, 1, reason_code, comment FROM said")
    )
    op.drop_table("said")
