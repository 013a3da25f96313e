"""What the outside sees: names, README, versions, the lock."""

import importlib
import inspect
import pkgutil
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import counsel
from tests.support.paths import ROOT

PACKAGES = (
    "counsel",
    "counsel.baselines",
    "counsel.learning",
    "counsel.planning",
    "counsel.simulate",
)
"""Packages whose public names are listed in ``__init__.pyi``."""


@pytest.mark.parametrize("name", PACKAGES)
def test_every_name_of_the_stub_can_be_loaded(name):
    package = importlib.import_module(name)
    stub = Path(package.__file__).with_suffix(".pyi").read_text()
    lines = [line for line in stub.splitlines() if line.startswith("from ")]
    assert len(lines) == len(package.__all__)
    for public in package.__all__:
        assert getattr(package, public).__name__.rpartition(".")[2] == public
        assert public in dir(package)
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        package.nothing  # noqa: B018


def test_about_thirty_names_are_at_the_top():
    names = [name for name in counsel.__all__ if not inspect.ismodule(getattr(counsel, name))]
    assert len(names) <= 32


@pytest.mark.parametrize(
    "name", [*PACKAGES, "counsel.drawing", "counsel.logs", "counsel.testing", "counsel.worlds"]
)
def test_no_function_shadows_a_module(name):
    package = importlib.import_module(name)
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    public = {n for n in package.__all__ if not inspect.ismodule(getattr(package, n))}
    assert modules & public == set()


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
    assert len(locks) == 8
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
