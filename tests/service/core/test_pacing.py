"""Pacing of an expected budget: what plans aim at after more or less was spent."""

import pytest

from counsel.service.core.pacing import WINDOW, paced_budget


@pytest.mark.parametrize(
    ("episodes", "pieces", "planned_at", "aim"),
    [
        (0, 0, None, 1.5),
        (20, 30, 20, 1.5),
        (20, 40, 20, 1.5 - 10 / WINDOW),
        (20, 20, 20, 1.5 + 10 / WINDOW),
        (40, 20, 20, 1.5 + 40 / 40),  # twice the 20 episodes since the last plan
        (20, 1000, None, 0.0),
    ],
)
def test_plans_aim_at_what_corrects_the_difference(episodes, pieces, planned_at, aim):
    assert paced_budget(1.5, episodes, pieces, planned_at) == pytest.approx(aim)
