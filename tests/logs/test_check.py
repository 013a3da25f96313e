"""`counsel check`: logs of every kind, and every fault named, counted and shown."""

import dataclasses
import gzip
import json
import sqlite3
from contextlib import closing

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import counsel
from counsel.logs import check
from counsel.logs.check import check_log
from counsel.logs.column_mapping import Columns
from counsel.logs.count import count_log
from counsel.logs.read import read_log
from counsel.worlds import make
from tests.support.faulty_logs import FAULTS, FINE, HEADER, malformed, written
from tests.support.later import Later
from tests.support.paths import REAL_LOG
from tests.support.real_data import real_data

pd = Later("pandas")


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """A log of the night shift in every form."""
    folder = tmp_path_factory.mktemp("logs")
    problem = make("night-shift")
    policy = counsel.Policy.from_probabilities(np.full((12, 4, 4), 0.25))
    batch = counsel.Simulator(problem).play(policy, episodes=400, rng=np.random.default_rng(0))
    path = folder / "log.csv"
    counsel.save_log([batch], path, problem=problem, person="nurse")
    return path


def forms(path):
    """The same log as everything that can be read."""
    table = pd.read_csv(path, keep_default_na=False)
    folder = path.parent
    arrow = pa.Table.from_pandas(table)
    pq.write_table(arrow, folder / "log.parquet")
    (folder / "parts").mkdir(exist_ok=True)
    half = len(table) // 2
    pq.write_table(arrow.slice(0, half), folder / "parts" / "1.parquet")
    pq.write_table(arrow.slice(half), folder / "parts" / "2.parquet")
    table.to_json(folder / "log.jsonl", orient="records", lines=True)
    with gzip.open(folder / "log.csv.gz", "wt", encoding="utf-8") as stream:
        stream.write(path.read_text())
    table.to_csv(folder / "log.tsv", sep="\t", index=False)
    with closing(sqlite3.connect(folder / "log.sqlite")) as database, database:
        table.to_sql("decisions", database, index=False, if_exists="replace")
    stored = folder / "log.duckdb"
    stored.unlink(missing_ok=True)
    with duckdb.connect(str(stored)) as database:
        database.register("arrow", arrow)
        database.execute("create table decisions as select * from arrow")
    return {
        "csv": str(path),
        "gzip": str(folder / "log.csv.gz"),
        "tsv": str(folder / "log.tsv"),
        "parquet": folder / "log.parquet",
        "glob": str(folder / "parts" / "*.parquet"),
        "lines": str(folder / "log.jsonl"),
        "duckdb": str(stored),
        "duckdb table": f"{stored}::decisions",
        "sqlite": f"{folder / 'log.sqlite'}::decisions",
        "pandas": table,
        "arrow": arrow,
        "ibis": ibis.memtable(table),
    }


@pytest.mark.slow
def test_a_log_is_the_same_wherever_it_is(simulated):
    told = {name: check_log(read_log(source)) for name, source in forms(simulated).items()}
    first = told["csv"]
    assert first.episodes == 400
    assert first.actions == ("check", "treat", "wait")
    assert not first.fatal
    for name, found in told.items():
        assert found == first, name


def test_what_is_counted_is_what_is_there(simulated):
    rows = pd.read_csv(simulated, keep_default_na=False)
    found = check_log(read_log(str(simulated)))
    assert found.rows == len(rows)
    assert found.states == rows.state.nunique()
    assert found.people == 1
    assert found.advised == (rows.advice != "").sum()
    assert found.matched == ((rows.advice != "") & (rows.advice == rows.action)).sum()
    assert found.longest == rows.groupby("episode").size().max()


def steps_log(*steps):
    """Decisions with these episodes and steps, in this order."""
    rows = [
        {"episode": e, "step": h, "state": "calm", "advice": None, "action": "wait", "reward": h}
        for e, h in steps
    ]
    return pd.DataFrame(rows).astype({"episode": "Int64", "step": "Int64", "reward": "Float64"})


IN_ORDER = [(1, 0), (1, 1), (1, 2), (2, 0), (2, 3), (7, 4), (7, 5)]
ORDERS = {
    "in order": (IN_ORDER, True),
    "the last episode first": (IN_ORDER[3:] + IN_ORDER[:3], True),
    "steps fall": (IN_ORDER[::-1], False),
    "an episode is interrupted": (IN_ORDER[:2] + IN_ORDER[3:] + IN_ORDER[2:3], False),
    "a step twice, one after the other": ([*IN_ORDER[:2], (1, 1), *IN_ORDER[2:]], False),
    "a step twice, far apart": ([*IN_ORDER, (1, 1)], False),
    "a row without an episode": ([*IN_ORDER, (None, 6)], False),
    "a row without a step": ([*IN_ORDER, (7, None)], False),
}


QUICK_ORDERS = {"in order", "steps fall", "a step twice, far apart"}


@pytest.mark.parametrize("name", [
    name if name in QUICK_ORDERS else pytest.param(name, marks=pytest.mark.slow) for name in ORDERS
])  # fmt: skip
def test_the_order_of_rows_changes_no_finding(name, monkeypatch):
    steps, in_order = ORDERS[name]
    log = read_log(steps_log(*steps))
    rows = log.table.select("step", key=log.table[log.episode_key])
    found = check_log(log)
    assert check._is_in_order(rows, found.episodes) is in_order
    assert found == check_log(read_log(steps_log(*sorted(steps, key=str))))
    monkeypatch.setattr(check, "_is_in_order", lambda rows, episodes: False)
    assert found == check_log(log)
    repeated = [f.count for f in found.findings if "same step of the same episode" in f.what]
    assert repeated == ([1] if "twice" in name else [])


def test_episodes_may_be_numbers_or_texts(simulated):
    rows = pd.read_csv(simulated)
    numbered, named = read_log(rows), read_log(rows.astype({"episode": str}))
    assert (numbered.episode_key, named.episode_key) == ("episode_number", "episode")
    assert check_log(numbered) == check_log(named)
    first, second = count_log(numbered), count_log(named)
    for field in dataclasses.fields(first):
        np.testing.assert_array_equal(getattr(first, field.name), getattr(second, field.name))


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_named_counted_and_shown(name, tmp_path):
    rows, what, fatal = FAULTS[name]
    found = check_log(read_log(written(tmp_path / "log.csv", *FINE, *rows)))
    (finding,) = [f for f in found.findings if what in f.what]
    assert finding.count == 1
    assert finding.fatal == fatal
    assert finding.examples
    assert found.fatal == fatal


def test_what_was_declared_is_held_to(tmp_path):
    path = written(tmp_path / "log.csv", *FINE, "c,0,calm,shout,jump,9")
    found = check_log(read_log(path), actions=("wait", "act"), reward_range=(0.0, 1.0))
    told = {f.what: f.count for f in found.findings if f.fatal}
    assert told == {
        "action is none of wait, act": 1,
        "advice is none of wait, act": 1,
        "reward is not between 0 and 1": 1,
    }


def test_what_cannot_be_told_is_said(tmp_path):
    silent = check_log(read_log(written(tmp_path / "a.csv", "a,0,calm,,wait,1")))
    assert any("no advice was ever given" in f.what for f in silent.findings)
    loud = check_log(read_log(written(tmp_path / "b.csv", "a,0,calm,act,act,1")))
    told = " ".join(f.what for f in loud.findings)
    assert "silence is never recorded" in told
    assert "never refused" in told
    some = check_log(read_log(written(tmp_path / "c.csv", *FINE, "c,0,calm,,rest,1")))
    (never,) = [f for f in some.findings if "never advised" in f.what]
    assert never.examples == ("rest",)


def test_columns_may_be_called_anything_and_a_state_may_be_several(tmp_path):
    path = written(
        tmp_path / "log.csv",
        "p1,x,1,ward 3,bed 2,,wait,1",
        "p1,x,2,ward 3,bed 4,act,act,0",
        header="who,visit,t,ward,bed,said,did,gain",
    )
    columns = Columns.parse(
        "person=who,episode=visit,step=t,state=ward+bed,advice=said,action=did,reward=gain"
    )
    found = check_log(read_log(path, columns))
    assert (found.rows, found.states, found.people) == (2, 2, 1)
    log = read_log(path, columns)
    states = log.table.state.to_pyarrow().to_pylist()
    assert states == ["ward 3 · bed 2", "ward 3 · bed 4"]
    for text, words in (
        ("state", "write role=column"),
        ("mood=x", "write role=column"),
        ("action=", "write role=column"),
        ("action=a,action=b", "names action twice"),
    ):
        with pytest.raises(counsel.CounselError, match=words):
            Columns.parse(text)


def test_advice_that_was_not_seen_is_not_counted_as_heard(tmp_path):
    path = written(
        tmp_path / "log.csv",
        "a,0,calm,act,wait,1,false",
        "a,1,calm,act,act,1,TRUE",
        "a,2,calm,act,wait,1,",
        header=f"{HEADER},seen",
    )
    found = check_log(read_log(path))
    assert (found.advised, found.matched) == (2, 1)


@pytest.mark.slow
def test_what_is_no_log_is_refused_in_one_line(command, tmp_path):
    for source, words in malformed(tmp_path).items():
        done = command("check", source)
        assert done.returncode == 2, source
        assert done.stdout == "", source
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert words in done.stderr, (source, done.stderr)


def test_the_command_says_what_it_found(command, tmp_path):
    written(tmp_path / "log.csv", *FINE, "a,1,calm,,wait,1")
    done = command("check", "log.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert "5 decisions in 2 episodes" in done.stdout
    assert "until 1 kind of fault is corrected" in done.stdout
    assert "episode a, step 1: 2 rows" in done.stdout
    asked = ("--json", "--actions", "wait,act", "--rewards", "0,1")
    done = command("check", "log.csv", *asked, cwd=tmp_path)
    assert done.returncode == 2
    told = json.loads(done.stdout)
    assert told["rows"] == 5
    assert told["fatal"]
    written(tmp_path / "fine.csv", *FINE)
    done = command("check", "fine.csv", "--rewards", "one", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "counsel: rewards is 'one'; give two numbers: LOW,HIGH\n"


def test_a_log_of_real_people():
    found = check_log(read_log(str(real_data(REAL_LOG))))
    assert (found.rows, found.people, found.fatal) == (4042, 118, False)
    assert found.advised == 2021
    # By hand: 1,611 of 2,021 answers after advice were the advice.
    assert found.matched == 1611
