"""Backups under load, what they restore, and what is refused."""

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import uuid
import zipfile
from pathlib import Path

import pytest
import sqlalchemy as sa

from counsel import CounselError
from counsel.service.core.outcomes import Outcome
from counsel.service.core.settings import AdviserSettings
from counsel.service.db import backup
from counsel.service.db.backup import back_up, restore
from counsel.service.db.engine import open_engine, write_transaction
from counsel.service.db.tables import decisions, metadata, outcomes, probes
from tests.support.services import open_desk
from tests.support.waiting import until


@pytest.fixture
def elsewhere(url, tmp_path, request):
    """Another database of the same kind, which does not exist or is empty."""
    if url.startswith("sqlite"):
        return f"sqlite:///{tmp_path / 'restored.db'}"
    name = f"test_{uuid.uuid4().hex}"
    server = request.getfixturevalue("server")
    with server.connect() as database:
        database.execute(f"create database {name}")
    return server.url(database=name)


def fill(url, episodes=2):
    """Put something on record; the database is closed afterwards."""
    with open_desk(url) as desk:
        adviser = desk.create(1, "alerts", AdviserSettings(source="ward", budget=1.0, hard=True))
        for number in range(episodes):
            episode = desk.start(1, adviser, f"nurse {number}")
            decision = desk.advise(1, episode.id, 0, 2)
            desk.report(1, [Outcome(decision.id, 1, 0.5, comment="busy")])


def contents(url):
    """All rows of all tables, except those that a service writes about itself."""
    engine = open_engine(url)
    try:
        with engine.connect() as connection:
            return {
                table.name: sorted(map(tuple, connection.execute(sa.select(table))), key=repr)
                for table in metadata.sorted_tables
                if table is not probes
            }
    finally:
        engine.dispose()


def test_a_backup_is_restored_with_every_row(url, elsewhere, tmp_path):
    fill(url)
    before = contents(url)
    path = tmp_path / "copy.counsel"
    manifest = back_up(url, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (manifest.counts["outcomes"], manifest.counts["people"]) == (2, 2)
    assert [one.name for one in tmp_path.glob(".counsel-*")] == [], "nothing is left half-written"
    assert restore(path, elsewhere) == manifest
    assert contents(elsewhere) == before
    with open_desk(elsewhere) as desk:  # numbers go on where they were
        [adviser] = desk.learnt.advisers()
        episode = desk.start(1, adviser, "ann")
        decision = desk.advise(1, episode.id, 0, 2)
        desk.report(1, [Outcome(decision.id, 1)])
        assert desk.learnt.of(adviser).everybody.decisions == 3
    with pytest.raises(CounselError, match="exists; give the backup another name"):
        back_up(url, path)


@pytest.mark.slow
def test_a_backup_under_load_has_everything_acknowledged_before_it(url, elsewhere, tmp_path):
    with open_desk(url) as desk:
        adviser = desk.create(1, "alerts", AdviserSettings(source="ward", budget=1.0))
        acknowledged, stop = [], threading.Event()

        def write():
            while not stop.is_set():
                episode = desk.start(1, adviser, f"nurse {len(acknowledged) % 7}")
                decision = desk.advise(1, episode.id, 0, 2)
                desk.report(1, [Outcome(decision.id, 1, float(len(acknowledged)))])
                acknowledged.append(episode.number)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            until(lambda: len(acknowledged) > 50)
            before = list(acknowledged)
            path = tmp_path / "copy.counsel"
            manifest = back_up(url, path)
            after = list(acknowledged)
            until(lambda: len(acknowledged) > len(after) + 20)  # nobody was stopped by it
        finally:
            stop.set()
            writer.join()
    restore(path, elsewhere)
    source, copy = contents(url), contents(elsewhere)
    assert len(after) > len(before) or manifest.counts["outcomes"] >= len(before)
    for table in (decisions, outcomes):
        numbers = [row[table.c.keys().index("episode")] for row in copy[table.name]]
        assert set(before) <= set(numbers), "everything that was acknowledged is there, once"
        assert len(numbers) == len(set(numbers)) == manifest.counts[table.name]
        assert set(copy[table.name]) <= set(source[table.name]), "and nothing that was not written"
    assert set(copy["people"]) <= set(source["people"])


def damaged(path, change):
    """A copy of a backup with something changed in it."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    change(parts)
    copy = path.with_suffix(".damaged")
    with zipfile.ZipFile(copy, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return copy


def with_manifest(**changes):
    def change(parts):
        manifest = json.loads(parts["manifest.json"]) | changes
        parts["manifest.json"] = json.dumps(manifest).encode()

    return change


def test_what_is_truncated_or_changed_is_refused_before_anything_is_written(
    url, elsewhere, tmp_path
):
    fill(url)
    path = tmp_path / "copy.counsel"
    manifest = back_up(url, path)
    short = tmp_path / "short"
    content = path.read_bytes()
    flipped = bytearray(content)
    flipped[200] ^= 1

    def flip(parts):
        copy = bytearray(parts["database"])
        copy[len(copy) // 2] ^= 1
        parts["database"] = bytes(copy)

    counts = manifest.counts | {"outcomes": 1}
    cases = [
        *((content[:end], "truncated, damaged or not a backup") for end in (0, 100, -1)),
        (content[: len(content) // 2], "truncated, damaged or not a backup"),
        (bytes(flipped), "truncated, damaged"),
        (damaged(path, flip).read_bytes(), "SHA-256"),
        (damaged(path, lambda parts: parts.pop("database")).read_bytes(), "truncated"),
        (damaged(path, with_manifest(schema="9999")).read_bytes(), "which this Counsel does not"),
        (damaged(path, with_manifest(version=2)).read_bytes(), "version 2; this Counsel reads"),
        (damaged(path, with_manifest(colour="red")).read_bytes(), "truncated, damaged"),
    ]
    if url.startswith("sqlite"):
        cases.append((damaged(path, with_manifest(counts=counts)).read_bytes(), "rows that its"))
    for text, what in cases:
        short.write_bytes(text)
        with pytest.raises(CounselError, match=what):
            restore(short, elsewhere)
    restore(path, elsewhere)
    assert contents(elsewhere) == contents(url), "nothing was left behind"


def test_a_database_that_holds_something_is_replaced_only_by_force(url, elsewhere, tmp_path):
    fill(url)
    path = tmp_path / "copy.counsel"
    back_up(url, path)
    fill(elsewhere, episodes=5)
    others = contents(elsewhere)
    with pytest.raises(CounselError, match="rows; give --force"):
        restore(path, elsewhere)
    assert contents(elsewhere) == others
    restore(path, elsewhere, force=True)
    assert contents(elsewhere) == contents(url)


def test_a_database_in_use_is_never_replaced(url, elsewhere, tmp_path):
    fill(url)
    path = tmp_path / "copy.counsel"
    back_up(url, path)
    with open_desk(elsewhere), pytest.raises(CounselError, match="is in use"):
        restore(path, elsewhere, force=True)
    restore(path, elsewhere, force=True)
    assert contents(elsewhere) == contents(url)


def _damage(path, where, size=100):
    with path.open("r+b") as stream:
        stream.seek(where)
        stream.write(b"\xff" * size)


@pytest.mark.parametrize(("where", "size"), [(0, 100), (100, 4000), (0, 10**5)])
def test_a_damaged_database_is_replaced_by_force(tmp_path, where, size):
    """What a restore is for: the file is no database any more, or cannot be read."""
    url, other = (f"sqlite:///{tmp_path / name}.db" for name in ("counsel", "other"))
    fill(url)
    path, target = tmp_path / "copy.counsel", tmp_path / "other.db"
    back_up(url, path)
    fill(other)
    _damage(target, where, size)
    damaged = target.read_bytes()
    with pytest.raises(CounselError, match=r"other\.db is damaged: .*; give --force to replace it"):
        restore(path, other)
    with pytest.raises(CounselError, match=r"other\.db"):  # and not the copy that failed
        back_up(other, tmp_path / "damaged.counsel")
    assert target.read_bytes() == damaged
    restore(path, other, force=True)
    assert contents(other) == contents(url)


@pytest.mark.slow
def test_a_damaged_database_in_use_is_not_replaced(tmp_path):
    url, target = f"sqlite:///{tmp_path / 'counsel.db'}", tmp_path / "counsel.db"
    fill(url)
    path = tmp_path / "copy.counsel"
    back_up(url, path)
    program = (
        f"import sqlite3, sys; c = sqlite3.connect({str(target)!r}); "
        "c.execute('PRAGMA journal_mode = WAL'); c.execute('SELECT count(*) FROM people'); "
        "print('open', flush=True); sys.stdin.read()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as user:
        assert user.stdout.readline() == b"open\n"
        _damage(target, 0)
        with pytest.raises(CounselError, match="is in use; stop the service first"):
            restore(path, url, force=True)
        user.stdin.close()
        user.wait()
    restore(path, url, force=True)
    assert contents(url)


def test_a_database_of_a_newer_version_is_not_backed_up(url, tmp_path):
    fill(url, episodes=0)
    engine = open_engine(url)
    with write_transaction(engine) as connection:
        connection.exec_driver_sql("update alembic_version set version_num = '9999'")
    engine.dispose()
    with pytest.raises(CounselError, match="version 9999, which this Counsel does not know"):
        back_up(url, tmp_path / "copy.counsel")
    assert not (tmp_path / "copy.counsel").exists()


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_log_left_beside_a_deleted_database_does_not_damage_the_restored_one(
    url, elsewhere, tmp_path
):
    """SQLite reads whatever write-ahead log lies beside a file as part of it."""
    fill(url)
    path = tmp_path / "copy.counsel"
    back_up(url, path)
    target = Path(elsewhere.removeprefix("sqlite:///"))
    with open_desk(elsewhere):
        log = target.with_name(target.name + "-wal").read_bytes()
    target.unlink()
    target.with_name(target.name + "-wal").write_bytes(log)
    restore(path, elsewhere)
    assert contents(elsewhere) == contents(url)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_files_that_are_no_databases_of_counsel_are_refused(url, tmp_path):
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("create table t (x)")
    connection.close()
    noise = tmp_path / "noise.db"
    noise.write_bytes(b"no database" * 1000)
    for source, what in (
        (other, "is not a database of Counsel"),
        (noise, "cannot be read: file is not a database"),
        (tmp_path / "none.db", "does not exist"),
        (":memory:", "a database in memory has no file"),
    ):
        with pytest.raises(CounselError, match=what):
            back_up(str(source), tmp_path / "copy.counsel")
    fill(url)
    back_up(url, tmp_path / "copy.counsel")
    with pytest.raises(CounselError, match="is a backup of sqlite; --db is postgresql"):
        restore(tmp_path / "copy.counsel", "postgresql://nobody@127.0.0.1:1/x")
    with pytest.raises(CounselError, match="does not exist"):
        restore(tmp_path / "no.counsel", url)


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_no_password_is_on_a_command_line(url, tmp_path, monkeypatch):
    fill(url)
    secret = url.replace("postgres@", "postgres:s3cret@")
    plain, commands = subprocess.run, []

    def watched(command, **options):
        commands.append((command, options["env"]))
        return plain(command, **options)

    monkeypatch.setattr(backup.subprocess, "run", watched)
    back_up(secret, tmp_path / "one.counsel")
    back_up(url + "?password=s3cret", tmp_path / "two.counsel")
    assert {command[0] for command, _ in commands} == {"pg_dump", "pg_restore"}
    assert not [word for command, _ in commands for word in command if "s3cret" in word]
    dumps = [env for command, env in commands if command[0] == "pg_dump"]
    assert [env["PGPASSWORD"] for env in dumps] == ["s3cret"] * 2
    with pytest.raises(CounselError, match="sslpassword would be visible"):
        back_up(url + "?sslpassword=x", tmp_path / "three.counsel")


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_missing_programs_and_servers_are_named_in_a_sentence(url, tmp_path, monkeypatch):
    fill(url)
    absent = url.rpartition(":")[0] + ":1/x"
    with pytest.raises(CounselError, match="cannot be read: connection"):
        back_up(absent.replace("postgres@", "postgres:s3cret@"), tmp_path / "copy.counsel")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(CounselError, match="need pg_dump, which is not on PATH"):
        back_up(url, tmp_path / "copy.counsel")
    assert os.listdir(tmp_path) == []


def test_the_commands_back_up_and_restore(command, tmp_path):
    fill(f"sqlite:///{tmp_path / 'counsel.db'}")
    done = command("backup", "-o", "copy.counsel", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 advisers, 2 people, 2 decisions, 2 outcomes" in done.stdout
    done = command("restore", "copy.counsel", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "give --force" in done.stderr
    done = command("restore", "copy.counsel", "--force", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Restored counsel.db as of" in done.stdout
    done = command("restore", "copy.counsel", "--db", "new.db", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert command("backup", "-o", "x", "--db", "none.db", cwd=tmp_path).returncode == 2
