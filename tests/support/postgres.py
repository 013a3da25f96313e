"""A PostgreSQL server of our own: on a free loopback port, gone when the tests are over."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tests.support.services import free_port

OWNER = "postgres"
"""The superuser of the server, and who runs it where we are root, which it refuses."""

SETTINGS = (
    "listen_addresses = '127.0.0.1'",
    "unix_socket_directories = ''",
    "max_connections = 50",
    "shared_buffers = 16MB",
    "wal_recycle = off",
)
HASTE = ("fsync = off", "synchronous_commit = off", "full_page_writes = off")
"""For servers whose data nobody needs."""

DOORS = (
    "host replication all 127.0.0.1/32 trust",
    "host all locked 127.0.0.1/32 scram-sha-256",
    "host all all 127.0.0.1/32 trust",
)
"""The role ``locked`` needs its password; all others are let in."""


class NoServerError(Exception):
    """No server can be run on this machine."""


@dataclass(frozen=True)
class Server:
    """A server that is running."""

    port: int

    def url(self, *, user: str = OWNER, database: str = "postgres") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.url(), autocommit=True)


def programs() -> Path:
    """Where ``initdb`` and ``pg_ctl`` are."""
    places = sorted(
        Path("/usr/lib/postgresql").glob("[0-9]*/bin"),
        key=lambda place: int(place.parent.name.split(".")[0]),
        reverse=True,
    )
    if told := shutil.which("pg_config"):
        done = subprocess.run([told, "--bindir"], capture_output=True, text=True, check=False)
        places.insert(0, Path(done.stdout.strip()))
    if told := shutil.which("initdb"):
        places.append(Path(told).resolve().parent)
    for place in places:
        if all((place / name).exists() for name in ("initdb", "pg_ctl", "postgres")):
            return place
    raise NoServerError("no PostgreSQL server is installed")


def other_user() -> dict[str, object]:
    """Who runs the server, as ``subprocess.run`` wants to know it."""
    if sys.platform == "win32" or os.geteuid() != 0:
        return {}
    import pwd  # Windows has no such module

    try:
        owner = pwd.getpwnam(OWNER)
    except KeyError:
        raise NoServerError(f"PostgreSQL refuses root and there is no user {OWNER}") from None
    return {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}


@contextmanager
def running(*, durable: bool = False) -> Iterator[Server]:
    """Run a server in a folder of its own; stop it and remove the folder whatever happens.

    ``durable`` is whether it waits for its disk.
    """
    where, whom = programs(), other_user()
    folder = Path(tempfile.mkdtemp(prefix="counsel-postgres-"))
    data = folder / "data"

    def do(name: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(where / name), "-D", str(data), *arguments],
            cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
            check=False, env={**os.environ, "LC_ALL": "C", "HOME": str(folder)}, **whom,
        )  # fmt: skip
        if done.returncode != 0:
            log = folder / "log"
            said = log.read_text(errors="replace") if log.exists() else ""
            raise RuntimeError(f"{name} failed: {done.stdout}{done.stderr}{said}")

    try:
        if whom:
            os.chown(folder, whom["user"], whom["group"])
        do("initdb", "-U", OWNER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        with (data / "postgresql.conf").open("a") as stream:
            stream.writelines(f"{line}\n" for line in SETTINGS + (() if durable else HASTE))
        (data / "pg_hba.conf").write_text("".join(f"{line}\n" for line in DOORS))
        yield Server(_started(do, folder))
    finally:
        try:
            if (data / "postmaster.pid").exists():
                do("pg_ctl", "-m", "immediate", "-w", "stop")
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _started(do, folder: Path) -> int:
    """Start the server on a free port and return it; somebody else may be faster, so try again."""
    for chances in (2, 1, 0):
        port = free_port()
        try:
            do("pg_ctl", "-w", "-t", "60", "-l", str(folder / "log"), "-o", f"-p {port}", "start")
            return port
        except RuntimeError as fault:
            if not chances or "already in use" not in str(fault):
                raise
    raise AssertionError
