"""Bad input: one exception type, one line, which names the field, the place and the number."""

import numpy as np
import pytest
import scipy.sparse as sp

import counsel
from counsel import MDP, AdviceProblem, Human, Kernel, Policy
from tests.support.each import each

NAN, INF = float("nan"), float("inf")

# Two states, two actions, three steps: action 0 swaps the states, action 1 stays.
SWAP = np.array([[1, 0], [0, 1]])
HALF = np.full((2, 2), 0.5)


def world(**changes):
    given = {"transition": SWAP, "reward": np.zeros((2, 2)), "horizon": 3} | changes
    return MDP(given.pop("transition"), given.pop("reward"), **given)


def dense(*entries, steps=None):
    """Good transitions [s, a, t] (or by step) with some entries changed."""
    P = (SWAP[..., None] == np.arange(2)).astype(float)
    P = P if steps is None else np.tile(P, (steps, 1, 1, 1))
    for index, value in entries:
        P[index] = value
    return P


def sparse(*entries):
    """The same as a matrix [s·A + a, t] with some stored entries changed."""
    matrix = sp.csr_matrix(dense().reshape(4, 2))
    for i, value in entries:
        matrix.data[i] = value
    return matrix


def sparse_to(next_state, at=1):
    """A sparse matrix, one entry of which leads to a state that need not exist."""
    matrix = sparse()
    matrix.indices = matrix.indices.astype(np.int64)
    matrix.indices[at] = next_state
    return matrix


def changed(array, index, value, dtype=None):
    other = np.array(array, dtype=dtype)
    other[index] = value
    return other


def toy(*rows):
    """A toy-text dictionary of one state and one action."""
    return {0: {0: list(rows)}}


def case(name, build, *fragments):
    return pytest.param(build, fragments, id=name)


TRANSITIONS = [
    # Rows that do not sum to one.
    case("row sums to 0.9", lambda: world(transition=dense(((1, 0, 0), 0.9))),
         "transition[s=1, a=0]", "sums to 0.9"),
    case("row sums to 1.1", lambda: world(transition=dense(((0, 1, 1), 0.1))),
         "transition[s=0, a=1]", "1.1"),
    case("row sums to 1 + 2e-9", lambda: world(transition=dense(((0, 1, 0), 1 + 2e-9))),
         "transition[s=0, a=1]", "1.000000002"),
    case("row sums to 0", lambda: world(transition=dense(((0, 1, 0), 0.0))),
         "transition[", "s=0, a=1]", "sums to 0"),
    case("row of one step sums to 0.5",
         lambda: world(transition=dense(((2, 1, 0, 0), 0.5), steps=3)),
         "transition[h=2, s=1, a=0]", "0.5"),
    case("row of one step sums to 0",
         lambda: world(transition=dense(((2, 1, 0, 0), 0.0), steps=3)),
         "transition[h=2, s=1, a=0]", "0"),
    case("sparse row sums to 0.25", lambda: world(transition=sparse((2, 0.25))),
         "transition[s=1, a=0]", "0.25"),
    case("sparse row of one step sums to 0.25",
         lambda: world(transition=[sparse(), sparse((3, 0.25)), sparse()]),
         "transition[h=1, s=1, a=1]", "0.25"),
    case("row of an action that is not allowed sums to 0.5",
         lambda: world(transition=dense(((0, 1, 0), 0.5)), allowed=[[True, False], [True, True]]),
         "transition[s=0, a=1]", "0.5"),
    case("huge row", lambda: world(transition=dense(((0, 0), 1e308))),
         "transition[s=0, a=0]", "inf"),
    # Negative, infinite and NaN probabilities.
    case("probability -0.5", lambda: world(transition=dense(((0, 1), [1.5, -0.5]))),
         "transition[s=0, a=1, t=1]", "-0.5"),
    case("probability -1e-300", lambda: world(transition=dense(((0, 1, 1), -1e-300))),
         "transition[s=0, a=1, t=1]", "-1e-300"),
    case("probability NaN", lambda: world(transition=dense(((1, 1, 0), NAN))),
         "transition[s=1, a=1, t=0]", "nan"),
    case("probability inf", lambda: world(transition=dense(((1, 1, 0), INF))),
         "transition[s=1, a=1, t=0]", "inf"),
    case("probability -inf", lambda: world(transition=dense(((1, 1, 0), -INF))),
         "transition[s=1, a=1, t=0]", "-inf"),
    case("probability NaN at one step",
         lambda: world(transition=dense(((1, 0, 1, 0), NAN), steps=3)),
         "transition[h=1, s=0, a=1, t=0]", "nan"),
    case("sparse probability NaN", lambda: world(transition=sparse((3, NAN))),
         "transition[s=1, a=1, t=1]", "nan"),
    case("sparse probability -1", lambda: world(transition=sparse((0, -1.0))),
         "transition[s=0, a=0, t=1]", "-1"),
    # Next states out of range.
    case("next state 2 of 2", lambda: world(transition=changed(SWAP, (1, 0), 2)),
         "transition[s=1, a=0]", "state 2", "0 to 1"),
    case("next state -2", lambda: world(transition=changed(SWAP, (1, 0), -2)),
         "transition[s=1, a=0]", "state -2"),
    case("next state 2**40", lambda: world(transition=changed(SWAP, (1, 0), 2**40)),
         "transition[s=1, a=0]", str(2**40)),
    case("next state 2**32", lambda: world(transition=changed(SWAP, (1, 0), 2**32)),
         "transition[s=1, a=0]", str(2**32)),
    case("next state 2**64 - 1",
         lambda: world(transition=changed(SWAP, (1, 0), 2**64 - 1, np.uint64)),
         "transition[s=1, a=0]", str(2**64 - 1)),
    case("next state 10**30", lambda: world(transition=[[1, 0], [10**30, 1]]), "transition"),
    case("next state 2 at one step",
         lambda: world(transition=changed(np.tile(SWAP, (3, 1, 1)), (2, 0, 1), 2)),
         "transition[h=2, s=0, a=1]", "state 2"),
    case("next state -1 of an allowed action",
         lambda: world(transition=changed(SWAP, (1, 0), -1)), "transition", "s=1, a=0]", "0"),
    case("sparse next state 2", lambda: world(transition=sparse_to(2)),
         "transition[s=0, a=1]", "state 2"),
    case("sparse next state -1", lambda: world(transition=sparse_to(-1)),
         "transition[s=0, a=1]", "state -1"),
    case("sparse next state 2**40", lambda: world(transition=sparse_to(2**40)),
         "transition[s=0, a=1]", str(2**40)),
    case("sparse next state 2**32", lambda: world(transition=sparse_to(2**32)),
         "transition[s=0, a=1]", str(2**32)),
    case("sparse next state 2**40 at one step",
         lambda: world(transition=[sparse(), sparse_to(2**40), sparse()]),
         "transition[h=1, s=0, a=1]", str(2**40)),
    # Shapes and types.
    case("transition a number", lambda: world(transition=1.0), "transition", "()"),
    case("transition [s, t]", lambda: world(transition=np.eye(2)), "transition", "(2, 2)"),
    case("transition of five axes", lambda: world(transition=np.ones((1, 1, 2, 2, 2)) / 2),
         "transition", "(1, 1, 2, 2, 2)"),
    case("transition with other next states", lambda: world(transition=np.ones((2, 2, 3)) / 3),
         "transition", "(2, 2, 3)"),
    case("transition [a, s, t]", lambda: world(transition=np.ones((3, 2, 2)) / 2),
         "transition", "(3, 2, 2)"),
    case("no states", lambda: world(transition=np.ones((0, 2, 0))), "transition", "0 states"),
    case("no actions", lambda: world(transition=np.ones((2, 0, 2))), "transition", "0 actions"),
    case("no actions in a table", lambda: world(transition=np.ones((2, 0), int)),
         "transition", "0 actions"),
    case("no states in a table", lambda: world(transition=np.ones((0, 2), int)),
         "transition", "0 states"),
    case("no steps", lambda: world(transition=np.ones((0, 2, 2, 2))), "transition", "0 steps"),
    case("no steps in a list", lambda: world(transition=[]), "transition"),
    case("no sparse steps", lambda: Kernel.from_sparse([]), "transition"),
    case("two steps of three", lambda: world(transition=dense(steps=2)),
         "transition", "2 steps", "horizon is 3"),
    case("two sparse steps of three", lambda: world(transition=[sparse(), sparse()]),
         "transition", "2 steps", "horizon is 3"),
    case("integers of one axis", lambda: world(transition=np.zeros(2, int)), "transition", "(2,)"),
    case("integers of four axes", lambda: world(transition=np.zeros((3, 2, 2, 2), int)),
         "transition", "(3, 2, 2, 2)"),
    case("a table of broken next states", lambda: Kernel.from_next_states(SWAP + 0.5),
         "transition", "float"),
    case("sparse of odd shape", lambda: world(transition=sp.csr_matrix((5, 2))),
         "transition", "(5, 2)"),
    case("sparse without columns", lambda: world(transition=sp.csr_matrix((4, 0))),
         "transition", "(4, 0)"),
    case("sparse without rows", lambda: world(transition=sp.csr_matrix((0, 2))),
         "transition", "0 actions"),
    case("sparse steps of other shape",
         lambda: world(transition=[sparse(), sp.csr_matrix((2, 2)), sparse()]),
         "transition", "(2, 2)", "(4, 2)"),
    case("sparse beside dense", lambda: world(transition=[sparse(), np.eye(2), sparse()]),
         "transition"),
    case("sparse beside None", lambda: world(transition=[sparse(), None, sparse()]), "transition"),
    case("more rows than fit",
         lambda: world(transition=np.broadcast_to(np.int8(0), (2**17, 2**14))),
         "transition", str(2**31)),
    case("more actions than fit", lambda: world(transition=np.zeros((1, 40_000), int)),
         "transition", "40000", "32,766"),
    case("transition None", lambda: world(transition=None), "transition", "None"),
    case("transition text", lambda: world(transition="swap"), "transition", "str"),
    case("transition texts", lambda: world(transition=[["a", "b"], ["c", "d"]]), "transition"),
    case("transition complex", lambda: world(transition=dense().astype(complex)),
         "transition", "complex"),
    case("transition bools", lambda: world(transition=dense().astype(bool)), "transition", "bool"),
    case("transition objects", lambda: world(transition=dense().astype(object)),
         "transition", "object"),
    case("transition dates", lambda: world(transition=SWAP.astype("datetime64[s]")),
         "transition", "datetime"),
    case("transition ragged", lambda: world(transition=[[[1.0, 0.0]], [[1.0]]]),
         "transition", "ragged"),
    case("sparse complex", lambda: world(transition=sparse().astype(complex)),
         "transition", "complex"),
    case("transition a dictionary", lambda: world(transition={0: {0: 1}}), "transition", "dict"),
    case("transition a generator", lambda: world(transition=(x for x in ())), "transition"),
]  # fmt: skip

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


def join(human, **changes):
    return AdviceProblem(world(**changes), human)


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
    case("advice of one axis", lambda: Policy([0, 1], n_actions=2), "advice", "(2,)"),
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


@pytest.mark.parametrize(
    ("build", "fragments"), [*TRANSITIONS, *WORLDS, *TOY_TEXT, *PEOPLE, *PROBLEMS, *POLICIES]
)
def test_bad_input_is_refused_in_one_line_that_says_what_where_and_how_much(build, fragments):
    with pytest.raises(counsel.CounselError) as caught:
        build()
    message = str(caught.value)
    assert "\n" not in message
    assert [fragment for fragment in fragments if fragment not in message] == []


def test_the_exception_is_a_value_error_so_that_plain_callers_catch_it():
    assert issubclass(counsel.CounselError, ValueError)


@pytest.mark.parametrize(
    "build",
    [
        lambda: world(),
        lambda: world(transition=dense()),
        lambda: world(transition=dense(steps=3)),
        lambda: world(transition=sparse()),
        lambda: world(transition=[sparse()] * 3),
        lambda: MDP.from_toy_text(toy((0.5, 0, 1.0, False), (0.5, 0, 2.0, True)), horizon=1),
        lambda: join(Human(HALF, 0.5)),
    ],
)
def test_what_the_bad_cases_start_from_is_good(build):
    build()


@each("hair", [-9e-10, 9e-10])
def test_rows_within_the_tolerance_are_taken_as_they_are(hair):
    mdp = world(transition=dense(((0, 1, 0), 1.0 + hair)), start=[1.0 + hair, 0.0])
    assert mdp.kernel.to_dense()[0, 1, 0] == 1.0 + hair
    assert mdp.start[0] == 1.0 + hair
    human = Human([[0.5, 0.5 + hair], [0.5, 0.5]], 0.7)
    assert human.policy[0, 0, 1] == 0.5 + hair
    table = np.array([[[0.5, 0.5 + hair]]])
    np.testing.assert_array_equal(Policy.from_probabilities(table).probabilities(), table)


@pytest.mark.parametrize("index", [(0, 0, 0), (2, 1, 1), (1, 0, 1)])
def test_the_first_of_many_faults_is_named(index):
    P = dense(steps=3)
    P[index] = [0.5, 0.25]
    last = (2, 1, 1)
    P[last] = [0.5, 0.25]
    with pytest.raises(counsel.CounselError, match="h={}, s={}, a={}".format(*index)):
        world(transition=P)


def test_a_refused_input_is_left_as_it_was():
    P = dense(((1, 1, 0), NAN))
    before = P.copy()
    with pytest.raises(counsel.CounselError):
        world(transition=P)
    np.testing.assert_array_equal(P, before)
    assert P.flags.writeable
    matrix = sparse((3, 0.5))
    with pytest.raises(counsel.CounselError):
        world(transition=matrix)
    np.testing.assert_array_equal(matrix.data, [1.0, 1.0, 1.0, 0.5])
    assert matrix.data.flags.writeable
