"""The service's database: durable in groups, one fault alone, nobody missed; on both engines."""

import asyncio
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from counsel import CounselError
from counsel.service.db import queries
from counsel.service.db.api_keys import PREFIX, add_key, digest_of, holder_of, revoke_key, tenant_of
from counsel.service.db.engine import migrate, open_engine
from counsel.service.db.group_commit import LARGE, Committer
from counsel.service.db.tables import (
    decisions,
    keys,
    metadata,
    outcomes,
    tenants,
)
from tests.support.committers import a_decision, an_episode, an_outcome, enqueue, writer
from tests.support.processes import started
from tests.support.waiting import PATIENCE, Release


@pytest.fixture
def engine(url):
    found = open_engine(url)
    yield found
    found.dispose()


@pytest.fixture
def committer(engine):
    found = writer(engine)
    yield found
    found.close()


def counted(engine, table):
    with engine.connect() as connection:
        return connection.scalar(sa.select(sa.func.count()).select_from(table))


def test_the_migrations_make_the_tables_that_the_code_uses(engine):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_migrating_again_changes_nothing(engine):
    with engine.begin() as connection:
        tenant_of(connection, "clinic")
    migrate(engine)
    assert counted(engine, tenants) == 1


def test_services_that_start_at_once_take_turns(url):
    with ThreadPoolExecutor(4) as pool:
        engines = list(pool.map(open_engine, [url] * 4))
    for engine in engines:
        assert counted(engine, tenants) == 0
        engine.dispose()


def test_a_new_sqlite_file_that_several_opened_at_once_was_locked(tmp_path):
    for i in range(10):
        url = f"sqlite:///{tmp_path / str(i)}.db"
        with ThreadPoolExecutor(4) as pool:
            for engine in pool.map(open_engine, [url] * 4):
                engine.dispose()


def test_what_is_done_is_there(committer, engine):
    committer.submit(an_episode).result()
    waiting = [enqueue(committer, "decision", a_decision(i)) for i in range(50)]
    waiting += [enqueue(committer, "outcome", an_outcome(i)) for i in range(50)]
    for one in waiting:
        one.result(timeout=PATIENCE)
    assert counted(engine, decisions) == 50
    assert counted(engine, outcomes) == 50


def test_many_who_wait_share_a_transaction(committer):
    committer.submit(an_episode).result()
    blocked = threading.Event()
    committer.submit(lambda _: blocked.wait(PATIENCE))
    before = committer.transactions
    waiting = [enqueue(committer, "decision", a_decision(i)) for i in range(200)]
    blocked.set()
    for one in waiting:
        one.result(timeout=PATIENCE)
    assert committer.transactions - before <= 2


def test_what_comes_after_is_done_once_it_is_durable_and_before_anybody_goes_on(engine):
    seen = []

    def after(connection):
        inside = connection.scalar(sa.select(sa.func.count()).select_from(tenants))
        return lambda: seen.append((inside, counted(engine, tenants)))

    committer = Committer(engine, after=after)
    committer.submit(lambda connection: tenant_of(connection, "clinic")).result()
    assert seen == [(1, 1)]
    with pytest.raises(ZeroDivisionError):
        committer.submit(lambda connection: (tenant_of(connection, "school"), 1 / 0)).result()
    assert seen == [(1, 1)]
    committer.close()


def test_one_of_a_batch_may_be_refused_alone(engine):
    def batch(_, items):
        return [ValueError(item) if item % 2 else item for item in items]

    committer = Committer(engine, {"number": batch})
    waiting = [enqueue(committer, "number", i) for i in range(6)]
    for i, one in enumerate(waiting):
        if i % 2:
            with pytest.raises(ValueError, match=str(i)):
                one.result(timeout=PATIENCE)
        else:
            assert one.result(timeout=PATIENCE) == i
    committer.close()


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_large_items_are_written_one_by_one_beside_all_small_ones(engine):
    # A caller who reported a thousand outcomes again and again kept everybody waiting for all.
    groups = []

    def batch(_, items):
        groups.append(items)
        return items

    committer, held, let_go = Committer(engine, {"item": batch}), threading.Event(), Release()
    committer.submit(lambda _: (held.set(), let_go.hold()))
    held.wait(PATIENCE)
    waiting = [Future() for _ in range(7)]
    for number, done in enumerate(waiting):
        committer.enqueue("item", number, done, LARGE if number < 4 else LARGE - 1)
    assert committer.waiting == 7
    let_go.close()
    committer.close(PATIENCE)
    assert [done.result(PATIENCE) for done in waiting] == list(range(7)), "closing leaves none out"
    assert groups == [[4, 5, 6, 0], [1], [2], [3]]
    assert committer.waiting == 0


def test_event_loops_are_told_once_for_all_who_wait(committer):
    async def many():
        loop, told = asyncio.get_running_loop(), []
        plain = loop.call_soon_threadsafe
        loop.call_soon_threadsafe = lambda *a: (told.append(1), plain(*a))[1]
        blocked = threading.Event()
        committer.submit(lambda _: blocked.wait(PATIENCE))
        waiting = [loop.create_future() for _ in range(50)]
        for i, done in enumerate(waiting):
            committer.enqueue("job", lambda _, i=i: i, done)
        waiting[7].cancel()
        blocked.set()
        kept = [one for one in waiting if not one.cancelled()]
        return await asyncio.gather(*kept), len(told)

    answers, times = asyncio.run(many())
    assert answers == [i for i in range(50) if i != 7]
    assert times <= 2


def test_nobody_is_told_before_it_is_durable(committer, engine):
    committer.submit(an_episode).result()
    held = threading.Event()

    def slow(connection):
        connection.execute(sa.insert(decisions), a_decision(0))
        held.wait(PATIENCE)

    waiting = committer.submit(slow)
    time.sleep(0.1)
    assert not waiting.done()
    held.set()
    waiting.result(timeout=PATIENCE)
    assert counted(engine, decisions) == 1


def test_a_job_that_fails_takes_nobody_with_it(committer, engine):
    committer.submit(an_episode).result()
    blocked = threading.Event()
    committer.submit(lambda _: blocked.wait(PATIENCE))
    good = [enqueue(committer, "decision", a_decision(i)) for i in range(5)]
    bad = enqueue(committer, "decision", a_decision(9, episode=99))
    raises = committer.submit(lambda _: 1 / 0)
    more = [enqueue(committer, "decision", a_decision(i)) for i in range(5, 8)]
    blocked.set()
    for one in [*good, *more]:
        one.result(timeout=PATIENCE)
    with pytest.raises(sa.exc.IntegrityError):
        bad.result(timeout=PATIENCE)
    with pytest.raises(ZeroDivisionError):
        raises.result(timeout=PATIENCE)
    assert counted(engine, decisions) == 8


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_no_statement_of_a_decision_looks_through_the_whole_record(engine):
    """Found by its growth: pairs in a list made SQLite read every decision for each group."""
    values = {"numbers": [1, 2], "steps": [3, 4], "after": 5, "last": 9}
    values |= {"changes_before": 2, "changes": 4}
    texts = [
        (queries._ACCOUNTS["sqlite"], ("[1, 2]",)),
        (queries._DECIDED_CELLS["sqlite"], ("[[1, 3], [2, 4]]",)),
    ]
    for statement in (
        queries._DECISIONS,
        queries._REPORTED,
        queries._OUTCOMES_SINCE,
        queries._REPLACED_SINCE,
        queries._MOVED_SINCE,
    ):
        named = {name: one for name, one in values.items() if name in str(statement)}
        options = {"literal_binds": True, "render_postcompile": True}
        texts.append((statement.params(named).compile(engine, compile_kwargs=options), ()))
    for text, given in texts:
        with engine.connect() as connection:
            steps = connection.exec_driver_sql(f"explain query plan {text}", given).all()
        scans = [row[3] for row in steps if row[3].startswith("SCAN")]
        # The cells asked for come as JSON, which SQLite reads as a virtual table.
        assert not [scan for scan in scans if "VIRTUAL TABLE" not in scan], steps


def test_a_version_of_an_outcome_is_there_once(committer, engine):
    committer.submit(an_episode).result()
    enqueue(committer, "decision", a_decision(0)).result()
    first = enqueue(committer, "outcome", an_outcome(0))
    first.result(timeout=PATIENCE)
    with pytest.raises(sa.exc.IntegrityError):
        enqueue(committer, "outcome", an_outcome(0) | {"action": 0}).result(timeout=PATIENCE)
    with engine.connect() as connection:
        assert connection.execute(sa.select(outcomes.c.action)).scalars().all() == [1]


def test_numbers_rise_in_the_order_in_which_rows_can_be_seen(url):
    """Two services write; whoever follows the log by its numbers misses no row."""
    engines = [open_engine(url) for _ in range(3)]
    writers = [writer(engine) for engine in engines[:2]]
    numbers = [
        one.submit(lambda connection, i=i: an_episode(connection, f"e{i}")).result()
        for i, one in enumerate(writers)
    ]
    waiting = []
    for step in range(150):
        for i, one in enumerate(writers):
            waiting.append(enqueue(one, "decision", a_decision(step, numbers[i])))
    seen, last = [], 0
    deadline = time.monotonic() + PATIENCE
    while len(seen) < 300 and time.monotonic() < deadline:
        with engines[2].connect() as connection:
            new = sa.select(decisions.c.seq).where(decisions.c.seq > last).order_by(decisions.c.seq)
            found = connection.execute(new).scalars().all()
        seen += found
        last = seen[-1] if seen else 0
        time.sleep(0.001)  # a loop without a pause may keep the interpreter from the writers
    assert len(seen) == 300
    assert counted(engines[2], decisions) == 300
    for one in waiting:
        one.result(timeout=PATIENCE)
    for one in writers:
        one.close()
    for engine in engines:
        engine.dispose()


def test_closing_writes_what_was_handed_in(engine):
    committer = writer(engine)
    committer.submit(an_episode).result()
    waiting = [enqueue(committer, "decision", a_decision(i)) for i in range(100)]
    committer.close()
    assert all(one.done() for one in waiting)
    assert counted(engine, decisions) == 100
    with pytest.raises(CounselError, match="stopping"):
        enqueue(committer, "decision", a_decision(100))
    committer.close()


KILLED = """
import sys
from counsel.service.db.engine import open_engine
from tests.support.committers import a_decision, an_episode, enqueue, writer
committer = writer(open_engine(sys.argv[1]))
committer.submit(an_episode).result()
for step in range(100_000):
    enqueue(committer, "decision", a_decision(step)).result()
    print(step, flush=True)
"""


@pytest.mark.slow
def test_what_was_acknowledged_survives_a_kill(url):
    command = [sys.executable, "-c", KILLED, url]
    with started(command, stdout=subprocess.PIPE, text=True) as process:
        told = [process.stdout.readline() for _ in range(200)]
        process.send_signal(signal.SIGKILL)
        told += process.stdout.read().split("\n")
    acknowledged = max(int(line) for line in told if line.strip())
    engine = open_engine(url)
    with engine.connect() as connection:
        steps = connection.execute(sa.select(decisions.c.step).order_by("step")).scalars().all()
    assert steps[: acknowledged + 1] == list(range(acknowledged + 1))
    engine.dispose()


def test_keys_open_their_tenant_and_are_stored_as_digests(engine):
    with engine.begin() as connection:
        mine = add_key(connection, tenant="clinic", role="advise", name="ward 3")
        other = add_key(connection, tenant="school", role="admin", name="tutor")
    with engine.connect() as connection:
        holder, stranger = holder_of(connection, mine), holder_of(connection, other)
        stored = connection.execute(sa.select(keys)).mappings().all()
        assert holder_of(connection, mine + "x") is None
        assert holder_of(connection, digest_of(mine)) is None
    assert holder.tenant != stranger.tenant
    assert [holder.may(role) for role in ("read", "advise", "admin")] == [True, True, False]
    assert stranger.may("admin")
    assert mine.startswith(PREFIX)
    assert mine not in str(stored)
    assert len({row["digest"] for row in stored}) == 2


def test_a_revoked_key_opens_nothing(engine):
    with engine.begin() as connection:
        key = add_key(connection, tenant="clinic", role="read", name="old")
        kept = add_key(connection, tenant="clinic", role="read", name="new")
        assert revoke_key(connection, tenant="clinic", name="old") == [1]
        assert revoke_key(connection, tenant="school", name="new") == []
        assert holder_of(connection, key) is None
        assert holder_of(connection, kept) is not None


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"role": "root"}, "role is 'root'"),
        ({"tenant": " "}, "tenant is ' '"),
        ({"name": "x" * 201}, "1 to 200 characters"),
    ],
)
def test_keys_that_make_no_sense_are_refused(engine, wrong, what):
    with engine.begin() as connection, pytest.raises(CounselError, match=what):
        add_key(connection, **({"tenant": "clinic", "role": "read", "name": "k"} | wrong))


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("mysql://root@localhost/x", "must be sqlite or postgresql"),
        ("sqlite:////nowhere/at/all/counsel.db", "cannot be opened"),
        ("postgresql://me:secret@127.0.0.1:1/x", "cannot be opened"),
        ("postgresql://me:secret@host:port/x", "address is not valid"),
    ],
)
def test_databases_that_cannot_be_opened_are_named_without_secrets(url, what):
    with pytest.raises(CounselError, match=what) as fault:
        open_engine(url)
    assert "secret" not in str(fault.value)
    assert "\n" not in str(fault.value)
