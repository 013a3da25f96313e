"""Who is found on which level of a memory: there are more refusals with people who listen less.

With g the lift of a person over that of all people, advice at level m moves people by the fading
f_m times the mean of g over the pieces at m. Where advice or levels depend on what people did, the
mean differs from level to level, and people would seem to tire who only differ. The mix of a level
is this mean. Given all that is known of each person it is exact, as their lifts are partially
pooled; lifts are estimated with the fading, and the fading with the mix, by turns.
"""

import math
from dataclasses import replace

import numpy as np

from counsel.logs.count import Tally
from counsel.logs.decisions import Decisions
from counsel.logs.estimate import Estimates
from counsel.logs.fading import reference_level, unmix
from counsel.logs.listening import Listening
from counsel.logs.memory_kind import MemoryKind
from counsel.logs.memory_tests import MemoryTest, MemoryTests

TURNS = 3
"""How often the mix is estimated; the second time changes it by little."""

LEAST_LIFT = 0.02
"""With less lift on average, people cannot be compared with the average."""

EXTREMES = (0.1, 10.0)
"""A mix beyond is not believed."""


def level_mix(rows: Decisions, estimates: Estimates, kind: MemoryKind) -> tuple[float, ...]:
    """Return the mix of each level, or nothing if it cannot be told.

    ``rows`` have the levels of the kind, and the fading of ``estimates`` leaves out the mix.
    """
    listening = Listening.of(rows, estimates)
    if listening is None or listening.rows.levels is None or estimates.fading is None:
        return ()
    level, told = listening.rows.levels[:, 0], listening.advised
    who = listening.rows.person[listening.rows.episode]
    pieces = np.bincount(level[told], minlength=kind.n_levels).astype(np.float64)
    reference, known = reference_level(kind, pieces), np.flatnonzero(pieces)
    for _ in range(TURNS):
        fading = unmix(estimates.fading, kind, reference)
        people = replace(listening, likely=listening.likely * fading[level]).people()
        if people is None:
            return ()
        number = {name: i for i, name in enumerate(rows.people)}
        lift = np.full(len(rows.people) + 1, people.lift.mean())  # last: people without a name
        lift[[number[str(name)] for name in people.by.keys]] = people.lift
        own = lift[who[told]]
        average = float(own.mean())
        if average < LEAST_LIFT:
            return ()
        mean = np.bincount(level[told], own, kind.n_levels)[known] / pieces[known]
        mix = np.interp(np.arange(kind.n_levels), known, np.clip(mean / average, *EXTREMES))
        kind = replace(kind, mix=tuple(mix.tolist()))
    return kind.mix


def without_mix(tests: MemoryTests, tally: Tally) -> MemoryTests:
    """Return what was compared, where the chosen kind has the fading of the same people."""
    kind, chosen = tally.memory, tests.chosen
    if kind is None or not kind.mix or tally.level is None or chosen is None:
        return tests
    told = tally.heard < len(tally.actions)
    pieces = np.bincount(tally.level[told], tally.times[told], kind.n_levels).astype(np.float64)
    reference = reference_level(kind, pieces)
    factors = unmix(np.ones(kind.n_levels), kind, reference)
    tired = kind.scale - kind.scale[reference]
    per_unit = (pieces * tired) @ np.log(factors) / ((pieces * tired) @ tired)
    fading = tuple(
        None if own is None else own * float(factor)
        for own, factor in zip(chosen.fading, factors, strict=True)
    )
    same = replace(chosen, factor=chosen.factor * math.exp(per_unit), fading=fading)

    def updated(test: MemoryTest) -> MemoryTest:
        return same if test is chosen else test

    return replace(tests, tests=tuple(updated(test) for test in tests.tests))
