"""Drawn cases shared by the planning tests: by seed, and as Hypothesis strategies."""

from functools import cache

import numpy as np
from hypothesis import strategies as st

import counsel
from tests.support import oracles
from tests.support.problems import adapt, draw

TINY = (2, 2, 3)
"""States, actions and steps few enough to try every policy."""


@cache
def case(seed: int) -> tuple[oracles.Problem, counsel.AdviceProblem]:
    """Return one small problem for the oracles and for Counsel."""
    dense = draw(seed)
    return dense, adapt(dense)


@cache
def tiny(seed: int) -> tuple[oracles.Problem, counsel.AdviceProblem]:
    """Return a problem small enough for brute force; every fourth seed allows reactance."""
    S, A, H = TINY
    dense = oracles.random_problem(
        np.random.default_rng(seed),
        S,
        A,
        H,
        deterministic_people=seed % 5 == 0,
        masks=seed % 3 == 0,
        repel=seed % 4 == 0,
    )
    return dense, adapt(dense)


@cache
def tiny_hull(seed: int) -> tuple[oracles.Floats, oracles.Floats]:
    """Return the vertices (count, value) of a tiny problem by brute force."""
    return oracles.hull(*oracles.brute_force(*tiny(seed)[0]))


def rules(seed: int, shape: tuple[int, ...]) -> tuple[oracles.Bools, oracles.Bools]:
    """Draw disjoint forbidden and required cells [h, s], about a quarter of the cells each."""
    kind_hs = np.random.default_rng([seed, 1]).integers(4, size=shape[:2])
    return kind_hs == 0, kind_hs == 1


@st.composite
def problems(draw_, *, most=(4, 3, 4), repel: bool | None = None) -> oracles.Problem:
    """Draw a problem for the oracles; it shrinks towards one state, one action, one step."""
    S, A, H = (draw_(st.integers(1, n)) for n in most)
    return oracles.random_problem(
        np.random.default_rng(draw_(st.integers(0, 2**32 - 1))),
        S,
        A,
        H,
        deterministic_people=draw_(st.booleans()),
        masks=draw_(st.booleans()),
        repel=draw_(st.booleans()) if repel is None else repel,
    )


def random_policy(rng: np.random.Generator, allowed_hsa: oracles.Bools) -> oracles.Floats:
    """Draw a random policy [h, s, A+1] with some certain cells; it uses allowed advice only."""
    may_hsb = oracles.permitted(allowed_hsa)
    weight_hsb = rng.random(may_hsb.shape) * (rng.random(may_hsb.shape) < 0.7) * may_hsb
    weight_hsb[..., -1] += weight_hsb.sum(axis=-1) == 0.0
    return weight_hsb / weight_hsb.sum(axis=-1, keepdims=True)
