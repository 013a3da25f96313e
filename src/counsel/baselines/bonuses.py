"""The bonuses of ``ucbvi.py`` and ``q_learning.py``, which have their formulas."""

from dataclasses import dataclass
from typing import TypeVar

from counsel._arrays import brief
from counsel.errors import CounselError

_B = TypeVar("_B")


@dataclass(frozen=True, slots=True)
class Hoeffding:
    """The bonus that depends on the number of visits only.

    For ``UCBVI`` and ``QLearning``. It is wide: it takes every value to vary as much as it can.

    Examples
    --------
    With the same number of episodes a wider bonus costs more:

    >>> from numpy.random import default_rng
    >>> from counsel import Simulator, learn, make
    >>> from counsel.baselines import UCBVI, Freedman
    >>> problem = make("night-shift")
    >>> known, simulator = dict(reward=problem.machine().reward), Simulator(problem)
    >>> for bonus in (Freedman(), Hoeffding()):
    ...     known |= dict(rng=default_rng(1), episodes=2000, scale=0.001)
    ...     learner = UCBVI(problem.shape, bonus=bonus, **known)
    ...     *_, last = learn(learner, simulator, episodes=2000, every=50, rng=default_rng(0))
    ...     print(bonus, round(last.regret))
    Freedman() 544
    Hoeffding() 867
    """


@dataclass(frozen=True, slots=True)
class Freedman:
    """The bonus of ``UCBVI`` that is narrow where the values of what follows vary little.

    Its default. Compared with ``Hoeffding()`` its bounds come down to the truth sooner.

    Examples
    --------
    >>> from numpy.random import default_rng
    >>> from counsel import Simulator, learn, make, solve
    >>> from counsel.baselines import UCBVI
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

    Its default. It is better than ``Hoeffding()`` in long runs only.

    Examples
    --------
    Two thousand nights are not long:

    >>> from numpy.random import default_rng
    >>> from counsel import Simulator, learn, make
    >>> from counsel.baselines import QLearning
    >>> problem = make("night-shift")
    >>> known = dict(reward=problem.machine().reward, episodes=2000, scale=0.001)
    >>> learner = QLearning(problem.shape, rng=default_rng(1), bonus=Bernstein(), **known)
    >>> *_, last = learn(learner, Simulator(problem), episodes=2000, every=50, rng=default_rng(0))
    >>> print(round(last.value_gap, 2))
    0.63
    """


def read_bonus(bonus: _B | None, *choices: _B) -> _B:
    """Return the bonus if it is one of the choices; by default the first."""
    if bonus is None:
        return choices[0]
    if type(bonus) not in {type(choice) for choice in choices}:
        names = " or ".join(repr(choice) for choice in choices)
        raise CounselError(f"bonus is {brief(bonus)}; give {names}")
    return bonus
