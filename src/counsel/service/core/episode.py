"""An episode of a person with an adviser."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from counsel.learning.population import Limit
from counsel.service.core.kept_plans import PlanKey
from counsel.service.core.live_adviser import LiveAdviser


@dataclass(frozen=True, slots=True)
class Episode:
    """Everything about an episode that does not change.

    Callers know it by its ``id``, the tables by its ``number``. ``held_out`` episodes are kept
    silent to measure the worth of advice. ``mode`` is the adviser's when the episode started, and
    ``own_limit`` what advice may cost here, where that differs from the adviser's limit.
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


def digest_of_request(request: str) -> str:
    """Return what is stored of an idempotency key."""
    return hashlib.sha256(request.encode()).hexdigest()
