"""Commands for the service: serve, and API keys."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from counsel.cli import options
from counsel.cli.app import app
from counsel.errors import CounselError

if TYPE_CHECKING:
    from sqlalchemy import Connection

DATABASE = typer.Option(
    "--db",
    metavar="URL",
    envvar="COUNSEL_DB",
    help="A SQLite file (counsel.db), or postgresql+psycopg://user:password@host/name.",
)
Database = Annotated[str, DATABASE]
Tenant = Annotated[
    str, typer.Option(help="The tenant; a key gives access to this tenant's data only.")
]

keys = typer.Typer(help="API keys of the service.", no_args_is_help=True)
app.add_typer(keys, name="keys")


@app.command()
def serve(  # noqa: PLR0913 (options)
    *,
    database: Annotated[str | None, DATABASE] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on.", min=0, max=65535)] = 8000,
    workers: Annotated[
        int, typer.Option(help="The number of processes; more than one needs PostgreSQL.", min=1)
    ] = 1,
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
) -> None:
    """Serve advice over HTTP, with a dashboard at / and a game at /play."""
    _need_extra()
    import tempfile
    from contextlib import ExitStack
    from pathlib import Path

    import uvicorn

    from counsel.service.api.security import LOOPBACK
    from counsel.service.db.api_keys import any_key
    from counsel.service.db.engine import is_shared
    from counsel.service.process import ServiceProcess

    without_keys = no_auth or demo
    if without_keys and host not in LOOPBACK:
        flag = "--no-auth" if no_auth else "--demo"
        raise CounselError(f"{flag} is for this machine only; leave out --host {host}")
    if workers > 1 and not is_shared(database or "counsel.db"):
        raise CounselError("several workers need PostgreSQL; give --db postgresql+psycopg://…")
    if workers > 1 and demo:
        raise CounselError("--demo runs with one worker only; leave out --workers")
    with ExitStack() as stack:
        if database is None and demo:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="counsel-"))
            database = str(Path(folder) / "demo.db")
        database = database or "counsel.db"
        serving = ServiceProcess(database, auth=not without_keys, demo=demo)
        with _connection(database) as connection:  # fail before anything starts
            needs_key = not without_keys and not any_key(connection)
        port = _free_port(host, port)
        address = f"http://{host}:{port}"
        if demo:
            typer.echo("Starting; the first start compiles the planner, which takes about 20 s.")
        app = serving.app() if workers == 1 else "counsel.service.process:app_from_environment"
        serving.to_environment()
        typer.echo(f"Serving on {address} (Ctrl-C stops); the game is at {address}/play.")
        if needs_key:
            typer.echo(f"Next: counsel keys add --role admin --db {_shown(database)}")
        uvicorn.run(
            app,
            factory=workers > 1,
            host=host,
            port=port,
            workers=workers if workers > 1 else None,
            log_level="warning",
            timeout_keep_alive=75,
            timeout_graceful_shutdown=10,
            server_header=False,
            proxy_headers=False,
            access_log=False,
        )


@keys.command("add")
def add_key(
    *,
    role: Annotated[str, typer.Option(help="read, advise or admin.")] = "advise",
    tenant: Tenant = "local",
    name: Annotated[str, typer.Option(help="The name of the key in lists.")] = "key",
    database: Database = "counsel.db",
) -> None:
    """Create a key and print it, once."""
    _need_extra()
    from counsel.service.db import api_keys as service

    with _connection(database, writes=True) as connection:
        key = service.add_key(connection, tenant=tenant, role=role, name=name)
    typer.echo(key)
    typer.echo("Save the key: it cannot be shown again.", err=True)


@keys.command("list")
def list_keys(
    *, tenant: Tenant = "local", database: Database = "counsel.db", as_json: options.Json = False
) -> None:
    """List the names and roles of a tenant's keys."""
    _need_extra()
    from datetime import UTC, datetime

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
    table = new_table(None, "name", "role", "created", "valid", left=4)
    for key in keys_of_tenant:
        created = datetime.fromtimestamp(key["created"], UTC).strftime("%Y-%m-%d %H:%M UTC")
        table.add_row(key["name"], key["role"], created, "no" if key["revoked"] else "yes")
    print_table(table)


@keys.command("revoke")
def revoke_key(
    *,
    name: Annotated[str, typer.Option(help="The name of the key.")],
    tenant: Tenant = "local",
    database: Database = "counsel.db",
) -> None:
    """Revoke the keys of a name."""
    _need_extra()
    from counsel.service.db import api_keys as service

    with _connection(_existing(database), writes=True) as connection:
        count = service.revoke_key(connection, tenant=tenant, name=name)
    if not count:
        raise CounselError(f"tenant {tenant!r} has no valid key {name!r}; see counsel keys list")
    typer.echo(f"Revoked {count} key{'' if count == 1 else 's'} called {name!r}.")


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
    from pathlib import Path

    if "://" not in database and not Path(database).exists():
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
