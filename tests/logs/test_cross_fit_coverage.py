"""How often the intervals of a report hold the truth; ``tools/coverage_study.py`` runs 200 logs."""

import numpy as np
import pytest

from tests.support.coverage import WHAT, one_log

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("few_draws")]

LOGS = 12


@pytest.mark.parametrize(
    "name",
    [
        "twenty people",
        pytest.param("by step", marks=pytest.mark.long),
        pytest.param("cut at random", marks=pytest.mark.long),
    ],
)
def test_the_intervals_of_a_report_hold_the_truth(name):
    # 12 logs, four intervals each: of 0.93 fewer than 9 of 12 hold once in 200.
    logs = [one_log(name, seed) for seed in range(LOGS)]
    for what in WHAT:
        known = [log[what] for log in logs if log[what] is not None]
        assert len(known) >= LOGS - 3, what
        assert sum(known) >= len(known) - 3, what


@pytest.mark.parametrize(
    ("logs", "too_many"), [(5, 3), pytest.param(12, 4, marks=pytest.mark.long)]
)
def test_without_any_effect_nothing_is_significant(logs, too_many):
    # At 5 % three or more of 5 are once in 860, four or more of 12 once in 450.
    verdicts = [one_log("no effect", seed)["significant"] for seed in range(logs)]
    assert sum(map(bool, verdicts)) < too_many


@pytest.mark.parametrize(
    "name",
    [
        "nagging",
        pytest.param("endogenous", marks=pytest.mark.long),
        pytest.param("deterministic", marks=pytest.mark.long),
    ],
)
def test_what_breaks_the_model_is_flagged_and_no_headline_errs(name):
    logs = [one_log(name, seed) for seed in range(6)]
    assert np.mean([log["flagged"] for log in logs]) >= 0.9
    assert not any(log["missed"] for log in logs)
