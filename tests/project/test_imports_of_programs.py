"""Programs beside the package, which no type checker reads, use names that the package has."""

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted(path for name in ("benchmarks", "tools") for path in (ROOT / name).glob("*.py"))


def is_there(module, name):
    """Return whether a module has a name, or a module of this name inside."""
    if hasattr(importlib.import_module(module), name):
        return True
    try:
        importlib.import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return False
    return True


def lost_names(source):
    """Return the names that a program imports from our packages although they are not there."""
    lost = []
    for node in ast.walk(ast.parse(source)):
        module = node.module if isinstance(node, ast.ImportFrom) else None
        if module and module.partition(".")[0] in ("counsel", "tests"):
            names = [alias.name for alias in node.names]
            lost += [f"{module}.{name}" for name in names if not is_there(module, name)]
    return lost


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_benchmarks_and_tools_import_names_that_exist(path):
    # `make bench` stopped in its fourth area: a function had moved to another file.
    assert lost_names(path.read_text(encoding="utf-8")) == []


def test_a_name_that_moved_is_found():
    assert lost_names("from counsel.model.problem import machine_rewards, AdviceProblem") == [
        "counsel.model.problem.machine_rewards"
    ]
