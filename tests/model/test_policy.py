"""Policies of advice: tables, distributions, budgets and mixtures."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import counsel
from counsel import Mixture, Policy
from counsel.model.random_cells import RandomCells
from tests.support.each import each_seed


def random_table(seed):
    """Distributions [h, s, advice] with sure, nearly sure and spread cells."""
    rng = np.random.default_rng(seed)
    H, S, B = int(rng.integers(1, 5)), int(rng.integers(1, 6)), int(rng.integers(2, 5))
    table = rng.dirichlet(np.ones(B) * 0.3, size=(H, S))
    sure = rng.random((H, S)) < 0.5
    table[sure] = np.eye(B)[rng.integers(B, size=sure.sum())]
    return table


def cells(cell, indptr, advice, probability):
    return RandomCells(
        np.array(cell), np.array(indptr), np.array(advice, np.int16), np.array(probability)
    )


# ---- Policy --------------------------------------------------------------------------------


@each_seed(range(40))
def test_distributions_come_back_as_they_were(seed):
    table = random_table(seed)
    np.testing.assert_array_equal(Policy.from_probabilities(table).probabilities(), table)


@each_seed(range(40))
def test_each_cell_tells_its_advice_and_probability(seed):
    table = random_table(seed)
    policy = Policy.from_probabilities(table)
    for h, s in np.ndindex(table.shape[:2]):
        expected = {int(b): table[h, s, b] for b in np.nonzero(table[h, s])[0]}
        assert policy.at(h, s) == expected


@each_seed(range(40))
def test_the_advice_of_a_random_cell_is_the_likeliest(seed):
    table = random_table(seed)
    np.testing.assert_array_equal(Policy.from_probabilities(table).advice, table.argmax(axis=2))


@each_seed(range(40))
def test_only_cells_with_two_or_more_pieces_of_advice_are_random(seed):
    table = random_table(seed)
    random = Policy.from_probabilities(table).random
    expected = np.nonzero((table > 0).sum(axis=2).reshape(-1) > 1)[0]
    np.testing.assert_array_equal(random.cell, expected)


@given(st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=2), min_size=1, max_size=4))
def test_a_sure_policy_puts_all_probability_on_its_advice(advice):
    policy = Policy(advice, n_actions=3)
    np.testing.assert_array_equal(policy.probabilities(), np.eye(4)[np.array(advice)])
    assert policy.at(0, 1) == {advice[0][1]: 1.0}
    assert policy.random.cell.size == 0


def test_never_is_silent_everywhere():
    policy = Policy.never(horizon=2, n_states=3, n_actions=4)
    assert policy.advice.shape == (2, 3)
    assert (policy.advice == policy.defer).all()
    assert policy.defer == 4


def test_trusted_advice_is_taken_as_it_is_and_made_read_only():
    advice = np.array([[0, 2]], dtype=np.int16)
    policy = Policy.trusted(advice, n_actions=2)
    assert policy.advice is advice
    assert not advice.flags.writeable
    np.testing.assert_array_equal(policy.probabilities(), [[[1, 0, 0], [0, 0, 1]]])


def test_random_cells_may_be_given_beside_the_advice():
    random = cells([1, 3], [0, 2, 4], [0, 2, 1, 2], [0.25, 0.75, 0.5, 0.5])
    policy = Policy([[1, 2], [0, 1]], n_actions=2, random=random)
    expected = [[[0, 1, 0], [0.25, 0, 0.75]], [[1, 0, 0], [0, 0.5, 0.5]]]
    np.testing.assert_array_equal(policy.probabilities(), expected)
    assert policy.at(0, 1) == {0: 0.25, 2: 0.75}
    assert policy.at(1, 0) == {0: 1.0}


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, ">i4"])
def test_advice_of_any_whole_type_is_stored_in_two_bytes(dtype):
    policy = Policy(np.array([[0, 2]], dtype=dtype), n_actions=2)
    assert policy.advice.dtype == np.int16
    assert policy.advice.tolist() == [[0, 2]]


def test_a_whole_number_of_any_type_counts_actions():
    assert type(Policy([[0]], n_actions=np.int64(2)).n_actions) is int
    assert type(Policy([[[2]]], n_actions=np.int64(2)).n_actions) is int


def test_the_largest_number_of_actions_fits():
    policy = Policy([[32_766, 32_765]], n_actions=32_766)
    assert policy.advice.tolist() == [[32_766, 32_765]]


def test_the_representation_says_how_much_is_said():
    assert repr(Policy([[0, 2], [2, 2]], n_actions=2)) == (
        "Policy(2 steps, 2 states, advises in 25% of cells, 0 random)"
    )


# ---- ownership -----------------------------------------------------------------------------


def test_changing_the_advice_that_was_given_changes_nothing_and_it_stays_writable():
    given_advice = np.zeros((2, 3), dtype=np.int16)
    policy = Policy(given_advice, n_actions=2)
    given_advice[...] = 2
    assert not policy.advice.any()
    assert not policy.advice.flags.writeable


def test_a_read_only_view_given_as_advice_is_copied():
    # Found by reading: a read-only view was taken for an array nobody else holds.
    base = np.zeros(3, dtype=np.int16)
    policy = Policy(np.broadcast_to(base, (2, 3)), n_actions=2)
    base[...] = 2
    assert not policy.advice.any()


def test_changing_the_probabilities_that_were_given_changes_nothing():
    table = random_table(3)
    before = table.copy()
    policy = Policy.from_probabilities(table)
    table[...] = 0
    np.testing.assert_array_equal(policy.probabilities(), before)


def test_changing_the_random_cells_that_were_given_changes_nothing_and_they_stay_writable():
    chances = np.array([0.25, 0.75])
    random = RandomCells(np.array([0]), np.array([0, 2]), np.array([0, 1], np.int16), chances)
    policy = Policy([[1]], n_actions=1, random=random)
    chances[...] = 0.5
    assert policy.at(0, 0) == {0: 0.25, 1: 0.75}


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_a_copied_or_pickled_policy_is_the_same(again):
    policy = Policy.from_probabilities(random_table(3))
    np.testing.assert_array_equal(again(policy).probabilities(), policy.probabilities())
    hard = Policy([[[1]], [[0]]], n_actions=1)
    assert again(hard).advice.tolist() == [[[1]], [[0]]]
    mixture = again(Mixture((policy, policy), (0.25, 0.75)))
    assert mixture.weights == (0.25, 0.75)


# ---- refusals ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("random", "fragments"),
    [
        (cells([4], [0, 2], [0, 1], [0.5, 0.5]), ["random cells"]),
        (cells([-1], [0, 2], [0, 1], [0.5, 0.5]), ["random cells"]),
        (cells([1, 1], [0, 2, 4], [0, 1, 0, 1], [0.5] * 4), ["random cells"]),
        (cells([2, 1], [0, 2, 4], [0, 1, 0, 1], [0.5] * 4), ["random cells"]),
        (cells([1], [0, 2], [0, 3], [0.5, 0.5]), ["random cells"]),
        (cells([1], [0, 2], [0, -1], [0.5, 0.5]), ["random cells"]),
        (cells([1], [0, 2], [0], [1.0]), ["random cells"]),
        (cells([1], [0], [], []), ["random cells"]),
        (cells([1], [0, 0], [], []), ["random cells"]),
        (cells([1], [0, 2], [0, 1], [0.5, 0.4]), ["random cell [h=0, s=1]", "0.9"]),
        (cells([1], [0, 2], [0, 1], [0.5, np.nan]), ["random cell [h=0, s=1]", "nan"]),
    ],
)
def test_random_cells_that_make_no_sense_are_refused(random, fragments):
    with pytest.raises(counsel.CounselError) as caught:
        Policy([[0, 1], [2, 2]], n_actions=2, random=random)
    assert all(fragment in str(caught.value) for fragment in fragments)


def test_a_negative_probability_in_a_random_cell_is_refused_by_its_place_and_number():
    # Found by reading: the first random cell was blamed, with a sum of 1.
    random = cells([0, 3], [0, 2, 4], [0, 1, 0, 1], [0.5, 0.5, 1.5, -0.5])
    with pytest.raises(counsel.CounselError, match=r"h=1, s=1.*-0\.5"):
        Policy([[0, 1], [2, 2]], n_actions=2, random=random)


def test_a_random_cell_that_names_one_advice_twice_is_refused():
    # Found by reading: the second of the two probabilities was lost.
    with pytest.raises(counsel.CounselError, match="random cell"):
        Policy([[0]], n_actions=1, random=cells([0], [0, 2], [0, 0], [0.5, 0.5]))


@pytest.mark.parametrize("broken", [{"cell": [0.5]}, {"advice": [0.0, 0.5]}], ids=str)
def test_random_cells_of_broken_numbers_are_refused(broken):
    good = {"cell": [1], "indptr": [0, 2], "advice": [0, 1], "probability": [0.5, 0.5]}
    arrays = {name: np.array(value) for name, value in (good | broken).items()}
    with pytest.raises(counsel.CounselError, match="random cell"):
        Policy([[0, 1]], n_actions=2, random=RandomCells(**arrays))


# ---- planes --------------------------------------------------------------------------------


def test_a_hard_policy_looks_at_the_pieces_left():
    advice_khs = [[[2, 2], [2, 2]], [[2, 0], [1, 2]], [[0, 0], [1, 1]]]
    policy = Policy(advice_khs, n_actions=2)
    assert (policy.budget, policy.defer) == (2, 2)
    for k, h, s in np.ndindex(3, 2, 2):
        assert policy.at(h, s, k) == {advice_khs[k][h][s]: 1.0}
        assert policy.draw(h, s, None, k) == advice_khs[k][h][s]
    assert policy.planes.tolist() == advice_khs
    says = "Policy(2 steps, 2 states, at most 2 pieces, advises in 50% of cells, 0 random)"
    assert repr(policy) == says


def test_a_plain_policy_has_one_plane_and_no_budget():
    policy = Policy([[0, 2], [2, 1]], n_actions=2)
    assert policy.planes.tolist() == [[[0, 2], [2, 1]]]
    assert policy.budget is None
    assert [policy.left_after(spent) for spent in (0, 3)] == [None, None]


def test_pieces_left_never_fall_below_none():
    policy = Policy(np.full((3, 1, 1), 1), n_actions=1)
    assert [policy.left_after(spent) for spent in range(4)] == [2, 1, 0, 0]


@pytest.mark.parametrize("pieces_left", [None, -1, 3, 0.5, "one"])
def test_a_hard_policy_must_be_told_how_many_pieces_are_left(pieces_left):
    policy = Policy(np.full((3, 1, 1), 1), n_actions=1)
    with pytest.raises(counsel.CounselError, match="pieces_left"):
        policy.at(0, 0, pieces_left)


def test_a_plain_policy_takes_no_pieces_left():
    with pytest.raises(counsel.CounselError, match="pieces_left"):
        Policy([[0]], n_actions=1).draw(0, 0, None, 1)


def random_planes(seed, K=3):
    """Distributions [k, h, s, b] with silence where no piece is left."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(4), (K, 3, 5))
    sure = rng.random(table.shape[:3]) < 0.5
    table[sure] = np.eye(4)[rng.integers(4, size=int(sure.sum()))]
    table[0] = np.eye(4)[3]
    return table


def test_a_hard_policy_may_be_random_on_any_plane():
    table = random_planes(0)
    policy = Policy.from_probabilities(table)
    assert policy.budget == 2
    assert (policy.random.cell > 2 * 3 * 5).any()
    np.testing.assert_array_equal(policy.probabilities(), table)
    for k, h, s in np.ndindex(3, 3, 5):
        expected = {b: p for b, p in enumerate(table[k, h, s]) if p > 0.0}
        assert policy.at(h, s, k) == expected
    mask = np.random.default_rng(1).random((3, 5)) < 0.5
    silent = np.where(mask[..., None], np.eye(4)[3], table)
    np.testing.assert_array_equal(policy.silent_where(mask).probabilities(), silent)
    with pytest.raises(counsel.CounselError, match="random"):
        policy.draw(*divmod(int(policy.random.cell[-1]) % 15, 5), None, 2)


def test_a_fault_in_a_random_cell_is_named_with_its_plane():
    advice = np.full((2, 2, 2), 2)
    with pytest.raises(counsel.CounselError, match=r"\[k=1, h=1, s=0\]"):
        Policy(advice, n_actions=2, random=cells([6], [0, 2], [0, 1], [0.5, 0.4]))


def test_a_hard_policy_with_no_piece_is_silence():
    assert Policy([[[3, 3]]], n_actions=3).budget == 0


def test_a_hard_policy_copies_its_advice():
    given_advice = np.full((2, 1, 1), 1, dtype=np.int16)
    policy = Policy(given_advice, n_actions=1)
    given_advice[...] = 0
    assert policy.advice.tolist() == [[[1]], [[1]]]
    assert not policy.advice.flags.writeable


def test_a_hard_policy_that_speaks_with_no_piece_left_is_refused():
    with pytest.raises(counsel.CounselError, match=r"advice\[k=0, h=1, s=0\]"):
        Policy([[[1, 1], [0, 1]], [[0, 0], [0, 0]]], n_actions=1)


# ---- Mixture -------------------------------------------------------------------------------

SPEAKS, SILENT = Policy([[0]], n_actions=1), Policy([[1]], n_actions=1)


def test_a_mixture_holds_policies_and_weights():
    mixture = Mixture((SPEAKS, SILENT), (0.25, 0.75))
    assert mixture.policies == (SPEAKS, SILENT)
    assert mixture.weights == (0.25, 0.75)


def test_a_mixture_of_sequences_leaves_out_what_has_no_weight():
    mixture = Mixture.of([SPEAKS, SILENT], [0.0, 1.0])
    assert mixture.policies == (SILENT,)
    assert mixture.weights == (1.0,)


@pytest.mark.parametrize("weights", [np.array([0.5, 0.5]), [1, 0], (0.5, 0.5)])
def test_weights_of_a_mixture_of_sequences_are_plain_numbers(weights):
    assert all(type(weight) is float for weight in Mixture.of([SPEAKS, SILENT], weights).weights)


@pytest.mark.parametrize("build", [Mixture, Mixture.of])
@pytest.mark.parametrize(
    ("policies", "weights"),
    [
        ((SPEAKS, SILENT), (0.5, 0.4)),
        ((SPEAKS, SILENT), (1.5, -0.5)),
        ((SPEAKS, SILENT), (1.0, -0.5)),
        ((SPEAKS, SILENT), (1.0, np.nan)),
        ((SPEAKS, SILENT), (np.inf, 0.0)),
        ((SPEAKS,), (0.5, 0.5)),
        ((SPEAKS, SILENT), (1.0,)),
        ((), ()),
        ((SPEAKS, SILENT), ("half", "half")),
        ((SPEAKS, SILENT), (None, 1.0)),
        ((SPEAKS, Policy([[0, 0]], n_actions=1)), (0.5, 0.5)),
        ((SPEAKS, Policy([[0]], n_actions=2)), (0.5, 0.5)),
    ],
    ids=[
        "off one",
        "negative",
        "negative beside one",
        "NaN",
        "infinite",
        "too many weights",
        "too few weights",
        "empty",
        "texts",
        "None",
        "other states",
        "other actions",
    ],
)
def test_a_mixture_that_makes_no_sense_is_refused(build, policies, weights):
    with pytest.raises(counsel.CounselError) as caught:
        build(policies, weights)
    assert "\n" not in str(caught.value)


def test_a_mixture_of_anything_else_is_refused():
    # Found by simulation: it was an AttributeError.
    never = counsel.Policy.never(horizon=1, n_states=1, n_actions=1)
    for wrong in ("x", None, counsel.Mixture((never,), (1.0,))):
        with pytest.raises(counsel.CounselError, match=r"policies\[0\]"):
            counsel.Mixture((wrong,), (1.0,))
