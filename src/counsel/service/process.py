"""One process of the service: the database, the desk, the app, and perhaps simulated people.

Each of several processes makes its own app, from the environment variable ``COUNSEL_SERVICE``.
"""

import gc
import json
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass

import numpy as np
from fastapi import FastAPI

from counsel.learning.population import NOBODY, Limit, Population
from counsel.service.api.app import make_app
from counsel.service.core.desk import Desk
from counsel.service.core.explained_plan import explain_plan
from counsel.service.core.problem_sources import ProblemSources
from counsel.service.db.api_keys import tenant_of
from counsel.service.db.engine import open_engine, write_transaction
from counsel.service.playground.rules import PROBLEMS_BY_PREFIX
from counsel.service.simulated_people import Demo
from counsel.worlds.ward import ward

ENVIRONMENT = "COUNSEL_SERVICE"


@dataclass(frozen=True, slots=True)
class ServiceProcess:
    """What one process serves: a database, whether with keys and with simulated people."""

    database: str
    auth: bool = True
    demo: bool = False

    def app(self) -> FastAPI:
        """Open the database and return the app, which closes the desk when it stops."""
        engine = open_engine(self.database)
        tenant = None
        if not self.auth:
            with write_transaction(engine) as connection:
                tenant = tenant_of(connection, "local")
        desk = Desk(engine, ProblemSources(engine, PROBLEMS_BY_PREFIX), np.random.default_rng())
        threading.Thread(target=_warm_up, daemon=True).start()
        demo = None
        if self.demo and tenant is not None:
            demo = Demo(desk, tenant, np.random.default_rng())

        @asynccontextmanager
        async def lifespan(_: FastAPI) -> AsyncIterator[None]:
            if demo is not None:
                demo.start()
            yield
            if demo is not None:
                demo.close()
            desk.close()
            engine.dispose()

        return make_app(desk, tenant=tenant, lifespan=lifespan)

    def to_environment(self) -> None:
        """Put it into the environment for worker processes."""
        os.environ[ENVIRONMENT] = json.dumps(asdict(self))


def _warm_up() -> None:
    """Compile the planner before the first plan is needed.

    The objects that exist then stay for good. They are frozen, because each garbage collection
    through all of them would stop the service for 0.15 s.
    """
    population = Population(ward().without_adherence())
    for limit in (Limit(), Limit(budget=1.0), Limit(budget=1.0, hard=True)):
        explain_plan(population, population.plan(NOBODY, limit))
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def app_from_environment() -> FastAPI:
    """Return the app of a worker process."""
    return ServiceProcess(**json.loads(os.environ[ENVIRONMENT])).app()
