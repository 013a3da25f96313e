"""Counts of what follows what, kept as chains.

The states seen to follow a row [h, s, x], x an action or an advice, are a chain: ``head_hsx`` is
its first link, −1 where there is none; link j of ``links`` [j, 3] holds a state, how often it came,
and the next link. ``used`` says how many links are in use. So what was seen is known at once,
without sorting. Kernels trust their input and that there is room.
"""

from typing import NamedTuple

from counsel._arrays import Floats, Ints
from counsel._jit import kernel


class Chains(NamedTuple):
    """How often each row was visited, and the states that followed it."""

    visits_hsx: Ints
    head_hsx: Ints
    links: Ints
    used: Ints


@kernel
def count_transition(chains: Chains, h: int, s: int, x: int, t: int) -> None:
    """Count that state t followed a row."""
    chains.visits_hsx[h, s, x] += 1
    j = chains.head_hsx[h, s, x]
    while j >= 0:
        if chains.links[j, 0] == t:
            chains.links[j, 1] += 1
            return
        j = chains.links[j, 2]
    j = chains.used[0]
    chains.links[j, 0], chains.links[j, 1] = t, 1
    chains.links[j, 2] = chains.head_hsx[h, s, x]
    chains.head_hsx[h, s, x] = j
    chains.used[0] = j + 1


@kernel
def add_times(chains: Chains, row: Ints, t: Ints, times: Ints) -> None:
    """Count that states followed rows, numbered (h·S + s)·X + x, so many times each."""
    _, S, X = chains.visits_hsx.shape
    for i in range(row.size):
        h, sx = divmod(row[i], S * X)
        s, x = divmod(sx, X)
        count_transition(chains, h, s, x, t[i])
        chains.visits_hsx[h, s, x] += times[i] - 1
        j = chains.head_hsx[h, s, x]
        while chains.links[j, 0] != t[i]:
            j = chains.links[j, 2]
        chains.links[j, 1] += times[i] - 1


@kernel
def expect_chain(chains: Chains, h: int, s: int, x: int, value_s: Floats) -> float:
    """Return Σ_t p̂(t) value(t) of a row that was seen."""
    j, value = chains.head_hsx[h, s, x], 0.0
    while j >= 0:
        value += chains.links[j, 1] * value_s[chains.links[j, 0]]
        j = chains.links[j, 2]
    return float(value / chains.visits_hsx[h, s, x])


@kernel
def count_successors(chains: Chains, h: int, s: int, x: int) -> int:
    """Return how many states were seen to follow a row."""
    j, kinds = chains.head_hsx[h, s, x], 0
    while j >= 0:
        kinds += 1
        j = chains.links[j, 2]
    return kinds
