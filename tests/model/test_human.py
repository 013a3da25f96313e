"""People: shapes of adherence and lift, the one from the other, and groups."""

import copy
import pickle

import numpy as np
import pytest

import counsel
from counsel import MDP, AdviceProblem, Human
from tests.support import oracles
from tests.support.each import each, each_seed

HABIT = np.array([[0.5, 0.3, 0.2], [0.1, 0.0, 0.9]])
"""Two states, three actions."""

SHAPES = {
    "number": 0.7,
    "[a]": [0.6, 0.7, 0.8],
    "[s, a]": [[0.6, 0.7, 0.8], [0.5, 0.4, 0.3]],
    "[h, s, a]": np.linspace(0.1, 0.9, 24).reshape(4, 2, 3),
}


def draw(seed):
    rng = np.random.default_rng(seed)
    S, A, H = (int(n) for n in rng.integers(1, 5, size=3))
    return oracles.random_problem(
        rng, S, A, H, deterministic_people=seed % 3 == 0, repel=seed % 2 == 0
    )


def alone(human, *, horizon=1):
    """The person in a world where nothing happens."""
    S, A = human.n_states, human.n_actions
    mdp = MDP(np.tile(np.arange(S)[:, None], A), np.zeros(S), horizon=horizon)
    return AdviceProblem(mdp, human)


def law_of(policy_a, *, horizon=1, **heard):
    """All laws [advice, action] of a person in a single state."""
    problem = alone(Human([policy_a], **heard), horizon=horizon)
    return np.array([problem.law(0, 0, b) for b in range(problem.n_actions + 1)])


# ---- shapes --------------------------------------------------------------------------------


@pytest.mark.parametrize("given", SHAPES.values(), ids=SHAPES.keys())
@each("steps", [1, 4])
def test_adherence_of_every_shape_means_the_same_table(given, steps):
    policy = HABIT if steps == 1 else np.tile(HABIT, (4, 1, 1))
    problem = alone(Human(policy, given), horizon=4)
    np.testing.assert_array_equal(problem.adherence, np.broadcast_to(given, (4, 2, 3)))
    np.testing.assert_array_equal(problem.policy, np.broadcast_to(HABIT, (4, 2, 3)))


@pytest.mark.parametrize("given", SHAPES.values(), ids=SHAPES.keys())
@each("steps", [1, 4])
def test_lift_of_every_shape_means_the_same_table(given, steps):
    policy = HABIT if steps == 1 else np.tile(HABIT, (4, 1, 1))
    problem = alone(Human(policy, lift=given), horizon=4)
    np.testing.assert_array_equal(problem.lift, np.broadcast_to(given, (4, 2, 3)))


@pytest.mark.parametrize("name", ["number", "[a]", "[s, a]"])
def test_what_never_changes_is_stored_in_one_layer(name):
    human = Human(HABIT, SHAPES[name])
    assert len(human.policy) == len(human.adherence) == len(human.lift) == 1


def test_adherence_by_step_of_a_person_who_never_changes_gives_lift_by_step():
    human = Human(HABIT, SHAPES["[h, s, a]"])
    assert (len(human.policy), len(human.adherence), len(human.lift)) == (1, 4, 4)


def test_one_adherence_of_a_person_who_changes_gives_lift_by_step():
    human = Human(np.stack([HABIT, HABIT[::-1]]), 0.7)
    assert (len(human.policy), len(human.adherence), len(human.lift)) == (2, 1, 2)


def test_what_was_given_is_kept_in_its_shape():
    for given in SHAPES.values():
        np.testing.assert_array_equal(Human(HABIT, given).input_values, given)
        assert Human(HABIT, given).input_values.shape == np.shape(given)


def test_a_person_says_whether_groups_share_adherence_or_lift():
    assert not Human(HABIT, 0.7).shares_lift
    assert Human(HABIT, lift=0.7).shares_lift


def test_the_representation_names_sizes_and_the_range_of_adherence():
    assert repr(Human(HABIT, 0.7)) == "Human(2 states, 3 actions, adherence 0.7)"
    assert "adherence 0.6 to 0.8" in repr(Human(HABIT, SHAPES["[a]"]))


# ---- adherence and lift --------------------------------------------------------------------


@each_seed(range(30))
def test_lift_is_gain_in_probability_over_what_was_left_to_gain(seed):
    dense = draw(seed)
    pi, theta = dense.pi_hsa, dense.theta_hsa
    lift = np.divide(theta - pi, 1 - pi, out=np.zeros_like(pi), where=pi < 1)
    np.testing.assert_allclose(Human(pi, theta).lift, lift, atol=1e-12)


@each_seed(range(30))
def test_adherence_to_lift_and_back_is_the_same_person(seed):
    dense = draw(seed)
    told = Human(dense.pi_hsa, dense.theta_hsa)
    back = Human(dense.pi_hsa, lift=told.lift)
    np.testing.assert_allclose(back.lift, told.lift, atol=1e-15)
    unsure = dense.pi_hsa < 1.0
    np.testing.assert_allclose(back.adherence[unsure], dense.theta_hsa[unsure], atol=1e-12)


@each_seed(range(30))
def test_lift_to_adherence_and_back_is_the_same_person(seed):
    rng = np.random.default_rng(seed)
    pi = rng.dirichlet(np.ones(3), size=(2, 4))
    lowest = -pi / (1 - pi)
    lift = lowest + rng.random(pi.shape) * (1 - lowest)
    told = Human(pi, lift=lift)
    back = Human(pi, told.adherence)
    np.testing.assert_allclose(back.lift, lift, rtol=1e-9, atol=1e-12)


def test_a_repelled_person_has_negative_lift():
    human = Human([[0.5, 0.5]], 0.25)
    np.testing.assert_array_equal(human.lift, [[[-0.5, -0.5]]])


def test_the_lowest_lift_is_an_adherence_of_zero():
    human = Human([[0.75, 0.25]], lift=[[-3.0, -1 / 3]])
    np.testing.assert_array_equal(human.adherence, [[[0.0, 0.0]]])


def test_a_lift_beyond_zero_adherence_only_by_rounding_is_accepted():
    pi = 0.1 + 0.2
    human = Human([[pi, 1 - pi]], lift=[[-pi / (1 - pi) - 1e-14, 0.0]])
    assert human.adherence[0, 0, 0] == 0.0


@pytest.mark.parametrize("heard", [{"adherence": 0.4}, {"lift": 0.4}, {"lift": -0.4}])
def test_a_certain_person_cannot_be_moved_towards_what_they_do_anyway(heard):
    human = Human([[1.0, 0.0]], **{name: [[value, 0.4]] for name, value in heard.items()})
    assert human.lift[0, 0, 0] == 0.0
    np.testing.assert_array_equal(alone(human).law(0, 0, 0), [1.0, 0.0])


def test_a_certain_person_can_be_moved_to_something_else():
    np.testing.assert_array_equal(law_of([1.0, 0.0], adherence=0.4)[1], [0.6, 0.4])
    np.testing.assert_array_equal(law_of([1.0, 0.0], lift=0.4)[1], [0.6, 0.4])


def test_a_person_with_one_action_is_certain():
    assert Human([[1.0]], 0.3).lift.tolist() == [[[0.0]]]


@each("theta", [0.0, 0.3, 0.999, 1.0])
@each("rest", [1e-9, 1e-13, 1e-16, 1e-300])
def test_the_law_of_an_almost_certain_person_sums_to_one(theta, rest):
    # 1 − π has lost its digits here; the sum over the other actions has not.
    law_ba = law_of([1.0 - rest, rest], adherence=theta)
    np.testing.assert_allclose(law_ba.sum(axis=1), 1.0, rtol=0, atol=1e-14)
    np.testing.assert_allclose(law_ba[0], [theta, 1.0 - theta], rtol=0, atol=1e-14)
    assert (law_ba >= 0.0).all()


@each("share", [0.1, 0.5, 1.0])
@each("rest", [1e-9, 1e-13])
def test_the_law_of_an_almost_certain_person_given_by_lift_sums_to_one(share, rest):
    # Found by reading: θ = λ + (1 − λ) π cancels when λ is very low.
    lowest = -(1.0 - rest) / rest
    law_ba = law_of([1.0 - rest, rest], lift=[share * lowest, 0.0])
    np.testing.assert_allclose(law_ba.sum(axis=1), 1.0, rtol=0, atol=1e-9)


@each("off", [-1e-10, 0.0, 1e-10, 9e-10])
@each("habit", [1e-9, 0.2, 0.5, 0.999999])
def test_one_who_always_listens_has_lift_exactly_one_even_where_rows_are_a_hair_off(off, habit):
    human = Human([[habit, 1.0 - habit + off]], 1.0)
    np.testing.assert_array_equal(human.lift, [[[1.0, 1.0]]])


def test_lift_never_exceeds_one_where_rows_are_a_hair_off():
    rng = np.random.default_rng(0)
    pi = rng.dirichlet(np.ones(3) * 0.05, size=2000)
    pi *= 1 - 9e-10
    assert Human(pi, 1.0 - 1e-12).lift.max() <= 1.0


def test_adherence_equal_to_habit_is_lift_zero():
    pi = np.random.default_rng(0).dirichlet(np.ones(4), size=50)
    assert not Human(pi, pi).lift.any()


# ---- groups --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["number", "[a]", "[s, a]"])
@pytest.mark.parametrize("kind", ["adherence", "lift"])
def test_each_pair_is_its_own_group_at_all_steps_whatever_the_shape(name, kind):
    human = Human(HABIT, **{kind: SHAPES[name]})
    np.testing.assert_array_equal(human.groups, np.arange(6).reshape(1, 2, 3))
    groups = alone(human, horizon=4).without_adherence().groups
    np.testing.assert_array_equal(groups, np.tile(np.arange(6).reshape(2, 3), (4, 1, 1)))


@pytest.mark.parametrize("kind", ["adherence", "lift"])
def test_each_pair_of_each_step_is_its_own_group_when_given_by_step(kind):
    human = Human(HABIT, **{kind: SHAPES["[h, s, a]"]})
    np.testing.assert_array_equal(human.groups, np.arange(24).reshape(4, 2, 3))


def test_a_policy_by_step_does_not_make_groups_by_step():
    assert Human(np.tile(HABIT, (4, 1, 1)), 0.7).groups.shape == (1, 2, 3)


@pytest.mark.parametrize("groups", [0, [0, 1, 0], [[0, 1, 0], [2, 2, 0]]])
def test_groups_of_every_shape_are_shown_by_state_and_action(groups):
    human = Human(HABIT, 0.7, groups=groups)
    np.testing.assert_array_equal(human.groups, np.broadcast_to(groups, (1, 2, 3)))


def test_groups_may_change_with_the_step():
    groups = np.arange(4)[:, None, None] * np.ones((2, 3), dtype=int)
    human = Human(HABIT, 0.7, groups=groups)
    assert human.group_layers == 4
    np.testing.assert_array_equal(alone(human, horizon=4).without_adherence().groups, groups)


def test_groups_over_all_steps_share_adherence_given_by_step():
    same = np.tile(SHAPES["[s, a]"], (4, 1, 1))
    human = Human(HABIT, same, groups=np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(human.groups, np.arange(6).reshape(1, 2, 3))


def test_groups_share_what_was_given_be_it_adherence_or_lift():
    lift = Human(HABIT, 0.7).lift[0]
    Human(HABIT, lift=0.7, groups=0)
    with pytest.raises(counsel.CounselError, match="group 0"):
        Human(HABIT, lift=lift, groups=0)


@pytest.mark.parametrize(
    ("adherence", "groups", "fragments"),
    [
        ([0.7, 0.6, 0.7], 0, ["[h=0, s=0, a=1]", "0.6", "group 0", "0.7"]),
        ([0.7, 0.6, 0.7], [1, 2, 2], ["[h=0, s=0, a=2]", "0.7", "group 2", "0.6"]),
        ([[0.5] * 3, [0.5, 0.4, 0.5]], [3, 4, 5], ["[h=0, s=1, a=1]", "0.4", "group 4", "0.5"]),
        (
            np.array([[[0.5] * 3] * 2, [[0.5, 0.5, 0.5], [0.5, 0.5, 0.25]]]),
            [[0, 1, 2], [3, 4, 5]],
            ["[h=1, s=1, a=2]", "0.25", "group 5", "0.5"],
        ),
    ],
)
def test_adherence_that_differs_inside_a_group_is_an_error_that_says_where(
    adherence, groups, fragments
):
    with pytest.raises(counsel.CounselError) as caught:
        Human(HABIT, adherence, groups=groups)
    assert all(fragment in str(caught.value) for fragment in fragments)


# ---- ownership -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["adherence", "lift"])
def test_changing_what_was_given_changes_nothing_and_it_stays_writable(kind):
    policy, heard, groups = HABIT.copy(), np.full((2, 3), 0.5), np.zeros((2, 3), dtype=np.int64)
    human = Human(policy, **{kind: heard}, groups=groups)
    policy[...] = 0
    heard[...] = 0
    groups[...] = 7
    np.testing.assert_array_equal(human.policy, [HABIT])
    np.testing.assert_array_equal(getattr(human, kind), np.full((1, 2, 3), 0.5))
    np.testing.assert_array_equal(human.input_values, np.full((2, 3), 0.5))
    assert not human.groups.any()


@pytest.mark.parametrize("kind", ["adherence", "lift"])
def test_all_tables_of_a_person_are_read_only(kind):
    human = Human(HABIT, **{kind: SHAPES["[s, a]"]}, groups=np.arange(6).reshape(2, 3))
    for name in ("policy", "adherence", "lift", "input_values", "input_groups", "groups"):
        assert not getattr(human, name).flags.writeable, name


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_a_copied_or_pickled_person_is_the_same_and_still_read_only(again):
    human = Human(HABIT, SHAPES["[a]"], groups=[0, 1, 2])
    other = again(human)
    for name in ("policy", "adherence", "lift", "input_values", "input_groups"):
        np.testing.assert_array_equal(getattr(other, name), getattr(human, name))
        assert not getattr(other, name).flags.writeable, name
    assert other.shares_lift == human.shares_lift


def test_who_almost_never_does_anything_else_is_certain():
    # Found by simulation: the lift was −∞ and the value of a plan infinite.
    mdp = counsel.MDP([[0, 0]], [[0.0, 1.0]], horizon=1)
    problem = counsel.AdviceProblem(mdp, counsel.Human([[1.0, 1e-310]], 0.5))
    assert problem.lift[0, 0, 0] == 0.0
    assert problem.law(0, 0, 0).tolist() == [1.0, 0.0]
    assert counsel.solve(problem).value == pytest.approx(0.5)
