"""Modules that are imported when a test first uses them: collecting takes seconds otherwise."""

import importlib
from typing import Any

ASKED_BY_PYTEST = ("__test__", "__bases__", "__wrapped__", "_mock_name")
"""What pytest looks for in everything that it collects."""


class Later:
    """Stands for a module, and imports it when something in it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name in ASKED_BY_PYTEST:
            raise AttributeError(name)
        return getattr(importlib.import_module(self._name), name)
