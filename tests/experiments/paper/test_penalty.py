"""What value-gap-penalty and trajectories claim, on invented rows."""

import math

import numpy as np

from counsel.experiments.paper import penalty
from tests.support.invented_rows import explored, over_seeds, verdicts

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "cannot be told"


def rows_of(make, seeds=24):
    rows = {}
    for person in ("greedy", "safe"):
        for prefix in ("", "maps-"):
            rows |= over_seeds(f"regret-{person}/{prefix}rfe-ad", make, seeds)
    return rows


def test_a_gap_that_stays_open_for_one_penalty_fails_the_claim():
    for gaps, verdict in (((0.0, 0.01, 0.04), HOLDS), ((0.0, 0.06, 0.0), FAILS)):
        rows = rows_of(lambda _, gaps=gaps: explored(1, gaps))
        assert verdicts(penalty.claims(rows)) == [verdict, verdict]
    mixed = rows_of(lambda seed: explored(1, (0.0, 0.06 * (seed == 7), 0.0)))
    assert verdicts(penalty.claims(mixed)) == [UNKNOWN, UNKNOWN]


def advice_at(**pieces):
    rate = np.zeros(20)
    for step, amount in pieces.items():
        rate[int(step[1:])] = amount
    return rate


def test_advice_is_counted_by_phase():
    rate = advice_at(s8=1.0, s15=2.0)
    greedy, safe = penalty.trajectory_claims(rows_of(lambda _: explored(1, rate=rate)))
    assert (greedy.verdict, safe.verdict) == (HOLDS, FAILS)
    assert penalty.share_in(explored(1, rate=rate), 2) == 1 / 3
    assert safe.values[0] == 0.3333333
    assert "on the shipped map at most 0.33" in safe.note


def test_the_verdict_is_about_the_family_and_not_about_the_shipped_map():
    fine, other = advice_at(s8=1.0, s15=2.0), advice_at(s1=1.0)
    rows = rows_of(lambda _: explored(1, rate=other))
    rows |= over_seeds("regret-greedy/rfe-ad", lambda _: explored(1, rate=fine))
    greedy, _ = penalty.trajectory_claims(rows)
    assert greedy.verdict == FAILS
    assert "on the shipped map at most 0.00" in greedy.note


def test_who_says_nothing_has_shown_nothing():
    silent = rows_of(lambda _: explored(1, rate=np.zeros(20)))
    assert verdicts(penalty.trajectory_claims(silent)) == [UNKNOWN, UNKNOWN]
    assert math.isnan(penalty.share_in(explored(1, rate=np.zeros(20)), 1))


def test_the_picture_has_a_line_for_each_penalty():
    rows = rows_of(lambda _: explored(1, (0.0, 0.01, 0.04)))
    (picture,) = penalty.pictures(rows)
    for axes in picture.figure.axes:
        words = {text.get_text() for text in axes.texts}
        assert {"β = 0", "β = 0.2", "β = 0.4"} <= words
    assert all(claim.sentence in picture.caption for claim in penalty.claims(rows))
