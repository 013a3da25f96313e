"""The demo's lock is a part of the whole one: enough to run the demo, and no more."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
HEAVY = {
    "pyarrow",
    "duckdb",
    "ibis-framework",
    "plotly",
    "fastapi",
    "sphinx",
    "playwright",
    "pytest",
}


def entries(name):
    """Each entry of a lock, a version with its marker, and its hashes."""
    found = re.findall(
        r"^(\S+==[^\\\n]+?) \\\n((?:    --hash=\S+(?: \\)?\n)+)", name.read_text(), re.M
    )
    return {entry: sorted(re.findall(r"--hash=(\S+)", hashes)) for entry, hashes in found}


def names(lock):
    return {canonicalize_name(entry.split("==")[0]) for entry in entries(lock)}


def test_every_entry_is_one_of_the_whole_lock():
    part, whole = entries(ROOT / "requirements-demo.lock"), entries(ROOT / "requirements.lock")
    assert len(part) > 20
    assert {entry: whole.get(entry) for entry in part} == part
    lines = (ROOT / "requirements-demo.lock").read_text().splitlines()
    assert len(lines) == len(part) + sum(map(len, part.values()))  # and nothing else stands in it


def test_it_holds_all_that_the_demo_needs_and_nothing_heavy():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["draw"],
        *project["dependency-groups"]["build"],
    ]
    left, needed = [Requirement(text) for text in wanted], set()
    while left:
        requirement = left.pop()
        name = canonicalize_name(requirement.name)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        if name not in needed:
            needed.add(name)
            left += [Requirement(text) for text in metadata.requires(name) or []]
    locked = names(ROOT / "requirements-demo.lock")
    assert needed <= locked
    assert not HEAVY & locked


def test_make_demo_installs_the_demo_lock_alone_unless_all_is_there():
    makefile = (ROOT / "Makefile").read_text()
    assert "demo: $(if $(wildcard $(READY)),$(READY),$(DEMO_READY))\n" in makefile
    rule = re.search(r"^\$\(DEMO_READY\):.*\n((?:\t.*\n)+)", makefile, re.M).group(1)
    assert "requirements-demo.lock" in rule
    assert "requirements.lock" not in rule
