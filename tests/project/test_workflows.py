"""Workflows and hooks call only what exists."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def targets():
    """Return the targets of the Makefile."""
    text = (ROOT / "Makefile").read_text("utf-8")
    return set(re.findall(r"^([a-z][\w-]*):(?!=)", text, re.MULTILINE))


def steps(path):
    """Return every step of every job of a workflow."""
    jobs = yaml.safe_load(path.read_text("utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


def commands(path):
    """Return every command that a workflow runs."""
    return [line for step in steps(path) for line in step.get("run", "").splitlines() if line]


def called_targets(text):
    """Return the make targets that a shell command calls."""
    calls = re.findall(r"\b(?:make|\$\(MAKE\))((?: +[^\s;&|]+)+)", text)
    words = [word for call in calls for word in call.split()]
    return {word for word in words if "=" not in word and not word.startswith("-")}


def test_there_are_workflows_for_tests_and_releases():
    assert [path.name for path in WORKFLOWS] == ["long.yml", "release.yml", "tests.yml"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_command_of_a_workflow_is_a_make_target_or_a_script(path):
    assert commands(path)
    for command in commands(path):
        if command.startswith("make "):
            assert called_targets(command) <= targets(), command
        else:
            script = ROOT / command.split()[0]
            assert script.is_file(), command
            assert script.stat().st_mode & 0o100, f"{command} is not executable"


def test_the_script_of_the_continuous_integration_calls_make_targets():
    text = (ROOT / ".ci" / "run").read_text("utf-8")
    lines = [line for line in text.splitlines() if re.match(r"\s*make ", line)]
    assert lines
    assert called_targets("\n".join(lines)) <= targets()


def test_make_targets_call_targets_and_scripts_that_exist():
    text = (ROOT / "Makefile").read_text("utf-8")
    recipes = "\n".join(line for line in text.splitlines() if line.startswith("\t"))
    calls = [line for line in recipes.splitlines() if "$(MAKE)" in line]
    assert called_targets("\n".join(calls)) <= targets()
    scripts = set(re.findall(r"\$\(BIN\)/python ([\w/]+\.py)", text))
    assert scripts
    assert all((ROOT / script).is_file() for script in scripts)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_reads_the_repository_and_has_no_secrets(path):
    text = path.read_text("utf-8")
    assert "secrets." not in text
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    granted = {
        name: job["permissions"] for name, job in workflow["jobs"].items() if "permissions" in job
    }
    assert granted in ({}, {"publish": {"id-token": "write"}})
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())
    for step in steps(path):
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@(?:v\d+|release/v\d+)", step["uses"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_files_that_a_workflow_names_exist(path):
    text = path.read_text("utf-8")
    named = re.findall(r"cache-dependency-path: (\S+)", text)
    named += re.findall(r"hashFiles\('([^']+)'\)", text)
    assert all((ROOT / name).is_file() for name in named)


def test_every_hook_is_installed_from_a_pinned_package():
    (repo,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    assert repo["repo"] == "local"  # hooks of other repositories have versions of their own
    for hook in repo["hooks"]:
        assert hook["language"] == "python"
        (pin,) = hook["additional_dependencies"]
        assert re.fullmatch(r"[\w-]+==[\d.]+", pin)
