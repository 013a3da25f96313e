"""Runs migrations on the connection that ``engine.migrate`` hands over."""

from alembic import context

from counsel.service.db.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    compare_type=True,
)
with context.begin_transaction():
    context.run_migrations()
