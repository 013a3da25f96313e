"""Where an adviser's problem comes from: a world by its name, or a model that was uploaded."""

import time
from uuid import uuid4

import sqlalchemy as sa

from counsel.errors import CounselError
from counsel.model.files import loads
from counsel.model.problem import AdviceProblem
from counsel.service.db.tables import models
from counsel.service.playground.maps import SOURCE, play_world
from counsel.worlds.catalogue import list_worlds

LARGEST_MODEL = 20_000_000
"""Bytes of an uploaded file."""

UNPACKED = 100_000_000
"""Bytes its arrays may take."""


MOST_CELLS = 20_000_000
"""Steps × states × actions of an uploaded model."""

LONGEST = 200
"""Characters of a label."""


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
        worlds = list_worlds()
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


def check_model(content: bytes) -> None:
    """Raise unless a model can be read, and be planned in within reason."""
    problem = loads(content, name="the model", most=UNPACKED)
    cells = problem.horizon * problem.n_states * problem.n_actions
    if cells > MOST_CELLS:
        raise CounselError(
            f"the model has {cells:,} steps × states × actions; {MOST_CELLS:,} are the most"
        )
    mdp = problem.mdp
    for label in (*(mdp.state_labels or ()), *(mdp.action_labels or ())):
        if not 1 <= len(label) <= LONGEST or "\x00" in label:
            raise CounselError(
                f"the model has the label {label[:40]!r}; labels have 1 to {LONGEST} characters"
            )


def add_model(connection: sa.Connection, tenant: int, name: str, content: bytes) -> str:
    """Keep a model that was checked, and return its id."""
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
