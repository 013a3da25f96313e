"""Advisers may have a limit that their episodes share, with an account for each stretch of time."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add a table."""
    op.create_table(
        "stretches",
        sa.Column("adviser", sa.String(32), nullable=False),
        sa.Column("seconds", sa.BigInteger(), nullable=False),
        sa.Column("start", sa.BigInteger(), nullable=False),
        sa.Column("pieces", sa.Float(), nullable=False),
        sa.Column("spent", sa.Float(), nullable=False),
        sa.Column("priced", sa.Float(), nullable=False),
        sa.Column("opened", sa.Float(), nullable=False),
        sa.Column("memory", sa.Text(), nullable=False),
        sa.Column("seen", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("adviser", "seconds", "start", name=op.f("pk_stretches")),
        sa.ForeignKeyConstraint(
            ["adviser"], ["advisers.id"], name=op.f("fk_stretches_adviser"), ondelete="CASCADE"
        ),
    )
