"""The price of a piece where all episodes of an adviser share a limit per stretch of time.

A decision at which the plan would speak is an *offer*: it has a cost, and a *bid*, what a piece is
worth there per unit of cost. Pieces must not go to whoever comes first, so an offer is taken only
if its bid exceeds the *price*: the bid above which the offers expected in the rest of the stretch
cost as much as is left. Of offers whose bid is the price, a share is taken at random, such that the
rest of the stretch uses what is left and no more. If everything that is expected can be taken, the
price is 0. The price is computed anew after every offer, so a stretch that turns out busier or
calmer than expected is corrected on the way.

What is expected follows from the offers of earlier stretches, taken or not: the cost offered at
each bid, and in each of ``PARTS`` parts of the stretch (the hours of a day), because people do not
come evenly. Old stretches are forgotten little by little. Bids are taken to be alike in all parts,
and stretches without any offer are left out.

The clock and the number of offers so far both say how far a stretch has got. Let a stretch usually
bring offers of cost ``m`` with variance ``v``, of which a share ``f`` usually came by now, and let
``n`` have come. The best linear estimate of the cost of the whole stretch is ``m + w (n - f m)``
with ``w = f v / (f^2 v + s)``, where ``s`` is the variance of ``n`` if the whole is known; the rest
is this less ``n``. If people come independently of each other, ``s`` is ``f (1 - f) m`` times the
cost of a piece, and an early rush means a busy stretch. If they come in batches, ``s`` is up to
``f (1 - f) m^2``, ``w`` is small, and an early rush is only early: what came is no longer to come.
``Demand.clumping`` says where between the two the offers are, and ``Demand.surprise`` how much
whole stretches differ; both are learnt from how earlier stretches differed from what was usual.

In the first stretch of all, offers are expected to go on coming as they did since the first one,
but after little time only about as many again as there were; the price starts at 0.

Everything is a function of the record: all services find the same price.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

PARTS = 24
"""Parts of a stretch in which offers are counted."""

FORGETTING, ENOUGH = 0.9, 200.0
"""The factor by which what is remembered shrinks with each stretch, and the number of offers up to
which nothing is forgotten."""

USUAL = 10.0
"""Offers that it takes before a stretch is believed to be half as unusual as it looks, as long as
nothing is known of how stretches differ."""

SURE, LARGEST_SURPRISE = 3.0, 10.0
"""The number of stretches that it takes to learn half of how much stretches differ, and the most
that one of them counts, in squared standard deviations."""

TRUST = 4
"""The power of one more than the parts watched so far, in which the first stretch of all may bring
as many offers again as there were."""

SMOOTHING = 3.0
"""Offers by which the parts of a stretch are drawn together."""

LEAST_BID = 1e-12


class Price(NamedTuple):
    """Offers with a larger bid than ``bid`` are taken, and those with this bid with ``chance``."""

    bid: float
    chance: float

    def chance_of(self, bid: float) -> float:
        """Return the probability with which an offer of this (rounded) bid is taken."""
        if bid == self.bid:
            return self.chance
        return 1.0 if bid > self.bid else 0.0


FREE = Price(0.0, 1.0)


def rounded(bid: float) -> float:
    """Return a bid with two digits, as offers are counted; bids are above 0."""
    return float(f"{max(bid, LEAST_BID):.2g}")


@dataclass(slots=True)
class Demand:
    """Offers: how many, their cost at each (rounded) bid, and their cost in each part of a stretch.

    ``exposed`` counts, for each part, the stretches in which it was watched. ``strayed`` and
    ``surprise`` sum how far offers of earlier stretches were from when they usually come, and their
    number from the usual one, beyond chance. ``places`` sums, over the offers of this stretch, what
    ``strays`` needs.
    """

    offers: float = 0.0
    bids: dict[float, float] = field(default_factory=dict)
    parts: list[float] = field(default_factory=lambda: [0.0] * PARTS)
    exposed: list[float] = field(default_factory=lambda: [0.0] * PARTS)
    strayed: float = 0.0
    surprise: float = 0.0
    places: list[float] = field(default_factory=lambda: [0.0] * 3)
    _usual: list[float] | None = None

    def add(self, bid: float, cost: float, when: float, usual: float | None = None) -> None:
        """Count an offer at a share ``when`` of the stretch, by which ``usual`` usually came.

        ``usual`` is a share of what comes in a stretch; by default people come evenly.
        """
        place, usual = self.cost + cost / 2.0, when if usual is None else usual
        for i, square in enumerate((place * place, place * usual, usual * usual)):
            self.places[i] += square
        self.offers += 1.0
        self.bids[bid] = self.bids.get(bid, 0.0) + cost
        self.parts[part_of(when)] += cost

    @property
    def cost(self) -> float:
        """The cost of all offers."""
        return sum(self.parts)

    @property
    def strays(self) -> float:
        """How far the offers of a stretch were from when they usually come; by chance 0 on average.

        The squared differences between the share of the offers and the share that usually came,
        summed over the offers, are 1/6 on average if people come independently of each other, and
        a twelfth of the number of offers or more if they come in one batch.
        """
        if self.cost == 0.0:
            return 0.0
        squares, products, usual = self.places
        return 6.0 * (squares / self.cost**2 - 2.0 * products / self.cost + usual) - 1.0

    @property
    def clumping(self) -> float:
        """How much people came in batches: 0 if independently of each other, 1 if all at once."""
        return min(max(self.strayed / self.offers, 0.0), 1.0) if self.offers else 0.0

    @property
    def piece(self) -> float:
        """The mean cost of an offer."""
        return self.cost / self.offers

    @property
    def variability(self) -> float:
        """The variance of the cost of a stretch, relative to the one assumed at first."""
        known = SURE + max(self.exposed)
        return (known + self.surprise) / known

    def usual_between(self, start: float, end: float) -> float:
        """Return the cost usually offered between two shares of a stretch."""
        return self.usual_until(end) - self.usual_until(start)

    def usual_share(self, opened: float, when: float) -> float:
        """Return the share of the cost usually offered from ``opened`` on that comes by a time."""
        whole = self.usual_between(opened, 1.0)
        if whole > 0.0:
            return self.usual_between(opened, when) / whole
        return (when - opened) / (1.0 - opened) if opened < 1.0 else 1.0

    def usual_until(self, when: float) -> float:
        """Return the cost usually offered from the start of a stretch to a share of it."""
        if self._usual is None:
            self._usual = [0.0, *accumulate(self._usual_parts())]
        part = part_of(when)
        before, after = self._usual[part], self._usual[part + 1]
        return before + (after - before) * (when * PARTS - part)

    def _usual_parts(self) -> list[float]:
        """Return the cost usually offered in each part; parts are drawn together a little.

        The more people come in batches, the less parts say of each other.
        """
        if self.cost == 0.0:
            return [0.0] * PARTS
        alike, mean = 1.0 - self.clumping, self.cost / sum(self.exposed)
        some = max(alike, 1e-9) * SMOOTHING * self.piece / mean
        return [
            (cost + some * alike * mean) / (exposed + some)
            for cost, exposed in zip(self.parts, self.exposed, strict=True)
        ]

    def to_text(self) -> str:
        """Return the numbers as JSON."""
        numbers = {"offers": self.offers, "bids": self.bids, "parts": self.parts}
        if any(self.exposed):
            numbers["exposed"] = self.exposed
        if any(self.places):
            numbers["places"] = self.places
        if self.strayed:
            numbers["strayed"] = self.strayed
        if self.surprise:
            numbers["surprise"] = self.surprise
        return json.dumps(numbers, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> "Demand":
        """Return what ``to_text`` has written."""
        numbers = json.loads(text)
        bids = {float(bid): cost for bid, cost in numbers["bids"].items()}
        exposed = numbers.get("exposed", [0.0] * PARTS)
        strayed, surprise = (numbers.get(name, 0.0) for name in ("strayed", "surprise"))
        places = numbers.get("places", [0.0] * 3)
        return cls(numbers["offers"], bids, numbers["parts"], exposed, strayed, surprise, places)


@lru_cache(1000)
def memory_from_text(text: str) -> Demand:
    """Return what is remembered, which does not change in the course of a stretch."""
    return Demand.from_text(text)


def part_of(when: float) -> int:
    """Return the part of a stretch in which a share of it has passed."""
    return min(max(int(when * PARTS), 0), PARTS - 1)


def remember(memory: Demand, seen: Demand, opened: float) -> Demand:
    """Return what is remembered after a stretch, which was watched from ``opened`` (a share) on.

    The part in which watching started counts as watched from its start: nobody knows whether what
    came in its last seconds would have come all the time.
    """
    keep = FORGETTING if memory.offers >= ENOUGH else 1.0
    bids = {bid: keep * cost for bid, cost in memory.bids.items()}
    for bid, cost in seen.bids.items():
        bids[bid] = bids.get(bid, 0.0) + cost
    largest = max(bids.values(), default=0.0)
    return Demand(
        _short(keep * memory.offers + seen.offers),
        {bid: _short(cost) for bid, cost in bids.items() if cost > 1e-3 * largest},
        [_short(keep * old + new) for old, new in zip(memory.parts, seen.parts, strict=True)],
        [_short(keep * old + (p >= part_of(opened))) for p, old in enumerate(memory.exposed)],
        _short(keep * memory.strayed + seen.strays),
        _short(keep * memory.surprise + _surprise(memory, seen, opened)),
    )


def _surprise(memory: Demand, seen: Demand, opened: float) -> float:
    """Return how far the cost of a stretch was from the usual one; by chance 0 on average."""
    if memory.cost == 0.0:
        return 0.0
    mean = memory.usual_between(opened, 1.0)
    variance = mean * _variance_per_cost(memory.piece, mean)
    return min((seen.cost - mean) ** 2 / variance, LARGEST_SURPRISE) - 1.0


def _variance_per_cost(piece: float, mean: float) -> float:
    """Return the variance assumed at first of a stretch's cost, per its mean."""
    return piece + mean / USUAL


def expected_cost(memory: Demand, seen: Demand, opened: float, now: float) -> float:
    """Return the cost of the offers expected in the rest of a stretch, of which ``now`` has passed.

    ``opened`` is the share of the stretch from which on it was watched.
    """
    if sum(memory.exposed) == 0.0:
        return _first_expected_cost(seen, now - opened, 1.0 - now)
    if memory.cost == 0.0:
        return 0.0
    piece, mean = memory.piece, memory.usual_between(opened, 1.0)
    share = memory.usual_share(opened, now)
    whole = memory.variability * _variance_per_cost(piece, mean)
    chance = (1.0 - share) * (piece + max(mean - piece, 0.0) * memory.clumping)
    weight = whole / (share * whole + chance)
    return max(mean + weight * (seen.cost - share * mean) - seen.cost, 0.0)


def _first_expected_cost(seen: Demand, watched: float, rest: float) -> float:
    """Return the cost expected in the rest of the first stretch, watched for a share of it.

    The first offer only starts the clock.
    """
    if seen.offers < 2.0:
        return 0.0
    after_first, again = seen.cost - seen.piece, (1.0 + watched * PARTS) ** TRUST
    return after_first * (min(rest / watched, again) if watched > 0.0 else again)


def price_of(left: float, expected: float, demands: Iterable[Demand]) -> Price:
    """Return the price at which offers of an expected cost use what is left.

    ``demands`` have the bids that are expected, in proportion to their cost.
    """
    if expected <= left:
        return FREE
    costs = dict[float, float]()
    for demand in demands:
        for bid, cost in demand.bids.items():
            costs[bid] = costs.get(bid, 0.0) + cost
    total = sum(costs.values())
    if total == 0.0:
        return FREE
    taken = 0.0
    bid, chance = 0.0, 1.0
    for bid in sorted(costs, reverse=True):
        here = expected * costs[bid] / total
        if taken + here >= left:
            chance = max((left - taken) / here, 0.0)
            break
        taken += here
    return Price(bid, chance)


def _short(number: float) -> float:
    """Return a number with few digits, so that its text is short."""
    return float(f"{number:.6g}")
