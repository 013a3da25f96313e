"""The compiled gain of a piece of advice: lift × advantage. ``gains.py`` has the NumPy version."""

from counsel._arrays import Floats
from counsel._jit import inlined

ALMOST_CERTAIN = 0.9
"""From this probability on, 1 − π has lost so many digits that the slower sum is worthwhile."""


@inlined
def gain(
    policy_sa: Floats, s: int, a: int, lift: float, q_ca: Floats, c: int, alone: float
) -> float:
    """Return the gain of advising ``a`` in value ``c``: lift · (q(a) − alone)."""
    return gain_of_match(policy_sa, s, a, lift, q_ca[c, a], q_ca, c, alone)


@inlined
def gain_of_match(
    policy_sa: Floats,
    s: int,
    a: int,
    lift: float,
    matched: float,
    q_ca: Floats,
    c: int,
    alone: float,
) -> float:
    """Return lift · (matched − alone): a match is worth ``matched``, other actions ``q_ca[c]``.

    If the person almost always takes ``a``, the difference of two nearly equal numbers, divided by
    the small probability of all other actions, would lose its digits.
    """
    simple = lift * (matched - alone)
    if policy_sa[s, a] >= ALMOST_CERTAIN:
        return gain_by_differences(policy_sa, s, a, lift, matched, q_ca, c)
    return simple


@inlined
def gain_by_differences(
    policy_sa: Floats, s: int, a: int, lift: float, matched: float, q_ca: Floats, c: int
) -> float:
    """Return the same gain with the advantage summed as Σ_b π(b) (matched − q(b))."""
    advantage = 0.0
    for b in range(policy_sa.shape[1]):
        if policy_sa[s, b] > 0.0 and b != a:
            advantage += policy_sa[s, b] * (matched - q_ca[c, b])
    total: float = lift * advantage
    return total
