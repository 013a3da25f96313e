"""The bonuses that optimistic learners can choose from.

Their formulas are in ``ucbvi.py`` and ``q_learning.py``.
"""

from dataclasses import dataclass
from typing import TypeVar

from counsel._arrays import brief
from counsel.errors import CounselError

_B = TypeVar("_B")


@dataclass(frozen=True, slots=True)
class Hoeffding:
    """The bonus that depends on the number of visits only.

    For ``UCBVI`` and ``QLearning``. Simple, and wide: it takes every value to vary as much as it
    can.

    Examples
    --------
    With the same number of episodes a wider bonus costs more:

    >>> from numpy.random import default_rng
    >>> from counsel import Simulator, learn
    >>> from counsel.baselines import UCBVI, Freedman
    >>> from counsel.worlds import make
    >>> problem = make("night-shift")
    >>> for bonus in (Freedman(), Hoeffding()):
    ...     known = dict(reward=problem.machine().reward, episodes=2000)
    ...     learner = UCBVI(problem.shape, rng=default_rng(1), bonus=bonus, scale=0.001, **known)
    ...     run = learn(learner, Simulator(problem), episodes=2000, every=50, rng=default_rng(0))
    ...     *_, last = run
    ...     print(bonus, round(last.regret))
    Freedman() 544
    Hoeffding() 867
    """


@dataclass(frozen=True, slots=True)
class Freedman:
    """The bonus of ``UCBVI`` that is narrow where the values of what follows vary little.

    Its default. Compared with ``Hoeffding()`` it promises less where little is at stake, so what is
    believed comes down to the truth sooner.

    Examples
    --------
    >>> from numpy.random import default_rng
    >>> from counsel import Simulator, learn, solve
    >>> from counsel.baselines import UCBVI
    >>> from counsel.worlds import make
    >>> problem = make("night-shift")
    >>> known = dict(reward=problem.machine().reward, episodes=2000)
    >>> learner = UCBVI(problem.shape, rng=default_rng(1), bonus=Freedman(), scale=0.001, **known)
    >>> *_, last = learn(learner, Simulator(problem), episodes=2000, every=50, rng=default_rng(0))
    >>> print(f"believed {learner.upper[0, 0]:.2f}, true {solve(problem).value:.2f}")
    believed 11.47, true 11.46
    """


@dataclass(frozen=True, slots=True)
class Bernstein:
    """The bonus of ``QLearning`` that is narrow where the values of what follows vary little.

    Its default. Its variance term is so wide at first that for long it is no better than
    ``Hoeffding()``: it pays in long runs only.

    Examples
    --------
    Two thousand nights are not long:

    >>> from numpy.random import default_rng
    >>> from counsel import Simulator, learn
    >>> from counsel.baselines import Hoeffding, QLearning
    >>> from counsel.worlds import make
    >>> problem = make("night-shift")
    >>> for bonus in (Bernstein(), Hoeffding()):
    ...     known = dict(reward=problem.machine().reward, episodes=2000, scale=0.001)
    ...     learner = QLearning(problem.shape, rng=default_rng(1), bonus=bonus, **known)
    ...     run = learn(learner, Simulator(problem), episodes=2000, every=50, rng=default_rng(0))
    ...     *_, last = run
    ...     print(bonus, round(last.value_gap, 2))
    Bernstein() 0.63
    Hoeffding() 0.63
    """


def read_bonus(bonus: _B | None, *choices: _B) -> _B:
    """Return the bonus if it is one of the choices; by default the first."""
    if bonus is None:
        return choices[0]
    if type(bonus) not in {type(choice) for choice in choices}:
        names = " or ".join(repr(choice) for choice in choices)
        raise CounselError(f"bonus is {brief(bonus)}; give {names}")
    return bonus
