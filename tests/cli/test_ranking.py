"""``counsel rank`` as a person runs it: the list, its reasons, and tables that are refused."""

import csv
import json

import pytest

from counsel._tables import column, write_tables

PEOPLE = """person,state,step
Ama,engaged,3
Baa,wavering,3
Chi,drifting,3
Dia,lost,3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(PEOPLE, encoding="utf-8")
    return tmp_path


def test_people_become_a_ranked_list_with_reasons(command, folder):
    done = command("rank", "call-centre", "people.csv", "--pieces", "2", "-o", "calls.csv")
    assert done.returncode == 0, done.stderr
    with (folder / "calls.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["person"] for row in rows] == ["Chi", "Dia", "Baa", "Ama"]
    assert [row["advice"] for row in rows] == ["listen", "listen", "", ""]
    assert [row["rank"] for row in rows] == ["1", "2", "3", "4"]
    assert rows[0]["reason"].startswith("At step 3 in drifting, advise listen: alone the person")
    assert float(rows[0]["criticality"]) > float(rows[1]["criticality"])
    assert "2 of 4 people are worth a piece now." in done.stdout
    assert "First: Chi." in done.stdout
    assert "Wrote calls.csv." in done.stdout


def test_levels_and_one_step_for_everybody_as_json_from_parquet(command, folder):
    table = {
        "person": column(["Ama", "Baa"], str),
        "state": column(["drifting", "drifting"], str),
        "level": column([0, 3], "int64"),
    }
    write_tables(folder / "people.parquet", [table])
    words = ("call-centre/tiring", "people.parquet", "--pieces", "1", "--step", "3", "--json")
    done = command("rank", *words)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert [person["person"] for person in record["people"]] == ["Baa", "Ama"]
    assert record["people"][0]["level"] == "3 or more silent steps since advice"
    assert record["price"] > 0.0


def test_nobody_is_told_anything_where_nothing_helps(command, folder):
    (folder / "people.csv").write_text("person,state,step\nAma,intensive care,2\n")
    done = command("rank", "ward", "people.csv", "--pieces", "1")
    assert done.returncode == 0, done.stderr
    assert "Nobody of 1 people is worth a piece now." in done.stdout


@pytest.mark.parametrize(
    ("world", "table", "options", "sentence"),
    [
        ("call-centre", "person,stat,step\nA,lost,3\n", (), "has an unknown column 'stat'"),
        ("call-centre", "person,state\nA,lost\n", (), "has no column 'step'; add it, or give"),
        ("call-centre", PEOPLE, ("--step", "3"), "has a column 'step' and --step is 3; use only"),
        ("call-centre", PEOPLE + "Chi,lost,4\n", (), "row 5: the person 'Chi' is also in row 3"),
        ("call-centre", PEOPLE + "Eve,away,4\n", (), "row 5: state is 'away'; give one of engaged"),
        ("call-centre", PEOPLE + "Eve,9,4\n", (), "row 5: state is 9; it runs from 0 to 3"),
        ("call-centre", PEOPLE + "Eve,lost,26\n", (), "row 5: step is 26; it runs from 0 to 25"),
        ("call-centre", PEOPLE + "Eve,lost,-1\n", (), "row 5: step must be a whole number of at"),
        ("call-centre", PEOPLE + "Eve,lost,x\n", (), "row 5: step is 'x'; give a whole number"),
        ("call-centre", PEOPLE + "Eve,,4\n", (), "row 5: state is empty; give a value"),
        ("call-centre", PEOPLE + "Eve,lost\n", (), "row 5: there are 2 values for 3 columns"),
        ("call-centre", "person,state,step\n", (), "has no rows; list at least one person"),
        ("call-centre", "", (), "people.csv is empty"),
        ("call-centre", "person,person,step\n", (), "has two columns called 'person'; rename one"),
        ("call-centre", "person,state,step,level\n", (), "has a column 'level', but the person"),
        ("call-centre/tiring", PEOPLE, (), "has no column 'level'; the person has a memory"),
        (
            "call-centre/tiring",
            "person,state,step,level\nA,lost,3,never\n",
            (),
            "row 1: level is 'never'; give a number from 0 to 3 or a label",
        ),
        ("call-centre", PEOPLE, ("--pieces", "0"), "--pieces must be a whole number of at least 1"),
        ("call-centre", PEOPLE, ("-o", "calls.txt"), "must be a file that ends in .csv or .parq"),
    ],
)
def test_a_bad_table_is_one_sentence_and_nothing_is_written(
    command, folder, world, table, options, sentence
):
    (folder / "people.csv").write_text(table, encoding="utf-8")
    words = ("--pieces", "2") if "--pieces" not in options else ()
    target = ("-o", "calls.csv") if "-o" not in options else ()
    done = command("rank", world, "people.csv", *words, *options, *target)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(path.name for path in folder.iterdir()) == ["people.csv"]


def test_a_table_that_is_missing_or_of_another_kind_is_refused(command, folder):
    assert "people.txt does not exist" in _error(command, "people.txt")
    (folder / "people.txt").write_text(PEOPLE)
    assert "people.txt must end in .csv or .parquet" in _error(command, "people.txt")
    (folder / "people.parquet").write_text(PEOPLE)
    assert "people.parquet cannot be read" in _error(command, "people.parquet")
    (folder / "people.csv").write_bytes(b"person,state,step\n\xff\xfe,lost,3\n")
    assert "people.csv cannot be read" in _error(command, "people.csv")


def _error(command, table):
    done = command("rank", "call-centre", table, "--pieces", "1")
    assert done.returncode == 2
    return done.stderr
