"""Old rows are removed from the files of the database, or it is said who keeps them there."""

import threading
from contextlib import contextmanager
from types import SimpleNamespace

import psycopg
import pytest
import sqlalchemy as sa
from psycopg.pq import ExecStatus, PGconn

from counsel.service.db import old_rows
from counsel.service.db.engine import open_engine
from counsel.service.db.old_rows import Remains, scrub
from counsel.service.db.tables import people, tenants
from tests.support.waiting import until

DONE = Remains([], [])
OLDER = "began before the deletion and keeps old rows on disk until it ends"


@pytest.fixture
def url(new_url):
    return new_url()


@pytest.fixture
def engine(url):
    found = open_engine(url)
    with found.begin() as connection:
        connection.execute(sa.insert(tenants), {"id": 1, "name": "clinic"})
        connection.execute(sa.insert(people), {"tenant": 1, "name": "ann", "created": 0.0})
    yield found
    found.dispose()


def is_held(engine, monkeypatch, sentence):
    """Whether a scrub that does not wait soon says this alone; PostgreSQL's own work ends soon."""
    with monkeypatch.context() as patch:
        patch.setattr(old_rows, "PATIENCE", 0.0)
        until(lambda: scrub(engine) == ([], [sentence]))
    return True


def delete(engine):
    with engine.begin() as connection:
        connection.execute(sa.delete(people))


@contextmanager
def ends_when_waited_for(monkeypatch, end):
    """A scrub waits as long as it takes, and its first pause ends what it waits for."""
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        end()

    with monkeypatch.context() as patch:
        clock = SimpleNamespace(monotonic=lambda: 0.0, sleep=pause)
        patch.setattr(old_rows, "time", clock)
        yield
    assert pauses


@pytest.mark.parametrize("new_url", ["sqlite"], indirect=True)
def test_a_reader_of_sqlite_is_waited_for(engine, monkeypatch):
    with engine.connect() as reader:
        reader.exec_driver_sql("BEGIN")
        reader.execute(sa.select(people)).all()
        delete(engine)
        held = "a reader of the database keeps old rows in SQLite's write-ahead log until it ends"
        assert is_held(engine, monkeypatch, held)
        with ends_when_waited_for(monkeypatch, lambda: reader.exec_driver_sql("ROLLBACK")):
            assert scrub(engine) == DONE


@pytest.mark.parametrize("new_url", ["sqlite"], indirect=True)
def test_a_connection_that_has_scrubbed_waits_for_locks_as_before(engine):
    with engine.connect() as connection:
        before = connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one()
    assert scrub(engine) == DONE
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one() == before > 0


postgresql = pytest.mark.parametrize("new_url", ["postgresql"], indirect=True)


@postgresql
def test_a_session_with_an_older_snapshot_is_waited_for(engine, url, monkeypatch):
    """VACUUM kept the old rows for it without a word."""
    with psycopg.connect(url, application_name="dump") as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT FROM advisers")
        delete(engine)
        assert is_held(engine, monkeypatch, f"session {reader.info.backend_pid} (dump) {OLDER}")
        with ends_when_waited_for(monkeypatch, reader.rollback):
            assert scrub(engine) == DONE


@postgresql
def test_a_snapshot_from_after_the_deletion_keeps_nothing(engine, url):
    delete(engine)
    with psycopg.connect(url) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT FROM advisers")
        assert scrub(engine) == DONE


@postgresql
def test_a_transaction_that_writes_to_another_database_is_waited_for(engine, server, monkeypatch):
    """Every new snapshot of this database is as old as that transaction."""
    with psycopg.connect(server.url()) as writer:
        writer.execute("SELECT pg_current_xact_id()")
        delete(engine)
        assert is_held(engine, monkeypatch, f"session {writer.info.backend_pid} {OLDER}")
        with ends_when_waited_for(monkeypatch, writer.rollback):
            assert scrub(engine) == DONE


@contextmanager
def standby(server, position, xmin):
    """Somebody who reads from a replication slot and says that it needs rows since ``xmin``."""
    connection = PGconn.connect(f"{server.url()}?replication=true".encode())
    try:
        for command in (
            b"CREATE_REPLICATION_SLOT standby PHYSICAL RESERVE_WAL",
            f"START_REPLICATION SLOT standby PHYSICAL {position}".encode(),
        ):
            answer = connection.exec_(command)
        assert answer.status == ExecStatus.COPY_BOTH, connection.error_message
        since = xmin.to_bytes(8, "big")[4:] + xmin.to_bytes(8, "big")[:4]
        connection.put_copy_data(b"h" + bytes(8) + since + bytes(8))
        connection.flush()
        yield
    finally:
        connection.finish()


@postgresql
def test_a_replication_slot_that_needs_older_rows_is_named(engine, server, monkeypatch):
    with server.connect() as connection:
        query = "SELECT pg_current_wal_flush_lsn()::text, pg_current_xact_id()::text"
        position, now = connection.execute(query).fetchone()
        slot = "SELECT xmin, active FROM pg_replication_slots WHERE slot_name = 'standby'"
        try:
            with standby(server, position, int(now)):
                until(lambda: connection.execute(slot).fetchone()[0] is not None)
            until(lambda: not connection.execute(slot).fetchone()[1])
            delete(engine)
            assert is_held(engine, monkeypatch, f"replication slot standby {OLDER}")
        finally:
            connection.execute("SELECT pg_drop_replication_slot('standby')")
    assert scrub(engine) == DONE


@postgresql
def test_a_vacuum_of_another_table_keeps_nothing(engine, url):
    with psycopg.connect(url, autocommit=True) as other, psycopg.connect(url) as watcher:
        other.execute("CREATE TABLE long AS SELECT FROM generate_series(1, 100000)")
        other.execute("SET vacuum_cost_delay = 100")
        other.execute("SET vacuum_cost_limit = 1")

        def vacuum():
            with pytest.raises(psycopg.errors.QueryCanceled):
                other.execute("VACUUM long")

        thread = threading.Thread(target=vacuum)
        thread.start()
        try:
            query = "SELECT count(*) FROM pg_stat_activity NATURAL JOIN pg_stat_progress_vacuum"
            query += " WHERE backend_xmin IS NOT NULL"
            until(lambda: watcher.execute(query).fetchone()[0] and not watcher.rollback())
            delete(engine)
            assert scrub(engine) == DONE
        finally:
            other.cancel_safe()
            thread.join()


@postgresql
def test_a_table_that_others_read_is_asked_for_again(engine, url, monkeypatch):
    delete(engine)
    with psycopg.connect(url) as reader:
        reader.execute("LOCK TABLE remarks IN ACCESS SHARE MODE")
        held = "a session that uses the table remarks keeps its old rows on disk until it ends"
        assert is_held(engine, monkeypatch, held)
        with ends_when_waited_for(monkeypatch, reader.rollback):
            assert scrub(engine) == DONE


@postgresql
def test_segments_of_the_log_that_are_kept_for_reuse_are_named(engine, url, server):
    database = url.rpartition("/")[2]
    with server.connect() as connection:
        connection.execute(f"ALTER DATABASE {database} SET wal_recycle = on")
    engine.dispose()
    (forbidden,) = scrub(engine).forbidden
    assert "wal_recycle is on; set it to off" in forbidden


@postgresql
def test_what_the_role_of_the_service_may_not_do_is_named(url, server):
    database = url.rpartition("/")[2]
    with server.connect() as connection:
        connection.execute("CREATE ROLE plain LOGIN")
        try:
            with psycopg.connect(server.url(database=database), autocommit=True) as owner:
                owner.execute("GRANT CREATE ON SCHEMA public TO plain")
            engine = open_engine(server.url(user="plain", database=database))
            forbidden, held = scrub(engine)
            engine.dispose()
        finally:
            connection.execute(f"DROP DATABASE {database} WITH (FORCE)")
            connection.execute("DROP ROLE plain")
    assert held == []
    switch, checkpoint, warning = forbidden
    assert "allow pg_switch_wal to the service" in switch
    assert "give the service the role pg_checkpoint" in checkpoint
    assert '"pg_statistic"' in warning
    assert "let the service own its database" in warning


@postgresql
def test_a_server_that_fails_to_vacuum_is_named(engine, monkeypatch, caplog):
    monkeypatch.setattr(old_rows, "WORDS", ("people", "nonsense"))
    (held,) = scrub(engine).held
    assert held.startswith("the database failed to remove old rows")
    assert 'relation "nonsense" does not exist' in caplog.records[-1].getMessage()
