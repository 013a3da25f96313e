"""counsel fit --memory, and what follows it: plan, evaluate and demo-log --tiring."""

import json
import sys

import pyarrow.csv as csv
import pytest
from typer.testing import CliRunner

from counsel.cli.app import app, main
from counsel.logs.memory_tests import DEFAULTS
from tests.support.few_draws import draw_less
from tests.support.memory_logs import tiring_ward, ward_rows

run = CliRunner().invoke


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tiring")
    csv.write_csv(ward_rows(tiring_ward(0.6), 700, seed=2), path / "log.csv")
    return path


@pytest.fixture(autouse=True)
def _fewer_draws(monkeypatch):
    draw_less(monkeypatch)


def refusal(arguments, monkeypatch, capsys):
    """What the command line says as it refuses to do something."""
    monkeypatch.setattr(sys, "argv", ["counsel", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("counsel: ")
    assert said.count("\n") == 1
    return said


@pytest.mark.slow
def test_fit_plan_and_evaluate_follow_the_memory(folder):
    log, model, plan = (str(folder / name) for name in ("log.csv", "model.npz", "plan.csv"))
    fitted = run(app, ["fit", log, "--memory", "auto", "-o", model])
    assert fitted.exit_code == 0
    assert "People tire: lift falls with pieces of advice so far" in fitted.stdout
    assert "Kinds of memory compared" in fitted.stdout
    planned = run(app, ["plan", model, "--penalty", "0.05", "-o", plan])
    assert planned.exit_code == 0
    assert "Planned for the memory, advice brings" in planned.stdout
    assert (folder / "plan.csv").read_text().startswith('"level","level_label","step"')
    judged = run(app, ["evaluate", log, plan, "--model", model, "--model-only", "--json"])
    assert judged.exit_code == 0
    assert json.loads(judged.stdout)["policy"]["pieces"] > 0.0
    other = run(app, ["evaluate", log, plan])
    assert "was planned on the model" in str(other.exception)
    csv.write_csv(csv.read_csv(plan).drop_columns(["model"]), plan)
    blind = run(app, ["evaluate", log, plan])
    assert "has a column 'level', and the model has no memory" in str(blind.exception)


@pytest.mark.slow
def test_json_has_what_was_compared_and_the_fading(folder):
    done = run(app, ["fit", str(folder / "log.csv"), "--memory", "auto", "--json"])
    record = json.loads(done.stdout)
    assert record["memories"]["choice"] == record["memory"]["kind"] == "pieces=5"
    compared = {test["kind"] for test in record["memories"]["compared"]}
    assert compared | set(record["memories"]["skipped"]) == set(DEFAULTS)
    assert len(record["memory"]["fading"]) == len(record["memory"]["levels"]) == 6
    assert record["memory"]["fading"][0] == [1.0, 1.0, 1.0]


def test_json_of_a_fit_without_a_memory_has_no_word_of_one(folder):
    done = run(app, ["fit", str(folder / "log.csv"), "--json"])
    assert "memory" not in json.loads(done.stdout)


@pytest.mark.parametrize(
    "options",
    [
        ["--memory", "mood"],
        ["--memory", "pieces=1.5"],
        ["--memory", "dose=1"],
        ["--memory", "pieces=3", "--across", "ward"],
        ["--memory", "pieces=3", "--scale", "adherence"],
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(folder, options, monkeypatch, capsys):
    model = folder / "bad.npz"
    arguments = ["fit", str(folder / "log.csv"), "-o", str(model), *options]
    assert refusal(arguments, monkeypatch, capsys)
    assert not model.exists()


def test_a_memory_across_people_needs_people(folder, monkeypatch, capsys):
    table = csv.read_csv(folder / "log.csv").drop_columns(["person"])
    csv.write_csv(table, folder / "nobody.csv")
    command = ["fit", str(folder / "nobody.csv"), "--memory", "pieces=2", "--across", "person"]
    said = refusal([*command, "-o", str(folder / "bad.npz")], monkeypatch, capsys)
    assert "has no column person; map it with --columns person=…" in said
    assert not (folder / "bad.npz").exists()


def test_demo_log_writes_shifts_of_nurses_who_tire(tmp_path):
    log = tmp_path / "log.csv"
    done = run(app, ["demo-log", "--tiring", "--shifts", "50", "-o", str(log)])
    assert done.exit_code == 0
    assert f"Next: counsel fit {log} --memory auto -o model.npz" in done.stdout
    plain = tmp_path / "plain.csv"
    run(app, ["demo-log", "--shifts", "50", "-o", str(plain)])
    assert log.read_text() != plain.read_text()
