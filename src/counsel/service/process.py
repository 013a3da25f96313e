"""One process of the service: the database, the desk, the app, and perhaps simulated people.

Several processes are started from what is in the environment variable ``COUNSEL_SERVICE``, since
each makes its own app.
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

from counsel.service.api.app import make_app
from counsel.service.core.adviser import NOBODY, Adviser, Limit
from counsel.service.core.desk import Desk
from counsel.service.core.problem_sources import Sources
from counsel.service.db.api_keys import tenant_of
from counsel.service.db.engine import open_engine, writing
from counsel.service.simulated_people import Demo
from counsel.worlds.ward import ward

ENVIRONMENT = "COUNSEL_SERVICE"


@dataclass(frozen=True, slots=True)
class Serving:
    """What is served.

    Attributes
    ----------
    database
        Where everything is kept.
    auth
        Whether a key is asked for.
    demo
        Whether simulated people are at work.
    """

    database: str
    auth: bool = True
    demo: bool = False

    def app(self) -> FastAPI:
        """Open the database and return the app; the desk is closed when that stops."""
        engine = open_engine(self.database)
        tenant = None
        if not self.auth:
            with writing(engine) as connection:
                tenant = tenant_of(connection, "local")
        desk = Desk(engine, Sources(engine), np.random.default_rng())
        threading.Thread(target=_warm_up, daemon=True).start()
        demo = None
        if self.demo and tenant is not None:
            demo = Demo(desk, tenant, np.random.default_rng())

        @asynccontextmanager
        async def alive(_: FastAPI) -> AsyncIterator[None]:
            if demo is not None:
                demo.start()
            yield
            if demo is not None:
                demo.close()
            desk.close()
            engine.dispose()

        return make_app(desk, tenant=tenant, lifespan=alive)

    def to_environment(self) -> None:
        """Leave it where processes that are started find it."""
        os.environ[ENVIRONMENT] = json.dumps(asdict(self))


def _warm_up() -> None:
    """Have what is compiled ready before the first plan is asked for.

    What is there then stays for good: looking through it again and again for garbage would keep
    everybody waiting for 0.15 s each time.
    """
    for limit in (Limit(), Limit(budget=1.0), Limit(budget=1.0, hard=True)):
        Adviser(ward()).plan(NOBODY, limit)
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def app_from_environment() -> FastAPI:
    """Return the app of a process that was started by another."""
    return Serving(**json.loads(os.environ[ENVIRONMENT])).app()
