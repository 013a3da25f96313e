"""What claims are made of: numbers over seeds, and what each claim tests on rows made up for it."""

import math

import numpy as np
import pytest

import counsel
from counsel.experiments.paper import budget, penalty, regret, scaling
from counsel.experiments.rows import pad_columns, seeds_of
from counsel.experiments.run_types import most_common
from counsel.worlds import make

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


# What claims test, on rows made up for it.


def curve(end, name="regret"):
    return {"episode": np.array([1, 2]), name: np.array([0.0, end])}


def explored_rows(end, gaps=(0.0, 0.0, 0.0), rate=None):
    episode, penalty_of = np.array([1.0, 2.0] * 3), np.repeat([0.0, 0.2, 0.4], 2)
    last = len(gaps)
    rows = {
        "when": np.append(np.zeros(6), np.ones(last)),
        "episode": np.append(episode, np.full(last, 2.0)),
        "penalty": np.append(penalty_of, [0.0, 0.2, 0.4]),
        "value_gap": np.append(np.zeros(6), gaps),
        "advice_count": np.ones(9),
        "explored": np.append(episode - 1.0, np.full(last, 2.0)),
        "regret": np.append(np.tile([0.0, end], 3), np.full(3, np.nan)),
        "best": np.ones(9),
    }
    if rate is not None:
        rows["advice_rate"] = rate
    return pad_columns(rows)


@pytest.mark.parametrize(
    ("ends", "order", "half"),
    [
        ({"ucb-ad": 1, "rfe-ad": 2, "euler": 9}, True, True),
        ({"ucb-ad": 3, "rfe-ad": 2, "euler": 9}, False, True),
        ({"ucb-ad": 1, "rfe-ad": 8, "euler": 9}, True, False),
        ({"ucb-ad": 1, "rfe-ad": 10, "euler": 9}, False, False),
    ],
)
def test_the_order_of_regrets_must_hold_for_every_seed(ends, order, half):
    rows = {}
    for seed in range(3):
        for name, end in ends.items():
            fine = curve({"ucb-ad": 1, "rfe-ad": 2, "euler": 9}[name] if seed < 2 else end)
            if name == "rfe-ad":
                fine = explored_rows(2 if seed < 2 else end)
            rows[f"regret-safe/{name}#{seed}"] = fine
    first, second = regret.claims("safe", rows)
    assert (first.holds, second.holds) == (order, half)


def test_a_gap_that_stays_open_for_one_penalty_fails_the_claim():
    for gaps, holds in (((0.0, 0.01, 0.04), True), ((0.0, 0.06, 0.0), False)):
        rows = {f"regret-{p}/rfe-ad#0": explored_rows(1, gaps) for p in ("greedy", "safe")}
        assert [c.holds for c in penalty.claims(rows)] == [holds, holds]


def test_advice_is_counted_by_phase():
    rate = np.zeros(20)
    rate[8], rate[15] = 1.0, 2.0
    rows = {f"regret-{p}/rfe-ad#0": explored_rows(1, rate=rate) for p in ("greedy", "safe")}
    greedy, safe = penalty.trajectory_claims(rows)
    assert greedy.holds
    assert not safe.holds
    assert safe.value.mean == pytest.approx(1 / 3)


def test_transfer_needs_both_the_value_and_the_budget():
    def told(gaps, left):
        return {
            "when": np.ones(5),
            "episode": np.full(5, 1500.0),
            "budget": np.arange(1.0, 6.0),
            "value_gap": np.array(gaps, float),
            "advice_gap": np.array(left, float),
        }

    fine, late = told([0] * 5, [0] * 5), told([0, 1, 1, 1, 1], [0] * 5)
    greedy = told([0] * 5, [0, -1, 0, 0, 0])
    for rfe, uc, expected in (
        (fine, late, [True, True, True]),
        (greedy, late, [False, True, True]),
        (fine, fine, [True, False, True]),
    ):
        rows = {"budget-learning/rfe-cmdp#0": rfe, "budget-learning/uc-cfh#0": uc}
        assert [c.holds for c in budget.transfer_claims(rows)] == expected


def test_episodes_that_are_not_epsilon_optimal_are_counted_by_block():
    run = {"block": np.array([1, 1, 2, 4]), "value_gap": np.array([0.5, 0.0, 0.2, 0.05])}
    assert scaling.count_late(run, 0.1) == (3.0, False)
    assert scaling.count_late(run, 0.01) == (7.0, True)


def test_exponents_are_fitted_where_nothing_is_censored():
    clear, held = np.array([False, False]), np.array([False, True])
    powers = [scaling.Point(x, np.full(2, 3.0 * x**2), clear) for x in (2.0, 4.0, 8.0)]
    assert scaling.exponent(powers) == pytest.approx(2.0)
    censored = scaling.Point(16.0, np.ones(2), held)
    assert scaling.exponent([*powers, censored]) == pytest.approx(2.0)
    assert math.isnan(scaling.exponent(powers[:2]))


def test_the_computed_stopping_time_is_the_first_at_which_the_rule_fires():
    # The rule itself, on counts that are all alike.
    H, height, epsilon = 3, 3, 2.0
    found = scaling.stopping_time(H, height, epsilon)
    rows = height * 4

    def fires(n):
        S = height * H + 1
        phi = 6 * math.log(4 * math.e * S * 4 * H / (epsilon * 0.1)) + S * math.log(
            8 * math.e * (n + 1)
        )
        W = 0.0
        for _ in range(H):
            W = 16 * H**2 * phi / n + (1 + 1 / H) * W
        return W + 4 * math.e * math.sqrt(W) <= epsilon / 2

    assert fires(found / rows * 1.0001)
    assert not fires(found / rows * 0.9999)
    assert scaling.stopping_time(H, height, epsilon / 2) > 3 * found


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


def test_who_says_nothing_has_shown_nothing():
    silent = {
        f"regret-{p}/rfe-ad#0": explored_rows(1, rate=np.zeros(20)) for p in ("greedy", "safe")
    }
    assert [claim.holds for claim in penalty.trajectory_claims(silent)] == [False, False]
