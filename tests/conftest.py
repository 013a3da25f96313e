"""Shared by all tests: Hypothesis profiles and problems in both forms."""

import importlib
import os

from hypothesis import settings

settings.register_profile("ci", max_examples=200, derandomize=True, deadline=None)
settings.register_profile("dev", max_examples=50, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_configure(config):
    """Compile what quantecon compiles on import before workers do so at once and crash."""
    if not hasattr(config, "workerinput"):
        importlib.import_module("quantecon.markov.ddp")
