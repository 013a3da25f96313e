"""One process of the service: the database, the desk, the app, and perhaps simulated people.

Each of several processes makes its own app, from the environment variable ``COUNSEL_SERVICE``.
"""

import json
import logging
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from fastapi import FastAPI
from sqlalchemy.exc import SQLAlchemyError

from counsel._arrays import brief
from counsel.errors import CounselError
from counsel.service.api.app import make_app
from counsel.service.api.request_log import configure_logging
from counsel.service.core.desk import Desk
from counsel.service.core.finisher import Finisher
from counsel.service.core.model_outlines import add_missing_outlines
from counsel.service.core.model_uploads import remove_abandoned
from counsel.service.core.problem_sources import ProblemSources
from counsel.service.db.api_keys import tenant_of
from counsel.service.db.engine import open_engine, write_transaction
from counsel.service.playground.rules import PROBLEMS_BY_PREFIX
from counsel.service.server import end_in_time
from counsel.service.settings import ServiceSettings
from counsel.service.simulated_people import Demo
from counsel.service.warm_up import WarmUp

LOG = logging.getLogger("counsel.service")

ENVIRONMENT = "COUNSEL_SERVICE"

SWITCH_SECONDS = 0.001
"""Seconds after which a thread that computes lets others run: with 5 ms, Python's own, four exports
at once keep advice waiting for tenths of a second."""


@dataclass(frozen=True, slots=True)
class ServiceProcess:
    """What one process serves: a database, whether with keys and with simulated people, and how.

    ``workers`` processes do the same, and note in ``folder`` when each of them is ready.
    """

    database: str
    auth: bool = True
    demo: bool = False
    settings: ServiceSettings = field(default_factory=ServiceSettings.from_environment)
    workers: int = 1
    folder: str | None = None

    def app(self) -> FastAPI:
        """Open the database and return the app, which closes the desk when it stops."""
        warm_up = WarmUp(self.workers, self.folder)
        warm_up.start()
        engine = open_engine(self.database, self.settings)
        reading = open_engine(self.database, self.settings, is_reading=True)
        tenant = None
        if not self.auth:
            with write_transaction(engine) as connection:
                tenant = tenant_of(connection, "local")
        desk = Desk(
            engine,
            ProblemSources(engine, PROBLEMS_BY_PREFIX),
            np.random.default_rng(),
            settings=self.settings,
            reading=reading,
        )
        finisher = Finisher(desk)
        threading.Thread(target=_complete_models, args=(desk, time.time()), daemon=True).start()
        demo = None
        if self.demo and tenant is not None:
            demo = Demo(desk, tenant, np.random.default_rng())

        @asynccontextmanager
        async def lifespan(app: FastAPI) -> AsyncIterator[Mapping[str, Any]]:
            end_in_time(self.settings)
            sys.setswitchinterval(SWITCH_SECONDS)
            if demo is not None:
                demo.start()
            # For the limits of connections.
            yield {"settings": self.settings, "metrics": app.state.metrics}
            warm_up.close()
            if demo is not None:
                demo.close()
            app.state.lanes.close()
            app.state.metrics.close()
            finisher.close()
            desk.close()
            engine.dispose()
            reading.dispose()

        return make_app(desk, tenant=tenant, warm_up=warm_up, lifespan=lifespan)

    def to_environment(self) -> None:
        """Put it into the environment for worker processes."""
        os.environ[ENVIRONMENT] = json.dumps(asdict(self))


def _complete_models(desk: Desk, started: float) -> None:
    """Remove uploads that were abandoned, and add outlines that are missing."""
    try:
        remove_abandoned(desk, started)
        add_missing_outlines(desk)
    except (SQLAlchemyError, CounselError) as fault:
        LOG.warning("models are not complete: %s", brief(str(getattr(fault, "orig", fault))))


def app_from_environment() -> FastAPI:
    """Return the app of a worker process."""
    given = json.loads(os.environ[ENVIRONMENT])
    settings = ServiceSettings(**given.pop("settings"))
    configure_logging(settings)
    end_in_time(settings)  # also where the database is waited for
    return ServiceProcess(**given, settings=settings).app()
