"""Which memory a log shows, if any: pieces so far, rest, dose, refusals, or time in the study.

Each kind is tested by whether listening changes along its scale z (``MemoryKind.scale``) while all
else is held. With y, base, room and λ as in ``listening.py`` and T whether advice was seen,

    y − base − λ (T − p) room  =  own + step + z + t + (T − p) room (lift + step + t + δ z)

where *own* and *lift* are numbers for each person and each state, and t is time in the study (held
for every kind but itself); coefficients are left out. Silence at the same level is compared with
advice, so habits that drift with the level are no fatigue. States are compared with themselves, and
so are people: with their other episodes. δ < 0 means that people tire. Errors are clustered by
person, and the p-values are those of the largest of all statistics: each cluster's share in every
statistic is known, so the chance that any of them is as large without a memory follows from their
correlation.

The likelihood with a geometric fading (``fading.py``) says by how much each kind improves the fit,
time in the study held likewise. If any memory is significant and clearly improves the fit, the
choice is the kind with the highest likelihood of those that chance does not explain well. A kind
whose likelihood is not clearly lower, by clusters of people (Vuong's test), cannot be told from it.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from counsel._arrays import Floats, Ints
from counsel.logs.clustered import FEWEST_CLUSTERS, Regression, least_squares
from counsel.logs.count import Tally
from counsel.logs.decisions import load_decisions
from counsel.logs.estimate import Estimates
from counsel.logs.levels import can_cut_bands, prepare_kind
from counsel.logs.listening import Listening
from counsel.logs.memory_kind import MemoryKind
from counsel.logs.memory_likelihood import KindLikelihood, likelihoods
from counsel.logs.read import Log

DEFAULTS = ("tenure", "pieces=5", "since=3", "dose=0.6", "refusals=3")
"""The kinds that are compared."""

DRAWS = 20_000
"""Draws of the largest statistic."""

MOST_STATES = 60
"""States that have a habit and a lift of their own in the test: the most frequent."""

ENOUGH_EACH = 50.0
"""Pieces per person that a test of refusals needs: with fewer, people who tire of refusing look
like people who always refuse."""

LEVEL = 0.04
"""The p-value below which a kind is claimed: with few people errors are uncertain, too, and in one
log of twenty without a memory at most one may be claimed."""

LEAST_IMPROVEMENT = 2.0
"""The log likelihood that a kind must add to be claimed, by its one number: a regression alone
finds changes that hardly help to predict what people do."""

POSSIBLE = 0.25
"""The p-value below which a kind may be chosen once a memory is claimed: several kinds of memory
show in the same logs, and the one that is true need not have the smallest p-value."""

WORSE = 1.645
"""A kind is clearly worse than another if its likelihood is lower by this many errors."""


@dataclass(frozen=True, slots=True)
class MemoryTest:
    """The test of one kind of memory."""

    kind: MemoryKind
    factor: float  # what a unit of the scale multiplies the lift by
    statistic: float  # δ over its error
    p_value: float  # of no such change, for all kinds together
    improvement: float  # of the log likelihood, by one number
    fading: tuple[float | None, ...] = ()  # of each level; None where there was no advice
    is_alike: bool = False  # whether it cannot be told from the kind that was chosen

    @property
    def is_clear(self) -> bool:
        """Whether chance does not explain the change, and the change explains the log better."""
        return self.is_significant and self.improvement >= LEAST_IMPROVEMENT

    @property
    def is_significant(self) -> bool:
        """Whether chance does not explain the change, however small it is."""
        return self.p_value < LEVEL


@dataclass(frozen=True, slots=True)
class MemoryTests:
    """What was compared, and the choice; ``skipped`` are kinds that could not be, and why.

    ``across`` is what memories are carried over: "episode" or "person".
    """

    tests: tuple[MemoryTest, ...]
    choice: MemoryKind | None
    across: str
    skipped: tuple[tuple[str, str], ...] = ()

    @property
    def chosen(self) -> MemoryTest | None:
        """The test of the kind that was chosen."""
        return next((test for test in self.tests if test.kind == self.choice), None)

    @property
    def alike(self) -> tuple[MemoryTest, ...]:
        """Other kinds that cannot be told from the chosen one."""
        return tuple(t for t in self.tests if t.is_alike and t.kind != self.choice)


def compare_memories(
    log: Log, tally: Tally, estimates: Estimates, across: str, most: float
) -> MemoryTests:
    """Compare all kinds of memory on a log, on at most so many decisions."""
    kinds, skipped = _candidates(log, across)
    rows = load_decisions(log, tally, estimates.problem, most, kinds)
    listening = Listening.of(rows, estimates)
    if listening is None:
        reason = "no advice was seen where the habit is known"
        return MemoryTests((), None, across, (*skipped, *((kind.name, reason) for kind in kinds)))
    tests = compare_listening(listening, kinds)
    return replace(tests, across=across, skipped=(*skipped, *tests.skipped))


def _candidates(
    log: Log, across: str
) -> tuple[tuple[MemoryKind, ...], tuple[tuple[str, str], ...]]:
    """Return the kinds that a log can be tested for, and why others cannot."""
    kinds, skipped = list[MemoryKind](), list[tuple[str, str]]()
    for text in DEFAULTS:
        kind = MemoryKind.parse(text, across)
        reason = can_cut_bands(log) if kind.kind == "tenure" else None
        if reason is None:
            kinds.append(prepare_kind(log, kind))
        else:
            skipped.append((kind.name, reason))
    return tuple(kinds), tuple(skipped)


def compare_listening(listening: Listening, kinds: tuple[MemoryKind, ...]) -> MemoryTests:
    """Compare kinds whose levels the decisions have."""
    levels = np.asarray(listening.rows.levels)
    across = max((kind.across for kind in kinds if kind.kind != "tenure"), default="episode")
    usable, left_out = list[int](), list[tuple[str, str]]()
    for i, kind in enumerate(kinds):
        reason = _reason_against(listening, kind, levels[:, i])
        if reason is None:
            usable.append(i)
        else:
            left_out.append((kind.name, reason))
    if not usable:
        return MemoryTests((), None, across, tuple(left_out))
    kept = tuple(kinds[i] for i in usable)
    scales = [kind.scale[levels[:, i]] for kind, i in zip(kept, usable, strict=True)]
    statistics, p_values = _largest(_Moderation(listening), kept, scales)
    fits = likelihoods(listening, kept, levels[:, usable])
    tests = [
        MemoryTest(
            kind=kind,
            factor=fit.factor,
            statistic=float(statistics[i]),
            p_value=float(p_values[i]),
            improvement=fit.improvement,
            fading=tuple(None if math.isnan(f) else f for f in fit.fading),
        )
        for i, (kind, fit) in enumerate(zip(kept, fits, strict=True))
    ]
    tests, choice = _choose(tests, fits)
    return MemoryTests(tuple(tests), choice, across, tuple(left_out))


def _choose(
    tests: list[MemoryTest], fits: list[KindLikelihood]
) -> tuple[list[MemoryTest], MemoryKind | None]:
    """Choose the likeliest kind of those that may be true; memories before tenure.

    That there is a memory at all needs a significant test of one; which one it is, does not.
    """
    clear = [i for i, test in enumerate(tests) if test.is_clear]
    if not clear:
        return tests, None
    memories = []
    if any(tests[i].kind.kind != "tenure" for i in clear):
        is_memory = [test.kind.kind != "tenure" and test.p_value < POSSIBLE for test in tests]
        memories = [i for i, possible in enumerate(is_memory) if possible]
    best = max(memories or clear, key=lambda i: tests[i].improvement)
    if memories:
        others = [i for i, test in enumerate(tests) if test.kind.kind != "tenure" and i != best]
        alike = {i for i in others if fits[best].advantage(fits[i]) < WORSE}
        tests = [replace(test, is_alike=i in alike) for i, test in enumerate(tests)]
    return tests, tests[best].kind


def _reason_against(listening: Listening, kind: MemoryKind, level: Ints) -> str | None:
    """Return why a kind cannot be tested; None if it can."""
    rows = listening.rows
    if np.unique(rows.cluster[rows.episode]).size < FEWEST_CLUSTERS:
        return f"there are fewer than {FEWEST_CLUSTERS} people or episodes"
    if np.unique(level[listening.advised]).size < 2:
        return "all advice was given at the same level"
    if kind.kind != "refusals":
        return None
    people = int(rows.person.max(initial=-1)) + 1
    if people == 0:
        return "the log does not name people, and some may refuse more than others"
    if people > 1 and listening.advised.sum() < ENOUGH_EACH * people:
        return (
            f"there are fewer than {ENOUGH_EACH:g} pieces per person, too few to tell it from "
            "people who refuse more than others"
        )
    return None


class _Moderation:
    """The regression that tells whether listening changes along a scale; arrays are [row]."""

    def __init__(self, listening: Listening) -> None:
        rows = listening.rows
        self.cluster = rows.cluster[rows.episode]
        self.moves = (listening.advised - listening.chance) * listening.room
        y = listening.match - listening.base - self.moves * listening.likely
        self.y = y - self._of_other_episodes(y, rows.person[rows.episode], rows.episode)
        often = np.argsort(-np.bincount(rows.state), kind="stable")[1:MOST_STATES]
        states = (rows.state[:, None] == often[None]).astype(np.float64)
        step = _standard(rows.place.astype(np.float64))
        moved = states * self.moves[:, None]
        own = (np.ones(y.size), self.moves, *self.moderated(step))
        self.held = np.column_stack((*own, states, moved))

    def moderated(self, scale: Floats) -> tuple[Floats, Floats]:
        """Return a scale, and what it changes of listening."""
        return scale, self.moves * scale

    def _of_other_episodes(self, y: Floats, who: Ints, episode: Ints) -> Floats:
        """Return what the person's habit and listening in their other episodes make of y.

        Levels follow from the episode so far: compared with a mean over the episode itself,
        whoever happened to refuse early would seem to listen more afterwards.
        """
        moves = self.moves
        columns = np.stack((np.ones(y.size), moves, moves**2, y, moves * y))

        def others(key: Ints) -> Floats:
            at = np.unique(key, return_inverse=True)[1]
            return np.stack([np.bincount(at, column)[at] for column in columns])

        n, m, mm, total, product = others(who) - others(episode)
        some = (n > 1.0) & (who >= 0)
        n = np.where(some, n, 1.0)
        spread = mm - m**2 / n
        known = some & (spread > 1e-9 * n)
        slope = np.divide(product - m * total / n, spread, out=np.zeros(y.size), where=known)
        own: Floats = np.where(some, total / n + slope * (moves - m / n), 0.0)
        return own

    def of(self, scale: Floats, tenure: Floats | None) -> tuple[Regression, int]:
        """Return the regression on a scale, and the column of its change of listening."""
        columns = list(self.moderated(_standard(scale)))
        if tenure is not None:
            columns += self.moderated(_standard(tenure))
        x = np.column_stack((self.held, *columns))
        return least_squares(self.y, x, self.cluster), self.held.shape[1] + 1


def _standard(scale: Floats) -> Floats:
    spread = float(scale.std()) or 1.0
    standard: Floats = (scale - scale.mean()) / spread
    return standard


def _largest(
    moderation: _Moderation, kinds: tuple[MemoryKind, ...], scales: list[Floats]
) -> tuple[Floats, Floats]:
    """Return the statistic of each kind, and its p-value for the largest of all."""
    tenure = next((z for k, z in zip(kinds, scales, strict=True) if k.kind == "tenure"), None)
    statistic, shares = np.zeros(len(kinds)), []
    for i, (kind, scale) in enumerate(zip(kinds, scales, strict=True)):
        regression, at = moderation.of(scale, None if kind.kind == "tenure" else tenure)
        error = regression.error(np.eye(regression.coefficient.size)[at])
        scaled = 1.0 / error if error > 0.0 else 0.0
        statistic[i] = regression.coefficient[at] * scaled
        shares.append(regression.influence[:, at] * scaled)
    share = np.stack(shares, axis=1)
    correlation = share.T @ share
    rng = np.random.default_rng(0)
    G = len(share)
    drawn = rng.multivariate_normal(np.zeros(len(kinds)), correlation, DRAWS, method="eigh")
    drawn /= np.sqrt(rng.chisquare(G - 1.0, DRAWS) / (G - 1.0))[:, None]
    largest = np.abs(drawn).max(axis=1)
    beyond = (largest[:, None] >= np.abs(statistic)).sum(axis=0)
    return statistic, (1.0 + beyond) / (1.0 + DRAWS)
