"""Public names of a package that import their module when they are first used.

A package lists its public names once, in ``__init__.pyi``, one ``from module import name`` per
line. Type checkers read that file; ``lazy_names`` reads it, too, and derives ``__all__``,
``__dir__`` and a module-level ``__getattr__`` (PEP 562). So ``counsel --help`` and
``import counsel`` load nothing that is not used.
"""

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path


def lazy_names(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package with an ``__init__.pyi``."""
    module = sys.modules[package]
    stub = Path(str(module.__file__)).with_suffix(".pyi").read_text(encoding="utf-8")
    homes = {
        name: home
        for home, name in re.findall(r"^from (\S+) import (\w+) as \2$", stub, re.MULTILINE)
    }

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes[name] == package:  # a package of its own
            return import_module(f"{package}.{name}")
        value = getattr(import_module(homes[name]), name)
        setattr(module, name, value)
        return value

    return get, lambda: sorted({*vars(module), *homes}), sorted(homes)
