"""Models have an outline, with which their advisers say what must be said if they are damaged."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add a table; the outlines of known models are added when a service starts."""
    op.create_table(
        "outlines",
        sa.Column("model", sa.String(32), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("model", name=op.f("pk_outlines")),
        sa.ForeignKeyConstraint(
            ["model"], ["models.id"], name=op.f("fk_outlines_model"), ondelete="CASCADE"
        ),
    )
