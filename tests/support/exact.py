"""The adherence law in exact arithmetic."""

from collections.abc import Sequence
from fractions import Fraction


def exact_law(own: Sequence[float], advice: int, adherence: float) -> list[Fraction]:
    """Return equation 1 in exact arithmetic."""
    habit = [Fraction(p) for p in own]
    rest = sum(p for a, p in enumerate(habit) if a != advice)
    if rest == 0:
        return habit
    theta = Fraction(adherence)
    return [theta if a == advice else (1 - theta) * p / rest for a, p in enumerate(habit)]
