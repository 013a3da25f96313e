"""Connections to the database, its migrations, and the lock that every writer takes.

On PostgreSQL several services may write at the same time. Each transaction takes one lock first, so
rows become visible in the order of their ``seq``, and nobody who reads the log misses a row.

Nothing waits for ever (``settings.py``): connecting, the lock, a statement, a server that does not
answer, and a transaction whose service was frozen all have a deadline.
"""

import logging
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from alembic.util import CommandError

from counsel.errors import CounselError
from counsel.service.settings import ServiceSettings

if TYPE_CHECKING:
    from alembic.config import Config
LOG = logging.getLogger("counsel.service")

RETRY_SECONDS = 1.0
"""Seconds between attempts to reach a database that is not up yet."""

KEPT_OPEN, MORE_OPEN = 5, 15
"""Connections that stay open, and further ones for threads that ask at once."""

LOCK = 0x636F756E73656C
"""The advisory lock that services on one PostgreSQL database take before they write."""


def open_engine(
    url: str, settings: ServiceSettings | None = None, *, is_reading: bool = False
) -> sa.Engine:
    """Connect to a database and bring its tables up to date.

    ``url`` is ``sqlite:///counsel.db``, the path of a SQLite file, or ``postgresql+psycopg://…``.
    An engine for reading has connections of its own, with time for long queries, and changes
    nothing.
    """
    address, settings = address_of(url), settings or ServiceSettings.from_environment()
    try:
        is_sqlite = address.get_backend_name() == "sqlite"
        if is_sqlite and address.database not in (None, "", ":memory:"):
            # The file says what people did: no other user of the machine may read it.
            os.close(os.open(str(address.database), os.O_CREAT | os.O_RDWR, 0o600))
        if not is_reading:
            _migrate(address, settings)
        return _engine(address, settings, is_reading=is_reading)
    except (sa.exc.SQLAlchemyError, OSError, CommandError) as fault:
        reason = " ".join(str(getattr(fault, "orig", None) or fault).split())
        if isinstance(fault, CommandError):
            reason = "it was made by another version of Counsel"
        raise CounselError(
            f"the database {_shown(address)} cannot be opened: {reason[:300]}"
        ) from None


def wait_for_database(url: str, seconds: float, settings: ServiceSettings | None = None) -> None:
    """Wait until PostgreSQL lets the service connect, for some seconds at most.

    A database that starts together with the service may be later. Each new reason is in the log.
    Returns when the time is up, too: opening the database then says what is wrong.
    """
    address = address_of(url)
    if address.get_backend_name() == "sqlite":
        return
    engine = _engine(address, settings or ServiceSettings(), is_reading=True)
    deadline, last = time.monotonic() + seconds, ""
    try:
        while (left := deadline - time.monotonic()) > 0.0:
            try:
                engine.connect().close()
            except sa.exc.OperationalError as fault:
                reason = " ".join(str(fault.orig).split())[:300]
            else:
                if last:
                    LOG.warning("the database %s answers", _shown(address))
                return
            if reason != last:
                place = _shown(address)
                LOG.warning("waiting up to %.0f s for the database %s: %s", left, place, reason)
                last = reason
            time.sleep(min(RETRY_SECONDS, left))
    finally:
        engine.dispose()


def _engine(address: sa.URL, settings: ServiceSettings, *, is_reading: bool) -> sa.Engine:
    options: dict[str, Any] = {"pool_timeout": settings.lock_seconds, "hide_parameters": True}
    options |= {"pool_size": KEPT_OPEN, "max_overflow": MORE_OPEN}
    if is_reading:
        options |= {"pool_size": settings.reading_threads + 1, "max_overflow": 2}
    if address.get_backend_name() == "sqlite":
        engine = sa.create_engine(address, **options)
        sa.event.listen(engine, "connect", partial(_prepare_sqlite, settings))
        return engine
    statement = settings.reading_seconds if is_reading else settings.statement_seconds
    limits = {
        "lock_timeout": settings.lock_seconds,
        "statement_timeout": statement,
        "idle_in_transaction_session_timeout": max(statement, settings.transaction_seconds)
        if is_reading
        else settings.transaction_seconds,
    }
    # A transaction that waited for the lock must see what was committed meanwhile.
    options |= {"pool_pre_ping": True, "isolation_level": "READ COMMITTED"}
    return sa.create_engine(address, connect_args=_reach(address, settings, limits), **options)


def _reach(
    address: sa.URL, settings: ServiceSettings, limits: Mapping[str, float]
) -> dict[str, Any]:
    """Return how PostgreSQL is connected to, and what it may take how long."""
    silent = settings.statement_seconds
    own = " ".join(f"-c {name}={round(1000 * seconds)}" for name, seconds in limits.items())
    given = address.query.get("options", "")
    return {
        "connect_timeout": max(round(settings.connect_seconds), 2),  # libpq takes no less than 2
        "tcp_user_timeout": round(1000 * silent),
        "keepalives_idle": max(round(silent), 1),
        "keepalives_interval": 1,
        "keepalives_count": 2,
        "options": f"{own} {given if isinstance(given, str) else ' '.join(given)}".strip(),
    }


def _migrate(address: sa.URL, settings: ServiceSettings) -> None:
    """Bring the tables up to date, however long that takes."""
    is_sqlite = address.get_backend_name() == "sqlite"
    reach = {} if is_sqlite else _reach(address, settings, {})
    engine = sa.create_engine(
        address, poolclass=sa.NullPool, hide_parameters=True, connect_args=reach
    )
    if is_sqlite:
        sa.event.listen(engine, "connect", partial(_prepare_sqlite, settings))
    try:
        migrate(engine)
    finally:
        engine.dispose()


def without_password(url: str) -> str:
    """Return the address of a database without its password."""
    return _shown(address_of(url)) if "://" in url else url


def is_shared(url: str) -> bool:
    """Whether several processes may serve from this database."""
    return address_of(url).get_backend_name() == "postgresql"


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

    config = _migrations()
    with write_transaction(engine) as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def schema_versions() -> list[str]:
    """Return the versions of the tables that this Counsel can bring up to date, newest first."""
    from alembic.script import ScriptDirectory

    return [
        script.revision for script in ScriptDirectory.from_config(_migrations()).walk_revisions()
    ]


def _migrations() -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config


def address_of(url: str) -> sa.URL:
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


def _prepare_sqlite(settings: ServiceSettings, connection: Any, _: object) -> None:  # noqa: ANN401
    """Set up a connection: write-ahead log, full sync, foreign keys, and a busy timeout.

    What is deleted is overwritten. Transactions are started explicitly: the driver would start them
    too late for the migrations.
    """
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {round(1000 * settings.lock_seconds)}")
    _keep_write_ahead_log(connection, settings.lock_seconds)
    for pragma in (
        "synchronous = FULL",
        "foreign_keys = ON",
        "secure_delete = ON",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _keep_write_ahead_log(connection: Any, seconds: float) -> None:  # noqa: ANN401
    """Set the write-ahead log; SQLite refuses at once where another connection is setting it."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as fault:
            if fault.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return
