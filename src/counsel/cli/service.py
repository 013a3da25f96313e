"""Commands for the service: serve, and keys to it."""

import shlex
from typing import Annotated

import typer

from counsel.cli.app import Json, app
from counsel.errors import CounselError

LOOPBACK = ("127.0.0.1", "::1", "localhost")

Database = Annotated[
    str,
    typer.Option(
        "--db",
        metavar="URL",
        help="A SQLite file, or postgresql+psycopg://user:password@host/name.",
    ),
]
Tenant = Annotated[str, typer.Option(help="Whose: a key sees this tenant's data only.")]

keys = typer.Typer(help="Keys to the service.", no_args_is_help=True)
app.add_typer(keys, name="keys")


@app.command()
def serve(
    *,
    database: Database = "counsel.db",
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on.", min=0, max=65535)] = 8000,
    no_auth: Annotated[
        bool,
        typer.Option("--no-auth", help="Ask for no key; only for this machine itself."),
    ] = False,
) -> None:
    """Serve advice over HTTP: decide, record, learn."""
    _need_extra()
    import numpy as np
    import uvicorn

    from counsel.service.app import make_app
    from counsel.service.desk import Desk
    from counsel.service.keys import tenant_of
    from counsel.service.sources import Sources
    from counsel.service.store import open_engine

    if no_auth and host not in LOOPBACK:
        raise CounselError(f"--no-auth is for this machine itself; --host {host} is not")
    engine = open_engine(database)
    tenant = None
    if no_auth:
        with engine.begin() as connection:
            tenant = tenant_of(connection, "local")
    desk = Desk(engine, Sources(engine), np.random.default_rng())
    typer.echo(f"Serving on http://{host}:{port} (Ctrl-C stops).")
    if not no_auth:
        typer.echo(f"Next: counsel keys add --role admin --db {shlex.quote(database)}")
    try:
        uvicorn.run(
            make_app(desk, tenant=tenant), host=host, port=port, log_level="warning", workers=None
        )
    finally:
        desk.close()
        engine.dispose()


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
    from counsel.service import keys as service
    from counsel.service.store import open_engine

    engine = open_engine(database)
    with engine.begin() as connection:
        made = service.add_key(connection, tenant=tenant, role=role, name=name)
    engine.dispose()
    typer.echo(made)
    typer.echo("Keep it: it cannot be shown again.", err=True)


@keys.command("list")
def list_keys(
    *, tenant: Tenant = "local", database: Database = "counsel.db", as_json: Json = False
) -> None:
    """List the keys of a tenant, without what opens anything."""
    _need_extra()
    from counsel.printing import service as printing
    from counsel.printing.tables import print_json
    from counsel.service import keys as service
    from counsel.service.store import open_engine

    engine = open_engine(database)
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
    from counsel.service import keys as service
    from counsel.service.store import open_engine

    engine = open_engine(database)
    with engine.begin() as connection:
        count = service.revoke_key(connection, tenant=tenant, name=name)
    engine.dispose()
    if not count:
        raise CounselError(f"tenant {tenant!r} has no key {name!r} that works")
    typer.echo(f"Revoked {count} key{'' if count == 1 else 's'} called {name!r}.")


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
