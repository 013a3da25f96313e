"""What the frontier is said to show, on invented rows."""

import numpy as np

from counsel.experiments.claim import SEEDS
from counsel.experiments.paper import frontier
from counsel.experiments.rows import pad_columns
from tests.support.invented_rows import explored, over_seeds, verdicts

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "cannot be told"


def front(naive):
    """From (0, 1) to (2, 3); the plan as if all listened spends 1 and is worth ``naive``."""
    return pad_columns(
        {
            "pieces": np.array([0.0, 2.0]),
            "value": np.array([1.0, 3.0]),
            "adviser_pieces": np.array([0.0, 1.0, 1.0]),
            "adviser_value": np.array([1.0, naive, 1.0]),
        }
    )


def rows_of(naive, gap):
    rows = {}
    for person in ("greedy", "safe"):
        for prefix in ("", "maps-"):
            rows |= over_seeds(f"frontier/{prefix}{person}", lambda _: front(naive))
            # One piece of advice at every penalty; the best is such that ``gap`` is the distance.
            run = explored(1, (gap, gap, gap)) | {"best": np.array([0.0] * 6 + [2.0, 1.8, 1.6])}
            rows |= over_seeds(f"regret-{person}/{prefix}rfe-ad", lambda _, run=run: run)
    return rows


def test_learnt_policies_lie_near_the_frontier_and_the_naive_plan_below():
    assert verdicts(frontier.claims(rows_of(1.8, 0.01))) == [HOLDS] * 4
    assert verdicts(frontier.claims(rows_of(1.99, 0.06))) == [FAILS] * 4
    rows = rows_of(1.8, 0.01)
    rows |= over_seeds("frontier/maps-safe", lambda seed: front(2.0 if seed % 2 else 1.8))
    assert verdicts(frontier.claims(rows)) == [HOLDS, HOLDS, HOLDS, UNKNOWN]


def test_the_picture_has_the_frontier_the_learnt_policies_and_the_advisers():
    rows = rows_of(1.8, 0.01)
    for person in ("greedy", "safe"):  # the frontier of the shipped map is computed once
        for seed in range(1, SEEDS):
            del rows[f"frontier/{person}#{seed}"]
    (picture,) = frontier.pictures(rows)
    for axes in picture.figure.axes:
        pieces, value = axes.lines[0].get_data()
        assert (list(pieces[:2]), list(value[:2])) == ([0.0, 2.0], [1.0, 3.0])
        labels = {text.get_text() for text in axes.get_legend().get_texts()}
        assert {"frontier", "RFE, learnt", "never", "as if all listened", "always"} <= labels
    assert all(claim.sentence in picture.caption for claim in frontier.claims(rows))
