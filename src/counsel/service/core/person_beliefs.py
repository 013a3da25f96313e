"""What each adviser believes of a person."""

from typing import Any

import numpy as np
import sqlalchemy as sa

from counsel._arrays import Floats
from counsel.estimate.people_counts import DecisionCounts
from counsel.estimate.person import COVERAGE, POPULATION_WEIGHT
from counsel.service.core.desk import Desk
from counsel.service.core.episode_levels import first_level
from counsel.service.core.live_adviser import LiveAdviser
from counsel.service.db.engine import read
from counsel.service.db.tables import episodes


def describe_person(desk: Desk, tenant: int, name: str) -> dict[str, Any]:
    """Return what each adviser of a person believes of them."""
    number = desk.person(tenant, name)
    query = (
        sa.select(episodes.c.adviser, sa.func.count())
        .where(episodes.c.person == number)
        .group_by(episodes.c.adviser)
        .order_by(episodes.c.adviser)
    )
    beliefs = []
    for adviser, count in read(desk.reading, query):
        live = desk.live(tenant, adviser)
        belief = {"id": adviser, "name": live.name, "episodes": count}
        belief |= _level_now(desk, live, number)
        beliefs.append(belief | {"listening": lift_estimates(live, number)})
    return {"name": name, "advisers": beliefs}


def _level_now(desk: Desk, live: LiveAdviser, person: int) -> dict[str, Any]:
    """Return the level on which the person's next episode starts, where a memory lasts."""
    if not live.keeps_level:
        return {}
    with desk.reading.connect() as connection:
        level = first_level(connection, live, person)
    return {} if level is None else live.level_fields(level)


def lift_estimates(live: LiveAdviser, person: int) -> list[dict[str, Any]]:
    """Return the estimated lift of each advice for a person, with an interval.

    Nothing is estimated while the model of the adviser cannot be read.
    """
    if live.fault is not None:
        return []
    estimate = live.population.estimate(person, np.random.default_rng(0))
    own, _ = live.population.counts_of(person)
    exposure = estimate.exposure + POPULATION_WEIGHT
    interval = live.population.faded_interval(person)
    return lift_rows(live, "estimate", estimate.lift, exposure, own, interval)


def lift_rows(  # noqa: PLR0913 (a lift with what it rests on)
    live: LiveAdviser,
    key: str,
    lift: Floats,
    exposure: Floats,
    counts: DecisionCounts,
    interval: tuple[Floats, Floats] | None = None,
) -> list[dict[str, Any]]:
    """Return the lift of each advice under a key, its interval, and the pieces behind it.

    The interval is the middle ``COVERAGE`` of Beta(e λ + 1/2, e (1 − λ) + 1/2), e the exposure,
    unless another is given.
    """
    low, high = interval or _beta_interval(lift, exposure)
    return [
        {
            "advice": name,
            key: float(lift[b]),
            "low": float(low[b]),
            "high": float(high[b]),
            "pieces": int(counts.given[:, b].sum()),
            "matched": int(counts.matched[:, b].sum()),
        }
        for b, name in enumerate(live.action_names)
    ]


def _beta_interval(lift: Floats, exposure: Floats) -> tuple[Floats, Floats]:
    from scipy.special import betaincinv

    hits, misses = exposure * lift + 0.5, exposure * (1.0 - lift) + 0.5
    tail = (1.0 - COVERAGE) / 2.0
    return betaincinv(hits, misses, tail), betaincinv(hits, misses, 1.0 - tail)
