"""What car-regret and car-penalty claim, on invented rows."""

import numpy as np

from counsel.experiments.paper import car
from tests.support.invented_rows import over_seeds, verdicts

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "cannot be told"
EPISODES = np.arange(1, 21) * 10.0


def driver(regret, gaps, after=None):
    rows = {"episode": EPISODES, "regret": np.full(20, regret), "value_gap": np.asarray(gaps)}
    same = {"regret_after": regret if after is None else after}
    same |= {"first_gap": rows["value_gap"][0], "end_gap": rows["value_gap"][-1]}
    return rows | {name: np.full(20, float(value)) for name, value in same.items()}


def explorer(regret, short=0.0):
    """Two blocks without a penalty, then ten penalties at which 1 is the best."""
    ends = 11
    return {
        "when": np.append([0.0, 0.0], np.ones(ends)),
        "episode": np.append([100.0, 200.0], np.full(ends, 200.0)),
        "penalty": np.append([0.0, 0.0, 0.0], car.ASKED),
        "value_gap": np.append([regret / 200.0] * 3, np.full(10, short)),
        "regret": np.append([regret / 2.0, regret], np.full(ends, np.nan)),
        "best": np.ones(13),
    }


def rows_of(ucb, rfe, naive=0.9, seeds=12):
    rows = over_seeds("car-regret/ucb-ad", lambda _: ucb, seeds)
    rows |= over_seeds("car-regret/rfe-ad", lambda _: rfe, seeds)
    alone = {"value": np.array([naive]), "best": np.array([1.0]), "advice_count": np.array([1.0])}
    return rows | {"car-regret/all-listen#0": alone}


def test_the_claims_on_the_driver():
    # The gap is 0.5 % at first and halves with the third plan of twenty, in use after 20 episodes.
    falls = np.append([0.005, 0.005], np.full(18, 0.002))
    claims = car.claims(rows_of(driver(1.0, falls), explorer(2.0)))
    assert verdicts(claims) == [HOLDS, HOLDS, HOLDS, HOLDS, FAILS]
    stays = np.append(np.full(19, 0.02), 0.0)
    claims = car.claims(rows_of(driver(3.0, stays), explorer(2.0), naive=1.0))
    assert verdicts(claims) == [FAILS, FAILS, FAILS, FAILS, HOLDS]


def test_two_readings_may_disagree():
    claims = car.claims(rows_of(driver(1.0, np.full(20, 0.005), after=3.0), explorer(2.0)))
    assert verdicts(claims)[:2] == [HOLDS, FAILS]


def test_few_drives_leave_open_what_needs_chance_and_not_what_is_computed():
    claims = car.claims(rows_of(driver(1.0, np.full(20, 0.005)), explorer(2.0), seeds=5))
    assert verdicts(claims) == [UNKNOWN, UNKNOWN, HOLDS, UNKNOWN, FAILS]


def test_values_must_track_the_best_for_every_penalty():
    for short, verdict in ((0.04, HOLDS), (0.06, FAILS)):
        rows = rows_of(driver(1.0, np.zeros(20)), explorer(2.0, short))
        assert verdicts(car.penalty_claims(rows)) == [verdict]
    rows = rows_of(driver(1.0, np.zeros(20)), explorer(2.0, 0.04))
    rows |= over_seeds("car-regret/rfe-ad", lambda s: explorer(2.0, 0.04 + 0.02 * (s % 2)), 12)
    assert verdicts(car.penalty_claims(rows)) == [UNKNOWN]


def test_the_pictures_of_the_driver_show_both_learners_and_end_with_the_verdicts():
    rows = rows_of(driver(1.0, np.full(20, 0.005)), explorer(2.0, 0.04))
    (regret,), (penalties,) = car.pictures(rows), car.penalty_pictures(rows)
    words = {text.get_text() for axes in regret.figure.axes for text in axes.texts}
    assert {"UCB-AD", "RFE-AD"} <= words
    assert len(penalties.figure.axes) == 2
    for picture, claims in ((regret, car.claims(rows)), (penalties, car.penalty_claims(rows))):
        assert all(claim.sentence in picture.caption for claim in claims)
