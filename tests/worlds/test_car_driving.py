"""Car Driving: every state against the slow version, the driver by hand, the start, the rows."""

from fractions import Fraction

import numpy as np
import pytest

import counsel
from counsel import CounselError
from counsel.worlds import make, make_car_driving
from tests.support import slow_worlds as slow
from tests.support.each import each
from tests.support.slow_worlds import CAR, EMPTY, STONE

OVER = 59_049
HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
CLEAR = (EMPTY, EMPTY, EMPTY)


@pytest.fixture(scope="module")
def problem():
    return make_car_driving(human="myopic")


@pytest.fixture(scope="module")
def states():
    return list(slow.car_states())


def first_wrong(states, got, expected):
    """Say where two tables by state differ first, or nothing."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape
    wrong = np.abs(got - expected).reshape(len(states), -1).max(axis=1) > 1e-12
    if not wrong.any():
        return None
    s = int(np.argmax(wrong))
    return f"{wrong.sum()} states differ, first {states[s]}: {got[s]}, slow {expected[s]}"


# ------------------------------------------------------------------- against the slow version


def test_states_are_counted_by_lane_then_by_row(states):
    assert len(states) == OVER + 1
    assert [slow.car_number(state) for state in states] == list(range(OVER + 1))


def test_sizes(problem):
    assert (problem.n_states, problem.n_actions, problem.horizon) == (OVER + 1, 3, 10)
    assert problem.mdp.allowed.all()
    assert problem.mdp.action_labels == ("Left", "Straight", "Right")


@pytest.mark.slow
@each("action", [slow.LEFT, slow.STRAIGHT, slow.RIGHT])
def test_every_transition_is_the_slow_version(problem, states, action):
    kernel = problem.mdp.kernel
    for s, state in enumerate(states):
        after, chance = kernel.successors(0, s, action)
        expected = slow.car_next(state, action)
        numbers = [slow.car_number(t) for t in expected]
        # Both sides list the rows to come in the same order, but nothing hangs on it.
        assert sorted(after.tolist()) == numbers, (state, action)
        got = chance[np.argsort(after)]
        wanted = [float(p) for p in expected.values()]
        assert np.abs(got - wanted).max() < 1e-12, (state, action)


def test_every_reward_is_the_slow_version(problem, states):
    expected = np.array([[float(slow.car_reward(state))] * 3 for state in states])
    for h in range(problem.horizon):
        assert first_wrong(states, problem.mdp.reward[h], expected) is None


def test_every_policy_entry_is_the_slow_version(problem, states):
    expected = np.array([[float(part) for part in slow.myopic(state)] for state in states])
    for h in range(problem.horizon):
        assert first_wrong(states, problem.policy[h], expected) is None


def test_the_world_is_the_same_at_every_step(problem, states):
    rng = np.random.default_rng(0)
    for s in rng.integers(0, len(states), 200):
        for action in range(3):
            one, two = (problem.mdp.kernel.successors(h, s, action) for h in (0, 9))
            assert one[0].tolist() == two[0].tolist()
            assert one[1].tolist() == two[1].tolist()


def test_distinct_rows_are_stored_once(problem):
    # A lane, a next row without a car in it and a row beyond, each with the fresh row to come;
    # and the one row that leads to the end.
    assert problem.mdp.kernel.n_rows == 3 * 18 * 27 + 1 == 1_459


# --------------------------------------------------------------------------------- the start


def test_the_start_is_the_middle_lane_and_three_random_rows(problem, states):
    chances = slow.car_start()
    assert sum(chances.values()) == 1
    expected = [float(chances.get(state, 0)) for state in states]
    assert first_wrong(states, problem.mdp.start, expected) is None


def test_three_starts_in_ten_are_on_a_car(problem, states):
    on_a_car = [s for s, state in enumerate(states[:-1]) if state[1][state[0]] == CAR]
    assert problem.mdp.start[on_a_car].sum() == pytest.approx(0.3, abs=1e-12)
    assert problem.mdp.start[OVER] == 0.0
    start = np.nonzero(problem.mdp.start)[0]
    for s in np.intersect1d(on_a_car, start)[::97]:
        for action in range(3):
            after, chance = problem.mdp.kernel.successors(0, s, action)
            assert (after.tolist(), chance.tolist()) == ([OVER], [1.0])


def test_the_first_step_pays_what_the_start_is_worth(problem):
    # 0.4 for an empty cell, half of 0.3 for a stone, nothing for a car.
    never = counsel.Policy.never(horizon=10, n_states=OVER + 1, n_actions=3)
    alone = counsel.evaluate(problem, never)
    assert alone.reward[0] == pytest.approx(0.4 + 0.3 / 2)
    # Then 0.7 go on; they meet an open cell unless all three hold a car, and among cells that are
    # not a car four in seven are empty and three in seven hold a stone.
    open_ = 1 - 0.3**3
    assert alone.reward[1] == pytest.approx(0.7 * open_ * (4 + 3 / 2) / 7)
    assert alone.value < counsel.solve(problem).value - 0.1


# ------------------------------------------------------------------------------- by hand

BY_HAND = [
    # lane, next row, what the driver does
    (1, (EMPTY, EMPTY, EMPTY), (THIRD, THIRD, THIRD)),  # nothing in the way
    (1, (CAR, EMPTY, STONE), (0, HALF, HALF)),  # a car to the left; stones do not matter
    (1, (STONE, CAR, CAR), (1, 0, 0)),  # one way out, over a stone
    (1, (CAR, CAR, CAR), (THIRD, THIRD, THIRD)),  # all blocked
    (0, (EMPTY, EMPTY, CAR), (0, HALF, HALF)),  # the edge is like a car
    (0, (CAR, CAR, EMPTY), (THIRD, THIRD, THIRD)),  # edge and two cars: all blocked
    (0, (CAR, STONE, EMPTY), (0, 0, 1)),  # edge and a car
    (2, (CAR, CAR, STONE), (0, 1, 0)),  # a car and the edge
    (2, (CAR, EMPTY, CAR), (1, 0, 0)),  # only to the left
    (2, (EMPTY, CAR, CAR), (THIRD, THIRD, THIRD)),  # two lanes away is too far
]


@pytest.mark.parametrize(("lane", "following", "own"), BY_HAND)
def test_the_driver_does_what_was_worked_out_by_hand(problem, lane, following, own):
    # Neither the row the car is in nor the one beyond the next matters.
    for current in (CLEAR, (STONE, STONE, STONE), (CAR, CAR, CAR)):
        for beyond in (CLEAR, (CAR, CAR, CAR)):
            state = (lane, current, following, beyond)
            assert slow.myopic(state) == own
            told = problem.policy[3, slow.car_number(state)].tolist()
            assert told == pytest.approx([float(part) for part in own], abs=1e-12)


def test_in_the_end_all_actions_are_alike_and_nothing_is_paid(problem):
    assert problem.policy[0, OVER].tolist() == pytest.approx([1 / 3] * 3)
    assert (problem.mdp.reward[:, OVER] == 0.0).all()
    for action in range(3):
        assert problem.mdp.kernel.successors(0, OVER, action)[0].tolist() == [OVER]


def test_moves_are_those_worked_out_by_hand(problem):
    kernel = problem.mdp.kernel
    # In the middle lane, on a stone; next row car, empty, stone; beyond all cars.
    s = ((1 * 27 + 3) * 27 + (9 * 2 + 1)) * 27 + 26
    assert s == slow.car_number((1, (0, 1, 0), (2, 0, 1), (2, 2, 2)))
    assert problem.mdp.reward[0, s].tolist() == [0.5, 0.5, 0.5]
    assert kernel.successors(0, s, 0)[0].tolist() == [OVER]  # Left, into the car
    for action, lane in ((1, 1), (2, 2)):
        after, chance = kernel.successors(0, s, action)
        base = ((lane * 27 + 19) * 27 + 26) * 27
        assert sorted(after.tolist()) == list(range(base, base + 27))
        chances = dict(zip(after.tolist(), chance.tolist(), strict=True))
        assert chances[base] == pytest.approx(0.4**3)  # three empty cells
        assert chances[base + 26] == pytest.approx(0.3**3)  # three cars
        assert chances[base + 1] == pytest.approx(0.4 * 0.4 * 0.3)  # a stone to the right
        assert chances[base + 18] == pytest.approx(0.3 * 0.4 * 0.4)  # a car to the left
    # In the left lane Left leaves the road, in the right lane Right does.
    for lane, action in ((0, slow.LEFT), (2, slow.RIGHT)):
        clear = slow.car_number((lane, CLEAR, CLEAR, CLEAR))
        assert kernel.successors(0, clear, action)[0].tolist() == [OVER]
        assert kernel.successors(0, clear, slow.STRAIGHT)[0].size == 27


# --------------------------------------------------------------------- names and settings


@pytest.mark.parametrize(
    ("adherence", "expected"),
    [
        ("mixed", [0.7, 0.9, 0.7]),
        ("high", [0.8, 0.8, 0.8]),
        ("low", [0.4, 0.4, 0.4]),
        (0.65, [0.65, 0.65, 0.65]),
        ([0.1, 0.2, 0.3], [0.1, 0.2, 0.3]),
    ],
)
def test_adherence_depends_on_the_advice_alone(adherence, expected):
    problem = make_car_driving(adherence=adherence)
    assert (problem.adherence == expected).all()


def test_the_papers_settings_are_the_defaults():
    assert tuple(map(float, slow.CAR_ADHERENCE)) == (0.7, 0.9, 0.7)
    plain = make_car_driving()
    assert plain.horizon == slow.CAR_HORIZON == 10
    assert (plain.adherence == [0.7, 0.9, 0.7]).all()
    assert make_car_driving(horizon=4).horizon == 4


def test_the_world_is_made_by_name(problem):
    made = make("car-driving/myopic")
    assert made.horizon == 10
    for name in ("row", "indptr", "next_state", "probability"):
        one, two = getattr(made.mdp.kernel, name), getattr(problem.mdp.kernel, name)
        np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(made.mdp.start, problem.mdp.start)
    np.testing.assert_array_equal(made.policy[0], problem.policy[0])
    np.testing.assert_array_equal(made.adherence[0], problem.adherence[0])


@pytest.mark.parametrize("wrong", [{"human": "bold"}, {"adherence": "medium"}])
def test_what_does_not_exist_is_refused(wrong):
    with pytest.raises(CounselError):
        make_car_driving(**wrong)
