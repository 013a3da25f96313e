"""What a wrong adherence costs: the claims on invented rows, and the rows themselves."""

import numpy as np
import pytest

from counsel.experiments.experiment import Size
from counsel.experiments.paper import misjudged
from tests.support.invented_rows import over_seeds, verdicts

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "cannot be told"


def losses(over, under):
    """Three θ: the largest loss with too high a θ and with too low a θ."""
    lost = np.array([[0.0, 0.0, over], [under, 0.0, 0.0], [0.0, 0.0, 0.0]])
    true, assumed = np.meshgrid([0.1, 0.5, 1.0], [0.1, 0.5, 1.0], indexing="ij")
    columns = {"assumed": assumed, "true": true, "lost": lost, "best": np.ones((3, 3))}
    return {name: column.ravel() for name, column in columns.items()}


def rows_of(make):
    rows = {}
    for person in ("greedy", "safe"):
        for prefix in ("", "maps-"):
            rows |= over_seeds(f"misjudged/{prefix}{person}", make)
    return rows


def test_the_cost_of_a_wrong_adherence():
    assert verdicts(misjudged.claims(rows_of(lambda _: losses(0.1, 0.5)))) == [HOLDS] * 4
    assert verdicts(misjudged.claims(rows_of(lambda _: losses(0.01, 0.005)))) == [FAILS] * 4
    one_map = rows_of(lambda seed: losses(0.1, 0.05 if seed == 3 else 0.5))
    assert verdicts(misjudged.claims(one_map)) == [HOLDS, UNKNOWN] * 2


def test_planning_for_the_true_adherence_loses_nothing_on_any_map():
    runs = [run for run in misjudged.runs(Size(1.0, 3)) if "maps" in run.id]
    assert len(runs) == 6
    for run in runs:
        lost = misjudged.lost_by(run.rows())
        assert np.diag(lost) == pytest.approx(np.zeros(10), abs=1e-9)
        assert lost.min() > -1e-9
