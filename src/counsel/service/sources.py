"""Where an adviser's problem comes from: a world by its name, or a model that was uploaded."""

import time
from uuid import uuid4

import sqlalchemy as sa

from counsel.errors import CounselError
from counsel.model.files import loads
from counsel.model.problem import AdviceProblem
from counsel.service.maps import SOURCE, play_world
from counsel.service.tables import models
from counsel.worlds.catalogue import catalogue

LARGEST_MODEL = 20_000_000
"""Bytes of an uploaded file."""

UNPACKED = 100_000_000
"""Bytes its arrays may take."""


class Sources:
    """Problems by name or id.

    Parameters
    ----------
    engine
        Where models are kept.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine

    def __call__(self, tenant: int, source: str) -> AdviceProblem:
        """Return a world, or a model of this tenant."""
        if source.startswith(SOURCE):
            return play_world(source.removeprefix(SOURCE))
        worlds = catalogue()
        if source in worlds:
            return worlds[source].build()
        query = sa.select(models.c.content).where(models.c.id == source, models.c.tenant == tenant)
        with self.engine.connect() as connection:
            content = connection.scalar(query)
        if content is None:
            raise CounselError(
                f"source is {source[:60]!r}; give the id of an uploaded model or one of "
                f"{', '.join(worlds)}"
            )
        return loads(content, name="the model", most=UNPACKED)


def add_model(connection: sa.Connection, tenant: int, name: str, content: bytes) -> str:
    """Keep a model that can be read, and return its id."""
    loads(content, name="the model", most=UNPACKED)
    id_ = uuid4().hex
    row = {
        "id": id_,
        "tenant": tenant,
        "name": name,
        "content": content,
        "created": time.time(),
    }
    connection.execute(sa.insert(models), row)
    return id_
