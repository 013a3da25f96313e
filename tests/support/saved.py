"""Problems and policies that tests save, and a comparison to the last bit."""

import numpy as np
import pytest

import counsel
from counsel import MDP, AdviceProblem, Human, Policy
from tests.support.problems import adapt, draw

LABELS = {"state_labels": ["Zürich", '"a", b\nc'], "action_labels": ["→", "待つ"]}


def small(*, human=None, **changes):
    given = {"transition": [[1, 0], [0, 1]], "reward": [1 / 3, -2e300], "horizon": 3} | changes
    mdp = MDP(given.pop("transition"), given.pop("reward"), **given)
    return AdviceProblem(mdp, Human([[0.3, 0.7], [0.9, 0.1]], 0.6) if human is None else human)


HABIT = [[0.3, 0.7], [0.9, 0.1]]
PROBLEMS = {
    "stationary": lambda: small(start=[0.1, 0.9]),
    "one step": lambda: small(horizon=1, reward=np.ones((1, 2, 2))),
    "time-dependent": lambda: adapt(draw(4)),
    "masked": lambda: adapt(draw(1)),
    "masked for ever": lambda: small(
        transition=[[1, -1], [0, 1]],
        allowed=[[True, False], [True, True]],
        human=Human([[1.0, 0.0], [0.9, 0.1]], 0.6),
    ),
    "labelled": lambda: small(**LABELS),
    "adherence by action": lambda: small(human=Human(HABIT, [0.6, 0.5])),
    "adherence by step": lambda: small(human=Human(HABIT, np.linspace(0, 1, 12).reshape(3, 2, 2))),
    "by lift": lambda: small(human=Human(HABIT, lift=[[0.1, -0.2], [0.3, 1.0]])),
    "grouped": lambda: small(human=Human(HABIT, [0.6, 0.5], groups=[[0, 1], [0, 2]])),
    "grouped by step": lambda: small(
        human=Human(HABIT, lift=0.5, groups=np.arange(12).reshape(3, 2, 2))
    ),
    "a hair off one": lambda: small(transition=np.full((2, 2, 2), 0.5 + 2e-10)),
}


def tables(problem):
    """Every array a problem holds, and everything else it holds."""
    mdp, human, kernel = problem.mdp, problem.human, problem.mdp.kernel
    names = [(kernel, name) for name in counsel.Kernel.__slots__]
    names += [(mdp, name) for name in ("reward", "allowed", "start")]
    names += [(human, name) for name in ("policy", "adherence", "lift", "input_values", "groups")]
    arrays = {name: getattr(owner, name) for owner, name in names}
    plain = (
        mdp.n_steps,
        mdp.discount,
        mdp.state_labels,
        mdp.action_labels,
        human.shares_lift,
        human.input_groups is None,
        mdp.reward.strides[0] == 0,
        mdp.allowed.strides[0] == 0,
    )
    return arrays, plain


def assert_same(one, other):
    (arrays, plain), (other_arrays, other_plain) = tables(one), tables(other)
    assert plain == other_plain
    for name, array in arrays.items():
        assert array.dtype == other_arrays[name].dtype, name
        np.testing.assert_array_equal(array, other_arrays[name], err_msg=name)


SURE = Policy([[0, 2], [1, 0]], n_actions=2)
RANDOM = Policy.from_probabilities([[[1, 0, 0], [0.1, 0.2, 0.7]], [[0, 1 / 3, 2 / 3], [0, 0, 1]]])
HARD = Policy([[[2, 2], [2, 2]], [[0, 2], [1, 2]], [[0, 1], [1, 1]]], n_actions=2)


def refused(load, path):
    """Load, which must fail with one line that names the path; return the line."""
    with pytest.raises(counsel.CounselError) as caught:
        load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message
