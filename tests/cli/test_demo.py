"""`counsel demo`: what it writes, what it prints, and how it refuses."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from counsel.experiments import demo as demos

COUNSEL = [sys.executable, "-c", "from counsel.cli import main; main()"]
SMALL = ("--episodes", "200")


@pytest.fixture
def alone(monkeypatch):
    """Plan in this process: starting another takes a second."""
    monkeypatch.setattr(demos, "cores", lambda: 1)


@pytest.fixture(scope="module")
def shown(command, tmp_path_factory):
    """A folder with what the command wrote, and how it ended; tests only read it."""
    folder = tmp_path_factory.mktemp("shown")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demos, "cores", lambda: 1)
        return folder, command("demo", *SMALL, cwd=folder)


@pytest.mark.slow
def test_it_writes_a_page_and_both_runs_and_says_how_to_open_it(shown):
    folder, ended = shown
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    page = folder / "demo" / "index.html"
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert {path.name for path in (folder / "demo").iterdir()} == {"index.html", "greedy", "safe"}
    for player in ("greedy", "safe"):
        manifest = json.loads((folder / "demo" / player / "manifest.json").read_text())
        assert manifest["settings"]["penalty"] == 0.3
        assert manifest["result"]["finished"] is True
    *_, wrote, after = ended.stdout.splitlines()
    assert wrote == "Wrote demo/index.html, and the runs behind it in demo/greedy and demo/safe."
    assert after == (
        "Next: open demo/index.html in a browser, e.g. python3 -m webbrowser " + page.as_uri()
    )


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
def test_its_numbers_are_those_of_counsel_learn_and_the_same_for_the_same_seed(command, tmp_path):
    words = ("--penalty", "1", "--seed", "3", *SMALL)
    first = json.loads(command("demo", *words, "-o", "one", "--json", cwd=tmp_path).stdout)
    again = json.loads(command("demo", *words, "-o", "two", "--json", cwd=tmp_path).stdout)
    learnt = command("learn", "flappy-bird/safe", "--share", "advice", *words, "--json")
    run = json.loads(learnt.stdout)
    safe = first["players"]["safe"]
    assert safe["regret"] == run["last"]["regret"]
    assert safe["advice_count"] == run["advice_count"]
    assert safe["value"] - safe["advice_count"] == pytest.approx(run["value"])
    told = [
        {key: one for key, one in player.items() if key != "folder"}
        for demo in (first, again)
        for player in demo["players"].values()
    ]
    assert told[:2] == told[2:]
    pages = [(tmp_path / name / "index.html").read_text() for name in ("one", "two")]
    same = [re.sub(r"Made in \d+ seconds|one/|two/", "", page) for page in pages]
    assert same[0] == same[1]


@pytest.mark.usefixtures("alone")
def test_bad_input_is_refused_in_one_line(command, tmp_path):
    (tmp_path / "file").write_text("mine")
    for words, message in (
        (("-o", "file"), "-o file is a file; give a folder"),
        (("--episodes", "0"), "episodes must be a whole number of at least 1, not 0"),
        (("--penalty", "-1"), "penalty is -1"),
        (("--penalty", "nan"), "penalty is nan"),
        (("--seed", "-1"), "--seed is -1; it must be 0 or more"),
    ):
        ended = command("demo", *words, cwd=tmp_path)
        assert ended.returncode == 2
        assert ended.stderr.startswith(f"counsel: {message}"), ended.stderr
        assert ended.stderr.count("\n") == 1
    assert (tmp_path / "file").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
def test_a_folder_with_another_run_is_left_alone(command, shown, tmp_path):
    shutil.copytree(shown[0] / "demo", tmp_path / "demo")
    before = (tmp_path / "demo" / "index.html").read_bytes()
    ended = command("demo", "--penalty", "1", *SMALL, cwd=tmp_path)
    assert ended.returncode == 2
    assert "holds a run with penalty 0.3, not 1.0; choose another folder" in ended.stderr
    assert (tmp_path / "demo" / "index.html").read_bytes() == before


def test_without_matplotlib_it_names_the_extra_before_it_learns(command, tmp_path, monkeypatch):
    monkeypatch.setattr(demos, "find_spec", lambda name: None)
    ended = command("demo", cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (
        2,
        "counsel: the demo needs matplotlib; install it with: pip install 'counsel[draw]'\n",
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_second_process_plans_the_same_and_pyarrow_is_not_needed(tmp_path, command, monkeypatch):
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from counsel.cli import main\n"
        "if __name__ == '__main__':\n"
        "    main()\n"
    )
    (tmp_path / "counsel_without_pyarrow.py").write_text(code)
    line = [sys.executable, "counsel_without_pyarrow.py", "demo", *SMALL, "--json"]
    ended = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=True)
    monkeypatch.setattr(demos, "cores", lambda: 1)
    here = json.loads(command("demo", *SMALL, "-o", "demo", "--json", cwd=tmp_path).stdout)
    assert json.loads(ended.stdout)["players"] == here["players"]
