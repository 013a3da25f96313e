"""The advisers that a player can choose: aware of what advice is worth, always, or never."""

from counsel.errors import CounselError
from counsel.learning.population import Limit

FIXED_LIMITS = {"always": Limit(always=True), "never": Limit(budget=0.0, hard=True)}
"""What advice may cost with the advisers that are aware of nothing."""


def limit_of(kind: str, budget: int | None, penalty: float | None) -> Limit:
    """Return what advice may cost with an adviser; an aware one takes a budget or a penalty."""
    if kind in FIXED_LIMITS:
        return FIXED_LIMITS[kind]
    if (budget is None) == (penalty is None):
        raise CounselError("give either a budget or a penalty")
    return Limit(penalty, None if budget is None else float(budget), hard=budget is not None)


def kind_of(limit: Limit) -> str:
    """Return the adviser that was chosen: "aware", "always" or "never"."""
    return next((kind for kind, fixed in FIXED_LIMITS.items() if fixed == limit), "aware")
