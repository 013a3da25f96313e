"""Commands for the service: serve, backup, restore, API keys, and the audit trail."""

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counsel.cli import options
from counsel.cli.app import app
from counsel.errors import CounselError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from counsel.service.db.api_keys import KeyHolder
    from counsel.service.db.backup import Manifest

DATABASE_FILE = "COUNSEL_DB_FILE"
"""Names a file with the address of the database, as containers and systemd hand over secrets."""


def _read_database_file(context: typer.Context, parameter: typer.CallbackParam, value: str) -> str:
    """Return the address in the file that the environment names, unless one is given otherwise."""
    from pathlib import Path

    source = context.get_parameter_source(parameter.name or "")
    path = os.environ.get(DATABASE_FILE)
    if not path or source is None or source.name not in ("DEFAULT", "DEFAULT_MAP"):
        return value
    try:
        address = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or fault
        raise CounselError(f"{DATABASE_FILE} is {path}, which cannot be read: {reason}") from None
    if not address:
        raise CounselError(f"{DATABASE_FILE} is {path}, which is empty; write the database's URL")
    return address


DATABASE = typer.Option(
    "--db",
    metavar="URL",
    envvar="COUNSEL_DB",
    callback=_read_database_file,
    help="A SQLite file (counsel.db), or postgresql+psycopg://user:password@host/name.",
)
Database = Annotated[str, DATABASE]
Tenant = Annotated[
    str, typer.Option(help="The tenant; a key gives access to this tenant's data only.")
]

Expires = Annotated[
    str | None,
    typer.Option(
        metavar="WHEN",
        help="When the key stops working: after some time (12h, 90d), or on a date (2030-01-31, "
        "at 00:00 UTC).",
    ),
]

keys = typer.Typer(help="API keys of the service.", no_args_is_help=True)
app.add_typer(keys, name="keys")


@app.command()
def serve(  # noqa: PLR0913 (options)
    *,
    database: Annotated[str | None, DATABASE] = None,
    host: Annotated[
        str, typer.Option(envvar="COUNSEL_HOST", help="The address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(envvar="COUNSEL_PORT", help="The port to listen on.", min=0, max=65535),
    ] = 8000,
    workers: Annotated[
        int,
        typer.Option(
            envvar="COUNSEL_WORKERS",
            help="The number of processes; more than one needs PostgreSQL.",
            min=1,
        ),
    ] = 1,
    wait: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            envvar="COUNSEL_WAIT",
            min=0.0,
            max=86_400.0,
            help="Seconds to wait for a PostgreSQL that does not answer yet, e.g. 120.",
        ),
    ] = 30.0,
    no_auth: Annotated[
        bool, typer.Option("--no-auth", help="Need no key; for requests from this machine only.")
    ] = False,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo",
            help="Simulate people at work, without keys; deleted at the end unless --db is given.",
        ),
    ] = False,
    log_level: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL",
            help="What is written to standard error, as JSON: debug, info, warning or error; "
            "info unless COUNSEL_LOG_LEVEL says otherwise.",
        ),
    ] = None,
    access_log: Annotated[
        bool | None,
        typer.Option(
            "--access-log/--no-access-log",
            help="Write a line per request, not only for requests that fail or are slow; "
            "COUNSEL_ACCESS_LOG=1 does the same.",
        ),
    ] = None,
) -> None:
    """Serve advice over HTTP, with a dashboard at / and a game at /play.

    Deadlines, limits, quotas and the log have settings, each with an environment variable
    (COUNSEL_REQUEST_SECONDS=10, and so on). An option goes before its variable, and the variable
    before the default.
    """
    _need_extra()
    import logging
    import tempfile
    from contextlib import ExitStack
    from dataclasses import replace

    from counsel.service.api.metrics import VARIABLE
    from counsel.service.api.request_log import configure_logging
    from counsel.service.api.security import LOOPBACK
    from counsel.service.db.api_keys import any_key
    from counsel.service.db.engine import is_shared, wait_for_database
    from counsel.service.process import ServiceProcess
    from counsel.service.server import run
    from counsel.service.settings import ServiceSettings, misspelt

    given = {"log_level": log_level, "access_log": access_log}
    settings = ServiceSettings.from_environment().with_options(**given)
    without_keys = no_auth or demo
    if without_keys and host not in LOOPBACK:
        flag = "--no-auth" if no_auth else "--demo"
        raise CounselError(
            f"{flag} is for this machine only; leave out --host {host}, or COUNSEL_HOST"
        )
    if workers > 1 and not is_shared(database or "counsel.db"):
        raise CounselError("several workers need PostgreSQL; give --db postgresql+psycopg://…")
    if workers > 1 and demo:
        raise CounselError("--demo runs with one worker only; leave out --workers")
    configure_logging(settings)  # before the database is waited for
    for sentence in misspelt(os.environ):
        logging.getLogger("counsel.service").warning(sentence)
    with ExitStack() as stack:
        if database is None and demo:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="counsel-"))
            database = str(Path(folder) / "demo.db")
        database = database or "counsel.db"
        serving = ServiceProcess(database, auth=not without_keys, demo=demo, settings=settings)
        wait_for_database(database, wait, settings)
        with _connection(database) as connection:  # fail before anything starts
            needs_key = not without_keys and not any_key(connection)
        port = _free_port(host, port)
        address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        if demo:
            typer.echo("Starting; the first start compiles the planner, which takes about 20 s.")
        if workers > 1:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="counsel-ready-"))
            serving = replace(serving, workers=workers, folder=folder)
            # The workers' numbers for /metrics, which are summed.
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="counsel-metrics-"))
            os.environ[VARIABLE] = folder
        app = serving.app() if workers == 1 else "counsel.service.process:app_from_environment"
        serving.to_environment()
        typer.echo(f"Serving on {address} (Ctrl-C stops); the game is at {address}/play.")
        if needs_key:
            typer.echo(f"Next: counsel keys add --role admin --db {_shown(database)}")
        run(app, serving.settings, host=host, port=port, workers=workers)


@keys.command("add")
def add_key(  # noqa: PLR0913 (options)
    *,
    role: Annotated[str, typer.Option(help="read, advise or admin.")] = "advise",
    tenant: Tenant = "local",
    name: Annotated[str, typer.Option(help="The name of the key in lists.")] = "key",
    expires: Expires = None,
    database: Database = "counsel.db",
    as_json: options.Json = False,
) -> None:
    """Create a key and print it, once."""
    _need_extra()
    from counsel.service.core.audit import record
    from counsel.service.db import api_keys as service

    ends = None if expires is None else service.read_expiry(expires)
    with _connection(database, writes=True) as connection:
        key = service.add_key(connection, tenant=tenant, role=role, name=name, expires=ends)
        id_, holder = _added(connection, key)
        details = {"name": name, "role": role, "expires": ends}
        record(connection, holder, "key created", id_, details)
    _print_key(id_, key, as_json=as_json)


@keys.command("rotate")
def rotate_key(
    id_: Annotated[int, typer.Argument(metavar="ID", help="The id, from counsel keys list.")],
    *,
    overlap: Annotated[
        str,
        typer.Option(help="For how long the old key still works, e.g. 30m, 12h or 1d."),
    ] = "1d",
    expires: Expires = None,
    database: Database = "counsel.db",
    as_json: options.Json = False,
) -> None:
    """Replace a key by another with the same tenant, role and name, and print that, once.

    If the old key was to expire, the new one lives as long, unless --expires says otherwise.
    """
    _need_extra()
    from counsel.service.core.audit import record
    from counsel.service.db import api_keys as service

    seconds = service.read_duration("overlap", overlap)
    ends = None if expires is None else service.read_expiry(expires)
    with _connection(_existing(database), writes=True) as connection:
        key = service.rotate_key(connection, id_, overlap=seconds, expires=ends)
        new, holder = _added(connection, key)
        record(connection, holder, "key rotated", id_, {"new": new, "overlap_seconds": seconds})
    _print_key(new, key, as_json=as_json)


@keys.command("list")
def list_keys(
    *, tenant: Tenant = "local", database: Database = "counsel.db", as_json: options.Json = False
) -> None:
    """List a tenant's keys: id, name, role, dates and state."""
    _need_extra()
    from counsel.cli.console import new_table, print_json, print_table
    from counsel.service.db import api_keys as service

    with _connection(_existing(database)) as connection:
        keys_of_tenant = service.list_keys(connection, tenant=tenant)
    if as_json:
        print_json({"keys": keys_of_tenant})
        return
    if not keys_of_tenant:
        typer.echo("There are no keys.")
        return
    columns = ("id", "name", "role", "created (UTC)", "expires", "last used", "state")
    table = new_table(None, *columns, left=7)
    for key in keys_of_tenant:
        dates = (_date(key[name]) for name in ("created", "expires", "last_used"))
        table.add_row(str(key["id"]), key["name"], key["role"], *dates, key["state"])
    print_table(table)


@keys.command("revoke")
def revoke_key(
    *,
    id_: Annotated[int | None, typer.Option("--id", help="The id of the key.")] = None,
    name: Annotated[
        str | None, typer.Option(help="The name of the keys, with --tenant; instead of --id.")
    ] = None,
    tenant: Tenant = "local",
    database: Database = "counsel.db",
) -> None:
    """Revoke a key by its id, or all keys of a name."""
    _need_extra()
    from counsel.service.core.audit import record
    from counsel.service.db import api_keys as service

    if (id_ is None) == (name is None):
        raise CounselError("give either --id or --name; counsel keys list shows both")
    with _connection(_existing(database), writes=True) as connection:
        if id_ is not None:
            service.revoke_key_by_id(connection, id_)
            ids, what = [id_], f"key {id_}"
        else:
            ids = service.revoke_key(connection, tenant=tenant, name=name or "")
            what = f"{len(ids)} key{'' if len(ids) == 1 else 's'} called {name!r}"
        for revoked in ids:
            row = service.key_of(connection, revoked)
            holder = service.KeyHolder(row["tenant"], "admin")
            record(connection, holder, "key revoked", revoked, {"name": row["name"]})
    if not ids:
        raise CounselError(f"tenant {tenant!r} has no valid key {name!r}; see counsel keys list")
    typer.echo(f"Revoked {what}.")


@app.command()
def audit(
    *,
    tenant: Annotated[str | None, typer.Option(help="Only changes of this tenant.")] = None,
    limit: Annotated[int, typer.Option(help="The number of changes, the last ones.", min=1)] = 1000,
    database: Database = "counsel.db",
    as_json: options.Json = False,
) -> None:
    """List who created, switched, deleted, uploaded or erased what, and who made keys."""
    _need_extra()
    import json

    from counsel.cli.console import new_table, print_json, print_table
    from counsel.service.core.audit import last_of_audit

    with _connection(_existing(database)) as connection:
        rows = last_of_audit(connection, tenant, min(limit, 1_000_000))
    if as_json:
        print_json({"audit": rows})
        return
    if not rows:
        typer.echo("There are no changes.")
        return
    table = new_table(None, "at (UTC)", "tenant", "key", "action", "target", "details", left=6)
    for row in rows:
        key = "-" if row["key"] is None else f"{row['key']} {row['key_name'] or ''}".strip()
        details = json.dumps(row["details"], ensure_ascii=False) if row["details"] else ""
        tenant_name = row["tenant"] or "-"
        table.add_row(_date(row["at"]), tenant_name, key, row["action"], row["target"], details)
    print_table(table)


def _added(connection: "Connection", key: str) -> tuple[int, "KeyHolder"]:
    """Return the id of a new key, and the command line as the one who made it."""
    from counsel.service.db.api_keys import KeyHolder, holder_of

    holder = holder_of(connection, key)
    if holder is None or holder.key is None:
        raise CounselError("the key expired at once; give a later --expires")
    return holder.key, KeyHolder(holder.tenant, "admin")


def _print_key(id_: int, key: str, *, as_json: bool) -> None:
    from counsel.cli.console import print_json

    if as_json:
        print_json({"id": id_, "key": key})
    else:
        typer.echo(key)
    typer.echo(f"Save the key: it cannot be shown again. Its id is {id_}.", err=True)


def _date(seconds: float | None) -> str:
    from datetime import UTC, datetime

    if seconds is None:
        return "-"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


@app.command()
def backup(
    *,
    output: Annotated[Path, typer.Option("-o", "--output", help="The file to write.")],
    database: Database = "counsel.db",
) -> None:
    """Copy the database into a file while the service runs, and check the copy."""
    _need_extra()
    from counsel.service.db.backup import back_up

    manifest = back_up(_existing(database), output)
    typer.echo(f"Backed up {_shown(database)} into {output}: {_contents(manifest)}.")


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="A file that `counsel backup` wrote.")],
    *,
    force: Annotated[
        bool, typer.Option("--force", help="Replace what the database holds now.")
    ] = False,
    database: Database = "counsel.db",
) -> None:
    """Put a backup in the place of a database that nobody uses, after checking all of it."""
    _need_extra()
    from counsel.service.db import backup as service

    manifest = service.restore(file, database, force=force)
    typer.echo(f"Restored {_shown(database)} as of {manifest.created}: {_contents(manifest)}.")


def _contents(manifest: "Manifest") -> str:
    """Return what a backup holds, in words."""
    names = ("advisers", "people", "decisions", "outcomes")
    rows = ", ".join(f"{manifest.counts.get(name, 0):,} {name}" for name in names)
    return f"{rows}; {manifest.bytes / 1e6:.1f} MB"


@contextmanager
def _connection(database: str, *, writes: bool = False) -> Iterator["Connection"]:
    """Open a database for one transaction."""
    from counsel.service.db.engine import open_engine, write_transaction

    engine = open_engine(database)
    try:
        with write_transaction(engine) if writes else engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def _free_port(host: str, port: int) -> int:
    """Return a port to listen on: the given one, or a free one if that is 0."""
    import socket

    try:
        kind, *_, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(kind, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
            return int(probe.getsockname()[1])
    except OSError as fault:
        reason = (fault.strerror or str(fault)).lower()
        raise CounselError(f"cannot listen on {host}, port {port}: {reason}") from None


def _existing(database: str) -> str:
    """Return a database that exists; opening a missing file would create it."""
    from counsel.service.db.engine import address_of

    address = address_of(database)
    is_file = address.get_backend_name() == "sqlite" and "uri" not in address.query
    if is_file and not Path(address.database or ":memory:").exists():
        raise CounselError(f"there is no database {database}; name it with --db")
    return database


def _shown(database: str) -> str:
    """Return a database's address for a shell, without its password."""
    from counsel.service.db.engine import without_password

    return shlex.quote(without_password(database))


def _need_extra() -> None:
    packages = ("alembic", "fastapi", "sqlalchemy", "uvicorn")
    if any(find_spec(package) is None for package in packages):
        raise CounselError(
            "the service needs more packages; install them with: pip install 'counsel[service]'"
        )
