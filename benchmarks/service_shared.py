"""What a limit shared by all episodes costs in round trips, and whether it is ever exceeded."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import sqlalchemy as sa

from benchmarks.callers import Load, call
from benchmarks.results import Row, against, alone
from counsel.service.core.shared_limit import stretch_start
from counsel.service.db.engine import open_engine
from counsel.service.db.tables import decisions, episodes

SHARED = {"pieces": 20, "per": "second"}
"""Scarce: fifty callers would use several times as many."""

TURNS = 6


@dataclass(slots=True)
class Turns:
    """Round trips in turns, with a shared limit and without."""

    limited: list[Load] = field(default_factory=list)
    free: list[Load] = field(default_factory=list)

    @staticmethod
    def rate(loads: list[Load]) -> float:
        """Return the round trips per second over all turns."""
        return sum(load.acknowledged for load in loads) / sum(load.seconds for load in loads)

    def spread(self) -> tuple[float, float, float]:
        """Return the lowest, median and highest ratio of single turns."""
        ratios = [one.rate / two.rate for one, two in zip(self.limited, self.free, strict=True)]
        return min(ratios), float(np.median(ratios)), max(ratios)


def shared_limit(
    url: str, port: int, advisers: tuple[str, str], callers: int, seconds: float
) -> Iterator[Row]:
    """Let callers call in turns: an adviser with a shared limit, and the same one without.

    Turns without a limit, which prove less, take half as long.
    """
    limited, free = advisers
    turns = Turns()
    for adviser in advisers:
        call(port, adviser, callers=callers, seconds=2.0)
    for _ in range(TURNS):
        turns.limited.append(call(port, limited, callers=callers, seconds=seconds / TURNS))
        turns.free.append(call(port, free, callers=callers, seconds=seconds / TURNS / 2))
    stretches, most, over = counted(url, limited)
    where = "Two processes on PostgreSQL, with a shared limit"
    faults = sum(len(load.faults) for load in turns.limited + turns.free)
    yield against(
        f"{where}: pieces of advice with their outcomes",
        turns.rate(turns.limited),
        "round trips/s",
        "Counsel without a shared limit",
        turns.rate(turns.free),
        more=True,
        ratio=0.8,
        spread=turns.spread(),
        note=f"{callers} callers in {TURNS} turns of {seconds / TURNS:g} s with a limit and "
        f"{seconds / TURNS / 2:g} s without; {faults} errors.",
    )
    yield alone(
        f"{where}: stretches of time over the limit",
        float(over),
        "stretches",
        "a plain service has no limit",
        most=0.0,
        note=f"{stretches:,} stretches of 1 s, counted from the record; at most {most} of "
        f"{SHARED['pieces']} pieces in each.",
    )


def counted(url: str, adviser: str) -> tuple[int, int, int]:
    """Return the seconds with advice on record, the most pieces in one, and how many exceed."""
    engine = open_engine(url)
    query = (
        sa.select(decisions.c.at)
        .join(episodes, episodes.c.number == decisions.c.episode)
        .where(episodes.c.adviser == adviser, decisions.c.shown, decisions.c.advice.is_not(None))
    )
    with engine.connect() as connection:
        times = [stretch_start(at, 1) for at in connection.scalars(query)]
    engine.dispose()
    _, pieces = np.unique(times, return_counts=True)
    return pieces.size, int(pieces.max()), int((pieces > SHARED["pieces"]).sum())
