"""What budget-learning and budget-transfer claim, on invented rows."""

import numpy as np

from counsel.experiments.paper import budget
from tests.support.invented_rows import over_seeds, verdicts

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "cannot be told"


def run_with(gaps=(0.0,) * 5, left=(0.0,) * 5, mean=0.0, end=0.0):
    """Two updates while learning, then D = 1 … 5."""
    return {
        "when": np.append([0.0, 0.0], np.ones(5)),
        "episode": np.append([0.0, 1500.0], np.full(5, 1500.0)),
        "budget": np.append([1.0, 1.0], np.arange(1.0, 6.0)),
        "value_gap": np.concatenate(([2.0 * mean - end, end], gaps)),
        "advice_gap": np.concatenate(([0.0, 0.0], left)),
    }


def rows_of(rfe, uc, tuned=None):
    """All factors; the tuned rows are those of UC-CFH at 0.4."""
    rows = {}
    for learner, run in (("rfe-cmdp", rfe), ("uc-cfh", uc)):
        rows |= over_seeds(f"budget-learning/{learner}", lambda _, run=run: run)
        for scale in budget.SCALES[learner]:
            name = f"budget-learning/{budget.on_maps(learner, scale)}"
            is_tuned = tuned is not None and (learner, scale) == ("uc-cfh", 0.4)
            rows |= over_seeds(name, lambda _, run=tuned if is_tuned else run: run)
    return rows


def test_transfer_needs_both_the_value_and_the_budget():
    fine = run_with()
    late = run_with(gaps=(0, 1, 1, 1, 1))
    spends = run_with(left=(0, -1, 0, 0, 0))
    for rfe, uc, expected in (
        (fine, late, [HOLDS, HOLDS, HOLDS, HOLDS, HOLDS, HOLDS]),
        (spends, late, [FAILS, HOLDS, FAILS, HOLDS, HOLDS, HOLDS]),
        (fine, fine, [HOLDS, FAILS, FAILS, FAILS, HOLDS, HOLDS]),
    ):
        assert verdicts(budget.transfer_claims(rows_of(rfe, uc))) == expected


def test_a_tuned_learner_has_the_factor_that_is_best_on_other_maps():
    # With its own factor UC-CFH is worse than RFE-CMDP and misses its own budget; tuned, neither.
    rfe, uc = run_with(mean=0.3), run_with(mean=0.5, gaps=(0.1, 0, 0, 0, 0))
    tuned = run_with(mean=0.2)
    rows = rows_of(rfe, uc, tuned)
    assert verdicts(budget.learning_claims(rows)) == [HOLDS, FAILS, HOLDS]
    assert verdicts(budget.transfer_claims(rows))[4:] == [FAILS, HOLDS]
    ((*_, line),) = [t.rows for t in budget.tables(rows)]
    assert line == ("UC-CFH", "0.01", "0.5", "0.1", "0")


def test_the_end_must_be_near_the_best_on_most_maps():
    rows = rows_of(run_with(mean=0.1), run_with(mean=0.2))
    name = f"budget-learning/{budget.on_maps('rfe-cmdp')}"
    for late, verdict in ((set(), HOLDS), ({3, 9}, UNKNOWN), (set(range(0, 24, 2)), FAILS)):
        rows |= over_seeds(name, lambda seed, n=late: run_with(mean=0.1, end=0.2 * (seed in n)))
        assert verdicts(budget.learning_claims(rows))[2] == verdict
