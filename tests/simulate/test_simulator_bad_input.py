"""Bad input to the simulator is named in one line."""

import numpy as np
import pytest

import counsel
from counsel import CounselError, Mixture, Policy, Simulator
from tests.support.problems import masked_problem

SILENT = Policy(np.full((2, 2), 2), n_actions=2)
OFF = Policy([[2, 2], [2, 1]], n_actions=2)
OFF_TABLE = np.tile([0.0, 0.0, 1.0], (2, 2, 1))
OFF_TABLE[1, 1] = [0.0, 0.1, 0.9]
OFF_HARD = np.full((3, 2, 2), 2)
OFF_HARD[2, 1, 1] = 1


def bad(name, change, *fragments):
    return pytest.param(change, fragments, id=name)


BAD = [
    bad("no episodes", {"episodes": 0}, "episodes", "at least 1", "not 0"),
    bad("fewer than none", {"episodes": -1}, "episodes", "at least 1", "not -1"),
    bad("one and a half", {"episodes": 1.5}, "episodes", "whole number", "1.5"),
    bad("two as a float", {"episodes": 2.0}, "episodes", "whole number", "2.0"),
    bad("true", {"episodes": True}, "episodes", "whole number", "True"),
    bad("a text", {"episodes": "10"}, "episodes", "whole number", "'10'"),
    bad("nothing", {"episodes": None}, "episodes", "whole number", "None"),
    bad("too many", {"episodes": 2**31}, "episodes", "2147483648"),
    bad("no generator", {"rng": None}, "rng", "None", "default_rng"),
    bad("a seed", {"rng": 0}, "rng is 0", "default_rng"),
    bad("an old generator", {"rng": np.random.RandomState(0)}, "rng", "RandomState", "default_rng"),
    bad("the module", {"rng": np.random}, "rng", "default_rng"),
    bad("a bit generator", {"rng": np.random.PCG64(0)}, "rng", "default_rng"),
    bad("no policy", {"policy": None}, "Policy", "NoneType"),
    bad("a table", {"policy": np.full((2, 2), 2)}, "Policy", "ndarray"),
    bad("a plan", {"policy": counsel.solve(masked_problem(reward=1.0))}, "Policy", "Plan"),
    bad("other steps", {"policy": Policy([[2, 2]], n_actions=2)}, "1 steps", "has 2, 2 and 2"),
    bad("other states", {"policy": Policy([[2], [2]], n_actions=2)}, "1 states", "has 2, 2 and 2"),
    bad("other actions", {"policy": Policy([[2, 2], [2, 2]], n_actions=3)}, "3 actions", "2 and 2"),
    bad("hard, for other states",
        {"policy": Policy(np.full((2, 2, 3), 2), n_actions=2)}, "3 states", "has 2, 2 and 2"),
    bad("a mixture for other steps",
        {"policy": Mixture((Policy([[2, 2]], n_actions=2),), (1.0,))}, "1 steps", "has 2, 2 and 2"),
    bad("not allowed", {"policy": OFF}, "not allowed", "[h=1, s=1]"),
    bad("not allowed, now and then",
        {"policy": Policy.from_probabilities(OFF_TABLE)}, "not allowed", "[h=1, s=1]"),
    bad("not allowed, with two left",
        {"policy": Policy(OFF_HARD, n_actions=2)}, "not allowed", "[h=1, s=1]"),
    bad("not allowed, in a mixture",
        {"policy": Mixture((SILENT, OFF), (0.9, 0.1))}, "not allowed", "[h=1, s=1]"),
]  # fmt: skip


@pytest.mark.parametrize("verb", ["play", "count"])
@pytest.mark.parametrize(("change", "fragments"), BAD)
def test_bad_input_is_named_in_one_line_and_draws_nothing(verb, change, fragments):
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    given = {"policy": SILENT, "episodes": 5, "rng": rng} | change
    policy = given.pop("policy")
    with pytest.raises(CounselError) as caught:
        getattr(Simulator(masked_problem(reward=1.0)), verb)(policy, **given)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 200
    for fragment in fragments:
        assert fragment in message
    assert rng.bit_generator.state == before


def test_what_is_good_in_the_bad_input_tests_is_good():
    simulator, rng = Simulator(masked_problem(reward=1.0)), np.random.default_rng(0)
    assert len(simulator.play(SILENT, episodes=5, rng=rng)) == 5
    assert len(simulator.count(SILENT, episodes=5, rng=rng)) == 5


@pytest.mark.parametrize("given", [None, "night-shift", masked_problem(reward=1.0).mdp, SILENT])
def test_a_simulator_is_of_a_problem(given):
    with pytest.raises(CounselError, match=rf"AdviceProblem, not {type(given).__name__}"):
        Simulator(given)
