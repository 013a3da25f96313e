"""Names of the bonuses among which optimistic learners can choose.

What each is worth is written where it is used: ``ucbvi.py`` and ``q_learning.py``.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hoeffding:
    """The bonus that knows only how often something was seen."""


@dataclass(frozen=True, slots=True)
class Freedman:
    """The bonus of UCBVI that is narrow where values vary little."""


@dataclass(frozen=True, slots=True)
class Bernstein:
    """The bonus of Q-learning that is narrow where values vary little."""
