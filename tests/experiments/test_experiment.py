"""Sizes of experiments, and numbers over seeds."""

import math

import numpy as np
import pytest

import counsel
from counsel.experiments.experiment import Size
from counsel.experiments.paper import EXPERIMENTS
from counsel.experiments.rows import pad_columns, seeds_of
from counsel.experiments.run_types import most_common
from counsel.worlds import make

# Sizes.


def test_a_size_has_the_seeds_that_an_experiment_needs_unless_they_are_set():
    experiment = EXPERIMENTS["car-regret"]
    assert experiment.at(Size(first_seed=7)).repeats == range(7, 7 + experiment.seeds)
    assert experiment.at(Size(seeds=3)).repeats == range(3)
    assert experiment.at(Size(first_seed=1000)).few.repeats == range(1000, 1005)
    assert Size(seeds=2).few.repeats == range(2)


@pytest.mark.parametrize(
    "wrong", [{"seeds": 0}, {"seeds": -1}, {"seeds": 1.5}, {"first_seed": -1}, {"scale": 0.0}]
)
def test_a_size_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(counsel.CounselError, match=next(iter(wrong))):
        Size(**wrong)


def test_blocks_of_seeds_share_no_run_that_decides_a_claim():
    for experiment in EXPERIMENTS.values():
        one, two = (
            {run.id: run for run in experiment.runs(experiment.at(Size(first_seed=first)))}
            for first in (0, 1000)
        )
        for key in one.keys() & two.keys():  # exact computations on the shipped map
            assert key.endswith("#0")
            assert one[key] == two[key]


# Numbers over seeds.


def test_columns_of_other_lengths_are_filled_up():
    filled = pad_columns({"a": np.array([1.0, 2.0]), "b": np.array([7]), "c": np.array([1, 2, 3])})
    assert filled["b"].tolist() == [7, -1, -1]
    assert math.isnan(filled["a"][2])


def test_seeds_come_in_order_of_their_number():
    rows = {f"a/b#{i}": {"x": np.array([i])} for i in (10, 2, 1)}
    assert [int(run["x"][0]) for run in seeds_of(rows, "a/b")] == [1, 2, 10]
    with pytest.raises(counsel.CounselError, match="no rows of a/c"):
        seeds_of(rows, "a/c")


def test_the_commonest_flight_is_the_one_that_came_most_often():
    problem = make("flappy-bird-budget/greedy")
    policy = counsel.solve(problem).policy
    played = counsel.Simulator(problem).play(policy, episodes=300, rng=np.random.default_rng(0))
    first, last = most_common(played)

    def moves(part):
        columns = (played.state[part], played.advice[part], played.action[part])
        return tuple(zip(*(column.tolist() for column in columns), strict=True))

    def flights():
        for n in range(len(played)):
            part = slice(played.first[n], played.first[n + 1])
            yield moves(part)

    seen = list(flights())
    mine = moves(slice(first, last))
    assert seen.count(mine) == max(seen.count(f) for f in set(seen))
