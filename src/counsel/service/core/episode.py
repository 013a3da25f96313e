"""An episode of a person with an adviser, and the ids of its decisions."""

import json
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from counsel.learning.population import Limit
from counsel.service.core.live_adviser import LiveAdviser
from counsel.service.core.plan_cache import PlanKey


@dataclass(frozen=True, slots=True)
class Episode:
    """Everything about an episode that does not change.

    Attributes
    ----------
    id, number
        What callers and what the database's tables call it.
    live
        The adviser.
    person
        The number of the person.
    held_out
        Whether it is kept silent to measure the worth of advice.
    mode
        The adviser's mode when the episode started.
    own_limit
        What advice may cost in this episode, where that differs from the adviser's limit.
    """

    id: str
    number: int
    live: LiveAdviser = field(compare=False)
    person: int
    held_out: bool
    mode: str
    own_limit: Limit | None

    @classmethod
    def from_row(cls, row: sa.Row[Any], live: LiveAdviser) -> "Episode":
        """Return an episode as the database has it."""
        own = None if row.limit is None else Limit(**json.loads(row.limit))
        return cls(row.id, row.number, live, row.person, row.held_out, row.mode, own)

    @property
    def limit(self) -> Limit:
        """What advice may cost in this episode."""
        return self.own_limit or self.live.settings.limit

    @property
    def plan_key(self) -> PlanKey:
        """The key of the plan for this person."""
        return PlanKey(self.live.id, self.person, self.limit)

    @property
    def is_paced(self) -> bool:
        """Whether it is charged to an expected budget of its adviser."""
        shown = self.mode == "live" and not self.held_out
        return shown and self.own_limit is None and self.live.settings.limit.is_paced

    def decision_id(self, step: int) -> str:
        """Return the id of the decision at a step, which outcomes refer to."""
        return f"{self.id}-{step}"


def parse_decision_id(decision: str) -> tuple[str, int] | None:
    """Return the id of the episode and the step of a decision; None if it is no decision's id."""
    episode, _, step = decision.rpartition("-")
    if not (step.isascii() and step.isdigit() and len(step) < 8):
        return None
    return episode, int(step)
