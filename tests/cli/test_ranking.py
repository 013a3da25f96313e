"""``counsel rank`` as a person runs it: the list, its reasons, and tables that are refused."""

import csv
import json

import numpy as np
import pytest

import counsel
from counsel._tables import column, write_tables
from counsel.logs import plan_advice

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


def test_work_without_end_is_ranked_without_a_step(command, folder):
    (folder / "people.csv").write_text("person,state\nPump,worn 7\nFan,new\nSaw,worn 8\n")
    for options in ((), ("--average",)):
        words = ("machine-repair", "people.csv", "--pieces", "1", *options, "-o", "today.csv")
        done = command("rank", *words)
        assert done.returncode == 0, done.stderr
        with (folder / "today.csv").open(encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
        assert [row["person"] for row in rows] == ["Pump", "Saw", "Fan"]
        assert "step" not in rows[0]
        assert rows[0]["reason"].startswith("In worn 7, advise")


def write_log(folder):
    """Write a log of two wards: in an alarm everybody is advised, and ward S does not listen."""
    draw, rows = np.random.default_rng(0), ["episode,step,state,advice,action,reward,ward"]
    for episode in range(600):
        state, ward = "ok", "NS"[episode % 2]
        for step in range(4):
            advice = "call" if state == "alarm" else ("", "wait", "call")[draw.integers(3)]
            listens = advice and draw.random() < (0.7 if ward == "N" else 0.05)
            action = advice if listens else ("call" if draw.random() < 0.2 else "wait")
            reward = float(state == "ok") - 0.1 * (action == "call")
            rows.append(f"{episode},{step},{state},{advice},{action},{reward:g},{ward}")
            better = 0.7 if state == "ok" else (0.8 if action == "call" else 0.1)
            state = "ok" if draw.random() < better else "alarm"
    (folder / "log.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


def test_a_fitted_model_keeps_advice_where_nobody_was_left_without_it(command, folder):
    write_log(folder)
    assert command("fit", "log.csv", "-o", "model.npz").returncode == 0
    (folder / "people.csv").write_text("person,state,step\nAma,ok,0\nBaa,alarm,0\nChi,alarm,1\n")
    done = command("rank", "model.npz", "people.csv", "--pieces", "1", "-o", "calls.csv")
    assert done.returncode == 0, done.stderr
    with (folder / "calls.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    first, second, last = rows
    assert {first["person"], second["person"]} == {"Baa", "Chi"}
    assert (first["advice"], second["advice"], last["advice"]) == ("call", "", "")
    assert first["gain"] == first["criticality"] == second["gain"] == second["criticality"] == ""
    unknown = "in alarm, advise call: its gain is unknown, because nobody was left without advice"
    assert unknown in first["reason"]
    assert second["reason"].startswith("Others come first. At step")
    assert unknown in second["reason"]
    assert "2 people are in a state where nobody was left without advice" in done.stdout
    assert "One more piece would bring" not in done.stdout  # it would go to somebody in an alarm
    (folder / "people.csv").write_text("person,state\nAma,ok\nBaa,alarm\n")
    words = ("rank", "model.npz", "people.csv", "--pieces", "1", "--discount", "0.9", "--json")
    people = json.loads(command(*words).stdout)["people"]
    assert [(p["person"], p["advice"], p["gain"] is None) for p in people] == [
        ("Baa", "call", True),
        ("Ama", None, False),
    ]


@pytest.mark.slow
def test_a_fitted_model_with_contexts_is_ranked_in_one_of_them(command, folder):
    write_log(folder)
    assert command("fit", "log.csv", "--context", "ward", "-o", "model.npz").returncode == 0
    (folder / "people.csv").write_text("person,state,step\nAma,ok,0\n")
    words = ("rank", "model.npz", "people.csv", "--pieces", "1")
    done = command(*words)
    assert done.returncode == 2
    assert "the model has the contexts N, S; say which with --in" in done.stderr
    model, critical = counsel.load_fit(folder / "model.npz"), []
    for ward in "NS":
        people = json.loads(command(*words, "--in", ward, "--json").stdout)["people"]
        plan = plan_advice(model.in_context(ward))
        critical.append(people[0]["criticality"])
        assert critical[-1] == plan.criticality.lower[0, model.tally.states.index("ok")]
    assert critical[0] > 2.0 * critical[1]
    assert "the model has no context 'X'; it has N, S" in command(*words, "--in", "X").stderr
    world = ("rank", "call-centre", "people.csv", "--pieces", "1", "--in", "N")
    assert "--in is 'N', but call-centre is no model with contexts" in command(*world).stderr


@pytest.mark.parametrize(
    ("world", "table", "options", "sentence"),
    [
        ("call-centre", "person,state,step\nA,lost,--3\n", (), "step is '--3'; give a whole"),
        ("call-centre", f"person,state,step\nA,lost,{'9' * 5000}\n", (), "give a whole number"),
        ("call-centre", f"person,state,step\nA,{'9' * 5000},3\n", (), "give a whole number"),
        ("machine-repair", "person,state\nA,new\n", ("--step", "1"), "--step is 1, but the work"),
        ("machine-repair", "person,state,step\nA,new,1\n", (), "a column 'step', but the work"),
        ("call-centre", "person,stat,step\nA,lost,3\n", (), "has an unknown column 'stat'"),
        ("call-centre", "person,state\nA,lost\n", (), "has no column 'step'; add it, or give"),
        (
            "call-centre",
            "person,state\nA,lost\n",
            ("--step", "99"),
            ": --step is 99; it runs",
        ),
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
        ("call-centre", PEOPLE, ("-o", "./people.csv"), "is the table of people, which would be"),
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
    assert (folder / "people.csv").read_text(encoding="utf-8") == table


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
