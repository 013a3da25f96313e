"""What the outside sees: names, README, versions, the lock."""

import re
import subprocess
import tomllib

import pytest

import counsel
from tests.support.paths import ROOT


def test_all_names_exactly_what_can_be_loaded():
    assert sorted(counsel.__all__) == sorted(counsel._HOME)
    for name in counsel.__all__:
        assert getattr(counsel, name).__name__ == name
        assert name in dir(counsel)


def test_type_checkers_see_the_same_names():
    source = (ROOT / "src/counsel/__init__.py").read_text()
    block = source.split("if TYPE_CHECKING:")[1].split("__version__")[0]
    seen = {
        name.strip(): module
        for module, names in re.findall(r"from (\S+) import (.+)", block)
        for name in names.split(",")
    }
    assert seen == counsel._HOME


def test_every_public_name_has_a_docstring():
    assert [name for name in counsel.__all__ if not getattr(counsel, name).__doc__] == []


def test_the_version_is_written_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == counsel.__version__
    assert f"\nversion: {counsel.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {counsel.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def tracked():
    """Return every text file of the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a clone of the repository")
    kinds = (".png", ".npz", ".woff2", ".ico", ".db", ".parquet")
    return [ROOT / name for name in listed.stdout.split("\0") if name and not name.endswith(kinds)]


def test_no_file_names_a_package_index():
    # Written so that this file does not name one.
    hosts = re.compile(r"(?:py)pi\.org|(?:python)hosted|(?:npm)js\.|(?:deb)ian\.org")
    for path in tracked():
        if path.exists():
            assert not hosts.search(path.read_text(encoding="utf-8")), path


def test_locks_hold_hashes_and_no_address():
    locks = [path for path in tracked() if path.suffix == ".lock"]
    assert len(locks) == 5
    for lock in locks:
        assert "://" not in lock.read_text()
        assert "--hash=" in lock.read_text()


def test_only_one_file_imports_numba():
    users = [
        path.name
        for path in (ROOT / "src").rglob("*.py")
        if re.search(r"^\s*(import|from) numba", path.read_text(), re.MULTILINE)
    ]
    assert users == ["_jit.py"]


def test_the_examples_on_the_page_about_worlds_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/reference/worlds.md").read_text()
    code = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(code) == 2
    door = (ROOT / "docs/how-to/gymnasium.md").read_text()
    code += re.findall(r"```python\n(.*?)```", door, re.DOTALL)[:1]
    for block in code:
        exec(compile(block, "docs/reference/worlds.md", "exec"), {})
    shown = capsys.readouterr().out
    assert "1000 episodes" in shown
    assert ">" in shown
    assert "'matched'" in shown
    assert (tmp_path / "log.csv").read_text().startswith('"episode","step","person"')
    for picture in re.findall(r"\]\(\.\./(images/\S+)\)", page):
        assert (ROOT / "docs" / picture).exists()


def test_the_example_on_the_page_about_learning_runs(capsys):
    (code,) = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs/reference/learning.md").read_text(), re.DOTALL
    )
    exec(compile(code, "docs/reference/learning.md", "exec"), {})
    given, matched = map(int, re.findall(r"\d+", capsys.readouterr().out))
    assert 0 < matched <= given


def test_the_page_about_learning_names_every_algorithm_and_file():
    from counsel.runs import run
    from counsel.runs.algorithms import ALGORITHMS

    page = (ROOT / "docs/reference/learning.md").read_text()
    for name in (*ALGORITHMS, run.PICTURE, run.POLICY, run.POLICY_TABLE, run.RECORD, run.LEARNER):
        assert f"`{name}`" in page
    for name, algorithm in ALGORITHMS.items():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}`"))
        assert {1: "every episode", 50: "50 episodes", 1000: "–"}[algorithm.every] in row
        assert ("penalty" in row) == ("penalty" in algorithm.takes)
        assert ("budget" in row) == ("budget" in algorithm.takes)
