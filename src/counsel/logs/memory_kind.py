"""What people may remember of the advice in a log: the kinds of memory that can be fitted.

=====================  ==========================================================================
``pieces=N``           pieces of advice so far: 0 … N, where N means N or more
``since=N``            silent decisions since the last piece: 0 (just now) … N (long ago)
``dose=DECAY``         a dose that every piece raises by 1 and every decision multiplies by DECAY
``refusals=N``         refusals in a row: 0 … N; a match resets them, silence changes nothing
``tenure``             time in the study: the person's episodes so far, in bands
=====================  ==========================================================================

The first four are kinds of ``counsel.Memory``: advice moves the level. Time in the study passes
whether or not anything is said, so it is no memory: it changes what a plan is made for, and the
plan itself is a plain one.

Levels are those of an episode, or with ``across`` those of all decisions of a person in order.
"""

from dataclasses import dataclass

import numpy as np

from counsel._arrays import Floats, brief, positive, whole
from counsel.errors import CounselError
from counsel.model.memory import Memory

KINDS = ("pieces", "since", "dose", "refusals", "tenure")
ACROSS = ("episode", "person")

MOST_LEVELS = 100
"""The most levels of a memory that a log may be fitted with."""

DOSE_LEVELS = (5, 13)
"""The fewest and the most levels of a dose; in between, levels are 1 apart or less."""

BANDS = 6
"""Bands of time in the study, with about as many decisions each."""


@dataclass(frozen=True, slots=True)
class MemoryKind:
    """A kind of memory and its size.

    ``size`` is N, or the decay of a dose; ``across`` is "episode" if levels start anew with every
    episode, "person" if they go on over a person's episodes. ``cuts`` are the first episodes of the
    second and later bands of time in the study, counted from 0. ``mix`` is how much the people
    found on each level listen, over all people (``level_mix.py``); empty where people are alike.
    """

    kind: str
    size: float = 0.0
    across: str = "episode"
    cuts: tuple[int, ...] = ()
    mix: tuple[float, ...] = ()

    @classmethod
    def parse(cls, text: object, across: str = "episode") -> "MemoryKind":
        """Parse ``pieces=3``, ``since=3``, ``dose=0.8``, ``refusals=2`` or ``tenure``."""
        if not isinstance(text, str):
            raise CounselError(f"memory is {brief(text)}; give a text such as 'pieces=3'")
        if across not in ACROSS:
            raise CounselError(f"across is {across!r}; it must be one of {', '.join(ACROSS)}")
        kind, equals, size = (part.strip() for part in text.partition("="))
        if kind not in KINDS:
            raise CounselError(
                f"memory is {text!r}; give none, pieces=N, since=N, dose=DECAY, refusals=N, tenure "
                "or auto"
            )
        if kind == "tenure":
            if equals:
                raise CounselError(f"memory is {text!r}; tenure has no number")
            return cls(kind, across="person")
        if not equals:
            number = "DECAY, e.g. dose=0.8" if kind == "dose" else f"N, e.g. {kind}=3"
            raise CounselError(f"memory is {text!r}; write {kind}={number}")
        if kind == "dose":
            decay = positive(f"the decay of memory {text!r}", _number(text, size), 1.0)
            return cls(kind, decay, across)
        return cls(kind, float(_levels(text, size)), across)

    @property
    def name(self) -> str:
        """The kind as it is typed."""
        return self.kind if self.kind == "tenure" else f"{self.kind}={self.size:g}"

    @property
    def memory(self) -> Memory | None:
        """How advice moves the level; None for time in the study, which advice does not move."""
        if self.kind == "tenure":
            return None
        if self.kind == "dose":
            return Memory.dose(self.size, self.n_levels)
        build = {"pieces": Memory.pieces, "since": Memory.since, "refusals": Memory.refusals}
        return build[self.kind](int(self.size))

    @property
    def n_levels(self) -> int:
        """The number of levels."""
        if self.kind == "tenure":
            return len(self.cuts) + 1
        if self.kind == "dose":
            fewest, most = DOSE_LEVELS
            return int(np.clip(np.ceil(1.0 / (1.0 - self.size)) + 1.0, fewest, most))
        return int(self.size) + 1

    @property
    def start(self) -> int:
        """The level of somebody who was never advised, or who has just joined."""
        return int(self.size) if self.kind == "since" else 0

    @property
    def scale(self) -> Floats:
        """How tired each level is [m], as a number that is 0 at the start."""
        level = np.arange(self.n_levels, dtype=np.float64)
        if self.kind == "since":
            return self.size - level
        return level * self.spacing if self.kind == "dose" else level

    @property
    def spacing(self) -> float:
        """The distance between two levels of a dose."""
        return 1.0 / (1.0 - self.size) / (self.n_levels - 1.0)

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of each level."""
        memory = self.memory
        if memory is not None:
            return memory.labels
        firsts = (0, *self.cuts)
        lasts = (*(cut for cut in self.cuts), None)
        return tuple(
            f"episode {first + 1} on"
            if last is None
            else f"episode {last}"
            if last == first + 1
            else f"episodes {first + 1} to {last}"
            for first, last in zip(firsts, lasts, strict=True)
        )

    @property
    def words(self) -> str:
        """What changes how much people listen, in words."""
        whose = "" if self.across == "episode" else ", over all episodes of a person"
        return {
            "pieces": f"pieces of advice so far{whose}",
            "since": f"decisions since the last piece of advice{whose}",
            "dose": f"a dose of advice that keeps {self.size:.3g} of itself per decision{whose}",
            "refusals": f"refusals in a row{whose}",
            "tenure": "time in the study",
        }[self.kind]


def _number(text: str, number: str) -> float:
    try:
        return float(number)
    except ValueError:
        raise CounselError(f"memory is {text!r}; {number!r} is not a number") from None


def _levels(text: str, number: str) -> int:
    size = _number(text, number)
    name = f"the number of memory {text!r}"
    most = whole(name, int(size) if size == np.floor(size) and np.isfinite(size) else size, least=1)
    if most >= MOST_LEVELS:
        raise CounselError(f"{name} is {most:,}; it must be below {MOST_LEVELS}")
    return most
