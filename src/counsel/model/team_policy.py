"""A policy for a team: whom to advise at each step, and what to say to them.

Everybody has a priority that depends on the step, their state and the level of their memory. At
each step the people with the highest priorities are advised, at most ``per_step`` of them. Ties are
broken at random.

With ``longest_wait=n`` nobody stays without a piece for more than n steps in a row. So everybody
gets a piece in any n + 1 steps in a row, and at most (n + 1) × ``per_step`` people can be served.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counsel._arrays import (
    Floats,
    Ints,
    brief,
    check_range,
    first,
    place,
    rectangular,
    sealed,
    whole,
)
from counsel.errors import CounselError
from counsel.model.problem import AdviceProblem


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class TeamPolicy:
    """Whom to advise at each step, and what to say: one table for each kind of person.

    Parameters
    ----------
    per_step
        The largest number of people who are advised in the same step.
    advice
        For each kind of person, what to say to them if it is their turn [h, s]; for people with a
        memory also [m, h, s]. Silence, the index after the last action, means that they have no
        turn.
    priority
        For each kind of person, numbers in the shape of their advice. The highest are advised
        first; people whose priority is not above 0 are advised only if they waited too long.
    chance
        For each kind of person, probabilities in the same shape. Of people with equal priorities,
        each comes before the others with this probability. By default nobody does.
    longest_wait
        The largest number of steps that anybody waits for a piece; by default there is no limit.

    Raises
    ------
    CounselError
        If ``per_step`` or ``longest_wait`` is not valid, or tables differ in number or shape.

    Examples
    --------
    Advise whoever is worst off, one person per step:

    >>> import numpy as np
    >>> import counsel
    >>> ward = counsel.make("ward")
    >>> advice = np.full((6, 5), 1)
    >>> worst = np.broadcast_to(np.array([0, 1, 2, 3, 0]), (6, 5))
    >>> counsel.simulate.TeamPolicy(1, advice=[advice], priority=[worst])
    TeamPolicy(1 kind of person, at most 1 piece per step)
    """

    per_step: int
    advice: tuple[Ints, ...]
    priority: tuple[Floats, ...]
    chance: tuple[Floats, ...]
    longest_wait: int | None

    def __init__(
        self,
        per_step: int,
        *,
        advice: Sequence[ArrayLike],
        priority: Sequence[ArrayLike],
        chance: Sequence[ArrayLike] | None = None,
        longest_wait: int | None = None,
    ) -> None:
        said = tuple(_table("advice", i, table, "iu") for i, table in enumerate(advice))
        orders = tuple(_table("priority", i, table, "iuf") for i, table in enumerate(priority))
        if chance is None:
            chances = tuple(np.zeros(table.shape) for table in said)
        else:
            chances = tuple(_table("chance", i, table, "iuf") for i, table in enumerate(chance))
        for name, tables in (("priority", orders), ("chance", chances)):
            if len(tables) != len(said):
                raise CounselError(
                    f"{name} has {len(tables)} tables but advice has {len(said)}; give one for "
                    "each kind of person"
                )
            for i, (table, like) in enumerate(zip(tables, said, strict=True)):
                if table.shape != like.shape:
                    raise CounselError(
                        f"{name}[{i}] has shape {table.shape} but advice[{i}] has {like.shape}"
                    )
                where = first(np.isnan(table))
                if where is not None:
                    raise CounselError(f"{name}[{i}]{_place(where)} is NaN; give a number")
        for i, table in enumerate(chances):
            check_range(f"chance[{i}]", table, "mhs"[3 - table.ndim :], 0.0, 1.0)
        if longest_wait is not None:
            longest_wait = whole("longest_wait", longest_wait, least=0)
        fields: dict[str, Any] = {
            "per_step": whole("per_step", per_step, least=1),
            "advice": tuple(sealed(table.astype(np.int16)) for table in said),
            "priority": tuple(sealed(table.astype(np.float64)) for table in orders),
            "chance": tuple(sealed(table.astype(np.float64)) for table in chances),
            "longest_wait": longest_wait,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        kinds = f"{len(self.advice)} kind{'' if len(self.advice) == 1 else 's'} of person"
        wait = "" if self.longest_wait is None else f", nobody waits more than {self.longest_wait}"
        pieces = f"{self.per_step} piece{'' if self.per_step == 1 else 's'}"
        return f"TeamPolicy({kinds}, at most {pieces} per step{wait})"

    def __reduce__(self) -> tuple[Any, ...]:
        tables = (self.advice, self.priority, self.chance)
        return _built, (self.per_step, *tables, self.longest_wait)

    def check_fits(self, people: Sequence[AdviceProblem], counts: Ints) -> None:
        """Raise unless the policy is for this team and can be kept.

        Parameters
        ----------
        people, counts
            The kinds of people, and how many there are of each.
        """
        if len(people) != len(self.advice):
            raise CounselError(
                f"the policy is for {len(self.advice)} kinds of people; the team has {len(people)}"
            )
        size = int(counts.sum())
        if self.per_step > size:
            raise CounselError(
                f"per_step is {self.per_step}; it may be at most {size}, the size of the team"
            )
        for i, (person, advice) in enumerate(zip(people, self.advice, strict=True)):
            cells = (person.horizon, person.n_states)
            shapes = [cells] if person.memory is None else [cells, (person.n_levels, *cells)]
            if advice.shape not in shapes:
                expected = " or ".join(map(str, shapes))
                raise CounselError(f"advice[{i}] has shape {advice.shape}; expected {expected}")
            where = first((advice < 0) | (advice > person.defer))
            if where is not None:
                raise CounselError(
                    f"advice[{i}]{_place(where)} is {advice[where]}; it runs from 0 to "
                    f"{person.defer}, which means silence"
                )
            silent_or_allowed = np.concatenate(
                (person.mdp.allowed, np.ones((*cells, 1), dtype=np.bool_)), axis=2
            )
            h, s = np.indices(cells)
            where = first(~silent_or_allowed[h, s, advice])
            if where is not None:
                raise CounselError(f"advice[{i}]{_place(where)} is an action that is not allowed")
            if self.longest_wait is not None:
                where = first((advice == person.defer) & ~person.mdp.over[: person.horizon])
                if where is not None:
                    raise CounselError(
                        f"nobody may wait more than {self.longest_wait} steps, but advice[{i}]"
                        f"{_place(where)} is silence; give the advice for their turn"
                    )
        check_wait(self.longest_wait, self.per_step, size, people[0].horizon)


def check_wait(longest_wait: int | None, per_step: int, size: int, horizon: int) -> None:
    """Raise if a team is too large for everybody to be served in time."""
    if longest_wait is None or longest_wait >= horizon:
        return
    most = per_step * (longest_wait + 1)
    if size > most:
        raise CounselError(
            f"longest_wait is {longest_wait}, but {size} people wait up to "
            f"{-(-size // per_step) - 1} steps at {per_step} per step: at most {most} people can "
            "be served in time"
        )


def read_counts(counts: ArrayLike | None, kinds: int) -> Ints:
    """Return how many people there are of each kind."""
    if counts is None:
        return np.ones(kinds, dtype=np.int64)
    table = rectangular("counts", counts)
    if table.dtype.kind not in "iu" or table.shape != (kinds,):
        raise CounselError(
            f"counts is {table.dtype} of shape {table.shape}; give a whole number for each of the "
            f"{kinds} people"
        )
    where = first(table < 1)
    if where is not None:
        raise CounselError(f"counts{place('i', where)} is {table[where]}; it must be at least 1")
    return table.astype(np.int64)


def _table(name: str, i: int, values: ArrayLike, kinds: str) -> NDArray[Any]:
    table = rectangular(f"{name}[{i}]", values)
    if table.ndim not in (2, 3) or table.dtype.kind not in kinds:
        raise CounselError(
            f"{name}[{i}] is {brief(values)}; give {'whole ' if kinds == 'iu' else ''}numbers "
            "[h, s], or [m, h, s] for people with a memory"
        )
    return table


def _place(where: tuple[int, ...]) -> str:
    return place("mhs"[3 - len(where) :], where)


def _built(
    per_step: int,
    advice: Sequence[Ints],
    priority: Sequence[Floats],
    chance: Sequence[Floats],
    longest_wait: int | None,
) -> TeamPolicy:
    return TeamPolicy(
        per_step, advice=advice, priority=priority, chance=chance, longest_wait=longest_wait
    )
