"""Numbers as text, for the terminal and for pages."""

import math


def short(number: float) -> str:
    """Return a number with three significant digits."""
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    text = f"{number:.3g}"
    return f"{number:,.0f}" if "e" in text and 1e3 <= abs(number) < 1e12 else text


def in_full(number: float) -> str:
    """Return a number with five significant digits, enough to see what advice changes."""
    text = f"{number:.5g}"
    return f"{number:,.0f}" if "e" in text and 1e5 <= abs(number) < 1e12 else text


def signed(number: float) -> str:
    """Return a difference with its sign and two significant digits, none beyond the fifth place."""
    text = f"{number:+.2g}"
    return f"{number:+.5f}" if "e-" in text else text


def percent(share: float, digits: int = 0) -> str:
    """Return a share in per cent."""
    return f"{100 * share:.{digits}f} %"


def p_value_text(p: float) -> str:
    """Return a p-value: p = 0.034, or p < 0.001."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def count_of(number: float, noun: str, plural: str | None = None) -> str:
    """Return a number of things: 1 step, 2 steps."""
    return f"{number:,.0f} {noun if number == 1 else plural or noun + 's'}"


def pieces_of_advice(count: float, cost: float | None = None) -> str:
    """Return a number of pieces of advice: 1 piece of advice, 1.5 pieces of advice that cost 3."""
    text = short(count)
    pieces, costs = ("piece", "costs") if text == "1" else ("pieces", "cost")
    return f"{text} {pieces} of advice" + ("" if cost is None else f" that {costs} {short(cost)}")


def pieces_per_episode(
    count: float,
    verb: str = "",
    limit: str = "",
    *,
    cost: float | None = None,
    per: str = "episode",
) -> str:
    """Return the beginning of a sentence: 1 piece of advice per episode keeps …."""
    text = f"{pieces_of_advice(count, cost)} per {per}{limit}"
    return f"{text} {verb}{'s' if short(count) == '1' else ''}" if verb else text
