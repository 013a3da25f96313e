"""What episodes and advisers have spent is a cost, which need not be whole."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Change the type of two columns; SQLite stores fractions in a column of integers, too."""
    if op.get_bind().dialect.name == "postgresql":
        for table, column, kind in (
            ("episodes", "spent", sa.Integer()),
            ("advisers", "paced_pieces", sa.BigInteger()),
        ):
            op.alter_column(
                table, column, type_=sa.Float(), existing_type=kind, existing_nullable=False
            )
