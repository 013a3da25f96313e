"""One log, many engines: what is found in it and what is counted must not depend on who counts."""

import dataclasses
import gc
import re
import shutil
import socket
import time
import warnings
from contextlib import contextmanager

import ibis
import numpy as np
import psycopg
import pyarrow as pa
import pytest

import counsel
from counsel.logs import sources
from counsel.logs.binning import Bins
from counsel.logs.check import check_log
from counsel.logs.column_mapping import OPTIONAL, Columns
from counsel.logs.count import CUT, ENDED, count_log
from counsel.logs.read import read_log
from tests.support.engine_tables import (
    ACTIONS,
    KINDS,
    STATES,
    arrow_of,
    as_csv,
    as_parquet,
    decisions,
    in_postgres,
    in_sqlite,
    text_of,
)

SHAPES = {
    "all columns": OPTIONAL,
    "no optional column": (),
    "ends": ("terminated", "truncated"),
    "only ends that were cut": ("truncated", "person"),
    "what followed": ("next_state", "seen", "advice_probability"),
    "what followed and the end": ("next_state", "terminated", "timestamp"),
}
QUICK = ("all columns", "no optional column")


@contextmanager
def opened(source, columns=None, bins=None):
    """A log; a server is told when we are through with it."""
    log = read_log(source, columns, bins)
    try:
        yield log
    finally:
        if str(source).startswith("postgresql://"):
            log.table.get_backend().disconnect()


def english(server):
    """How English is sorted: calm, Calm, zebra, and not by bytes."""
    with server.connect() as link:
        if not link.execute("select 1 from pg_collation where collname = 'en-x-icu'").fetchone():
            pytest.skip("this PostgreSQL was built without ICU")
    return "en-x-icu"


def told(source):
    """All that is found in a log and counted."""
    with opened(source) as log:
        return told_of(log)


def told_of(log):
    return {
        "checked": check_log(log),
        "held to": check_log(log, actions=ACTIONS[1:], reward_range=(-1.75, 1.0)),
        "counted": count_log(log),
        "by step": count_log(log, by_step=True),
    }


def assert_same(found, wanted):
    """Nothing differs, down to the kinds of numbers."""
    assert found.keys() == wanted.keys()
    for name in ("checked", "held to"):
        for field in dataclasses.fields(wanted[name]):
            one, other = getattr(found[name], field.name), getattr(wanted[name], field.name)
            assert one == other, (name, field.name)
            assert type(one) is type(other), (name, field.name)
    for name in ("counted", "by step"):
        for field in dataclasses.fields(wanted[name]):
            one, other = getattr(found[name], field.name), getattr(wanted[name], field.name)
            assert type(one) is type(other), (name, field.name)
            if isinstance(other, np.ndarray):
                assert one.dtype == other.dtype, (name, field.name)
                np.testing.assert_array_equal(one, other, err_msg=f"{name} {field.name}")
            else:
                assert one == other, (name, field.name)


@pytest.fixture(
    scope="module",
    params=[
        name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in SHAPES
    ],
)
def shape(request, tmp_path_factory):
    """The log with some of the optional columns, and what DuckDB finds in its Parquet."""
    arrow = arrow_of(decisions(), SHAPES[request.param])
    path = as_parquet(arrow, tmp_path_factory.mktemp("shape") / "log.parquet")
    return arrow, told(path)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["all columns"], indirect=True)
def test_the_log_has_all_that_engines_could_disagree_on(shape):
    _, found = shape
    assert not found["checked"].fatal
    whats = " ".join(finding.what for finding in found["checked"].findings)
    for words in ("reward is empty", "lack steps", "do not begin at step 0", "never advised"):
        assert words in whats
    assert "fewer than 10 decisions" in whats
    assert sum(finding.fatal for finding in found["held to"].findings) == 3
    tally = found["by step"]
    assert {ENDED, CUT, 0} <= set(tally.then.tolist())
    assert not tally.seen.all()
    assert tally.step.max() > 3
    assert (tally.priced < tally.times).any()
    assert (tally.paid != 0).any()
    assert set(tally.states) == set(STATES)
    assert set(tally.actions) == set(ACTIONS)
    assert tally.n_blocks > found["checked"].people  # who has no name is an episode
    assert tally.episodes == found["checked"].episodes == 60


@pytest.mark.slow
def test_files_and_objects_are_counted_alike(shape, tmp_path):
    arrow, wanted = shape
    assert_same(told(as_csv(arrow, tmp_path / "log.csv")), wanted)
    assert_same(told(arrow), wanted)
    assert_same(told(arrow.to_pandas()), wanted)
    assert_same(told(in_sqlite(arrow, tmp_path / "log.sqlite")), wanted)


@pytest.mark.slow
def test_polars_is_counted_alike(shape):
    polars = pytest.importorskip("polars")
    arrow, wanted = shape
    assert_same(told(polars.from_arrow(arrow)), wanted)


def test_postgres_counts_alike(server, shape):
    arrow, wanted = shape
    assert_same(told(in_postgres(server, arrow, "log")), wanted)


def test_postgres_sorts_alike_whatever_its_language(server, shape):
    arrow, wanted = shape
    assert_same(told(in_postgres(server, arrow, "sorted", collation=english(server))), wanted)


def test_text_is_read_alike(server, tmp_path):
    arrow = text_of(arrow_of(decisions()))
    wanted = told(as_csv(arrow, tmp_path / "log.csv"))
    assert_same(told(arrow), wanted)
    assert_same(told(in_postgres(server, arrow, "words")), wanted)
    assert_same(told(in_sqlite(arrow, tmp_path / "log.sqlite")), wanted)


BROKEN = (
    ("a", 0, "calm", "act", "act", 1.0, 0.5),
    ("a", 0, "Calm", "act", "wait", -0.25, 0.5),
    ("a", 0, "Ärger", None, "wait", 2.0, 0.5),
    ("b", -1, "calm", None, "wait", float("inf"), 0.5),
    ("b", 0, "ward 2.0", "act", "wait", float("-inf"), 1.5),
    ("c", 10, None, "act", "wait", 1e301, 0.0),
    ("c", 9, "calm", "  ", None, 3.0, 1.0),
    (None, 2, "calm", None, "wait", None, None),
    ("d", None, "calm", None, "  wait\t", 10.0, 0.25),
)
NAMES = ("episode", "step", "state", "advice", "action", "reward", "advice_probability")
UNREADABLE = (
    ("a", "0", "calm", "act", "act", "good"),
    ("a", "1.0", "calm", "act", "act", "1e2"),
    ("a", " 2 ", "calm", "", "act", " +0.5 "),
    ("a", "3.5", "calm", "", "act", ".5"),
    ("a", "four", "calm", "", "act", "5."),
    ("a", "5", "calm", "", "act", "-1.25E-1"),
    ("a", "6", "calm", "", "act", "--1"),
    ("a", "7", "calm", "", "act", "1 2"),
    ("a", "8", "calm", "", "act", "1,5"),
    ("a", "9", "calm", "", "act", "nan"),
    ("a", "10", "calm", "", "act", "-Infinity"),
    ("a", "11", "calm", "", "act", "e5"),
    ("a", "12", "calm", "", "act", "."),
    ("a", "", "calm", "", "act", " "),
    ("a", "nan", "calm", "", "act", "1"),
    ("a", "-inf", "calm", "", "act", "1"),
    ("a", "1e30", "calm", "", "act", "1"),
)


def checked(source):
    with opened(source) as log:
        return check_log(log)


def test_faults_are_told_alike(server, tmp_path):
    columns = zip(NAMES, zip(*BROKEN, strict=True), strict=True)
    arrow = pa.table({name: pa.array(column, KINDS[name]) for name, column in columns})
    wanted = checked(as_parquet(arrow, tmp_path / "log.parquet"))
    assert sum(finding.fatal for finding in wanted.findings) == 8
    (endless,) = [f for f in wanted.findings if f.what == "reward is not a finite number"]
    assert endless.examples == (
        "episode b, step -1, state calm, advice empty, action wait, reward inf",
        "episode b, step 0, state ward 2.0, advice act, action wait, reward -inf",
        "episode c, step 10, state empty, advice act, action wait, reward 1e+301",
    )
    assert checked(as_csv(arrow, tmp_path / "log.csv")) == wanted
    assert checked(arrow) == wanted
    assert checked(in_postgres(server, arrow, "broken", collation=english(server))) == wanted


def test_what_is_no_number_is_told_alike(server, tmp_path):
    columns = zip(NAMES[:6], zip(*UNREADABLE, strict=True), strict=True)
    arrow = pa.table({name: pa.array(column, pa.string()) for name, column in columns})
    wanted = checked(as_csv(arrow, tmp_path / "log.csv"))
    counts = {finding.what: finding.count for finding in wanted.findings}
    assert counts["step is not a whole number"] == 5
    assert counts["reward is not a number"] == 6
    assert counts["reward is not a finite number"] == 2
    assert checked(in_postgres(server, arrow, "unreadable")) == wanted
    assert checked(in_sqlite(arrow, tmp_path / "log.sqlite")) == wanted


def test_numbers_are_cut_alike(server, tmp_path):
    rows = [row | {"load": number % 13 / 4} for number, row in enumerate(decisions())]
    arrow = arrow_of(rows, ()).append_column("load", pa.array([row["load"] for row in rows]))
    columns, bins = Columns.parse("state=state+load"), Bins.parse(["load=q4"])
    tallies = []
    for source in (
        as_parquet(arrow, tmp_path / "log.parquet"),
        in_postgres(server, arrow, "cut"),
        in_postgres(server, text_of(arrow), "cut words"),
    ):
        with opened(source, columns, bins) as log:
            tallies.append(told_of(log))
    assert len(tallies[0]["counted"].states) > 30
    assert_same(tallies[1], tallies[0])
    assert_same(tallies[2], tallies[0])


def test_a_table_of_another_schema_is_named_in_the_address(server, tmp_path):
    arrow = arrow_of(decisions())
    in_postgres(server, arrow, "visits", schema="ward")
    wanted = told(as_parquet(arrow, tmp_path / "log.parquet"))
    assert_same(told(f"{server.url(database='postgres/ward')}::visits"), wanted)
    assert_same(told(f"{server.url(database='postgres/ward')}"), wanted)


def test_who_may_only_read_can_check_and_count(server, tmp_path):
    arrow = arrow_of(decisions())
    in_postgres(server, arrow, "shared")
    with server.connect() as link:
        link.execute("revoke temporary on database postgres from public")
        link.execute("revoke create on schema public from public")
        link.execute("create role reader login")
        link.execute("alter role reader set default_transaction_read_only = on")
        link.execute("grant select on shared to reader")
    with psycopg.connect(server.url(user="reader")) as link, pytest.raises(psycopg.Error):
        link.execute("create temporary table mine (x int)")
    wanted = told(as_parquet(arrow, tmp_path / "log.parquet"))
    assert_same(told(f"{server.url(user='reader')}::shared"), wanted)


def test_what_a_server_refuses_is_said_in_one_sentence_without_the_password(server):
    in_postgres(server, arrow_of(decisions()), "secret")
    with server.connect() as link:
        link.execute("create role locked login password 'right'")
        link.execute("create role stranger login")
    right, wrong = server.url(user="locked:right"), server.url(user="locked:hush%40hush")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        closed = probe.getsockname()[1]
        refused = {
            f"postgresql://me:hush@127.0.0.1:{closed}/ward::log": "refused",
            f"{wrong}::secret": "password authentication failed",
            f"{server.url(user='nobody-at-all:hush')}::secret": "does not exist",
            f"{server.url(user='stranger:hush', database='nowhere')}::secret": "does not exist",
            f"{right}::nothing": "has no table 'nothing'",
            f"{right}": "tables",
            f"{right}::secret": "no table 'secret'",
            "postgresql://me:hush/right@127.0.0.1/ward::log": "is not the address of a server",
            "postgresql://me:hush@127.0.0.1:port/ward::log": "is not the address of a server",
            f"postgresql://me@127.0.0.1:{closed}/ward?password=hush::log": "refused",
            f"postgresql://me:hush@[::1]:{closed}/ward::log": "::1",
        }
        for source, words in refused.items():
            begun = time.monotonic()
            with pytest.raises(counsel.CounselError, match=re.escape(words)) as caught:
                read_log(source)
            said = str(caught.value)
            assert time.monotonic() - begun < 5.0, source
            assert len(said.splitlines()) == 1, said
            assert "hush" not in said, said
            assert "right" not in said, said
            assert "127.0.0.1" in said or "::1" in said, said


def test_a_log_that_is_known_by_an_address_has_no_password_in_its_name(server):
    in_postgres(server, arrow_of(decisions(), ()), "named")
    with opened(f"{server.url(user='postgres:hush')}::named") as log:
        assert log.name == f"postgresql://postgres:…@127.0.0.1:{server.port}/postgres::named"
        assert check_log(log).rows == len(decisions())


@pytest.mark.slow
def test_a_server_that_says_nothing_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(sources, "CONNECT_TIMEOUT", 2)
    begun = time.monotonic()
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        with pytest.raises(counsel.CounselError, match="timeout"):
            read_log(f"postgresql://me:hush@127.0.0.1:{port}/ward::log")
    assert time.monotonic() - begun < 20.0


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    """Ibis on Spark, on one core."""
    sql = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    folder = tmp_path_factory.mktemp("spark")
    session = (
        sql.SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.warehouse.dir", str(folder))
        .getOrCreate()
    )
    yield ibis.pyspark.connect(session)
    session.stop()
    with warnings.catch_warnings(action="ignore"):
        gc.collect()


warnings_of_spark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"
)


@pytest.mark.slow
@warnings_of_spark
@pytest.mark.parametrize(
    "name", ["all columns", pytest.param("no optional column", marks=pytest.mark.long)]
)
def test_spark_counts_alike(spark, name, tmp_path):
    arrow = arrow_of(decisions(), SHAPES[name])
    path = as_parquet(arrow, tmp_path / "log.parquet")
    assert_same(told(spark.read_parquet(path)), told(path))


@pytest.mark.slow
@warnings_of_spark
def test_spark_reads_text_alike(spark, tmp_path):
    columns = zip(NAMES[:6], zip(*UNREADABLE, strict=True), strict=True)
    arrow = pa.table({name: pa.array(column, pa.string()) for name, column in columns})
    path = as_parquet(arrow, tmp_path / "log.parquet")
    assert checked(spark.read_parquet(path)) == checked(path)
