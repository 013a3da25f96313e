"""Backups: a database in one file, copied while services write, and checked before it counts.

A backup is a snapshot: it holds everything that was acknowledged before it began, and nothing half
of which was written. The file is a ZIP archive with the copy (a SQLite database, or an archive of
``pg_dump``) and a manifest: the version of the tables, the rows of each table, and the SHA-256 of
the copy. It is moved to its place once the copy was read back.

To restore is to check everything first: the digest, the copy itself, and that this Counsel knows
its version. A database that somebody uses, or that holds anything, is not overwritten.
"""

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import sqlalchemy as sa

from counsel import __version__
from counsel._files import check_exists, whole_file
from counsel.errors import CounselError
from counsel.service.db.engine import address_of, schema_versions, without_password
from counsel.service.db.tables import metadata

DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
"""Codes of errors of SQLite that say that a file is damaged."""

SHARED_FIRST, SHARED_SIZE = 0x40000002, 510
"""The bytes that SQLite locks in a file that is open, which it never writes."""

FORMAT, FORMAT_VERSION = "counsel-backup", 1
MANIFEST, COPY = "manifest.json", "database"
"""The two parts of a backup."""

PAGES = 1000
"""Pages of a SQLite database that are copied in one step."""

CHUNK = 1 << 20
VERSIONS = "alembic_version"
"""The table with the version of all tables."""

DAMAGED = (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup holds: the kind of the database, its version, its rows, and the digest."""

    database: str
    schema: str
    counts: dict[str, int]
    bytes: int
    sha256: str
    created: str
    counsel: str
    format: str = FORMAT
    version: int = FORMAT_VERSION


def back_up(url: str, path: Path) -> Manifest:
    """Copy a database, which may be in use, into a file; return what the file holds."""
    address = address_of(url)
    is_sqlite = address.get_backend_name() == "sqlite"
    if path.exists():
        raise CounselError(f"{path} exists; give the backup another name")
    with whole_file(path) as unfinished, TemporaryDirectory(dir=path.parent) as folder:
        os.chmod(unfinished, 0o600)  # it says what people did
        copy = Path(folder) / COPY
        if is_sqlite:
            schema, counts = _copy_sqlite(_sqlite_file(address), copy)
        else:
            schema, counts = _dump(address, copy)
        manifest = Manifest(
            database="sqlite" if is_sqlite else "postgresql",
            schema=schema,
            counts=counts,
            bytes=copy.stat().st_size,
            sha256=_digest(copy),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            counsel=__version__,
        )
        # What pg_dump wrote is compressed already.
        method = zipfile.ZIP_DEFLATED if is_sqlite else zipfile.ZIP_STORED
        with zipfile.ZipFile(unfinished, "w", method, compresslevel=1) as archive:
            archive.write(copy, COPY)
            archive.writestr(MANIFEST, json.dumps(asdict(manifest), indent=1))
        if _read_manifest(unfinished) != manifest or _check_copy(unfinished) != manifest.sha256:
            raise CounselError(f"{path} cannot be read back; is the disk faulty?")
    return manifest


def restore(path: Path, url: str, *, force: bool = False) -> Manifest:
    """Put a backup in the place of a database; return what the backup holds.

    ``force`` overwrites a database that holds something, but never one that is in use.
    """
    address = address_of(url)
    check_exists(path)
    manifest = _read_manifest(path)
    kind = address.get_backend_name()
    if manifest.database != kind:
        raise CounselError(f"{path} is a backup of {manifest.database}; --db is {kind}")
    _known(manifest.schema, path)
    if kind == "sqlite":
        _restore_sqlite(path, manifest, _sqlite_file(address), force=force)
    else:
        with TemporaryDirectory() as folder:
            copy = Path(folder) / COPY
            _extract(path, manifest, copy)
            _restore_dump(path, manifest, copy, address, force=force)
    return manifest


# The file


def _read_manifest(path: Path) -> Manifest:
    try:
        with zipfile.ZipFile(path) as archive:
            content = json.loads(archive.read(MANIFEST))
        if content["format"] != FORMAT or content["version"] != FORMAT_VERSION:
            raise CounselError(
                f"{path} has format {content['format']!r}, version {content['version']!r}; this "
                f"Counsel reads {FORMAT!r}, version {FORMAT_VERSION}"
            )
        return Manifest(**content)
    except CounselError:
        raise
    except DAMAGED:
        raise CounselError(f"{path} is truncated, damaged or not a backup") from None


def _check_copy(path: Path) -> str:
    """Return the digest of the copy in a backup."""
    digest = hashlib.sha256()
    for chunk in _copy_in(path):
        digest.update(chunk)
    return digest.hexdigest()


def _extract(path: Path, manifest: Manifest, copy: Path) -> None:
    """Write the copy in a backup to a file of its own, and check it."""
    digest, size = hashlib.sha256(), 0
    with copy.open("wb") as stream:
        os.chmod(copy, 0o600)
        for chunk in _copy_in(path):
            digest.update(chunk)
            size += len(chunk)
            stream.write(chunk)
    if (size, digest.hexdigest()) != (manifest.bytes, manifest.sha256):
        raise CounselError(f"{path} does not hold what was backed up: its SHA-256 is another one")


def _copy_in(path: Path) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(path) as archive, archive.open(COPY) as stream:
            while chunk := stream.read(CHUNK):
                yield chunk
    except DAMAGED:
        raise CounselError(f"{path} is truncated, damaged or not a backup") from None


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


# SQLite


def _sqlite_file(address: sa.URL) -> Path:
    if address.database in (None, "", ":memory:"):
        raise CounselError("a database in memory has no file; give --db FILE")
    return Path(str(address.database))


@contextmanager
def _opened(path: Path, mode: str, name: Path | None = None) -> Iterator[sqlite3.Connection]:
    """Open a SQLite file; errors name it, or the file of which it is a copy."""
    try:
        uri = f"{path.absolute().as_uri()}?mode={mode}"
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
            yield connection
    except sqlite3.Error as fault:
        raise CounselError(f"the database {name or path} cannot be read: {fault}") from None


def _copy_sqlite(source: Path, copy: Path) -> tuple[str, dict[str, int]]:
    """Copy a database that may be in use, and return its version and the rows of its tables."""
    check_exists(source)
    with _opened(source, "rw") as connection, _opened(copy, "rwc", source) as target:
        # Inside a transaction the copy is of this moment, however much is written meanwhile.
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        connection.backup(target, pages=PAGES)
        target.execute("PRAGMA journal_mode = DELETE")
    return _check_sqlite(copy, source)


def _check_sqlite(path: Path, name: Path) -> tuple[str, dict[str, int]]:
    """Check a database in every page, and return its version and the rows of its tables."""
    with _opened(path, "ro", name) as connection:
        faults = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if faults != "ok":
            raise CounselError(f"{name} is damaged: {faults}")
        if connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
            raise CounselError(f"{name} is damaged: rows refer to rows that do not exist")
        counts = _count_sqlite(connection)
        if VERSIONS not in counts:
            raise CounselError(f"{name} is not a database of Counsel")
        schema = connection.execute(f"SELECT version_num FROM {VERSIONS}").fetchone()
    return _known(str(schema[0]) if schema else "none", name), counts


def _count_sqlite(connection: sqlite3.Connection) -> dict[str, int]:
    tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    names = [name for (name,) in connection.execute(f"{tables} ORDER BY name")]
    return {
        name: int(connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0])
        for name in names
    }


def _restore_sqlite(path: Path, manifest: Manifest, target: Path, *, force: bool) -> None:
    _check_target(target, force=force)
    with whole_file(target) as unfinished:
        _extract(path, manifest, unfinished)
        schema, counts = _check_sqlite(unfinished, path)
        if (schema, counts) != (manifest.schema, manifest.counts):
            raise CounselError(f"{path} does not hold the rows that its manifest names")
        _check_target(target, force=force)  # that took a while
        for suffix in ("-wal", "-shm", "-journal"):  # they would be read as part of the new one
            target.with_name(target.name + suffix).unlink(missing_ok=True)


def _check_target(target: Path, *, force: bool) -> None:
    """Raise if a database is in use, or holds something that must not be lost."""
    if not target.exists() or target.stat().st_size == 0:
        return
    in_use = CounselError(f"the database {target} is in use; stop the service first")
    with _opened(target, "rw") as connection:
        try:
            if not force:
                _check_empty(_count_sqlite(connection), str(target))
            # Fails if somebody else has the database open.
            connection.execute("PRAGMA journal_mode = DELETE").fetchone()
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("ROLLBACK")
            return
        except sqlite3.DatabaseError as fault:
            if fault.sqlite_errorcode & 0xFF not in DAMAGE:
                raise in_use from None
            reason = str(fault)
    if not force:
        raise CounselError(f"{target} is damaged: {reason}; give --force to replace it")
    if _is_locked(target):
        raise in_use


def _is_locked(target: Path) -> bool:
    """Whether another process has a damaged file open, of which SQLite says nothing any more.

    Windows does not let a file be replaced that is open.
    """
    try:
        import fcntl
    except ImportError:
        return False
    with target.open("r+b") as stream:
        try:
            fcntl.lockf(stream, fcntl.LOCK_EX | fcntl.LOCK_NB, SHARED_SIZE, SHARED_FIRST)
        except OSError:
            return True
    return False


def _check_empty(counts: Mapping[str, int], name: str) -> None:
    rows = sum(count for table, count in counts.items() if table != VERSIONS)
    if rows:
        raise CounselError(
            f"the database {name} holds {rows:,} rows; give --force to replace them, or another "
            "--db"
        )


def _known(schema: str, name: Path | str) -> str:
    if schema not in schema_versions():
        raise CounselError(
            f"{name} has tables of version {schema[:40]}, which this Counsel does not know; "
            "upgrade Counsel"
        )
    return schema


# PostgreSQL


def _dump(address: sa.URL, copy: Path) -> tuple[str, dict[str, int]]:
    """Dump Counsel's tables, and return their version and rows, all of one moment."""
    _need_programs()
    reach, secret = _reach(address)
    name = without_password(str(address))
    with _connected(reach, secret, name) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        connection.execute("SET LOCAL statement_timeout = 0")
        snapshot = connection.execute("SELECT pg_export_snapshot()").fetchone()[0]
        schema, counts = _count_postgresql(connection)
        if VERSIONS not in counts:
            raise CounselError(f"{name} is not a database of Counsel")
        _known(schema, name)
        tables = [f'--table="{table}"' for table in counts]
        options = ("--format=custom", "--no-owner", "--no-privileges", f"--snapshot={snapshot}")
        _run(["pg_dump", *options, *tables, f"--file={copy}", f"--dbname={reach}"], secret)
    _check_dump(copy, counts)
    return schema, counts


def _check_dump(copy: Path, counts: Mapping[str, int]) -> None:
    """Read an archive of ``pg_dump`` to its end, and check that every table is in it."""
    contents = _run(["pg_restore", "--list", str(copy)])
    with_data = {line.split()[6] for line in contents.splitlines() if " TABLE DATA " in line}
    missing = sorted(set(counts) - with_data)
    if missing:
        raise CounselError(f"the archive of pg_dump lacks the table {missing[0]}")
    _run(["pg_restore", f"--file={os.devnull}", str(copy)])


def _restore_dump(
    path: Path, manifest: Manifest, copy: Path, address: sa.URL, *, force: bool
) -> None:
    """Restore an archive of ``pg_dump`` in one transaction."""
    _need_programs()
    _check_dump(copy, manifest.counts)
    reach, secret = _reach(address)
    name = without_password(str(address))
    with _connected(reach, secret, name) as connection:
        others = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        ).fetchone()[0]
        if others:
            raise CounselError(
                f"the database {name} is in use by {others} connections; stop the service first"
            )
        _, counts = _count_postgresql(connection)
        if not force:
            _check_empty(counts, name)
        more = sorted(set(counts) - set(manifest.counts))
        if more:
            raise CounselError(
                f"the database {name} has the table {more[0]}, which the backup lacks; restore "
                "into an empty database"
            )
    options = ("--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error")
    clean = ("--clean", "--if-exists") if counts else ()
    _run(["pg_restore", *options, *clean, f"--dbname={reach}", str(copy)], secret)
    with _connected(reach, secret, name) as connection:
        schema, counts = _count_postgresql(connection)
        if (schema, counts) != (manifest.schema, manifest.counts):
            raise CounselError(f"{name} does not have the rows that the manifest of {path} names")
        for table in counts:
            connection.execute(f'ANALYZE "{table}"')
        connection.commit()


def _count_postgresql(connection: Any) -> tuple[str, dict[str, int]]:  # noqa: ANN401 (psycopg's)
    """Return the version of Counsel's tables, and the rows of those that exist."""
    query = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename"
    own = {*metadata.tables, VERSIONS}
    names = [name for (name,) in connection.execute(query).fetchall() if name in own]
    counts = {
        name: int(connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0])
        for name in names
    }
    if VERSIONS not in counts:
        return "none", counts
    schema = connection.execute(f"SELECT version_num FROM {VERSIONS}").fetchone()
    return str(schema[0]) if schema else "none", counts


@contextmanager
def _connected(reach: str, secret: Mapping[str, str], name: str) -> Iterator[Any]:
    """Connect to PostgreSQL; errors name the database without its password."""
    import psycopg
    from psycopg.conninfo import make_conninfo

    try:
        whole = make_conninfo(reach, password=secret.get("PGPASSWORD"), connect_timeout=10)
        with psycopg.connect(whole) as connection:
            yield connection
    except psycopg.Error as fault:
        reason = " ".join(str(fault).split())[:300]
        raise CounselError(f"the database {name} cannot be read: {reason}") from None


def _reach(address: sa.URL) -> tuple[str, dict[str, str]]:
    """Return how to connect, and the password as a variable: other users can list arguments."""
    from psycopg.conninfo import make_conninfo

    given = {
        name: text if isinstance(text, str) else ",".join(text)
        for name, text in address.query.items()
    }
    if "sslpassword" in given:
        raise CounselError("sslpassword would be visible to others; use a key without a password")
    password = given.pop("password", None) or address.password
    places = {"host": address.host, "port": address.port, "user": address.username}
    places |= {"dbname": address.database}
    parts: dict[str, Any] = {name: x for name, x in places.items() if x is not None}
    return make_conninfo(**parts, **given), {} if password is None else {
        "PGPASSWORD": str(password)
    }


def _need_programs() -> None:
    missing = [name for name in ("pg_dump", "pg_restore") if shutil.which(name) is None]
    if missing:
        raise CounselError(
            f"backups of PostgreSQL need {missing[0]}, which is not on PATH; install PostgreSQL's "
            "client programs"
        )


def _run(command: list[str], secret: Mapping[str, str] | None = None) -> str:
    """Run a program of PostgreSQL, and return what it printed."""
    done = subprocess.run(
        command,
        env={**os.environ, "LC_ALL": "C", **(secret or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        reason = " ".join(done.stderr.split())[:300]
        raise CounselError(f"{command[0]} failed: {reason or f'exit code {done.returncode}'}")
    return done.stdout
