"""What equal-terms claims, on invented rows."""

import numpy as np

from counsel.experiments.paper import equal_terms
from tests.support.invented_rows import curve, over_seeds, verdicts

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "cannot be told"


def explorer(before, after):
    """Two blocks of one episode; the first is charged with all of the regret before."""
    return {
        "when": np.array([0.0, 0.0, 1.0]),
        "episode": np.array([1.0, 2.0, 2.0]),
        "penalty": np.zeros(3),
        "value_gap": np.array([before, 0.0, after]),
        "regret": np.array([before, before, np.nan]),
    }


def rows_of(ucb, euler, burn_in=0.0):
    """Regrets by factor; RFE-AD has 5 before and 1 after the block, with every factor."""
    rows = {}
    for person in ("greedy", "safe"):
        for i, factor in enumerate(equal_terms.FACTORS):
            for learner, regrets, burnt in (("ucb-ad", ucb, 0.0), ("euler", euler, burn_in)):
                run = curve(regrets[i], regret_after=regrets[i], burn_in_regret=burnt)
                name = f"equal-terms/{person}-{learner}-{factor:g}"
                rows |= over_seeds(name, lambda _, run=run: run, 16)
            name = f"equal-terms/{person}-rfe-ad-{factor:g}"
            rows |= over_seeds(name, lambda _: explorer(5.0, 1.0), 16)
    return rows


def test_each_learner_has_its_own_best_factor():
    # UCB-AD is best with 1 (4), EULER with 1/100 (3): before the tuning UCB-AD wins, 4 to 9.
    rows = rows_of((4.0, 6.0, 8.0, 9.0), (9.0, 5.0, 3.0, 7.0), burn_in=10.0)
    ucb_rfe, ucb_rfe_after, ucb_euler, counted, rfe_euler, rfe_counted = verdicts(
        equal_terms.claims(rows)
    )[:6]
    assert (ucb_rfe, ucb_rfe_after) == (HOLDS, FAILS)  # 4 against 5, or against 1
    assert (ucb_euler, counted) == (FAILS, HOLDS)  # 4 against 3, or against 13
    assert (rfe_euler, rfe_counted) == (FAILS, HOLDS)
    (table,) = equal_terms.tables(rows)
    assert ("Policy Safe", "EULER", "tuned", "3", "13", "3") in table.rows
    assert ("Policy Safe", "EULER", "1 (paper)", "9", "19", "9") in table.rows


def test_a_factor_that_is_best_on_one_half_only_is_charged_for_it():
    rows = rows_of((4.0,) * 4, (9.0,) * 4)
    # With 1/1000 EULER has no regret on the first eight maps and much on the others.
    lucky = over_seeds("equal-terms/safe-euler-0.001", lambda s: curve(0.0 if s < 8 else 50.0), 16)
    regret = {key: run | {"regret_after": run["regret"]} for key, run in lucky.items()}
    rows |= {key: run | {"burn_in_regret": np.zeros(2)} for key, run in regret.items()}
    tuned = equal_terms.tuned(rows, "safe", "euler", "before")
    assert tuned.tolist() == [9.0] * 8 + [50.0] * 8
