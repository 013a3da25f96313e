"""Large files of models are stored in pieces, each written in a transaction of its own."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add a table; known models stay as they are."""
    op.create_table(
        "model_pieces",
        sa.Column("model", sa.String(32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("model", "number", name=op.f("pk_model_pieces")),
    )
