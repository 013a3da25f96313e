"""Bad people are refused in one line that names the field, the place and the number."""

import numpy as np
import pytest

from counsel import Human
from tests.support.bad_input import HALF, INF, NAN, case, changed, check_refused

PEOPLE = [
    # Their own policy.
    case("policy off one", lambda: Human([[0.5, 0.5], [0.5, 0.4]], 0.5), "policy[s=1]", "0.9"),
    case("policy off one at one step",
         lambda: Human(changed(np.tile(HALF, (3, 1, 1)), (2, 0, 1), 0.6), 0.5),
         "policy[h=2, s=0]", "1.1"),
    case("policy zero", lambda: Human([[0.5, 0.5], [0.0, 0.0]], 0.5), "policy[s=1]", "0"),
    case("policy negative", lambda: Human([[1.5, -0.5]], 0.5), "policy[s=0, a=1]", "-0.5"),
    case("policy NaN", lambda: Human([[0.5, 0.5], [NAN, 1.0]], 0.5), "policy[s=1, a=0]", "nan"),
    case("policy inf", lambda: Human([[INF, 0.0]], 0.5), "policy[s=0]", "inf"),
    case("policy -inf", lambda: Human([[0.0, -INF]], 0.5), "policy[s=0, a=1]", "-inf"),
    case("policy huge", lambda: Human([[1e308, 1e308]], 0.5), "policy[s=0]", "inf"),
    case("policy by action", lambda: Human([0.5, 0.5], 0.5), "policy", "(2,)"),
    case("policy of four axes", lambda: Human(np.full((1, 1, 2, 2), 0.5), 0.5),
         "policy", "(1, 1, 2, 2)"),
    case("policy without actions", lambda: Human(np.ones((2, 0)), 0.5), "policy", "(2, 0)"),
    case("policy without states", lambda: Human(np.ones((0, 2)), 0.5), "policy", "(0, 2)"),
    case("policy without steps", lambda: Human(np.ones((0, 2, 2)), 0.5), "policy", "(0, 2, 2)"),
    case("policy None", lambda: Human(None, 0.5), "policy"),
    case("policy texts", lambda: Human([["a", "b"]], 0.5), "policy"),
    case("policy complex", lambda: Human([[1j, 1 - 1j]], 0.5), "policy", "complex"),
    case("policy ragged", lambda: Human([[1.0], [0.5, 0.5]], 0.5), "policy", "ragged"),
    # Adherence.
    case("adherence -0.1", lambda: Human(HALF, -0.1), "adherence", "-0.1"),
    case("adherence 1.1", lambda: Human(HALF, 1.1), "adherence", "1.1"),
    case("adherence 1 + 1e-9", lambda: Human(HALF, 1 + 1e-9), "adherence", "1.000000001"),
    case("adherence NaN", lambda: Human(HALF, NAN), "adherence", "nan"),
    case("adherence inf", lambda: Human(HALF, INF), "adherence", "inf"),
    case("adherence of an action 1.1", lambda: Human(HALF, [0.5, 1.1]), "adherence", "a=1", "1.1"),
    case("adherence of a pair -0.1", lambda: Human(HALF, [[0.5, 0.5], [-0.1, 0.5]]),
         "adherence", "s=1, a=0", "-0.1"),
    case("adherence of a pair NaN at one step",
         lambda: Human(HALF, changed(np.tile(HALF, (3, 1, 1)), (2, 0, 1), NAN)),
         "adherence[h=2, s=0, a=1]", "nan"),
    case("adherence of three actions", lambda: Human(HALF, [0.5] * 3), "adherence", "(3,)", "(2,)"),
    case("adherence [a, s] of other size", lambda: Human(HALF, np.full((2, 3), 0.5)),
         "adherence", "(2, 3)", "(2, 2)"),
    case("adherence by state", lambda: Human(HALF, [[0.5], [0.5]]), "adherence", "(2, 1)"),
    case("adherence of four axes", lambda: Human(HALF, np.full((1, 3, 2, 2), 0.5)),
         "adherence", "(1, 3, 2, 2)"),
    case("adherence of other steps than the policy",
         lambda: Human(np.tile(HALF, (3, 1, 1)), np.full((2, 2, 2), 0.5)),
         "adherence", "(2, 2, 2)"),
    case("adherence without steps", lambda: Human(HALF, np.ones((0, 2, 2))), "adherence",
         "(0, 2, 2)"),
    case("adherence empty", lambda: Human(HALF, []), "adherence", "(0,)"),
    case("adherence text", lambda: Human(HALF, "often"), "adherence"),
    case("adherence complex", lambda: Human(HALF, 0.5 + 0j), "adherence", "complex"),
    case("adherence ragged", lambda: Human(HALF, [[0.5], [0.5, 0.5]]), "adherence", "ragged"),
    case("neither adherence nor lift", lambda: Human(HALF), "adherence", "lift"),
    case("both adherence and lift", lambda: Human(HALF, 0.5, lift=0.5), "adherence", "lift"),
    # Lift.
    case("lift 1.5", lambda: Human(HALF, lift=1.5), "lift", "1.5"),
    case("lift below zero adherence", lambda: Human(HALF, lift=[[0.0, 0.0], [0.0, -1.5]]),
         "lift", "s=1, a=1", "-1.5", "-0.25"),
    case("lift of an action never taken -0.1", lambda: Human([[1.0, 0.0]], lift=[0.0, -0.1]),
         "lift", "s=0, a=1", "-0.1"),
    case("lift 1.5 of a certain person", lambda: Human([[1.0, 0.0]], lift=[1.5, 0.0]),
         "lift", "s=0, a=0", "1.5"),
    case("lift below zero adherence at one step only",
         lambda: Human(np.array([[[0.9, 0.1]], [[0.5, 0.5]]]), lift=[-2.0, 0.0]),
         "lift[h=1, s=0, a=0]", "-2"),
    case("lift NaN", lambda: Human(HALF, lift=[[0.0, NAN], [0.0, 0.0]]), "lift", "s=0, a=1", "nan"),
    case("lift inf", lambda: Human(HALF, lift=INF), "lift", "inf"),
    case("lift -inf", lambda: Human(HALF, lift=-INF), "lift", "-inf"),
    case("lift of three actions", lambda: Human(HALF, lift=[0.5] * 3), "lift", "(3,)", "(2,)"),
    case("lift text", lambda: Human(HALF, lift="much"), "lift"),
    # Groups.
    case("groups negative", lambda: Human(HALF, 0.5, groups=[[0, 1], [2, -3]]), "groups"),
    case("groups floats", lambda: Human(HALF, 0.5, groups=[[0.0, 1.0], [2.0, 3.0]]), "groups"),
    case("groups bools", lambda: Human(HALF, 0.5, groups=[True, False]), "groups"),
    case("groups texts", lambda: Human(HALF, 0.5, groups=["a", "b"]), "groups"),
    case("groups of three actions", lambda: Human(HALF, 0.5, groups=[0, 1, 2]), "groups", "(3,)"),
    case("groups of other steps than adherence",
         lambda: Human(HALF, np.full((3, 2, 2), 0.5), groups=np.zeros((2, 2, 2), int)),
         "groups", "(2, 2, 2)"),
    case("groups ragged", lambda: Human(HALF, 0.5, groups=[[0], [0, 1]]), "groups", "ragged"),
    case("groups 2**63", lambda: Human(HALF, 0.5, groups=np.full(2, 2**63, np.uint64)), "groups"),
    case("adherence differs inside a group",
         lambda: Human(HALF, [[0.5, 0.5], [0.5, 0.25]], groups=[0, 1]),
         "[h=0, s=1, a=1]", "0.25", "group 1", "0.5"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "fragments"), PEOPLE)
def test_bad_person_is_refused_in_one_line_that_says_what_where_and_how_much(build, fragments):
    check_refused(build, fragments)
