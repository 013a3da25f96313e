"""Names of the bonuses among which optimistic learners can choose.

What each is worth is written where it is used: ``ucbvi.py`` and ``q_learning.py``.
"""

from dataclasses import dataclass
from typing import TypeVar

from counsel._arrays import brief
from counsel.errors import CounselError

_B = TypeVar("_B")


@dataclass(frozen=True, slots=True)
class Hoeffding:
    """The bonus that knows only how often something was seen."""


@dataclass(frozen=True, slots=True)
class Freedman:
    """The bonus of UCBVI that is narrow where values vary little."""


@dataclass(frozen=True, slots=True)
class Bernstein:
    """The bonus of Q-learning that is narrow where values vary little."""


def read_bonus(given: _B | None, *known: _B) -> _B:
    """Return the bonus that was given if it is one of those known; by default the first."""
    if given is None:
        return known[0]
    if type(given) not in {type(bonus) for bonus in known}:
        names = " or ".join(repr(bonus) for bonus in known)
        raise CounselError(f"bonus is {brief(given)}; give {names}")
    return given
