"""Shared by the tests of the database: migrations are run."""

import pytest


@pytest.fixture(autouse=True)
def migrated_once():
    """Run the migrations of every new database."""
