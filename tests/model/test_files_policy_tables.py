"""Tables: CSV as pyarrow writes it, to the byte, and Parquet only where pyarrow is installed."""

import io
import os
import subprocess
import sys

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

import counsel
from counsel._tables import Column, arrow_table, column, write_stream, write_tables
from counsel.experiments.store import Store
from counsel.worlds import make
from counsel.worlds.ward import ward_log, ward_table

ADVICE = "Parquet needs pyarrow; install it with: pip install 'counsel[parquet]'"


def as_csv(*tables):
    sink = io.BytesIO()
    write_stream(sink, ".csv", tables[0], tables[1:])
    return sink.getvalue()


def as_arrow_csv(table):
    sink = io.BytesIO()
    pyarrow.csv.write_csv(arrow_table(table), sink)
    return sink.getvalue()


def numbers():
    rng = np.random.default_rng(0)
    size = 10.0 ** rng.integers(-320, 308, 3000)
    return np.concatenate(
        [
            rng.normal(size=3000) * size,
            np.round(rng.normal(size=3000) * 10.0 ** rng.integers(-8, 12, 3000), 3),
            rng.integers(-(10**12), 10**12, 500).astype(float),
            10.0 ** np.arange(-30, 30),
            [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1.7976931348623157e308, 9999999999.0],
        ]
    )


def test_numbers_are_written_as_pyarrow_writes_them_and_read_back_exactly():
    x = numbers()
    missing = np.random.default_rng(1).random(x.size) < 0.2
    table = {"x": Column(x), "gaps": Column(x, missing=missing)}
    written = as_csv(table)
    assert written == as_arrow_csv(table)
    back = [float(line.split(b",")[0]) for line in written.splitlines()[1:]]
    np.testing.assert_array_equal(back, x)


def test_texts_booleans_and_whole_numbers_are_written_as_pyarrow_writes_them():
    texts = ["plain", 'a "word"', "a, b", "two\nlines", None, "", " ", "Zürich", "plain"]
    table = {
        'a "name"': column(texts, str),
        "flag": column([True, False, None, True, True, False, None, True, False], "bool"),
        "count": column([1, -2, None, 4, 2**31 - 1, 6, 7, 8, 9], "int32"),
        "nothing": column([None] * 9, str),
    }
    assert as_csv(table) == as_arrow_csv(table)
    assert as_csv(table, table).count(b'"a ""name"""') == 1  # one header above both


def test_a_table_without_rows_is_a_header_and_a_row_of_one_empty_text_is_a_line():
    assert as_csv({"a": Column(np.zeros(0)), "b": column([], str)}) == b'"a","b"\n'
    assert as_csv({"a": column([None], str)}) == b'"a"\n\n'


def test_parquet_keeps_types_and_what_is_missing(tmp_path):
    table = {
        "step": Column(np.arange(3, dtype=np.int32)),
        "state": Column(np.array([1, 0, 1]), ("a", "b")),
        "advice": Column(np.array([2, 0, 1]), ("x", "y"), np.array([True, False, False])),
    }
    write_tables(tmp_path / "t.parquet", [table, table])
    back = pyarrow.parquet.read_table(tmp_path / "t.parquet")
    assert [str(kind) for kind in back.schema.types] == ["int32", "string", "string"]
    assert back["advice"].to_pylist() == [None, "x", "y"] * 2


def test_a_log_is_the_same_as_a_table_and_as_an_arrow_table():
    table = ward_table(shifts=30, rng=np.random.default_rng(0))
    log = ward_log(shifts=30, rng=np.random.default_rng(0))
    assert arrow_table(table).equals(log)
    assert as_csv(table) == as_arrow_csv(table)


@pytest.fixture
def bare(monkeypatch):
    """No pyarrow."""
    for name in [name for name in sys.modules if name.split(".")[0] == "pyarrow"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)


@pytest.mark.usefixtures("bare")
def test_without_pyarrow_parquet_is_refused_in_one_line_and_leaves_nothing(command, tmp_path):
    for words in (
        ["solve", "night-shift", "-o", "policy.parquet"],
        ["play-out", "night-shift", "--episodes", "5", "-o", "log.parquet"],
        ["demo-log", "--shifts", "5", "-o", "ward.parquet"],
        ["reproduce", "worlds", "--scale", "0.0005", "--seeds", "1", "-o", "runs"],
    ):
        ended = command(*words, cwd=tmp_path)
        assert (ended.returncode, ended.stderr) == (2, f"counsel: {ADVICE}\n"), words
    assert os.listdir(tmp_path) == []
    with pytest.raises(counsel.CounselError, match=r"counsel\[parquet\]"):
        ward_log(shifts=5, rng=np.random.default_rng(0))
    with pytest.raises(counsel.CounselError, match=r"counsel\[parquet\]"):
        Store(tmp_path)


@pytest.mark.usefixtures("bare")
def test_without_pyarrow_csv_is_written_as_ever(command, tmp_path):
    for words in (
        ["solve", "night-shift", "-o", "policy.csv"],
        ["play-out", "night-shift", "--episodes", "5", "-o", "log.csv"],
        ["demo-log", "--shifts", "5", "-o", "ward.csv"],
        ["learn", "night-shift", "--episodes", "40", "-o", "run"],
        ["learn", "--resume", "--episodes", "80", "-o", "run"],
    ):
        ended = command(*words, cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "policy.csv").read_text().startswith('"step","state","state_label"')
    assert (tmp_path / "run" / "record.csv").read_text().splitlines()[-1].startswith("80,")


@pytest.mark.slow
def test_the_core_loads_and_works_where_pyarrow_never_was(tmp_path):
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import importlib, pkgutil, counsel\n"
        "for part in ('model', 'planning', 'simulate', 'estimate', 'learning', 'worlds', 'report',"
        " 'baselines', 'drawing', 'runs', 'experiments', 'cli', 'logs'):\n"
        "    home = importlib.import_module(f'counsel.{part}')\n"
        "    for found in pkgutil.iter_modules(home.__path__):\n"
        "        importlib.import_module(f'counsel.{part}.{found.name}')\n"
        "from counsel.worlds import make\n"
        "problem = make('night-shift')\n"
        "counsel.save_policy(counsel.solve(problem).policy, sys.argv[1], problem=problem)\n"
    )
    path = tmp_path / "policy.csv"
    subprocess.run([sys.executable, "-c", code, path], check=True)
    counsel.save_policy(
        counsel.solve(make("night-shift")).policy,
        tmp_path / "here.csv",
        problem=make("night-shift"),
    )
    assert path.read_bytes() == (tmp_path / "here.csv").read_bytes()
