"""Worlds and people that do not fit are refused in one line."""

import numpy as np
import pytest

from counsel import AdviceProblem, Human
from tests.support.bad_input import HALF, case, changed, check_refused, join, world

PROBLEMS = [
    case("habit on an action that is not allowed",
         lambda: join(Human(HALF, 0.5), allowed=[[True, True], [True, False]]),
         "policy[", "s=1, a=1]", "0.5", "not allowed"),
    case("habit on an action that is not allowed at one step",
         lambda: join(
             Human(HALF, 0.5), allowed=changed(np.ones((3, 2, 2), bool), (2, 0, 1), False)),
         "policy[h=2, s=0, a=1]", "0.5"),
    case("habit of one step on an action that is not allowed",
         lambda: join(
             Human(np.array([[[1.0, 0.0]] * 2, [[1.0, 0.0]] * 2, [[1.0, 0.0], [0.75, 0.25]]]), 0.5),
             allowed=[[True, True], [True, False]]),
         "policy[h=2, s=1, a=1]", "0.25"),
    case("a trace of habit on an action that is not allowed",
         lambda: join(Human([[1.0, 1e-300], [0.5, 0.5]], 0.5),
                      allowed=[[True, False], [True, True]]),
         "policy[", "s=0, a=1]", "1e-300"),
    case("people of three states", lambda: join(Human(np.full((3, 2), 0.5), 0.5)),
         "policy", "3 states", "2"),
    case("people of one action", lambda: join(Human([[1.0], [1.0]], 0.5)), "policy", "1 actions"),
    case("policy of two steps of three", lambda: join(Human(np.tile(HALF, (2, 1, 1)), 0.5)),
         "policy", "2 steps", "3"),
    case("adherence of two steps of three", lambda: join(Human(HALF, np.full((2, 2, 2), 0.5))),
         "adherence", "2 steps", "3"),
    case("lift of two steps of three", lambda: join(Human(HALF, lift=np.full((2, 2, 2), 0.5))),
         "2 steps", "3"),
    case("groups of two steps of three",
         lambda: join(Human(HALF, 0.5, groups=np.zeros((2, 2, 2), int))), "groups", "2 steps", "3"),
    case("person before world", lambda: AdviceProblem(Human(HALF, 0.5), world()), "order"),
    case("a world for a person", lambda: AdviceProblem(world(), world()), "Human"),
    case("an array for a person", lambda: AdviceProblem(world(), HALF), "Human"),
    case("None for a world", lambda: AdviceProblem(None, Human(HALF, 0.5)), "MDP"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "fragments"), PROBLEMS)
def test_bad_problem_is_refused_in_one_line_that_says_what_where_and_how_much(build, fragments):
    check_refused(build, fragments)
