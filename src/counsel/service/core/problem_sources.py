"""Where an adviser's problem comes from: a named world, or an uploaded model."""

import time
from collections.abc import Callable, Mapping
from uuid import uuid4

import sqlalchemy as sa

from counsel.errors import CounselError
from counsel.model.files import loads
from counsel.model.problem import AdviceProblem
from counsel.service.core.audit import record
from counsel.service.core.quotas import check_models
from counsel.service.db.api_keys import KeyHolder
from counsel.service.db.tables import models
from counsel.service.settings import ServiceSettings, variable_of
from counsel.worlds.catalogue import list_worlds

UNPACKED = 100_000_000
"""Bytes of the arrays of an uploaded file."""

MOST_CELLS, LONGEST = 20_000_000, 200
"""Steps × states × actions × levels of an uploaded model, and characters of its labels."""


class ProblemSources:
    """Problems by name or id.

    ``by_prefix`` has functions for sources with a prefix; each takes the rest of the source.
    """

    def __init__(
        self, engine: sa.Engine, by_prefix: Mapping[str, Callable[[str], AdviceProblem]]
    ) -> None:
        self.engine, self.by_prefix = engine, by_prefix

    def __call__(self, tenant: int, source: str) -> AdviceProblem:
        """Return a world, or a model of this tenant."""
        for prefix, make in self.by_prefix.items():
            if source.startswith(prefix):
                return make(source.removeprefix(prefix))
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
        return read_model(content)


def read_model(content: bytes) -> AdviceProblem:
    """Return the problem in a file that was uploaded."""
    return loads(content, name="the model", most=UNPACKED)


def check_model(content: bytes, most_bytes: int) -> None:
    """Raise unless a model can be read and is small enough to plan in."""
    if len(content) > most_bytes:
        raise CounselError(
            f"the model has {len(content):,} bytes and may have {most_bytes:,}; raise "
            f"{variable_of('model_bytes')}"
        )
    problem = read_model(content)
    cells = problem.horizon * problem.n_states * problem.n_actions * problem.n_levels
    if cells > MOST_CELLS:
        levels = "" if problem.memory is None else " × levels of memory"
        raise CounselError(
            f"the model has {cells:,} steps × states × actions{levels}; {MOST_CELLS:,} are the most"
        )
    mdp, memory = problem.mdp, problem.memory
    texts = () if memory is None else (memory.name, *memory.labels)
    for label in (*(mdp.state_labels or ()), *(mdp.action_labels or ()), *texts):
        if not 1 <= len(label) <= LONGEST or "\x00" in label:
            raise CounselError(
                f"the model has the label {label[:40]!r}; labels have 1 to {LONGEST} characters"
            )


def add_model(
    connection: sa.Connection,
    holder: KeyHolder,
    name: str,
    content: bytes,
    settings: ServiceSettings | None = None,
) -> str:
    """Store a checked model that the holder of a key uploaded, and return its id."""
    tenant = holder.tenant
    check_models(connection, tenant, settings or ServiceSettings())
    id_ = uuid4().hex
    row = {"id": id_, "tenant": tenant, "name": name, "content": content, "created": time.time()}
    connection.execute(sa.insert(models), row)
    details = {"name": name, "bytes": len(content)}
    record(connection, holder, "model uploaded", id_, details)
    return id_
