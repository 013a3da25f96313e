"""Where an adviser's problem comes from: a named world, or an uploaded model.

All advisers with the same source have the same problem, which is kept for as long as it is in use.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from uuid import uuid4
from weakref import WeakValueDictionary

import sqlalchemy as sa

from counsel.errors import CounselError
from counsel.model.files import loads
from counsel.model.problem import AdviceProblem
from counsel.service.core.audit import record
from counsel.service.core.keyed_locks import KeyedLocks
from counsel.service.core.model_outlines import DamagedModelError, outline_of, problem_of
from counsel.service.core.quotas import check_models
from counsel.service.db.api_keys import KeyHolder
from counsel.service.db.model_queries import Pieces, content_of, pieces_of
from counsel.service.db.tables import models, outlines
from counsel.service.errors import BusyError
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
        self._kept: WeakValueDictionary[tuple[int | None, str], AdviceProblem]
        self._kept = WeakValueDictionary()
        self._reading = KeyedLocks()

    def __call__(self, tenant: int, source: str) -> AdviceProblem:
        """Return a world, or a model of this tenant.

        Raises a ``DamagedModelError`` if the model is known and cannot be read.
        """
        make = self._maker(source)
        owner = tenant if make is None else None
        problem = self._kept.get((owner, source))
        if problem is None:
            # The models of a tenant are read one by one: each takes memory.
            with self._reading.hold(source if owner is None else owner):
                problem = self._kept.get((owner, source))
                if problem is None:
                    problem = self._model(tenant, source) if make is None else make()
                    self._kept[owner, source] = problem
        return problem

    def _maker(self, source: str) -> Callable[[], AdviceProblem] | None:
        """Return a function that makes the problem of a source; None if that is a model."""
        for prefix, make in self.by_prefix.items():
            if source.startswith(prefix):
                return partial(make, source.removeprefix(prefix))
        worlds = list_worlds()
        return worlds[source].build if source in worlds else None

    def _model(self, tenant: int, source: str) -> AdviceProblem:
        try:
            with self.engine.connect() as connection:
                content = content_of(connection, tenant, source)
            if content is not None:
                return read_model(content)
        except (CounselError, sa.exc.DatabaseError) as fault:
            if isinstance(fault, sa.exc.OperationalError):
                raise  # the database does not answer, which says nothing about the model
            raise self._damaged(tenant, source, fault) from None
        raise CounselError(
            f"source is {source[:60]!r}; give the id of an uploaded model or one of "
            f"{', '.join(list_worlds())}"
        )

    def _damaged(self, tenant: int, source: str, fault: Exception) -> Exception:
        """Return what is raised for a model that cannot be read."""
        query = (
            sa.select(outlines.c.content)
            .join(models, models.c.id == outlines.c.model)
            .where(models.c.id == source, models.c.tenant == tenant)
        )
        with self.engine.connect() as connection:
            outline = connection.scalar(query)
        if outline is None:
            return fault
        reason = f"model {source} cannot be read: {getattr(fault, 'orig', fault)}"
        return DamagedModelError(f"{reason}; restore it from a backup", problem_of(outline))


def read_model(content: bytes) -> AdviceProblem:
    """Return the problem in a file that was uploaded."""
    return loads(content, name="the model", most=UNPACKED)


def check_model(content: bytes, most_bytes: int) -> str:
    """Return the outline of a model; raise unless it can be read and is small enough to plan in."""
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
    return outline_of(problem)


def add_model(  # noqa: PLR0913 (who uploaded what, within which quotas)
    connection: sa.Connection,
    holder: KeyHolder,
    name: str,
    content: bytes,
    settings: ServiceSettings | None = None,
    outline: str | None = None,
    pieces: Pieces | None = None,
) -> str:
    """Store a checked model that the holder of a key uploaded, and return its id.

    Without an ``outline`` the next start adds it. The ``pieces`` of a large model were written
    before; its ``content`` is empty.
    """
    tenant = holder.tenant
    check_models(connection, tenant, settings or ServiceSettings())
    if pieces is not None and pieces_of(connection, pieces.model) != pieces:
        raise BusyError("a part of the model was lost while it was written; send it again")
    id_ = uuid4().hex if pieces is None else pieces.model
    size = len(content) if pieces is None else pieces.size
    row = {"id": id_, "tenant": tenant, "name": name, "content": content, "created": time.time()}
    connection.execute(sa.insert(models), row)
    if outline is not None:
        connection.execute(sa.insert(outlines), {"model": id_, "content": outline})
    details = {"name": name, "bytes": size}
    record(connection, holder, "model uploaded", id_, details)
    return id_
