"""The plans that are kept in memory, and which of them go when there are too many.

Where plans need more room than there is, the owner with most of it gives up those of its plans that
were not used for longest: whoever has less than an equal share loses nothing. Large plans have room
of their own, so that one of them takes nothing from all the small ones. The last plan that was
added stays, however large it is.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from counsel.learning.population import Limit
from counsel.service.core.explained_plan import ExplainedPlan

MOST_BYTES, LARGE_BYTES = 256_000_000, 512_000_000
"""The size of all small plans together, and of all large ones."""

LARGE = 16_000_000
"""Bytes from which on a plan is large."""


class PlanKey(NamedTuple):
    """The adviser and the person of a plan, and what advice may cost."""

    adviser: str
    person: int
    limit: Limit


@dataclass(slots=True, eq=False)
class _Share:
    """The small or the large plans of an owner; the last used is last."""

    owner: Hashable
    is_large: bool
    plans: OrderedDict[PlanKey, ExplainedPlan] = field(default_factory=OrderedDict)
    size: int = 0


class KeptPlans:
    """Plans by their keys, each with an owner. It has no lock."""

    def __init__(self) -> None:
        self._shares: dict[tuple[Hashable, bool], _Share] = {}
        self._share_of: dict[PlanKey, _Share] = {}

    def get(self, key: PlanKey) -> ExplainedPlan | None:
        """Return a plan, if it is kept."""
        share = self._share_of.get(key)
        return None if share is None else share.plans[key]

    def use(self, key: PlanKey) -> ExplainedPlan | None:
        """Return a plan, if it is kept, and note that it was used."""
        share = self._share_of.get(key)
        if share is None:
            return None
        share.plans.move_to_end(key)
        return share.plans[key]

    def keys_of(self, adviser: str) -> list[PlanKey]:
        """Return the keys of the plans of an adviser."""
        return [key for key in self._share_of if key.adviser == adviser]

    def add(self, key: PlanKey, plan: ExplainedPlan, owner: Hashable) -> None:
        """Keep a plan, in the place of the last one with its key, and make room for it."""
        self.remove(key)
        is_large = plan.size >= LARGE
        share = self._shares.setdefault((owner, is_large), _Share(owner, is_large))
        self._share_of[key] = share
        share.plans[key] = plan
        share.size += plan.size
        self._make_room(share)

    def remove(self, key: PlanKey) -> None:
        """Keep a plan no longer, if it was kept."""
        share = self._share_of.pop(key, None)
        if share is not None:
            share.size -= share.plans.pop(key).size
            if not share.plans:
                del self._shares[share.owner, share.is_large]

    def _make_room(self, grown: _Share) -> None:
        """Remove plans until all fit, but not the last of the share that has grown."""
        most = LARGE_BYTES if grown.is_large else MOST_BYTES
        while True:
            shares = [one for one in self._shares.values() if one.is_large == grown.is_large]
            may_shrink = [one for one in shares if one is not grown or len(one.plans) > 1]
            if sum(one.size for one in shares) <= most or not may_shrink:
                return
            largest = max(may_shrink, key=lambda one: one.size)
            self.remove(next(iter(largest.plans)))
