"""Tables and tallies of small logs, for the tests of fits."""

import numpy as np

from counsel.worlds import make
from tests.support.drawn_logs import drawn, tally_of
from tests.support.later import Later

pd = Later("pandas")


def table(**columns):
    """A log in memory; what is not given is as plain as can be."""
    n = len(columns["action"])
    plain = {"episode": [f"e{i}" for i in range(n)], "step": 0, "state": "only", "reward": 0.0}
    return pd.DataFrame(plain | columns)


def spoken(rng, episodes, pi, lift, *, said=None):
    """Advice (None for silence) and actions, as pairs of labels, of a person in one state.

    ``lift`` is one number for each decision.
    """
    names = "abcdef"[: len(pi)]
    said = rng.integers(len(pi) + 1, size=episodes) if said is None else said
    moved = (rng.random(episodes) < lift) & (said < len(pi))
    action = np.where(moved, said, rng.choice(len(pi), size=episodes, p=pi))
    return [[*names, None][b] for b in said], [names[a] for a in action]


def ward_tally(episodes=600, seed=8):
    problem = make("ward")
    return problem, tally_of(problem, drawn(problem, episodes, seed))
