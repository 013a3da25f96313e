"""Bad worlds are refused in one line that names the field, the place and the number."""

import numpy as np
import pytest
import scipy.sparse as sp

import counsel
from tests.support.bad_input import HALF, INF, NAN, case, changed, check_refused, world

WORLDS = [
    # Horizon.
    case("horizon 0", lambda: world(horizon=0), "horizon", "0"),
    case("horizon -3", lambda: world(horizon=-3), "horizon", "-3"),
    case("horizon 2.5", lambda: world(horizon=2.5), "horizon", "2.5"),
    case("horizon 3.0", lambda: world(horizon=3.0), "horizon", "3.0"),
    case("horizon NaN", lambda: world(horizon=NAN), "horizon", "nan"),
    case("horizon inf", lambda: world(horizon=INF), "horizon", "inf"),
    case("horizon True", lambda: world(horizon=True), "horizon", "True"),
    case("horizon numpy True", lambda: world(horizon=np.True_), "horizon", "True"),
    case("horizon text", lambda: world(horizon="3"), "horizon", "'3'"),
    case("horizon None", lambda: world(horizon=None), "horizon", "None"),
    case("horizon list", lambda: world(horizon=[3]), "horizon", "[3]"),
    case("horizon matrix", lambda: world(horizon=np.eye(2)), "horizon"),
    case("horizon 2**62", lambda: world(horizon=2**62), "horizon", str(2**62)),
    case("horizon 10**30", lambda: world(horizon=10**30), "horizon", str(10**30)),
    # Reward.
    case("reward NaN by state", lambda: world(reward=[0.0, NAN]), "reward[s=1]", "nan"),
    case("reward inf", lambda: world(reward=changed(HALF, (1, 0), INF)),
         "reward[s=1, a=0]", "inf"),
    case("reward -inf at one step",
         lambda: world(reward=changed(np.zeros((3, 2, 2)), (2, 0, 1), -INF)),
         "reward[h=2, s=0, a=1]", "-inf"),
    case("reward of an action that is not allowed NaN",
         lambda: world(reward=changed(HALF, (0, 1), NAN), allowed=[[True, False], [True, True]]),
         "reward[s=0, a=1]", "nan"),
    case("reward a number", lambda: world(reward=1.0), "reward", "()"),
    case("reward of three states", lambda: world(reward=np.zeros(3)), "reward", "(3,)", "(2,)"),
    case("reward [a, s] of other size", lambda: world(reward=np.zeros((2, 3))),
         "reward", "(2, 3)", "(2, 2)"),
    case("reward of two steps of three", lambda: world(reward=np.zeros((2, 2, 2))),
         "reward", "(2, 2, 2)", "(3, 2, 2)"),
    case("reward [s, a, t]", lambda: world(reward=np.zeros((3, 2, 2, 2))),
         "reward", "(3, 2, 2, 2)"),
    case("reward empty", lambda: world(reward=[]), "reward", "(0,)"),
    case("reward None", lambda: world(reward=None), "reward"),
    case("reward texts", lambda: world(reward=["1", "2"]), "reward"),
    case("reward one text", lambda: world(reward=[0.0, "x"]), "reward"),
    case("reward complex", lambda: world(reward=[0.0, 1j]), "reward", "complex"),
    case("reward ragged", lambda: world(reward=[[0.0], [0.0, 1.0]]), "reward", "ragged"),
    case("reward sparse", lambda: world(reward=sp.csr_matrix(HALF)), "reward"),
    case("reward with None", lambda: world(reward=[0.0, None]), "reward"),
    case("reward 10**400", lambda: world(reward=[0, 10**400]), "reward"),
    # Start.
    case("start 2 of 2", lambda: world(start=2), "start", "2", "0 to 1"),
    case("start -1", lambda: world(start=-1), "start", "-1"),
    case("start 2**40", lambda: world(start=2**40), "start", str(2**40)),
    case("start 10**30", lambda: world(start=10**30), "start"),
    case("start 0.5", lambda: world(start=0.5), "start"),
    case("start True", lambda: world(start=True), "start"),
    case("start None", lambda: world(start=None), "start"),
    case("start text", lambda: world(start="left"), "start"),
    case("start off one", lambda: world(start=[0.5, 0.4]), "start", "0.9"),
    case("start zero", lambda: world(start=[0.0, 0.0]), "start", "0"),
    case("start negative", lambda: world(start=[1.5, -0.5]), "start[s=1]", "-0.5"),
    case("start NaN", lambda: world(start=[1.0, NAN]), "start[s=1]", "nan"),
    case("start inf", lambda: world(start=[INF, 0.0]), "start", "inf"),
    case("start of three states", lambda: world(start=[1.0, 0.0, 0.0]), "start", "(3,)", "2"),
    case("start of two axes", lambda: world(start=HALF), "start", "(2, 2)"),
    case("start empty", lambda: world(start=[]), "start", "(0,)"),
    case("start ragged", lambda: world(start=[[1.0], [0.0, 0.0]]), "start", "ragged"),
    case("start complex", lambda: world(start=[1 + 0j, 0]), "start", "complex"),
    # Allowed.
    case("no action allowed", lambda: world(allowed=[[True, True], [False, False]]),
         "allowed[s=1]", "no action"),
    case("no action allowed at one step",
         lambda: world(allowed=changed(np.ones((3, 2, 2), bool), (1, 0), False)),
         "allowed[h=1, s=0]", "no action"),
    case("allowed as 0 and 1", lambda: world(allowed=[[1, 1], [1, 0]]), "allowed", "int"),
    case("allowed as floats", lambda: world(allowed=HALF), "allowed", "float"),
    case("allowed as texts", lambda: world(allowed=[["yes", "no"]] * 2), "allowed"),
    case("allowed by action", lambda: world(allowed=[True, False]), "allowed", "(2,)", "(2, 2)"),
    case("allowed of other size", lambda: world(allowed=np.ones((2, 3), bool)),
         "allowed", "(2, 3)", "(2, 2)"),
    case("allowed of two steps of three", lambda: world(allowed=np.ones((2, 2, 2), bool)),
         "allowed", "(2, 2, 2)", "(3, 2, 2)"),
    case("allowed a bool", lambda: world(allowed=True), "allowed", "()"),
    case("allowed empty", lambda: world(allowed=np.ones((0,), bool)), "allowed", "(0,)"),
    case("allowed ragged", lambda: world(allowed=[[True], [True, True]]), "allowed", "ragged"),
    # Labels.
    case("three labels for two states", lambda: world(state_labels=["a", "b", "c"]),
         "state_labels", "3", "2"),
    case("one label for two actions", lambda: world(action_labels=["a"]),
         "action_labels", "1", "2"),
    case("no labels for two actions", lambda: world(action_labels=[]), "action_labels", "0", "2"),
    case("labels equal", lambda: world(state_labels=["a", "a"]),
         "state_labels[1]", "'a'", "state_labels[0]"),
    case("label empty", lambda: world(action_labels=["a", ""]), "action_labels[1]", "''"),
    case("label a number", lambda: world(action_labels=[1, 2]), "action_labels[0]", "1"),
    case("label None", lambda: world(action_labels=["a", None]), "action_labels[1]", "None"),
    case("label a list", lambda: world(action_labels=["a", ["b"]]), "action_labels[1]", "['b']"),
    case("labels a number", lambda: world(state_labels=5), "state_labels", "5"),
    case("labels yes", lambda: world(action_labels=True), "action_labels"),
    case("labels one text", lambda: world(state_labels="ab"), "state_labels", "'ab'"),
    case("label no file can hold", lambda: world(state_labels=["a", "\ud800"]),
         "state_labels[1]", r"\ud800"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "fragments"), WORLDS)
def test_bad_world_is_refused_in_one_line_that_says_what_where_and_how_much(build, fragments):
    check_refused(build, fragments)


def test_a_masked_array_is_refused():
    """Its mask was ignored without a word."""
    masked = np.ma.masked_equal(np.full((2, 2, 2), 0.5), 0.5)
    with pytest.raises(counsel.CounselError, match="transition is a masked array"):
        counsel.MDP(masked, np.ones((2, 2)), horizon=2)
