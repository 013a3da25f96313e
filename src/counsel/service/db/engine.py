"""Connections to the database, its migrations, and the lock that every writer takes.

On PostgreSQL several services may write at the same time. Each transaction takes one lock first, so
rows become visible in the order of their ``seq``, and nobody who reads the log misses a row.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic.util import CommandError

from counsel.errors import CounselError

KEPT_OPEN, MORE_OPEN = 5, 45
"""Connections that stay open, and further ones for as many threads as may ask at once."""

LOCK = 0x636F756E73656C
"""The advisory lock that services on one PostgreSQL database take before they write."""


def open_engine(url: str) -> sa.Engine:
    """Connect to a database and bring its tables up to date.

    ``url`` is ``sqlite:///counsel.db``, the path of a SQLite file, or ``postgresql+psycopg://…``.
    """
    address = _address(url)
    try:
        is_sqlite = address.get_backend_name() == "sqlite"
        if is_sqlite and address.database not in (None, "", ":memory:"):
            # The file says what people did: no other user of the machine may read it.
            os.close(os.open(str(address.database), os.O_CREAT | os.O_RDWR, 0o600))
        options: dict[str, Any] = {"pool_size": KEPT_OPEN, "max_overflow": MORE_OPEN}
        if not is_sqlite:
            # A transaction that waited for the lock must see what was committed meanwhile.
            options |= {"pool_pre_ping": True, "isolation_level": "READ COMMITTED"}
        engine = sa.create_engine(address, hide_parameters=True, **options)
        if is_sqlite:
            sa.event.listen(engine, "connect", _prepare_sqlite)
        try:
            migrate(engine)
        except BaseException:
            engine.dispose()
            raise
    except (sa.exc.SQLAlchemyError, OSError, CommandError) as fault:
        reason = " ".join(str(getattr(fault, "orig", None) or fault).split())
        if isinstance(fault, CommandError):
            reason = "it was made by another version of Counsel"
        raise CounselError(
            f"the database {_shown(address)} cannot be opened: {reason[:300]}"
        ) from None
    return engine


def without_password(url: str) -> str:
    """Return the address of a database without its password."""
    return _shown(_address(url)) if "://" in url else url


def is_shared(url: str) -> bool:
    """Whether several processes may serve from this database."""
    return _address(url).get_backend_name() == "postgresql"


def _shown(address: sa.URL) -> str:
    secret = {name: "hidden" for name in address.query if "pass" in name.lower()}
    return address.update_query_dict(secret).render_as_string(hide_password=True)


def read(engine: sa.Engine, query: sa.Select[Any]) -> list[Any]:
    """Return all rows of a query."""
    with engine.connect() as connection:
        return list(connection.execute(query))


@contextmanager
def write_transaction(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Yield a connection in a transaction beside which nobody else writes."""
    with engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))
        yield connection
        connection.commit()


def migrate(engine: sa.Engine) -> None:
    """Bring the tables of a database up to date, one service at a time."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    with write_transaction(engine) as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _address(url: str) -> sa.URL:
    """Return the address of a database; a plain path is a SQLite file."""
    if "://" not in url:
        return sa.URL.create("sqlite", database=url)
    try:
        address = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise CounselError(
            "the database's address is not valid; write sqlite:///FILE or "
            "postgresql+psycopg://user:password@host/name"
        ) from None
    if address.drivername in ("postgresql", "postgres"):
        address = address.set(drivername="postgresql+psycopg")
    if address.drivername not in ("sqlite", "postgresql+psycopg"):
        raise CounselError(
            f"the database has the driver {address.drivername!r}; it must be sqlite or "
            "postgresql+psycopg"
        )
    return address


def _prepare_sqlite(connection: Any, _: object) -> None:  # noqa: ANN401 (the driver's own)
    """Set up a connection: write-ahead log, full sync, foreign keys, and a busy timeout.

    Transactions are started explicitly: the driver would start them too late for the migrations.
    """
    connection.isolation_level = None
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
        "busy_timeout = 10000",
    ):
        connection.execute(f"PRAGMA {pragma}")
