"""Shared by all tests: Hypothesis profiles, and a PostgreSQL server for those that need one."""

import importlib
import os
import uuid

import pytest
from hypothesis import settings

from tests import postgres

settings.register_profile("ci", max_examples=200, derandomize=True, deadline=None)
settings.register_profile("dev", max_examples=50, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_configure(config):
    """Compile what quantecon compiles on import before workers do so at once and crash."""
    if not hasattr(config, "workerinput"):
        importlib.import_module("quantecon.markov.ddp")


@pytest.fixture(scope="session")
def server():
    """A PostgreSQL server, required where the continuous integration runs."""
    try:
        with postgres.running() as found:
            yield found
    except postgres.NoServerError as reason:
        if os.environ.get("CI"):
            pytest.fail(f"required: {reason}")
        pytest.skip(str(reason))


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """A fresh database of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'counsel.db'}"
        return
    found = request.getfixturevalue("server")
    name = f"test_{uuid.uuid4().hex}"
    with found.connect() as database:
        database.execute(f"create database {name}")
    yield found.url(database=name)
