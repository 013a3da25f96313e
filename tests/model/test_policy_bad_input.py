"""Bad policies are refused in one line that names the field, the place and the number."""

import numpy as np
import pytest

from counsel import Policy
from tests.support.bad_input import HALF, INF, NAN, case, check_refused

POLICIES = [
    case("advice too high", lambda: Policy([[0, 3]], n_actions=2), "advice[h=0, s=1]", "3"),
    case("advice negative", lambda: Policy([[0, 1], [-1, 0]], n_actions=2),
         "advice[h=1, s=0]", "-1"),
    case("advice 2**40", lambda: Policy([[0, 2**40]], n_actions=2),
         "advice[h=0, s=1]", str(2**40)),
    case("advice 2**16", lambda: Policy([[0, 2**16]], n_actions=2), "advice[h=0, s=1]", "65536"),
    case("advice read-only and too high",
         lambda: Policy(np.broadcast_to(np.int16(3), (1, 2)), n_actions=2),
         "advice[h=0, s=0]", "3"),
    case("advice floats", lambda: Policy([[0.0, 1.0]], n_actions=2), "advice", "float"),
    case("advice bools", lambda: Policy([[True, False]], n_actions=2), "advice", "bool"),
    case("advice texts", lambda: Policy([["go", "stay"]], n_actions=2), "advice"),
    case("advice None", lambda: Policy(None, n_actions=2), "advice"),
    case("advice of one axis", lambda: Policy([0, 1], n_actions=2), "advice", "(2,)"),
    case("advice of three axes", lambda: Policy([[[0, 1]]], n_actions=2), "advice[k=0, h=0, s=0]"),
    case("advice empty", lambda: Policy(np.zeros((0, 2), int), n_actions=2), "advice", "(0, 2)"),
    case("advice ragged", lambda: Policy([[0], [0, 1]], n_actions=2), "advice", "ragged"),
    case("no actions", lambda: Policy([[0]], n_actions=0), "n_actions", "0"),
    case("actions -1", lambda: Policy([[0]], n_actions=-1), "n_actions", "-1"),
    case("actions 2.5", lambda: Policy([[0]], n_actions=2.5), "n_actions", "2.5"),
    case("actions True", lambda: Policy([[0]], n_actions=True), "n_actions", "True"),
    case("actions None", lambda: Policy([[0]], n_actions=None), "n_actions", "None"),
    case("too many actions", lambda: Policy([[0]], n_actions=32_767), "n_actions", "32767"),
    case("never of no steps", lambda: Policy.never(horizon=0, n_states=2, n_actions=2), "(0, 2)"),
    case("probability off one", lambda: Policy.from_probabilities([[[0.5, 0.5], [0.5, 0.4]]]),
         "probability[h=0, s=1]", "0.9"),
    case("probability negative", lambda: Policy.from_probabilities([[[1.5, -0.5]]]),
         "probability[h=0, s=0, a=1]", "-0.5"),
    case("probability NaN", lambda: Policy.from_probabilities([[[1.0, NAN]]]),
         "probability[h=0, s=0, a=1]", "nan"),
    case("probability inf", lambda: Policy.from_probabilities([[[INF, 0.0]]]),
         "probability[h=0, s=0]", "inf"),
    case("probability without actions", lambda: Policy.from_probabilities([[[1.0]]]),
         "probability", "(1, 1, 1)"),
    case("probability of two axes", lambda: Policy.from_probabilities(HALF),
         "probability", "(2, 2)"),
    case("probability empty", lambda: Policy.from_probabilities(np.ones((0, 2, 2))),
         "probability", "(0, 2, 2)"),
    case("probability texts", lambda: Policy.from_probabilities([[["a", "b"]]]), "probability"),
    case("probability ragged", lambda: Policy.from_probabilities([[[1.0], [0.5, 0.5]]]),
         "probability", "ragged"),
    case("hard advice too high", lambda: Policy([[[2]], [[3]]], n_actions=2),
         "advice[k=1, h=0, s=0]", "3"),
    case("hard advice with no piece left", lambda: Policy([[[2, 0]]], n_actions=2),
         "advice[k=0, h=0, s=1]"),
    case("advice of four axes", lambda: Policy([[[[2, 2]]]], n_actions=2), "(1, 1, 1, 2)"),
    case("hard advice empty", lambda: Policy(np.zeros((0, 1, 1), int), n_actions=2),
         "advice", "(0, 1, 1)"),
    case("hard advice floats", lambda: Policy([[[2.0]]], n_actions=2), "advice", "float"),
    case("hard without actions", lambda: Policy([[[0]]], n_actions=0), "n_actions", "0"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "fragments"), POLICIES)
def test_bad_policy_is_refused_in_one_line_that_says_what_where_and_how_much(build, fragments):
    check_refused(build, fragments)
