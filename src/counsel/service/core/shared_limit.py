"""A limit that all episodes of an adviser share: hard, per stretch of time.

Stretches are counted from Monday, 5 January 1970, 00:00 UTC: a day starts at midnight, a week on
Monday. A piece is charged to the stretch of the time on its record, under the database's lock, in
the transaction that puts it on record. So counted from the record, no stretch ever exceeds the
limit, however many services there are and whatever their clocks say.

Only what is shown is charged: nothing in shadow mode and in silent episodes. Must-say advice is not
charged and never withheld, as with budgets.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from counsel.planning.gains import gains_at
from counsel.service.core.episode import Episode
from counsel.service.core.explained_plan import ExplainedPlan
from counsel.service.core.live_adviser import LiveAdviser
from counsel.service.core.settings import SharedLimit
from counsel.service.core.shared_price import (
    Demand,
    Price,
    expected_cost,
    memory_from_text,
    price_of,
    remember,
    rounded,
)
from counsel.service.db import stretch_queries
from counsel.service.db.queries import Amount, amount
from counsel.service.db.stretch_queries import StretchKey

MONDAY = 4 * 86_400
"""Seconds from 1970 to the first Monday, from which stretches are counted."""

ROUNDING = 1e-9
"""By how much of the limit costs may exceed it, because sums of fractions are rounded."""


def stretch_start(at: float, seconds: int) -> int:
    """Return when the stretch of a time started, in seconds since 1970."""
    return MONDAY + int((at - MONDAY) // seconds) * seconds


class Offer(NamedTuple):
    """Advice that the plan would give, its cost, and what it is worth per unit of cost."""

    advice: int
    cost: Amount
    bid: float


@dataclass(slots=True, eq=False)
class Stretch:
    """The account of a stretch: what was spent and offered in it.

    ``opened`` is the time from which on offers were counted, later than the start only in the first
    stretch of all. ``priced`` sums the prices at which offers were decided.
    """

    key: StretchKey
    pieces: float
    memory: Demand
    opened: float
    seen: Demand = field(default_factory=Demand)
    spent: float = 0.0
    priced: float = 0.0
    is_new: bool = True
    is_closed: bool = False
    has_changed: bool = False
    _price: Price | None = None

    @property
    def left(self) -> float:
        """What is left of the limit, which may have been lowered."""
        return 0.0 if self.is_closed else max(self.pieces - self.spent, 0.0)

    @property
    def end(self) -> int:
        """When the stretch ends, in seconds since 1970."""
        return self.key.start + self.key.seconds

    def has_room(self, cost: float) -> bool:
        """Whether a piece of this cost is within the limit."""
        return not self.is_closed and cost <= self.left + ROUNDING * self.pieces

    def expected(self, at: float) -> float:
        """Return the cost of the offers expected from a time to the end of the stretch."""
        return expected_cost(self.memory, self.seen, self._share(self.opened), self._share(at))

    def price(self, at: float) -> Price:
        """Return the price at a time; it is computed anew after each offer."""
        if self._price is None:
            self._price = price_of(self.left, self.expected(at), (self.memory, self.seen))
        return self._price

    def chance(self, offer: Offer, at: float) -> float:
        """Return the probability with which an offer is taken."""
        return self.price(at).chance_of(rounded(offer.bid)) if self.has_room(offer.cost) else 0.0

    def thin(
        self, chances: dict[int, float], offer: Offer | None, at: float, silence: int
    ) -> dict[int, float]:
        """Return the probabilities of a plan as far as the limit and the price allow them."""
        if offer is None:
            return chances
        chance = self.chance(offer, at)
        if chance == 1.0:
            return chances
        thinned = {advice: chance * p for advice, p in chances.items() if advice != silence}
        kept = {advice: p for advice, p in thinned.items() if p > 0.0}
        return kept | {silence: 1.0 - sum(kept.values())}

    def add(self, offer: Offer, at: float) -> None:
        """Count an offer, taken or not."""
        self.priced += self.price(at).bid
        share = self._share(at)
        usual = self.memory.usual_share(self._share(self.opened), share)
        self.seen.add(rounded(offer.bid), offer.cost, share, usual)
        self._forget_price()

    def charge(self, cost: Amount) -> None:
        """Charge a piece that is shown."""
        self.spent += cost
        self._forget_price()

    def _forget_price(self) -> None:
        self._price = None
        self.has_changed = True

    def numbers(self, at: float) -> dict[str, Any]:
        """Return what a reason says of the limit; what is left follows from the decision."""
        return {"shared_left": None, "shared_price": self.price(at).bid}

    def left_after(self, cost: Amount) -> Amount:
        """Return what is left after a piece of this cost."""
        left = self.left - cost
        return amount(round(left, 9)) if left > 0.0 else 0

    def why_silent(self, offer: Offer) -> str:
        """Return the reason why an offer is not taken."""
        if self.has_room(offer.cost):
            return "a piece of the shared limit is worth more to others"
        if self.left > 0.0:
            return "it costs more than is left of the shared limit"
        return f"the shared limit is used up until {self._shown_end()}"

    def _shown_end(self) -> str:
        end = datetime.fromtimestamp(self.end, UTC)
        if self.key.seconds > 86_400:
            return f"{end:%Y-%m-%d %H:%M} UTC"
        return f"{end:%H:%M} UTC" if self.key.seconds % 60 == 0 else f"{end:%H:%M:%S} UTC"

    def _share(self, at: float) -> float:
        """Return the share of the stretch that has passed at a time."""
        return min(max((at - self.key.start) / self.key.seconds, 0.0), 1.0)

    def to_row(self) -> dict[str, Any]:
        """Return the row in the database, without what never changes in it."""
        return {
            "pieces": self.pieces,
            "spent": self.spent,
            "priced": self.priced,
            "seen": self.seen.to_text(),
        }

    def to_new_row(self) -> dict[str, Any]:
        """Return the row of a stretch that has none yet."""
        kept = {"opened": self.opened, "memory": self.memory.to_text()}
        return self.key._asdict() | self.to_row() | kept


def from_row(row: sa.Row[Any], pieces: float | None = None) -> Stretch:
    """Return a stretch as the database has it; ``pieces`` is the limit as it is now."""
    return Stretch(
        StretchKey(row.adviser, row.seconds, row.start),
        row.pieces if pieces is None else pieces,
        memory_from_text(row.memory),
        row.opened,
        Demand.from_text(row.seen),
        row.spent,
        row.priced,
        is_new=False,
    )


def open_stretch(
    connection: sa.Connection, key: StretchKey, limit: SharedLimit, at: float
) -> Stretch:
    """Return a stretch without a row, which remembers the stretches before it.

    One that is so old that its row was deleted is closed.
    """
    before, is_old = stretch_queries.neighbours(connection, key)
    if before is None:
        return Stretch(key, limit.pieces, Demand(), at, is_closed=is_old)
    last = from_row(before)
    opened = (last.opened - last.key.start) / last.key.seconds
    memory = remember(last.memory, last.seen, max(opened, 0.0))
    return Stretch(key, limit.pieces, memory, float(key.start), is_closed=is_old)


class Stretches:
    """The accounts of all stretches that a transaction needs."""

    def __init__(self, connection: sa.Connection, moments: Iterable[tuple[Episode, float]]) -> None:
        self._connection = connection
        keys = {key for one, at in moments if (key := _key_of(one, at)) is not None}
        self._rows = stretch_queries.stretches(connection, keys)
        self._stretches = dict[StretchKey, Stretch]()
        self._last = dict[LiveAdviser, Stretch]()

    def of(self, episode: Episode, at: float) -> Stretch | None:
        """Return the account of an episode at a time; None without a shared limit."""
        last = self._last.get(episode.live)
        if last is not None and last.key.start <= at < last.end:
            return last
        key, limit = _key_of(episode, at), episode.live.settings.shared_limit
        if key is None or limit is None:
            return None
        stretch = self._last[episode.live] = self._find(key, limit, at)
        return stretch

    def _find(self, key: StretchKey, limit: SharedLimit, at: float) -> Stretch:
        stretch = self._stretches.get(key)
        if stretch is None:
            row = self._rows.get(key)
            if row is None:
                stretch = open_stretch(self._connection, key, limit, at)
            else:
                stretch = from_row(row, limit.pieces)
            self._stretches[key] = stretch
        return stretch

    def save(self) -> None:
        """Write what has changed."""
        changed = [one for one in self._stretches.values() if one.has_changed]
        old = [one for one in changed if not one.is_new]
        if old:
            rows = [(one.key, one.to_row()) for one in old]
            stretch_queries.update_stretches(self._connection, rows)
        for one in changed:
            if one.is_new and not one.is_closed:
                stretch_queries.add_stretch(self._connection, one.to_new_row())


def _key_of(episode: Episode, at: float) -> StretchKey | None:
    limit = episode.live.settings.shared_limit
    if limit is None:
        return None
    return StretchKey(episode.live.id, limit.seconds, stretch_start(at, limit.seconds))


def offer_of(
    person_plan: ExplainedPlan,
    live: LiveAdviser,
    place: tuple[int, int, int | None],
    chances: dict[int, float],
    left: int | None,
) -> Offer | None:
    """Return what the plan offers at a place: step, state and level; None if it is silent.

    The bid is the criticality less the penalty, so that what is taken at a price is what the best
    plan at that price would say. Where there is no criticality, or where costs differ, the bid is
    what the advice gains beyond its own price, per unit of cost, with the values of the plan.
    ``left`` is what is left of a hard budget of the episode. Advice that costs nothing is no offer:
    it needs no room.
    """
    step, state, level = place
    problem, plan = person_plan.problem, person_plan.plan
    likely = {advice: p for advice, p in chances.items() if advice != problem.defer and p > 0.0}
    if not likely:
        return None
    advice = max(likely, key=lambda one: likely[one])
    cost = live.cost_of(step, state, advice)
    if cost == 0:
        return None
    critical = person_plan.criticality_at(step, state, level)
    if critical is not None and not live.has_costs:
        penalty = 0.0 if plan.hard else plan.price_at(step)
        return Offer(advice, cost, critical - penalty)
    if level is None and left is None:
        gain, price = person_plan.gain[step, state, advice], plan.price_at(step) * cost
    else:
        pieces = left if plan.policy.budget is None else min(left or 0, plan.policy.budget)
        cell = gains_at(problem, plan, step, state, pieces, level)
        gain, price = cell.gain[advice], cell.price[advice]
    return Offer(advice, cost, float(gain - price) / cost)
