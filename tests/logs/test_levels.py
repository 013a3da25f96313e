"""The level of a memory at every decision: the engine's against one row after another."""

from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from counsel.errors import CounselError
from counsel.logs.column_mapping import Columns
from counsel.logs.count import link_decisions
from counsel.logs.levels import add_level, prepare_kind
from counsel.logs.memory_kind import MemoryKind
from counsel.logs.read import read_log
from tests.support.engine_tables import arrow_of, as_csv, decisions, in_sqlite
from tests.support.slow_levels import episodes_so_far, levels

KINDS = ("pieces=1", "pieces=3", "since=1", "since=4", "refusals=2", "dose=0.5", "dose=0.93")


def drawn_rows(seed, episodes=25, longest=12, people=4):
    """Episodes of several people, in any order, with advice that is not seen and people unknown."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in rng.permutation(episodes):
        person = None if rng.random() < 0.1 else f"nurse {rng.integers(people)}"
        begins = datetime(2024, 1, 1) + timedelta(hours=int(rng.integers(40)))
        for step in range(int(rng.integers(1, longest))):
            advice = [None, "a", "b"][int(rng.integers(3))]
            rows.append(
                {
                    "episode": f"e{number}",
                    "step": step,
                    "state": "s",
                    "advice": advice,
                    "action": "ab"[int(rng.integers(2))],
                    "reward": 0.0,
                    "person": person,
                    "seen": [True, False, None][int(rng.integers(3))],
                    "timestamp": begins + timedelta(minutes=step),
                }
            )
    return [rows[i] for i in rng.permutation(len(rows))]


def levels_by_engine(log, kind):
    """The level of each (episode, step) as an engine computes it."""
    table = add_level(log, link_decisions(log, horizon=0), kind)
    found = table.select("episode", "step", "level").to_pyarrow().to_pylist()
    return {(row["episode"], row["step"]): row["level"] for row in found}


def check(log, rows, text, across):
    """Compare the levels of an engine with slow ones."""
    kind = prepare_kind(log, MemoryKind.parse(text, across))
    size = kind.size if kind.kind == "dose" else int(kind.size)
    assert levels_by_engine(log, kind) == levels(rows, kind.kind, size, across, kind.n_levels)


@pytest.mark.parametrize("across", ["episode", "person"])
@pytest.mark.parametrize("text", KINDS)
def test_levels_are_those_of_one_row_after_another(text, across):
    rows = drawn_rows(seed=len(text) + len(across))
    check(read_log(pa.Table.from_pylist(rows)), rows, text, across)


def test_doses_of_long_sequences_do_not_overflow():
    rows = drawn_rows(seed=5, episodes=3, longest=900, people=1)
    log = read_log(pa.Table.from_pylist(rows))
    for across in ("episode", "person"):
        check(log, rows, "dose=0.3", across)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_levels_of_random_logs_of_every_kind(seed):
    rows = drawn_rows(seed, episodes=40, longest=30)
    log = read_log(pa.Table.from_pylist(rows))
    for text in KINDS:
        for across in ("episode", "person"):
            check(log, rows, text, across)


@pytest.mark.slow
@pytest.mark.parametrize(("store", "file"), [(as_csv, "log.csv"), (in_sqlite, "log.sqlite")])
def test_every_engine_computes_the_same_levels(store, file, tmp_path):
    table = arrow_of(decisions())
    reference, other = read_log(table), read_log(store(table, tmp_path / file))
    for text, across in (("pieces=3", "person"), ("since=2", "episode"), ("dose=0.6", "person")):
        kind = MemoryKind.parse(text, across)
        assert levels_by_engine(other, kind) == levels_by_engine(reference, kind), text


def test_time_in_the_study_is_the_number_of_the_persons_episode_in_bands():
    rows = drawn_rows(seed=3, episodes=60)
    log = read_log(pa.Table.from_pylist(rows))
    kind = prepare_kind(log, MemoryKind.parse("tenure"))
    assert kind.n_levels == len(kind.labels) > 3
    number_of = episodes_so_far(rows)
    expected = {key: sum(n >= cut for cut in kind.cuts) for key, n in number_of.items()}
    assert levels_by_engine(log, kind) == expected
    sizes = np.bincount(list(expected.values()))
    assert sizes.min() > 0.3 * sizes.mean()


def test_episodes_without_times_are_ordered_by_their_numbers():
    rows = drawn_rows(seed=8)
    for row in rows:
        row["episode"] = int(row["episode"][1:])
        row["timestamp"] = row["episode"]
    kind = MemoryKind.parse("pieces=4", "person")
    timed = read_log(pa.Table.from_pylist(rows))
    table = pa.Table.from_pylist(rows).drop_columns(["timestamp"])
    numbers, texts = table, table.set_column(0, "episode", table["episode"].cast(pa.string()))
    for source in (numbers, texts):
        log = read_log(source)
        assert levels_by_engine(log, prepare_kind(log, kind)) == levels_by_engine(timed, kind)


@pytest.mark.parametrize(
    ("left_out", "columns", "message"),
    [
        ("person", None, "log has no column person; map it with --columns person=…"),
        (
            "timestamp",
            None,
            "log has no timestamp, and its episodes are not numbers, so the order of a person's "
            "episodes is unknown; map a column with --columns timestamp=…",
        ),
        (
            "seen",
            "timestamp=state",
            "decisions in episodes without a timestamp, so the order of a person's episodes is "
            "unknown",
        ),
    ],
)
@pytest.mark.parametrize("text", ["tenure", "pieces=2"])
def test_levels_across_episodes_need_people_and_an_order(text, left_out, columns, message):
    table = pa.Table.from_pylist(drawn_rows(seed=1)).drop_columns([left_out])
    columns = None if columns is None else Columns.parse("timestamp=when")
    if columns is not None:
        table = table.append_column("when", pa.array(["soon"] * table.num_rows))
    log = read_log(table, columns)
    with pytest.raises(CounselError) as fault:
        prepare_kind(log, MemoryKind.parse(text, "person"))
    assert message in str(fault.value)
    assert str(fault.value).startswith(f"memory {text}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mood", "memory is 'mood'; give none, pieces=N, since=N, dose=DECAY, refusals=N, tenure"),
        ("pieces", "memory is 'pieces'; write pieces=N, e.g. pieces=3"),
        ("dose", "memory is 'dose'; write dose=DECAY, e.g. dose=0.8"),
        ("pieces=0", "the number of memory 'pieces=0' must be a whole number of at least 1, not 0"),
        ("since=1.5", "the number of memory 'since=1.5' must be a whole number, not 1.5"),
        ("refusals=inf", "the number of memory 'refusals=inf' must be a whole number, not inf"),
        ("since=100", "the number of memory 'since=100' is 100; it must be below 100"),
        ("dose=1", "the decay of memory 'dose=1' is 1.0; it must be above 0 and below 1"),
        ("dose=-0.5", "the decay of memory 'dose=-0.5' is -0.5; it must be above 0 and below 1"),
        ("dose=x", "memory is 'dose=x'; 'x' is not a number"),
        ("tenure=3", "memory is 'tenure=3'; tenure has no number"),
        (3, "memory is 3; give a text such as 'pieces=3'"),
    ],
)
def test_a_memory_that_cannot_be_is_refused_in_one_sentence(text, message):
    with pytest.raises(CounselError) as fault:
        MemoryKind.parse(text)
    assert str(fault.value).startswith(message)


def test_levels_go_across_episodes_or_people_and_nothing_else():
    with pytest.raises(CounselError, match="across is 'ward'; it must be one of episode, person"):
        MemoryKind.parse("pieces=3", "ward")
