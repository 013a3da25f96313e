"""PostgreSQL collects no statistics of names and remarks, which would outlast an erasure."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

WORDS: dict[tuple[str, str], sa.String] = {
    ("people", "name"): sa.String(200),
    ("remarks", "reason_code"): sa.String(100),
    ("remarks", "comment"): sa.String(1000),
}


def upgrade() -> None:
    """Stop collecting statistics of these columns and drop those there are."""
    if op.get_bind().dialect.name != "postgresql":
        return
    for (table, column), kind in WORDS.items():
        # The type stays and nothing is written anew, but PostgreSQL drops the statistics.
        op.alter_column(table, column, type_=kind)
        op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0")
