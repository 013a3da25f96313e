"""Stopping times: computed, run, and bounded by the theorem."""

import math

import numpy as np
import pytest

from counsel.experiments.paper.stopping import (
    BLOCK,
    FACTOR,
    RULES,
    Stopping,
    equal_counts_time,
    theorem_bound,
)


@pytest.mark.parametrize("name", list(RULES))
def test_the_computed_time_is_the_first_at_which_the_printed_rule_fires(name):
    # The recursion itself: 3 rows at the first step, 3 S at the others, all seen equally often.
    H, S, B, epsilon = 5, 4, 3, 0.5
    time = equal_counts_time(RULES[name], H, S, epsilon)
    threshold = {"rfe-ad": epsilon / 2, "rfe-beta": epsilon / (2 * H)}[name]

    def fires(episodes):
        W = 0.0
        for h in range(H - 1, -1, -1):
            n = episodes / (B if h == 0 else S * B)
            phi = 6 * math.log(4 * math.e * S * B * H / (epsilon * 0.1))
            phi += S * math.log(8 * math.e * (n + 1))
            W = 16 * H**2 * phi / n + (1 + 1 / H) * W
        return W + 4 * math.e * math.sqrt(W) <= threshold

    assert fires(time * 1.0001)
    assert not fires(time * 0.9999)


@pytest.mark.parametrize(
    ("H", "S", "epsilon"), [(4, 4, 1.0), (5, 4, 1.0), (4, 8, 1.0), (4, 4, 0.5)]
)
def test_a_run_stops_when_the_computed_time_says(H, S, epsilon):
    # Drawn worlds are not visited evenly, and the rule is checked once in BLOCK-th of the episodes.
    for seed in range(2):
        settings = {"horizon": H, "states": S, "epsilon": epsilon, "episodes": 60_000}
        times = Stopping(id="a/b#0", seed=seed, **settings).rows()
        for name, rule in RULES.items():
            computed = equal_counts_time(rule, H, S, epsilon, factor=FACTOR)
            assert times[name][0] / computed == pytest.approx(1.01, abs=0.01 + 1.0 / BLOCK)


def test_a_rule_that_does_not_fire_in_time_has_no_stopping_time():
    run = Stopping(id="a/b#0", horizon=4, states=4, epsilon=1.0, episodes=2000, seed=0)
    times = run.rows()
    assert 500 < times["rfe-ad"][0] < 700
    assert np.isnan(times["rfe-beta"][0])


def test_the_bound_of_the_theorem_by_hand():
    H, S, B, epsilon, time = 4, 4, 3, 0.5, 1e6
    spread = 6 * math.log(4 * H * S * B / (epsilon * 0.1)) + S
    for name, power, unit in (("rfe-ad", 3, epsilon), ("rfe-beta", 5, epsilon / H)):
        inner = math.e**18 * (math.log(4 * H * S * B * time / 0.1) + S) * H**4 * S * B / unit
        expected = H**power * S * B / epsilon**2 * spread * 9000 * math.e**6 * math.log(inner) ** 2
        assert theorem_bound(RULES[name], H, S, epsilon, time) == pytest.approx(expected + 1.0)


def test_many_states_cost_their_square_not_their_number():
    # The informal Theorem 2 has S, the formal one S (6 log(·) + S).
    times = [equal_counts_time(RULES["rfe-ad"], 4, S, 1.0) for S in (1000, 4000)]
    assert math.log(times[1] / times[0]) / math.log(4) == pytest.approx(2.0, abs=0.1)
