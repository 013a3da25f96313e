"""Decisions and episodes have the level of a memory, which later outcomes may change."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add two columns, empty for everything on record, and a table."""
    for table in ("episodes", "decisions"):
        op.add_column(table, sa.Column("level", sa.Integer(), nullable=True))
    op.create_table(
        "level_changes",
        sa.Column("seq", NUMBER, nullable=False, autoincrement="auto"),
        sa.Column("episode", NUMBER, nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("level", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_level_changes")),
        sa.ForeignKeyConstraint(
            ["episode", "step"],
            ["decisions.episode", "decisions.step"],
            name=op.f("fk_level_changes_episode"),
            ondelete="CASCADE",
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_level_changes_episode", "level_changes", ["episode", "step"])
