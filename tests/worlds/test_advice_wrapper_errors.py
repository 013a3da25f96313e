"""What a person in any environment may not be, answer or be told."""

import gymnasium
import numpy as np
import pytest

from counsel import CounselError
from counsel.worlds import AdviceWrapper
from tests.support.cart_people import DEFER, cart, leans
from tests.support.each import each

# Bad input.


def test_a_space_of_continuous_actions_is_refused():
    with pytest.raises(CounselError, match=r"Box.*Discrete"):
        AdviceWrapper(gymnasium.make("Pendulum-v1"), lambda o: 0, 0.5)


@pytest.mark.parametrize("human", [0, "leans", None, [0.5, 0.5], {0: 1.0}])
def test_a_person_who_cannot_be_asked_is_refused(human):
    with pytest.raises(CounselError, match=r"human is .*function of the observation"):
        AdviceWrapper(cart(), human, 0.5)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (2, "is 2; actions run from 0 to 1"),
        (-1, "is -1; actions run"),
        (0.5, "is 0.5; actions run"),
        (np.nan, "is nan; actions run"),
        (np.inf, "is inf; actions run"),
        ([0.5, 0.6], "sums to 1.1"),
        ([0.0, 0.0], "sums to 0"),
        ([1.5, -0.5], "[a=1] is -0.5"),
        ([np.nan, 1.0], "[a=0] is nan"),
        ([0.5, np.inf], "sums to inf"),
        ([1.0], "has shape (1,)"),
        ([0.2, 0.3, 0.5], "has shape (3,)"),
        ([[0.5, 0.5]], "has shape (1, 2)"),
        ([], "has shape (0,)"),
        ("left", "must be numbers"),
        (None, "must be numbers"),
        ({"left": 1.0}, "must be numbers"),
        ([[1.0], [0.5, 0.5]], "ragged"),
    ],
)
@each("said", [1, DEFER])
def test_a_person_who_answers_nonsense_is_refused(answer, says, said):
    env = AdviceWrapper(cart(), lambda o: answer, 0.5)
    env.reset(seed=0)
    with pytest.raises(CounselError) as caught:
        env.step(said)
    assert str(caught.value).startswith("human(observation)")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "adherence",
    [1.5, -0.1, np.nan, np.inf, [0.5], [0.5] * 3, [[0.5, 0.5]], [0.5, 1.1], "high", None, []],
)
def test_an_adherence_out_of_range_or_shape_is_refused(adherence):
    with pytest.raises(CounselError, match=r"^adherence"):
        AdviceWrapper(cart(), leans, adherence)


@pytest.mark.parametrize("answer", [1.5, -0.1, np.nan, np.inf, [0.5], [0.5, 0.5], "high", None])
def test_an_adherence_function_that_answers_nonsense_is_refused(answer):
    env = AdviceWrapper(cart(), leans, lambda o, b: answer)
    env.reset(seed=0)
    env.step(DEFER)  # nobody asks when nothing is said
    with pytest.raises(CounselError, match=r"^adherence\(observation, advice\)"):
        env.step(1)


@pytest.mark.parametrize("penalty", [-0.1, np.nan, np.inf, "much", None, True])
def test_a_penalty_below_zero_or_no_number_is_refused(penalty):
    with pytest.raises(CounselError, match=r"^penalty"):
        AdviceWrapper(cart(), leans, 0.5, penalty=penalty)


@pytest.mark.parametrize("wrong", [-1, 3, 0.0, "left", None, [0], np.array([1])])
def test_advice_out_of_range_is_refused(wrong):
    env = AdviceWrapper(cart(), leans, 0.5)
    env.reset(seed=0)
    with pytest.raises(CounselError, match=r"advice is .*0 to 2"):
        env.step(wrong)


def test_a_step_before_the_first_reset_is_refused_before_the_person_is_asked():
    # Not with whatever the person's function makes of an observation that does not exist.
    env = AdviceWrapper(cart(), leans, 0.5)
    with pytest.raises((CounselError, gymnasium.error.ResetNeeded), match="reset"):
        env.step(0)
