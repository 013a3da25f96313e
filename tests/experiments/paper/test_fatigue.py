"""People who tire: the claims on invented rows, and the rows themselves."""

import numpy as np
import pytest

from counsel.experiments.experiment import Size
from counsel.experiments.paper import fatigue
from counsel.planning.solve import solve
from counsel.worlds.catalogue import make
from tests.support.invented_rows import curve, over_seeds, verdicts

HOLDS, FAILS = "holds", "does not hold"


def plans(lost, fewer):
    """A plan whose blind version loses so much, and says so many pieces more, at 30 % less."""
    columns = {"factor": np.array([1.0, 0.7]), "never": np.zeros(2), "never_pieces": np.zeros(2)}
    for name, value, pieces in (
        ("best", 5.0, 3.0),
        ("blind", 5.0 - lost, 3.0 + fewer),
        ("always", 1.0, 9.0),
    ):
        columns |= {name: np.array([6.0, value]), f"{name}_pieces": np.array([4.0, pieces])}
    return columns


def rows_of(lost, fewer, knows, blind):
    rows = {f"fatigue/{person}#0": plans(lost, fewer) for person in ("greedy", "safe")}
    for person in ("greedy", "safe"):
        rows |= over_seeds(f"fatigue/maps-{person}", lambda _: plans(lost, fewer))
    for name in fatigue.LEARNERS:
        end = knows if "knows" in name else blind
        for prefix in ("", "maps-"):
            rows |= over_seeds(f"fatigue/{prefix}{name}", lambda _, end=end: curve(end))
    return rows


def test_the_cost_of_being_blind_to_fatigue():
    assert verdicts(fatigue.claims(rows_of(0.5, 2.0, 1.0, 20.0))) == [HOLDS] * 6
    assert verdicts(fatigue.claims(rows_of(0.01, -1.0, 10.0, 20.0))) == [FAILS] * 6


def test_the_table_has_a_line_for_each_learner():
    (table,) = fatigue.tables(rows_of(0.5, 2.0, 1.0, 20.0))
    assert [line[:2] for line in table.rows[1:]] == [
        ("known", "by advice"),
        ("not known", "by advice"),
        ("known", "by step, state and advice"),
        ("not known", "by step, state and advice"),
    ]
    assert table.rows[1][2:] == ("1 [1, 1]", "1 [1, 1]")


def test_without_fading_the_blind_plan_is_the_best_one():
    run = fatigue.Fading(id="x", world="flappy-bird/safe", factors=(1.0, 0.5)).rows()
    assert run["blind"][0] == pytest.approx(run["best"][0], abs=1e-9)
    assert run["best"][0] == pytest.approx(solve(make("flappy-bird/safe")).value, abs=1e-9)
    for name in ("blind", "always", "never"):
        assert run["best"][1] >= run[name][1] - 1e-9
    assert run["never_pieces"].tolist() == [0.0, 0.0]


def test_both_learners_play_the_same_world_and_only_one_knows_the_memory():
    size = Size(0.002, 1)
    runs = {run.id: run for run in fatigue.runs(size) if "learn" in type(run).__name__.lower()}
    assert set(runs) == {
        f"fatigue/{prefix}{name}#0" for prefix in ("", "maps-") for name in fatigue.LEARNERS
    }
    knows, blind = (runs[f"fatigue/{name}#0"].rows() for name in ("knows", "blind"))
    best = solve(make("flappy-bird/tiring")).value
    for rows in (knows, blind):
        assert rows["episode"][-1] == 40
        assert 0.0 <= rows["value_gap"].min() <= rows["value_gap"].max() <= best
