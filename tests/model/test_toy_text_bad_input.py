"""Bad toy-text dictionaries are refused in one line that names the place and the number."""

import numpy as np
import pytest

from counsel import MDP
from tests.support.bad_input import NAN, case, check_refused, toy

TOY_TEXT = [
    case("P None", lambda: MDP.from_toy_text(None, horizon=1), "P "),
    case("P empty", lambda: MDP.from_toy_text({}, horizon=1), "P "),
    case("P a list", lambda: MDP.from_toy_text([[[(1.0, 0, 0.0, False)]]], horizon=1), "P "),
    case("P without state 0", lambda: MDP.from_toy_text({1: toy()[0]}, horizon=1), "P "),
    case("P with a hole",
         lambda: MDP.from_toy_text({s: {0: [(1.0, 0, 0.0, False)]} for s in (0, 2)}, horizon=1),
         "P "),
    case("P without actions", lambda: MDP.from_toy_text({0: {}}, horizon=1), "P "),
    case("P with other actions",
         lambda: MDP.from_toy_text(
             {0: {0: [(1.0, 0, 0.0, False)]}, 1: {1: [(1.0, 0, 0.0, False)]}}, horizon=1),
         "P "),
    case("P with a number for a state", lambda: MDP.from_toy_text({0: 5}, horizon=1), "P"),
    case("P with a number for an action", lambda: MDP.from_toy_text({0: {0: 5}}, horizon=1),
         "P", "s=0, a=0"),
    case("P with three fields", lambda: MDP.from_toy_text(toy((1.0, 0, 0.0)), horizon=1),
         "P", "s=0, a=0"),
    case("P with a reward of text", lambda: MDP.from_toy_text(toy((1.0, 0, "x", False)), horizon=1),
         "P", "s=0, a=0"),
    case("P with a probability of text",
         lambda: MDP.from_toy_text(toy(("x", 0, 1.0, False)), horizon=1), "P", "s=0, a=0"),
    case("P to a state of text",
         lambda: MDP.from_toy_text(toy((1.0, "x", 1.0, False)), horizon=1), "P", "s=0, a=0"),
    case("P to state 1 of 1", lambda: MDP.from_toy_text(toy((1.0, 1, 0.0, False)), horizon=1),
         "P[s=0, a=0]", "state 1"),
    case("P to state -1", lambda: MDP.from_toy_text(toy((1.0, -1, 0.0, False)), horizon=1),
         "P[s=0, a=0]", "state -1"),
    case("P done in state 1 of 1", lambda: MDP.from_toy_text(toy((1.0, 1, 0.0, True)), horizon=1),
         "P[s=0, a=0]", "state 1"),
    case("P to state 0.5", lambda: MDP.from_toy_text(toy((1.0, 0.5, 0.0, False)), horizon=1),
         "P[s=0, a=0]", "0.5"),
    case("P to state NaN", lambda: MDP.from_toy_text(toy((1.0, NAN, 0.0, False)), horizon=1),
         "P[s=0, a=0]", "nan"),
    case("P sums to 0.5", lambda: MDP.from_toy_text(toy((0.5, 0, 0.0, False)), horizon=1),
         "s=0, a=0", "0.5"),
    case("P without any action", lambda: MDP.from_toy_text(toy(), horizon=1),
         "allowed[s=0]", "no action"),
    case("P sums to 0", lambda: MDP.from_toy_text(toy((0.0, 0, 0.0, False)), horizon=1),
         "s=0, a=0", "0"),
    case("integers that may be probabilities",
         lambda: MDP(np.array([[[1, 0], [0, 1]]] * 2), [0.0, 1.0], horizon=2),
         "transition", "floats"),
    case("P with NaN", lambda: MDP.from_toy_text(toy((NAN, 0, 0.0, False)), horizon=1),
         "s=0, a=0", "nan"),
    case("P with -1", lambda: MDP.from_toy_text(
             toy((1.0, 0, 0.0, False), (1.0, 0, 0.0, True), (-1.0, 0, 0.0, True)), horizon=1),
         "s=0, a=0", "-1"),
    case("P with -0.5 that a repeated next state hides",
         lambda: MDP.from_toy_text(toy((1.5, 0, 0.0, False), (-0.5, 0, 0.0, False)), horizon=1),
         "s=0, a=0", "-0.5"),
    case("P with a reward of NaN", lambda: MDP.from_toy_text(toy((1.0, 0, NAN, False)), horizon=1),
         "reward[s=0, a=0]", "nan"),
    case("P with a start off one",
         lambda: MDP.from_toy_text(toy((1.0, 0, 0.0, False)), horizon=1, start=[0.5]),
         "start", "0.5"),
    case("P with a ragged start",
         lambda: MDP.from_toy_text(
             toy((1.0, 0, 0.0, False)), horizon=1, start=[[1.0], [0.0, 0.0]]),
         "start", "ragged"),
    case("P with start 2 of 2",
         lambda: MDP.from_toy_text(toy((1.0, 0, 0.0, False)), horizon=1, start=2), "start", "2"),
    case("P with horizon 0",
         lambda: MDP.from_toy_text(toy((1.0, 0, 0.0, False)), horizon=0), "horizon", "0"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "fragments"), TOY_TEXT)
def test_bad_dictionary_is_refused_in_one_line_that_says_what_where_and_how_much(build, fragments):
    check_refused(build, fragments)
