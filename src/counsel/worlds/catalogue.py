"""Worlds by name: those of Counsel and those of installed packages.

A package adds worlds through the entry-point group ``counsel.worlds``, in its pyproject.toml

    [project.entry-points."counsel.worlds"]
    "my-ward/night" = "my_package.ward:night"

where ``night`` returns an ``AdviceProblem``. Its keyword arguments are the overrides that ``make``
accepts, and ``counsel worlds`` prints the first line of its docstring. The package is imported only
when its world is built or listed.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint, entry_points

from counsel._arrays import brief
from counsel.errors import CounselError
from counsel.model.memory import Memory
from counsel.model.problem import AdviceProblem
from counsel.worlds.call_centre import call_centre
from counsel.worlds.car_driving import make_car_driving
from counsel.worlds.flappy_bird import make_flappy_bird
from counsel.worlds.inventory import inventory
from counsel.worlds.machine_repair import machine_repair
from counsel.worlds.night_shift import night_shift
from counsel.worlds.ward import FADING, PIECES, ward

GROUP = "counsel.worlds"  # the entry-point group for worlds of other packages
Builder = Callable[..., AdviceProblem]


@dataclass(frozen=True, slots=True)
class World:
    """A named problem: an entry of ``list_worlds()``.

    Attributes
    ----------
    name
        The name that ``make`` accepts.
    source
        The function that builds the problem, or an entry point that names the function.
    about
        A one-line description; the first line of the builder's docstring if empty.

    Raises
    ------
    CounselError
        From ``builder`` and ``build``, if the installed package cannot be loaded, its entry point
        is not a function, or the function fails or has no such argument.

    Examples
    --------
    >>> from counsel.worlds import list_worlds
    >>> world = list_worlds()["night-shift"]
    >>> world.summary
    'a nurse who tires over twelve hours, and a patient who may slip'
    >>> world.build().n_states
    4
    """

    name: str
    source: Builder | EntryPoint
    about: str = ""

    @property
    def package(self) -> str:
        """The installed package that provides the world."""
        if callable(self.source):
            return "counsel"
        return self.source.dist.name if self.source.dist else self.source.module

    @property
    def summary(self) -> str:
        """A one-line description, or why the world cannot be loaded."""
        if self.about:
            return self.about
        try:
            return (inspect.getdoc(self.builder()) or "").partition("\n")[0]
        except CounselError as fault:
            return str(fault)

    def builder(self) -> Builder:
        """Return the function that builds the problem."""
        if callable(self.source):  # entry points are of another class once Dask is imported
            return self.source
        try:
            builder = self.source.load()
        except (Exception, SystemExit) as fault:
            raise self._error(f"cannot be loaded: {_reason(fault)}") from fault
        if not callable(builder):
            raise self._error(
                f"is {brief(builder)}; an entry point must name a function that returns an "
                "AdviceProblem"
            )
        return builder  # type: ignore[no-any-return]

    def _error(self, fault: str) -> CounselError:
        return CounselError(f"the world {self.name!r} of the package {self.package} {fault}")

    def build(self, **overrides: object) -> AdviceProblem:
        """Build the problem.

        Parameters
        ----------
        **overrides
            Keyword arguments of the builder.
        """
        builder = self.builder()
        _check_overrides(self.name, builder, overrides)
        try:
            problem = builder(**overrides)
        except CounselError:
            raise
        except (Exception, SystemExit) as fault:
            raise self._error(f"cannot be built: {_reason(fault)}") from fault
        if not isinstance(problem, AdviceProblem):
            raise self._error(f"returned {brief(problem)}, not an AdviceProblem")
        return problem


OURS = (
    World(
        "flappy-bird/greedy",
        partial(make_flappy_bird, human="greedy"),
        "a bird on a 7 × 20 map of three phases; its pilot chases stars into walls",
    ),
    World(
        "flappy-bird/safe",
        partial(make_flappy_bird, human="safe"),
        "the same map; its pilot dodges walls and misses stars",
    ),
    World(
        "flappy-bird/tiring",
        partial(
            make_flappy_bird,
            human="safe",
            memory=Memory.pieces(3),
            fading=(1.0, 0.7, 0.5, 0.35),
        ),
        "the safe pilot, whom every further piece of advice moves less",
    ),
    World(
        "flappy-bird-budget/greedy",
        partial(make_flappy_bird, map="budget", human="greedy"),
        "a 7 × 8 map where the best flight takes two pieces of advice",
    ),
    World(
        "car-driving/myopic",
        partial(make_car_driving, human="myopic"),
        "three lanes of cars and stones; the driver looks one row ahead",
    ),
    World(
        "night-shift",
        night_shift,
        "a nurse who tires over twelve hours, and a patient who may slip",
    ),
    World(
        "call-centre",
        call_centre,
        "a mother in a health programme whose calls go to few of many per week",
    ),
    World(
        "call-centre/working",
        partial(call_centre, mother="working"),
        "the same programme; a mother who is harder to reach and to keep",
    ),
    World(
        "call-centre/tiring",
        partial(call_centre, memory=Memory.since(3), fading=(0.4, 0.6, 0.8, 1.0)),
        "the same programme; a mother who listens less in the weeks after a call",
    ),
    World(
        "ward",
        ward,
        "a hospital ward whose alarm alerts too often; `counsel demo-log` writes its past shifts",
    ),
    World(
        "ward/tiring",
        partial(
            ward, memory=Memory.pieces(PIECES), fading=tuple(FADING**m for m in range(PIECES + 1))
        ),
        "the same ward; every further alert of a shift moves the nurse 30 % less",
    ),
    World(
        "machine-repair",
        machine_repair,
        "a machine that wears for ever, and an operator who repairs it late; discounted",
    ),
    World(
        "inventory",
        inventory,
        "a shop that orders every day for ever, and a manager who orders little; discounted",
    ),
)


def list_worlds() -> dict[str, World]:
    """Return all worlds by name: those of Counsel, then those of installed packages.

    Of two worlds with the same name the first is kept: a package cannot replace one of Counsel's.

    Returns
    -------
    dict
        Name to ``World``.

    Examples
    --------
    >>> from counsel.worlds import list_worlds
    >>> [name for name, world in list_worlds().items() if world.package == "counsel"][:3]
    ['flappy-bird/greedy', 'flappy-bird/safe', 'flappy-bird/tiring']
    """
    worlds = {world.name: world for world in OURS}
    for point in entry_points(group=GROUP):
        worlds.setdefault(point.name, World(point.name, point))
    return worlds


def make(name: str, **overrides: object) -> AdviceProblem:
    """Build the world called ``name``.

    Parameters
    ----------
    name
        A key of ``list_worlds()``, e.g. "flappy-bird/safe".
    **overrides
        Keyword arguments of the world's builder, e.g. ``adherence="low"``.

    Returns
    -------
    AdviceProblem
        The problem that the world's builder returns.

    Raises
    ------
    CounselError
        If there is no such world, or it has no such override.

    Examples
    --------
    The value of the best advice grows with adherence:

    >>> import counsel
    >>> from counsel.worlds import make
    >>> for adherence in (0.5, 0.7, 0.9):
    ...     plan = counsel.solve(make("flappy-bird/safe", adherence=adherence))
    ...     print(f"{adherence}: {plan.value:.2f}")
    0.5: 7.25
    0.7: 8.46
    0.9: 10.24
    """
    ours = {world.name: world for world in OURS}
    # Installed packages are looked at only if the world is not one of ours.
    worlds = ours if isinstance(name, str) and name in ours else list_worlds()
    if not isinstance(name, str) or name not in worlds:
        raise CounselError(f"no world is called {brief(name)}; choose one of {', '.join(worlds)}")
    return worlds[name].build(**overrides)


def _reason(fault: BaseException) -> str:
    return f"{type(fault).__name__}: {brief(str(fault))}"


def _check_overrides(name: str, builder: Builder, overrides: dict[str, object]) -> None:
    """Raise an error if the builder lacks an argument of an override's name."""
    try:
        parameters = inspect.signature(builder).parameters.values()
    except ValueError:  # some builtins have none
        return
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    known = [parameter.name for parameter in parameters]
    for override in overrides:
        if override not in known:
            takes = ", ".join(known) if known else "no overrides"
            raise CounselError(f"the world {name!r} takes {takes}; not {override!r}")
