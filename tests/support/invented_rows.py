"""Rows of runs that never ran: the claims of experiments are tested on them."""

import numpy as np

from counsel.experiments.claim import SEEDS
from counsel.experiments.rows import pad_columns


def over_seeds(name, make, seeds=SEEDS):
    """Rows of one learner for every seed; ``make`` takes the seed."""
    return {f"{name}#{seed}": make(seed) for seed in range(seeds)}


def curve(end, **same):
    """A regret that ends here, and columns that are the same in every row."""
    columns = {"episode": np.array([1, 2]), "regret": np.array([0.0, end])}
    return columns | {name: np.full(2, float(value)) for name, value in same.items()}


def explored(end=1.0, gaps=(0.0, 0.0, 0.0), rate=None, before=(0.0, 0.0)):
    """A run of RFE with two blocks of one episode and the penalties 0, 0.2 and 0.4.

    ``before`` holds the value gaps before the blocks, ``gaps`` those after the last, by penalty.
    """
    rows = {
        "when": np.append(np.zeros(6), np.ones(3)),
        "episode": np.append([1.0, 2.0] * 3, np.full(3, 2.0)),
        "explored": np.append([0.0, 1.0] * 3, np.full(3, 2.0)),
        "penalty": np.append(np.repeat([0.0, 0.2, 0.4], 2), [0.0, 0.2, 0.4]),
        "value_gap": np.append(np.tile(before, 3), gaps),
        "advice_count": np.ones(9),
        "regret": np.append(np.tile([0.0, end], 3), np.full(3, np.nan)),
        "best": np.ones(9),
    }
    return pad_columns(rows if rate is None else rows | {"advice_rate": rate})


def verdicts(claims):
    """The verdicts as text."""
    return [claim.verdict.value for claim in claims]
