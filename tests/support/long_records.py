"""Long records, written into a database without asking anybody."""

import json
from typing import Any

import numpy as np
import sqlalchemy as sa

from counsel.service.core.desk import Desk
from counsel.service.core.problem_sources import ProblemSources
from counsel.service.core.settings import AdviserSettings
from counsel.service.db.api_keys import tenant_of
from counsel.service.db.engine import open_engine, write_transaction
from counsel.service.db.tables import decisions, episodes, outcomes, people, snapshots

REASON = json.dumps({"why": "a piece of advice is worth more elsewhere", "gain": 0.1, "lift": 0.5})


def fill(url: str, world: dict[str, Any], count: int) -> str:
    """Put outcomes on record, of 50 people in episodes of 20 steps; return the adviser's id.

    ``world`` has the name and the settings of the adviser; it is Flappy Bird, with 7 rows.
    """
    engine, rng = open_engine(url), np.random.default_rng(0)
    with write_transaction(engine) as connection:
        tenant = tenant_of(connection, "local")
    desk = Desk(engine, ProblemSources(engine, {}), rng)
    settings = {name: value for name, value in world.items() if name != "name"}
    adviser = desk.create(tenant, world["name"], AdviserSettings(**settings))
    desk.close()
    with write_transaction(engine) as connection:
        rows = [{"id": i + 1, "tenant": tenant, "name": f"p{i}", "created": 0.0} for i in range(50)]
        connection.execute(sa.insert(people), rows)
        for first in range(1, count // 20 + 1, 1000):
            numbers = range(first, first + 1000)
            connection.execute(
                sa.insert(episodes),
                [
                    {"number": n, "id": f"{n:032d}", "adviser": adviser, "spent": 2,
                     "person": n % 50 + 1, "held_out": False, "mode": "live", "started": 0.0,
                     "ended": 1.0, "terminated": True}
                    for n in numbers
                ],
            )  # fmt: skip
            row, advised = rng.integers(7, size=20_000), rng.random(20_000) < 0.1
            action = rng.integers(3, size=20_000)
            cells = [(n, step) for n in numbers for step in range(20)]
            connection.execute(
                sa.insert(decisions),
                [
                    {"episode": n, "step": step, "state": step * 7 + int(row[i]),
                     "advice": int(action[i]) if advised[i] else None, "shown": True, "must": False,
                     "probability": 1.0, "reason": REASON, "at": 0.0}
                    for i, (n, step) in enumerate(cells)
                ],
            )  # fmt: skip
            connection.execute(
                sa.insert(outcomes),
                [
                    {"episode": n, "step": step, "action": int(action[i]), "reward": 1.0,
                     "seen": True, "at": 0.0}
                    for i, (n, step) in enumerate(cells)
                ],
            )  # fmt: skip
        connection.execute(sa.delete(snapshots))
        if connection.dialect.name == "postgresql":  # the next ids are after those given here
            for table, column in (("people", "id"), ("episodes", "number")):
                sequence = f"pg_get_serial_sequence('{table}', '{column}')"
                connection.exec_driver_sql(f"SELECT setval({sequence}, max({column})) FROM {table}")
    engine.dispose()
    return adviser
