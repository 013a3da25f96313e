"""Shared by the tests of the service: tables that are made once."""

import pytest

from counsel.service.db import engine
from tests.support import tables


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """The path of a SQLite file with all tables and no row."""
    return tmp_path_factory.mktemp("tables") / "template.db"


@pytest.fixture(autouse=True)
def migrated_once(template, monkeypatch):
    """Give new SQLite databases of this process their tables by copying a file."""
    monkeypatch.setattr(engine, "_migrate", tables.copying(template))
