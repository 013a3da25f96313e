"""Commands for the service: serve, and keys to it."""

import shlex
from typing import Annotated

import typer

from counsel.cli.app import Json, app
from counsel.errors import CounselError

Database = Annotated[
    str,
    typer.Option(
        "--db",
        metavar="URL",
        envvar="COUNSEL_DB",
        help="A SQLite file, or postgresql+psycopg://user:password@host/name.",
    ),
]
Tenant = Annotated[str, typer.Option(help="Whose: a key sees this tenant's data only.")]

keys = typer.Typer(help="Keys to the service.", no_args_is_help=True)
app.add_typer(keys, name="keys")


@app.command()
def serve(  # noqa: PLR0913 (what may be chosen)
    *,
    database: Annotated[
        str | None,
        typer.Option(
            "--db",
            metavar="URL",
            envvar="COUNSEL_DB",
            help="A SQLite file (counsel.db), or postgresql+psycopg://user:password@host/name.",
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on.", min=0, max=65535)] = 8000,
    workers: Annotated[
        int, typer.Option(help="Processes that serve; more than one on PostgreSQL only.", min=1)
    ] = 1,
    no_auth: Annotated[
        bool,
        typer.Option("--no-auth", help="Ask for no key; only for this machine itself."),
    ] = False,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo",
            help="Show simulated people at work, without keys; forgotten at the end unless --db.",
        ),
    ] = False,
) -> None:
    """Serve advice over HTTP: decide, record, learn; a dashboard at / and a game at /play."""
    _need_extra()
    import tempfile
    from contextlib import ExitStack
    from pathlib import Path

    import uvicorn

    from counsel.service.api.app import LOOPBACK
    from counsel.service.db.api_keys import any_key
    from counsel.service.db.engine import is_shared, open_engine
    from counsel.service.process import ServiceProcess

    open_door = no_auth or demo
    if open_door and host not in LOOPBACK:
        flag = "--no-auth" if no_auth else "--demo"
        raise CounselError(f"{flag} is for this machine itself; --host {host} is not")
    if workers > 1 and not is_shared(database or "counsel.db"):
        raise CounselError("several workers need PostgreSQL: give --db postgresql+psycopg://…")
    if workers > 1 and demo:
        raise CounselError("--demo takes one worker")
    with ExitStack() as stack:
        if database is None and demo:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="counsel-"))
            database = str(Path(folder) / "demo.db")
        database = database or "counsel.db"
        serving = ServiceProcess(database, auth=not open_door, demo=demo)
        engine = open_engine(database)  # what cannot be opened is told before anything starts
        with engine.connect() as connection:
            keyless = not open_door and not any_key(connection)
        engine.dispose()
        port = _free_port(host, port)
        address = f"http://{host}:{port}"
        if demo:
            typer.echo("Starting; the very first time that compiles the planner (20 s or so).")
        app = serving.app() if workers == 1 else "counsel.service.process:app_from_environment"
        serving.to_environment()
        typer.echo(f"Serving on {address} (Ctrl-C stops): play at {address}/play.")
        if keyless:
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
    name: Annotated[str, typer.Option(help="What to call it in lists.")] = "key",
    database: Database = "counsel.db",
) -> None:
    """Make a key and show it, once."""
    _need_extra()
    from counsel.service.db import api_keys as service
    from counsel.service.db.engine import open_engine, write_transaction

    engine = open_engine(database)
    try:
        with write_transaction(engine) as connection:
            made = service.add_key(connection, tenant=tenant, role=role, name=name)
    finally:
        engine.dispose()
    typer.echo(made)
    typer.echo("Keep it: it cannot be shown again.", err=True)


@keys.command("list")
def list_keys(
    *, tenant: Tenant = "local", database: Database = "counsel.db", as_json: Json = False
) -> None:
    """List the keys of a tenant, without what opens anything."""
    _need_extra()
    from counsel.cli import service_output as printing
    from counsel.cli.console import print_json
    from counsel.service.db import api_keys as service
    from counsel.service.db.engine import open_engine

    engine = open_engine(_known(database))
    with engine.connect() as connection:
        found = service.list_keys(connection, tenant=tenant)
    engine.dispose()
    if as_json:
        print_json({"keys": found})
        return
    printing.print_keys(found)


@keys.command("revoke")
def revoke_key(
    *,
    name: Annotated[str, typer.Option(help="Which.")],
    tenant: Tenant = "local",
    database: Database = "counsel.db",
) -> None:
    """Make the keys of a name useless from now on."""
    _need_extra()
    from counsel.service.db import api_keys as service
    from counsel.service.db.engine import open_engine, write_transaction

    engine = open_engine(_known(database))
    with write_transaction(engine) as connection:
        count = service.revoke_key(connection, tenant=tenant, name=name)
    engine.dispose()
    if not count:
        raise CounselError(f"tenant {tenant!r} has no key {name!r} that works")
    typer.echo(f"Revoked {count} key{'' if count == 1 else 's'} called {name!r}.")


def _free_port(host: str, port: int) -> int:
    """Return a port that can be listened on: the one asked for, or any where that is 0."""
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


def _known(database: str) -> str:
    """Return a database that there is; a file that is not there would be made anew."""
    from pathlib import Path

    if "://" not in database and not Path(database).exists():
        raise CounselError(f"there is no database {database}; name it with --db")
    return database


def _shown(database: str) -> str:
    """Return a database as it may be printed: without what opens it."""
    from counsel.service.db.engine import without_password

    return shlex.quote(without_password(database))


def _need_extra() -> None:
    try:
        import alembic  # noqa: F401
        import fastapi  # noqa: F401
        import sqlalchemy  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError:
        raise CounselError(
            "the service needs more packages; install them with: pip install 'counsel[service]'"
        ) from None
