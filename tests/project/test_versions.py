"""Versions agree wherever they are written: of Counsel, of Python, of tools and of dependencies."""

import datetime
import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import counsel

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
HEADING = re.compile(r"^## (\d+\.\d+\.\d+(?:rc\d+)?) \((unreleased|\d{4}-\d\d-\d\d)\)$")


def loaded(name):
    return yaml.safe_load((ROOT / name).read_text("utf-8"))


def headings():
    lines = (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines()
    return [line for line in lines if line.startswith("## ")]


def locked(package, lock="requirements.lock"):
    """Return the version of a package in a lock."""
    text = (ROOT / lock).read_text("utf-8")
    (version,) = re.findall(rf"^{re.escape(package)}==(\S+)", text, re.MULTILINE)
    return version


def test_package_metadata_citation_and_changelog_have_the_version_of_pyproject():
    version = PROJECT["version"]
    assert counsel.__version__ == version
    assert importlib.metadata.version("counsel") == version, "run `pip install -e .` again"
    assert str(loaded("CITATION.cff")["version"]) == version
    assert HEADING.match(headings()[0])[1] == version


def test_every_heading_of_the_changelog_has_a_version_and_only_the_newest_may_lack_a_date():
    dates = []
    for place, heading in enumerate(headings()):
        match = HEADING.match(heading)
        assert match, f"'{heading}' must be '## 1.2.3 (YYYY-MM-DD)', or '(unreleased)' if newest"
        if match[2] == "unreleased":
            assert place == 0, f"'{heading}' is not the newest version: give it its date"
        else:
            dates.append(datetime.date.fromisoformat(match[2]))
    assert dates == sorted(dates, reverse=True)


def test_the_citation_has_the_date_of_a_release_and_no_other():
    date = HEADING.match(headings()[0])[2]
    released = loaded("CITATION.cff").get("date-released")
    assert released is None if date == "unreleased" else str(released) == date


def test_workflows_and_classifiers_have_the_same_versions_of_python():
    matrix = loaded(".github/workflows/tests.yml")["jobs"]["test"]["strategy"]["matrix"]
    classifiers = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert matrix["python"] == classifiers
    assert PROJECT["requires-python"] == f">={classifiers[0]}"


@pytest.mark.parametrize("tool", ["ruff", "codespell"])
def test_hooks_use_the_version_of_a_tool_that_is_in_the_lock(tool):
    hooks = loaded(".pre-commit-config.yaml")["repos"][0]["hooks"]
    pins = {pin for hook in hooks for pin in hook["additional_dependencies"]}
    assert f"{tool}=={locked(tool)}" in pins, "copy the version from requirements.lock"
    assert sum(pin.startswith(f"{tool}==") for pin in pins) == 1


@pytest.mark.parametrize(
    "lock",
    ["requirements.lock", "requirements-lowest.lock", "benchmarks/requirements.lock",
     "tools/release.lock"],
)  # fmt: skip
def test_a_lock_has_hashes_and_names_no_host(lock):
    text = (ROOT / lock).read_text("utf-8")
    assert "://" not in text
    assert "--index-url" not in text
    packages = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert packages
    assert all("--hash=sha256:" in package for package in packages)


def lower_bounds():
    """Return (package, lowest version) of every dependency that has a lower bound."""
    extras = PROJECT["optional-dependencies"]
    needs = [*PROJECT["dependencies"]]
    needs += [need for name in extras if name != "spark" for need in extras[name]]
    return [re.match(r"([\w-]+)(?:\[.*?\])?>=([\d.]+)", need).groups() for need in needs]


@pytest.mark.parametrize(("package", "lowest"), lower_bounds())
def test_the_lowest_lock_has_the_lower_bound_of_every_dependency(package, lowest):
    version = locked(package, "requirements-lowest.lock")
    short = re.sub(r"(\.0)+$", "", version)
    assert short == re.sub(r"(\.0)+$", "", lowest), "run `make lock`, then `make test-lowest`"
