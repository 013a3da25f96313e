"""The people of a tenant, and what each adviser believes of a person."""

from typing import Any

import numpy as np
import sqlalchemy as sa

from counsel._arrays import Floats
from counsel.estimate.person import POPULATION_WEIGHT
from counsel.service.core.desk import Desk
from counsel.service.core.live_adviser import LiveAdviser
from counsel.service.db.tables import episodes, people

COVERAGE = 0.95
"""The probability of an interval."""


def list_people(desk: Desk, tenant: int) -> list[dict[str, Any]]:
    """Return the people of a tenant, each with their number of episodes."""
    query = (
        sa.select(people.c.name, people.c.created, sa.func.count(episodes.c.number))
        .join(episodes, episodes.c.person == people.c.id, isouter=True)
        .where(people.c.tenant == tenant)
        .group_by(people.c.id, people.c.name, people.c.created)
        .order_by(people.c.name)
    )
    with desk.engine.connect() as connection:
        rows = connection.execute(query).all()
    return [{"name": name, "created": created, "episodes": count} for name, created, count in rows]


def describe_person(desk: Desk, tenant: int, name: str) -> dict[str, Any]:
    """Return what each adviser of a person believes of them."""
    number = desk.person(tenant, name)
    query = (
        sa.select(episodes.c.adviser, sa.func.count())
        .where(episodes.c.person == number)
        .group_by(episodes.c.adviser)
        .order_by(episodes.c.adviser)
    )
    with desk.engine.connect() as connection:
        counts = connection.execute(query).all()
    return {
        "name": name,
        "advisers": [
            {
                "id": adviser,
                "name": live.name,
                "episodes": count,
                "listening": lift_estimates(live, number),
            }
            for adviser, count in counts
            for live in [desk.live(tenant, adviser)]
        ],
    }


def lift_estimates(live: LiveAdviser, person: int) -> list[dict[str, Any]]:
    """Return the estimated lift of each advice for a person, with an interval."""
    population = live.population
    estimate = population.estimate(person, np.random.default_rng(0))
    own, _ = population.counts_of(person)
    low, high = beta_interval(estimate.lift, estimate.exposure + POPULATION_WEIGHT)
    return [
        {
            "advice": name,
            "estimate": float(estimate.lift[b]),
            "low": float(low[b]),
            "high": float(high[b]),
            "pieces": int(own.given[:, b].sum()),
            "matched": int(own.matched[:, b].sum()),
        }
        for b, name in enumerate(live.action_names)
    ]


def beta_interval(lift: Floats, exposure: Floats) -> tuple[Floats, Floats]:
    """Return the middle ``COVERAGE`` of Beta(e λ + 1/2, e (1 − λ) + 1/2), e the exposure."""
    from scipy.special import betaincinv

    hits, misses = exposure * lift + 0.5, exposure * (1.0 - lift) + 0.5
    tail = (1.0 - COVERAGE) / 2.0
    return betaincinv(hits, misses, tail), betaincinv(hits, misses, 1.0 - tail)
