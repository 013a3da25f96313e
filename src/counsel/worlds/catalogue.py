"""The built-in worlds by name."""

from collections.abc import Callable
from types import MappingProxyType

from counsel.errors import CounselError
from counsel.model.problem import AdviceProblem
from counsel.worlds.night_shift import night_shift

CATALOGUE: MappingProxyType[str, Callable[[], AdviceProblem]] = MappingProxyType(
    {"night-shift": night_shift}
)
"""Each world's name and what builds it; the first line of its docstring describes it."""


def make(name: str) -> AdviceProblem:
    """Build the world called ``name``."""
    if name not in CATALOGUE:
        raise CounselError(f"no world is called {name!r}; there is {', '.join(CATALOGUE)}")
    return CATALOGUE[name]()
