"""Bad input: one exception type, and what was refused is left as it was."""

import numpy as np
import pytest

import counsel
from counsel import MDP, Human, Policy
from tests.support.bad_input import HALF, NAN, dense, join, sparse, toy, world
from tests.support.each import each


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
