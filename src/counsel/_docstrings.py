"""Parameters that several docstrings share, written once."""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

_T = TypeVar("_T", bound=Callable[..., Any])


def share_parameters(texts: Mapping[str, str]) -> Callable[[_T], _T]:
    """Return a decorator that adds shared parameters to a docstring.

    Each parameter of the signature that the section "Parameters" lacks and ``texts`` has is added
    in the order of the signature. The section must have at least one parameter of its own.
    """

    def add(documented: _T) -> _T:
        if documented.__doc__ is None:  # python -OO
            return documented
        text = inspect.cleandoc(documented.__doc__)
        head, rule, rest = text.partition("Parameters\n----------\n")
        section, *after = re.split(r"\n\n(?=\w[^\n]*\n-+\n)", rest, maxsplit=1)
        entry = r"^(\w[^\n]*)\n((?:    [^\n]*\n?|\n(?=    ))+)"
        own = dict(re.findall(entry, section, re.MULTILINE))
        entries, covered = [], {name for names in own for name in names.split(", ")}
        for name in inspect.signature(documented).parameters:
            names = next((key for key in own if name == key.split(", ")[0]), None)
            if names is not None:
                entries.append(f"{names}\n{own[names].rstrip()}")
            elif name in texts and name not in covered:
                lines = inspect.cleandoc(texts[name]).splitlines()
                entries.append("\n".join([name, *(f"    {line}".rstrip() for line in lines)]))
        documented.__doc__ = "\n\n".join([head + rule + "\n".join(entries), *after])
        return documented

    return add
