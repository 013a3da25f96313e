"""The suite itself: where its files lie, that luck decides nothing, and what README promises."""

import re

import pytest
from hypothesis import settings

from tests.support.each import each, each_seed
from tests.support.paths import ROOT

TESTS, PACKAGE = ROOT / "tests", ROOT / "src" / "counsel"
PROJECT = {"project", "support"}
"""Folders without a package: the repository as a whole, and helpers with their own tests."""


def strays(paths, modules):
    """Return test files that mirror nothing.

    ``tests/planning/test_solve_ties.py`` mirrors ``planning/solve.py``; ``test_planning_….py``
    mirrors the folder as a whole.
    """
    lost = []
    for path in paths:
        folder, name = path.parent, path.stem.removeprefix("test_")
        mirrored = {module.stem.lstrip("_") for module in modules if module.parent == folder}
        mirrored |= {folder.name} if folder.name else set()
        exact = any(name == module or name.startswith(f"{module}_") for module in mirrored)
        if not exact and folder.parts[:1] != ("project",):
            lost.append(str(path))
    return lost


def test_every_test_file_mirrors_a_module():
    modules = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")]
    modules += [path.relative_to(TESTS) for path in (TESTS / "support").glob("[!t]*.py")]
    files = [path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")]
    assert len(files) > 80
    assert strays(files, modules) == []


def test_a_test_file_outside_the_mirror_is_found():
    from pathlib import Path

    modules = [Path("planning/solve.py"), Path("_jit.py"), Path("planning/_backward_kernels.py")]
    good = ["planning/test_solve.py", "planning/test_solve_ties.py", "test_jit.py"]
    good += ["planning/test_planning_errors.py", "project/test_readme.py"]
    assert strays(map(Path, good), modules) == []
    bad = ["test_solve.py", "planning/test_frontier.py", "planner/test_solve.py"]
    assert strays(map(Path, bad), modules) == bad


def test_helpers_lie_in_support_and_no_test_imports_another():
    lost = [
        path
        for path in TESTS.rglob("*.py")
        if not path.name.startswith("test_")
        and path.name not in ("__init__.py", "conftest.py")
        and path.parent.name != "support"
    ]
    assert lost == []
    imports = re.compile(r"^\s*(?:from|import) tests\.(?!support|conftest)", re.MULTILINE)
    assert [path for path in TESTS.rglob("*.py") if imports.search(path.read_text("utf-8"))] == []


def test_no_hypothesis_profile_depends_on_luck():
    source = (TESTS / "conftest.py").read_text(encoding="utf-8")
    names = re.findall(r'register_profile\("(\w+)"', source)
    assert names == ["test", "fuzz"]
    for name in names:
        profile = settings.get_profile(name)
        assert profile.derandomize
        assert profile.deadline is None, "a verdict may not depend on the load"
        assert profile.database is None, "a verdict may not depend on earlier runs"
    loose = re.compile(r"derandomize\s*=\s*False|register_profile|load_profile|deadline=[^N]")
    for path in TESTS.rglob("*.py"):
        if path.name not in ("conftest.py", "test_suite.py"):
            assert not loose.search(path.read_text(encoding="utf-8")), path


def test_no_test_draws_without_a_seed():
    unseeded = re.compile(
        r"default_rng\(\)(?!.*# the fault)|np\.random\.(?!default_rng|Gen|RandomState|PCG64)\w+\("
    )
    for path in TESTS.rglob("*.py"):
        if path.name != "test_suite.py":
            assert not unseeded.search(path.read_text(encoding="utf-8")), path


def test_no_test_imports_quantecon_but_by_the_helper_that_waits():
    # Two workers with an empty cache compiled it at once while they collected the tests, loaded
    # each other's code and crashed.
    imported = re.compile(r"^\s*(?:import|from) quantecon", re.MULTILINE)
    found = [path.name for path in TESTS.rglob("*.py") if imported.search(path.read_text("utf-8"))]
    assert found == ["peers.py"]


def targets():
    """Return the Makefile's targets, with what each runs."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    found = re.findall(r"^([a-z][\w-]*):[^=\n]*\n((?:[\t].*\n)*)", text, re.MULTILINE)
    return dict(found)


def test_the_commands_of_readme_and_contributing_are_targets_of_the_makefile():
    have = targets()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```sh\n((?:make .*\n)+)```", readme).group(1)
    assert re.findall(r"^make ([\w-]+)", block, re.MULTILINE) == ["demo", "test"]
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", ".ci/run")]
    pages += [path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts]
    for page in pages:
        for name in re.findall(r"(?:`|^)make ([a-z][\w-]*)", page.read_text("utf-8"), re.MULTILINE):
            assert name in have, f"{page.relative_to(ROOT)} names make {name}"
    helped = re.findall(r'"make ([\w-]+) ', have["help"])
    assert set(helped) == set(have) - {"help", "build-and-check"}  # a part of `make dist`


def test_the_tiers_of_the_makefile_cover_every_test_once():
    have = targets()
    assert '-m "not slow and not docs"' in have["test"]
    assert have["coverage"] == have["test"].rstrip() + " --cov --cov-report=term\n"
    assert '-m "slow and not long and not docs"' in have["test-slow"]
    assert "-m long" in have["test-long"]
    assert "-m docs" in have["docs"]
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    lines = re.findall(r"^make (.+)", ci, re.MULTILINE)
    called = [word for line in lines for word in line.split() if not word.startswith("-")]
    assert called == ["install", "check", "docs", "spark", "client-generator", "test", "test-slow"]


def test_a_long_test_is_a_case_of_a_test_that_has_shorter_ones():
    files = [path for path in TESTS.rglob("test_*.py") if path.name != "test_suite.py"]
    texts = {path: path.read_text("utf-8") for path in files}
    assert any("mark.long" in text for text in texts.values())
    for path, text in texts.items():
        assert text.count("mark.long") == text.count("marks=pytest.mark.long"), path


# The loop over seeds.


def test_each_names_the_value_at_which_a_test_fails():
    @each("penalty", [0.1, 0.2])
    @each("seed", range(5))
    def claim(seed, penalty):
        assert seed < 3 or penalty < 0.2

    with pytest.raises(AssertionError) as failed:
        claim()
    assert failed.value.__notes__ == ["failed at seed = 3", "failed at penalty = 0.2"]


def test_each_skips_a_test_only_when_every_case_skips():
    tried = []

    def claim(seed):
        tried.append(seed)
        if seed > 0:
            pytest.skip(f"no room for {seed}")

    each("seed", range(3))(claim)()
    assert tried == [0, 1, 2]
    with pytest.raises(pytest.skip.Exception, match="no room for 1"):
        each("seed", [1, 2])(claim)()


def test_each_refuses_no_values_and_a_name_that_is_no_parameter():
    with pytest.raises(ValueError, match="no values for seed"):
        each("seed", [])
    with pytest.raises(ValueError, match="has no parameter sede"):
        each("sede", [1])(lambda seed: None)


def test_fuzzing_begins_where_it_is_told(monkeypatch):
    tried = []
    monkeypatch.setattr("tests.support.each.FUZZ_SEED", 1000)
    loop = each_seed(range(3))(lambda seed: tried.append(seed))
    loop()
    assert tried == [1000, 1001, 1002]
    assert loop.fresh_seeds


def test_a_long_loop_over_seeds_is_three_tests_that_try_every_seed_once():
    tried = []

    def claim(seed):
        tried.append(seed)

    loop = each_seed([*range(3, 40), 99])(claim)
    (parametrized,) = loop.pytestmark
    parts = parametrized.args[1]
    assert (parametrized.args[0], loop.fresh_seeds) == ("seeds", True)
    assert [[mark.name for mark in part.marks] for part in parts] == [[], ["slow"], ["long"]]
    for part, end in zip(parts, (8, 13, 40), strict=True):
        loop(seeds=part.values[0])
        assert tried == [*range(3, end), *([99] if end == 40 else [])]
    assert len(each_seed(range(10))(claim).pytestmark[0].args[1]) == 2
    assert not hasattr(each_seed(range(5))(claim), "pytestmark")
