"""Every example in a docstring prints what it says."""

import doctest
import importlib

import pytest

from tests.support.paths import ROOT

SRC = ROOT / "src"
MODULES = sorted(
    ".".join(path.relative_to(SRC).with_suffix("").parts)
    for path in SRC.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_a_file_print_what_they_say(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testmod(importlib.import_module(module))
    assert tried
    assert not failed
    assert list(tmp_path.iterdir()) == [], "an example leaves files behind"
