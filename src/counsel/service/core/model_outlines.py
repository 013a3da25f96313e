"""Outlines of models: what is left of an adviser whose model can no longer be read.

No data silences an adviser. The file of a model may be damaged on disk, or written by a version of
Counsel that is no longer understood. Beside it is its outline, a short text with the horizon, the
labels, and the memory of its person. From that a problem is made that has all its names and no
content: what must be said is still said and put on record, outcomes are recorded, and the record
can be read; no plan is made.
"""

import json
import logging
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from counsel._arrays import brief
from counsel.errors import CounselError
from counsel.model.human import Human
from counsel.model.mdp import MDP
from counsel.model.memory import Memory
from counsel.model.problem import AdviceProblem
from counsel.service.db.engine import read
from counsel.service.db.tables import models, outlines

if TYPE_CHECKING:
    from counsel.service.core.desk import Desk

LOG = logging.getLogger("counsel.service")


class DamagedModelError(CounselError):
    """A model cannot be read; ``problem`` is made from its outline."""

    def __init__(self, reason: str, problem: AdviceProblem) -> None:
        super().__init__(reason)
        self.problem = problem


def outline_of(problem: AdviceProblem) -> str:
    """Return the outline of a problem."""
    mdp, memory, fading = problem.mdp, problem.memory, problem.human.fading
    outline: dict[str, Any] = {
        "horizon": problem.horizon,
        "states": mdp.state_labels or mdp.n_states,
        "actions": mdp.action_labels or mdp.n_actions,
    }
    if memory is not None:
        own = {name: getattr(memory, name) for name in ("start", "newcomer", "labels", "name")}
        outline["memory"] = own | {"after": memory.after.tolist()}
    if memory is not None and fading is not None:
        outline["fading"] = fading.tolist()
    return json.dumps(outline)


def problem_of(outline: str) -> AdviceProblem:
    """Return a problem with the names of a model, in which nothing moves and nothing is worth."""
    known = json.loads(outline)
    state_labels, action_labels = (
        None if isinstance(known[axis], int) else known[axis] for axis in ("states", "actions")
    )
    S, A = (
        known[axis] if isinstance(known[axis], int) else len(known[axis])
        for axis in ("states", "actions")
    )
    memory = known.get("memory")
    if memory is not None:
        memory = Memory(*np.array(memory.pop("after")), **memory)
    mdp = MDP(
        np.repeat(np.arange(S)[:, None], A, axis=1),
        np.zeros((S, A)),
        horizon=known["horizon"],
        state_labels=state_labels,
        action_labels=action_labels,
    )
    person = Human(np.full((S, A), 1.0 / A), lift=0.0, memory=memory, fading=known.get("fading"))
    return AdviceProblem(mdp, person)


def add_missing_outlines(desk: "Desk") -> None:
    """Add the outlines of models that were uploaded before there were any."""
    has_outline = sa.exists().where(outlines.c.model == models.c.id)
    for row in read(desk.reading, sa.select(models.c.id, models.c.tenant).where(~has_outline)):
        try:
            outline = outline_of(desk.problems(row.tenant, row.id))
        except CounselError as fault:
            LOG.warning("model %s cannot be read: %s", row.id, brief(str(fault)))
            continue
        desk.committer.submit(_adding(row.id, outline)).result()


def _adding(model: str, outline: str) -> Any:  # noqa: ANN401 (a job of the committer)
    def add(connection: sa.Connection) -> None:
        is_there = sa.select(models.c.id).where(models.c.id == model)
        known = sa.select(outlines.c.model).where(outlines.c.model == model)
        if connection.scalar(is_there) is not None and connection.scalar(known) is None:
            connection.execute(sa.insert(outlines), {"model": model, "content": outline})

    return add
