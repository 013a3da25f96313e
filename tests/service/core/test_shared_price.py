"""The price of a shared limit: against a slow count, and what pacing brings."""

import numpy as np
import pytest

from counsel.service.core.shared_limit import Offer, Stretch
from counsel.service.core.shared_price import (
    FREE,
    Demand,
    Price,
    expected_cost,
    price_of,
    remember,
    rounded,
)
from counsel.service.db.stretch_queries import StretchKey
from tests.support.each import each_seed
from tests.support.slow_pacing import SlowStretch

DAY = 86_400
HOURS = np.array([0] * 7 + [1, 2, 4, 4, 4, 3, 2, 3, 4, 4, 3, 2, 1] + [0.5] * 4)
HOURS = HOURS / HOURS.sum()


def opened(day, pieces, before=None, at=0.0):
    """The account of a day after another one."""
    key = StretchKey("a", DAY, day * DAY)
    if before is None:
        return Stretch(key, pieces, Demand(), (day + at) * DAY)
    first = max((before.opened - before.key.start) / DAY, 0.0)
    memory = Demand.from_text(remember(before.memory, before.seen, first).to_text())
    return Stretch(key, pieces, memory, float(day * DAY))


def arrivals(rng, mean, busy=0.0, hours=None):
    """When people come on a day, of which some are busier than others."""
    count = rng.poisson(mean * np.exp(busy * rng.standard_normal() - busy**2 / 2.0))
    if hours is None:
        return np.sort(rng.random(count))
    return np.sort((rng.choice(24, count, p=hours) + rng.random(count)) / 24.0)


def batch(start, minutes, people):
    """How a fixed number of people come who all ask within some minutes, from an hour on."""
    return lambda rng: np.sort(start + minutes / 60.0 * rng.random(people)) / 24.0


@pytest.mark.slow
@pytest.mark.parametrize("come", [lambda rng: arrivals(rng, 40.0, 0.5, HOURS), batch(8, 90, 40)])
@each_seed(range(4))
def test_the_chance_of_an_offer_is_that_of_a_slow_count(seed, come):
    rng = np.random.default_rng(seed)
    pieces = int(rng.integers(1, 8))
    levels = rng.choice([0.02, 0.11, 0.113, 0.5, 0.51, 3.0], 4)
    before, earlier = None, []
    for day in range(7):
        times = come(rng)
        first = times[0] if not earlier else 0.0
        fast, slow = opened(day, pieces, before, first), SlowStretch(pieces, list(earlier), first)
        for at in times:
            fast._price = None  # a transaction of its own
            offer = Offer(0, 1, float(rng.choice(levels)))
            chance = fast.chance(offer, (day + at) * DAY)
            assert chance == pytest.approx(slow.chance(at, offer.bid), abs=2e-3), (seed, day, at)
            fast.add(offer, (day + at) * DAY)
            slow.offers.append((at, offer.bid, 1.0))
            if rng.random() < chance:
                fast.charge(1)
                slow.spent += 1.0
        assert fast.spent == slow.spent <= pieces
        if times.size:
            before = fast
            earlier.append((first, slow.offers))


def lived(seed, draw, pieces, come, *, first=3, days=25):
    """What pacing earns from a day on, what first come, first served earns, and the best.

    The last number is how many pieces pacing uses per day.
    """
    rng, before = np.random.default_rng(seed), None
    earned = np.zeros((days, 4))
    for day in range(days):
        times = come(rng)
        bids = draw(rng, times.size)
        stretch = opened(day, pieces, before, times[0] if times.size else 0.0)
        for at, bid in zip((day + times) * DAY, bids, strict=True):
            stretch._price = None
            offer = Offer(0, 1, float(bid))
            taken = rng.random() < stretch.chance(offer, at)
            stretch.add(offer, at)
            if taken:
                stretch.charge(1)
                earned[day, 0] += bid
        assert stretch.spent <= pieces
        best = np.sort(bids)[::-1][:pieces].sum()
        earned[day, 1:] = bids[:pieces].sum(), best, stretch.spent / (days - first)
        before = stretch if times.size else before
    return earned[first:].sum(axis=0)


def few_high(rng, n):
    return np.where(rng.random(n) < 0.05, 1.0, 0.4)


MIXES = {
    "heavy-tailed": (lambda rng, n: np.exp(rng.standard_normal(n)), 10, 100, 0.88, 0.35),
    "even": (lambda rng, n: rng.random(n), 10, 100, 0.93, 0.60),
    "few who need it": (few_high, 10, 100, 0.88, 0.72),
    "one piece": (lambda rng, n: rng.random(n), 1, 30, 0.85, 0.65),
    "hardly scarce": (lambda rng, n: rng.random(n), 10, 12, 0.87, 0.90),
}  # fmt: skip
"""How bids are drawn, pieces and people per day; and of what hindsight earns the share that pacing
must reach, and that first come, first served does not."""


@pytest.mark.parametrize("mix", MIXES)
def test_pacing_earns_most_of_what_hindsight_would(mix):
    draw, pieces, mean, least, most = MIXES[mix]
    paced, first_come, best, _ = sum(
        lived(seed, draw, pieces, lambda rng: arrivals(rng, mean, 0.4, HOURS)) for seed in range(3)
    )
    assert paced / best > least
    assert first_come / best < most
    assert paced > first_come


def test_what_is_never_scarce_has_no_price():
    for come in (lambda rng: arrivals(rng, 30, 0.4, HOURS), batch(8, 1, 30)):
        paced, first_come, best, _ = lived(0, lambda rng, n: rng.random(n), 100, come)
        assert paced == pytest.approx(best) == first_come


def heavy(rng, n):
    return np.exp(rng.standard_normal(n))


def three(rng, n):
    return rng.choice([0.1, 0.3, 1.0], n, p=[0.5, 0.4, 0.1])


def alike(rng, n):
    return np.full(n, 0.4)


def about_nine(rng):
    return (9.0 + rng.standard_normal() / 6.0 + rng.random(100) / 60.0) / 24.0


TWICE = (batch(8, 1, 50), batch(20, 1, 50))

BATCHES = {
    "1 minute": (batch(8, 1, 100), 0.92),
    "1 second": (batch(8, 1 / 60, 100), 0.92),
    "1 hour": (batch(8, 60, 100), 0.93),
    "10 minutes from half past": (batch(8.5, 10, 100), 0.92),
    "1 minute at the end of an hour": (batch(8 + 55 / 60, 1, 100), 0.88),
    "1 minute, few people": (batch(8, 1, 12), 0.91),
    "1 minute, twice a day": (lambda rng: np.concatenate([one(rng) for one in TWICE]), 0.89),
    "1 minute at about nine": (lambda rng: np.sort(about_nine(rng)), 0.82),
    "all day": (lambda rng: arrivals(rng, 100), 0.93),
}
"""How people come who ask within a short time, and the share of what hindsight earns with 10 pieces
that pacing must reach from the third day on, whatever their bids are."""


@pytest.mark.parametrize("draw", [three, alike, heavy])
@pytest.mark.parametrize("name", BATCHES)
def test_a_batch_every_day_is_learnt_after_two_days(name, draw):
    come, least = BATCHES[name]
    paced, _, best, used = sum(lived(s, draw, 10, come, first=2, days=12) for s in range(6)) / 6
    assert paced / best > least
    assert used > 8.5


@pytest.mark.parametrize("draw", [three, alike, heavy])
@pytest.mark.parametrize("name", BATCHES)
def test_most_pieces_are_used_on_the_first_two_days(name, draw):
    come, _ = BATCHES[name]
    *_, first = sum(lived(s, draw, 10, come, first=0, days=1) for s in range(6)) / 6
    *_, second = sum(lived(s, draw, 10, come, first=1, days=2) for s in range(6)) / 6
    assert first > 8.0
    assert second > 7.0


def test_seconds_are_not_extrapolated_to_a_day():
    seen = Demand()
    for i in range(100):
        assert expected_cost(Demand(), seen, 0.3, 0.3 + i * 1e-7) <= 1.01 * i
        seen.add(0.5, 1.0, 0.3 + i * 1e-7)
    memory = remember(Demand(), seen, 0.3)
    again = Demand()
    for i in range(100):
        now = 0.3 + i * 1e-7
        assert expected_cost(memory, again, 0.0, now) <= 120.0 - 0.5 * i, "as many as yesterday"
        again.add(0.5, 1.0, now, memory.usual_share(0.0, now))
    assert expected_cost(memory, again, 0.0, 0.5) < 3.0


def test_how_much_days_differ_is_learnt():
    memories = []
    for counts in ([100] * 6, [50, 150] * 3):
        memory = Demand()
        for count in counts:
            seen = Demand()
            for i in range(count):
                when = (i + 0.5) / count
                seen.add(0.5, 1.0, when, memory.usual_share(0.0, when))
            memory = remember(memory, seen, 0.0)
        memories.append(memory)
    same, various = memories
    assert same.variability < 0.6 < 1.0 < various.variability
    assert same.clumping == various.clumping == 0.0


def test_what_was_remembered_before_clumping_was_is_read():
    text = '{"offers":3.0,"bids":{"0.5":3.0},"parts":[' + ",".join(["0.125"] * 24) + "]}"
    demand = Demand.from_text(text)
    assert demand.clumping == 0.0
    assert demand.variability == 1.0
    assert demand.to_text() == text


def test_a_price_takes_as_much_as_is_left():
    demand = Demand(4.0, {0.1: 2.0, 0.5: 1.0, 0.9: 1.0})
    assert price_of(8.0, 8.0, [demand]) == FREE
    assert price_of(3.0, 8.0, [demand]) == Price(0.5, 0.5)  # 2 at 0.9, and 1 of 2 at 0.5
    assert price_of(2.0, 8.0, [demand]) == Price(0.9, 1.0)
    assert price_of(0.0, 8.0, [demand]) == Price(0.9, 0.0)
    assert price_of(6.0, 8.0, [demand]) == Price(0.1, 0.5)
    assert price_of(1.0, 5.0, [Demand()]) == FREE
    price = price_of(3.0, 8.0, [demand])
    assert [price.chance_of(bid) for bid in (0.1, 0.5, 0.9, 2.0)] == [0.0, 0.5, 1.0, 1.0]


def test_nothing_is_expected_before_anything_was_offered():
    seen = Demand()
    assert expected_cost(Demand(), seen, 0.3, 0.4) == 0.0
    seen.add(0.5, 1.0, 0.3)
    assert expected_cost(Demand(), seen, 0.3, 0.4) == 0.0, "one offer only starts the clock"
    seen.add(0.5, 1.0, 0.4)
    assert expected_cost(Demand(), seen, 0.3, 0.4) == pytest.approx(6.0)


def test_a_busy_day_is_expected_to_stay_busy():
    memory = Demand(100.0, {0.5: 100.0}, [100.0 / 24] * 24, [1.0] * 24)
    calm, busy = Demand(), Demand()
    for i in range(80):
        busy.add(0.5, 1.0, i / 160)
        if i < 20:
            calm.add(0.5, 1.0, i / 40)
    usual = 100.0 / 2
    assert expected_cost(memory, calm, 0.0, 0.5) == pytest.approx(usual * 30 / 60)
    assert expected_cost(memory, busy, 0.0, 0.5) == pytest.approx(usual * 90 / 60)


def test_hours_in_which_nobody_comes_are_learnt():
    memory = Demand()
    for _ in range(10):
        seen = Demand()
        for i in range(50):
            seen.add(0.5, 1.0, 0.5 + i / 400)
        memory = remember(memory, seen, 0.0)
    assert expected_cost(memory, Demand(), 0.0, 0.0) == pytest.approx(50.0, rel=0.1)
    evenly = 0.3 * 50.0
    assert expected_cost(memory, Demand(), 0.7, 0.7) < 0.2 * evenly


def test_old_offers_are_forgotten_once_there_are_enough():
    memory, seen = Demand(), Demand()
    for i in range(100):
        seen.add(0.5, 1.0, i / 100)
    for _ in range(100):
        memory = remember(memory, seen, 0.0)
    assert memory.offers == pytest.approx(1000.0, rel=1e-3)
    assert memory.exposed == pytest.approx([10.0] * 24, rel=1e-3)
    other = Demand()
    other.add(0.1, 1.0, 0.5)
    for _ in range(150):
        memory = remember(memory, other, 0.0)
    assert memory.bids.keys() == {0.1, 0.5}
    assert memory.offers < 250.0, "nothing is forgotten below 200"


@each_seed(range(20))
def test_demand_survives_its_text(seed):
    rng, demand = np.random.default_rng(seed), Demand()
    for bid in np.exp(5.0 * rng.standard_normal(30)):
        demand.add(rounded(bid), float(rng.integers(1, 4)), rng.random())
    assert Demand.from_text(demand.to_text()) == demand
    memory = remember(Demand(), demand, 0.25)
    assert Demand.from_text(memory.to_text()) == memory
    assert sum(memory.exposed) == pytest.approx(18.0)


def test_bids_have_two_digits_and_are_above_zero():
    assert [rounded(bid) for bid in (0.3149, 17.0, 1234.5, 0.0, -3.0)] == [
        0.31,
        17.0,
        1200.0,
        1e-12,
        1e-12,
    ]
