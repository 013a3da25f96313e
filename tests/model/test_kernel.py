"""Kernels: every way in gives the same transitions, every way out gives them back."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import counsel
from counsel import Kernel
from counsel.model.kernel import NO_ROW
from tests.support import oracles
from tests.support.each import each_seed

SEEDS = range(30)

SPARSE = {
    "csr_matrix": sp.csr_matrix,
    "csr_array": sp.csr_array,
    "csc_matrix": sp.csc_matrix,
    "coo_matrix": sp.coo_matrix,
    "coo_array": sp.coo_array,
    "bsr_matrix": sp.bsr_matrix,
    "lil_matrix": sp.lil_matrix,
    "dok_matrix": sp.dok_matrix,
}


def draw(seed, *, H=None):
    """Transitions [h, s, a, t], half of them with masked (empty) rows."""
    rng = np.random.default_rng(seed)
    S, A = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    steps = int(rng.integers(2, 5)) if H is None else H
    return oracles.random_problem(rng, S, A, steps, masks=seed % 2 == 1).P_hsat


def matrix(P_sat):
    """The same layer as a dense matrix [s·A + a, t]."""
    return P_sat.reshape(-1, P_sat.shape[-1])


def shuffled_with_duplicates(P_sat, rng):
    """A CSR matrix of the layer with unsorted columns and every entry split into two halves."""
    plain = sp.csr_matrix(matrix(P_sat))
    index, data, ends = [], [], [0]
    for i in range(plain.shape[0]):
        part = slice(plain.indptr[i], plain.indptr[i + 1])
        columns, values = np.tile(plain.indices[part], 2), np.tile(plain.data[part] / 2, 2)
        order = rng.permutation(columns.size)
        index += columns[order].tolist()
        data += values[order].tolist()
        ends.append(len(index))
    return sp.csr_matrix((data, index, ends), shape=plain.shape)


# ---- in and out ----------------------------------------------------------------------------


@each_seed(SEEDS)
def test_dense_transitions_of_each_step_come_back_as_they_were(seed):
    P_hsat = draw(seed)
    np.testing.assert_array_equal(Kernel.read(P_hsat).to_dense(), P_hsat)


@each_seed(SEEDS)
def test_dense_transitions_of_a_world_that_never_changes_come_back_as_they_were(seed):
    P_sat = draw(seed)[0]
    np.testing.assert_array_equal(Kernel.read(P_sat).to_dense(), P_sat)


@pytest.mark.parametrize("make", SPARSE.values(), ids=SPARSE.keys())
@each_seed(range(8))
def test_every_sparse_format_gives_the_dense_kernel(seed, make):
    P_sat = draw(seed)[0]
    np.testing.assert_array_equal(Kernel.read(make(matrix(P_sat))).to_dense(), P_sat)


@pytest.mark.parametrize("container", [list, tuple])
@each_seed(range(12))
def test_one_sparse_matrix_a_step_gives_the_dense_kernel(seed, container):
    P_hsat = draw(seed)
    makes = list(SPARSE.values())
    steps = container(makes[h % len(makes)](matrix(P_sat)) for h, P_sat in enumerate(P_hsat))
    np.testing.assert_array_equal(Kernel.read(steps).to_dense(), P_hsat)


@each_seed(SEEDS)
def test_sparse_transitions_come_back_as_they_were(seed):
    P_hsat = draw(seed)
    given_h = [sp.csr_matrix(matrix(P_sat)) for P_sat in P_hsat]
    for got, want in zip(Kernel.read(given_h).to_sparse(), given_h, strict=True):
        assert got.shape == want.shape
        np.testing.assert_array_equal(got.indptr, want.indptr)
        np.testing.assert_array_equal(got.indices, want.indices)
        np.testing.assert_array_equal(got.data, want.data)


def test_a_world_that_never_changes_comes_back_as_one_matrix():
    assert sp.issparse(Kernel.read(draw(0)[0]).to_sparse())


def test_a_list_of_one_sparse_matrix_is_a_world_that_never_changes():
    P_sat = draw(1)[0]
    kernel = Kernel.read([sp.csr_matrix(matrix(P_sat))])
    np.testing.assert_array_equal(kernel.to_dense(), P_sat)


@each_seed(SEEDS)
def test_unsorted_and_repeated_sparse_entries_are_sorted_and_summed(seed):
    P_sat = draw(seed)[0]
    split = shuffled_with_duplicates(P_sat, np.random.default_rng(seed))
    kernel = Kernel.read(split)
    np.testing.assert_array_equal(kernel.to_dense(), P_sat)
    assert kernel.probability.size == np.count_nonzero(np.unique(matrix(P_sat), axis=0))


def test_long_unsorted_rows_are_sorted_and_summed():
    # Rows of more than 64 entries take another road through the sort.
    rng = np.random.default_rng(0)
    P_sat = rng.dirichlet(np.ones(100), size=(100, 1))
    kernel = Kernel.read(shuffled_with_duplicates(P_sat, rng))
    np.testing.assert_array_equal(kernel.to_dense(), P_sat)


def test_repeated_entries_of_a_coo_matrix_are_summed():
    given_coo = sp.coo_matrix(([0.25, 0.5, 0.25, 1.0], ([0, 0, 0, 1], [1, 0, 1, 0])), shape=(2, 2))
    np.testing.assert_array_equal(Kernel.read(given_coo).to_dense(), [[[0.5, 0.5]], [[1.0, 0.0]]])


def test_stored_zeros_are_dropped():
    explicit = sp.csr_matrix(([0.0, 1.0, 1.0, 0.0], [0, 1, 0, 1], [0, 2, 4]), shape=(2, 2))
    kernel = Kernel.read(explicit)
    np.testing.assert_array_equal(kernel.probability, [1.0, 1.0])
    np.testing.assert_array_equal(kernel.next_state, [1, 0])


@given(st.data())
def test_a_table_of_next_states_comes_back_as_it_was(data):
    S, A = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 4))
    H = data.draw(st.integers(2, 4))
    shape = data.draw(st.sampled_from([(S, A), (H, S, A)]))
    dtype = data.draw(st.sampled_from([np.int8, np.int32, np.int64, ">i4"]))
    table = data.draw(hnp.arrays(dtype, shape, elements=st.integers(-1, S - 1)))
    kernel = Kernel.read(table)
    dense = kernel.to_dense()
    np.testing.assert_array_equal(dense, (table[..., None] == np.arange(S)).astype(float))
    np.testing.assert_array_equal(kernel.to_next_states(), table)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint64])
def test_a_table_of_unsigned_next_states_is_read(dtype):
    table = np.arange(600, dtype=dtype).reshape(300, 2) % 7
    np.testing.assert_array_equal(Kernel.read(table).to_next_states(), table)


def test_a_nested_list_of_next_states_is_read():
    np.testing.assert_array_equal(
        Kernel.read([[1, 0], [0, -1]]).to_next_states(), [[1, 0], [0, -1]]
    )


@each_seed(SEEDS)
def test_all_forms_store_the_same_arrays(seed):
    rng = np.random.default_rng(seed)
    table = rng.integers(-1, 4, size=(3, 4, 2))
    P_hsat = (table[..., None] == np.arange(4)).astype(float)
    one = Kernel.read(P_hsat)
    for other in (Kernel.read(table), Kernel.read([sp.coo_matrix(matrix(P)) for P in P_hsat])):
        for name in ("row", "first_row", "indptr", "next_state", "probability"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("dtype", [np.float32, ">f8", np.longdouble])
def test_other_float_types_are_read_as_doubles(dtype):
    P_sat = np.array([[[0.25, 0.75]], [[1.0, 0.0]]])
    kernel = Kernel.read(P_sat.astype(dtype))
    assert kernel.probability.dtype == np.float64
    np.testing.assert_array_equal(kernel.to_dense(), P_sat)


def test_transposed_and_strided_arrays_are_read():
    P_sat = draw(2)[0]
    np.testing.assert_array_equal(Kernel.read(np.asfortranarray(P_sat)).to_dense(), P_sat)
    every_other = np.repeat(P_sat, 2, axis=1)[:, ::2]
    np.testing.assert_array_equal(Kernel.read(every_other).to_dense(), P_sat)


def test_a_kernel_is_read_as_itself():
    kernel = Kernel.read(draw(0))
    assert Kernel.read(kernel) is kernel


@each_seed(SEEDS)
def test_successors_are_the_nonzero_entries_of_the_dense_row(seed):
    P_hsat = draw(seed)
    kernel = Kernel.read(P_hsat)
    for h, s, a in np.ndindex(P_hsat.shape[:3]):
        next_state, probability = kernel.successors(h, s, a)
        np.testing.assert_array_equal(next_state, np.nonzero(P_hsat[h, s, a])[0])
        np.testing.assert_array_equal(probability, P_hsat[h, s, a][next_state])


def test_successors_of_a_world_that_never_changes_are_the_same_at_every_step():
    kernel = Kernel.read(np.array([[1], [0]]))
    assert kernel.successors(7, 0, 0)[0].tolist() == [1]


def test_chance_is_no_table_of_next_states_and_the_message_says_where():
    P_hsat = np.ones((2, 2, 1, 2)) * [1.0, 0.0]
    P_hsat[1, 1, 0] = 0.5
    with pytest.raises(counsel.CounselError, match=r"transition\[h=1, s=1, a=0\] has 2 next"):
        Kernel.read(P_hsat).to_next_states()


def test_rows_a_hair_off_one_are_kept_as_they_are():
    P_sat = np.array([[[0.5, 0.5 + 4e-10]], [[1.0 - 4e-10, 0.0]]])
    np.testing.assert_array_equal(Kernel.read(P_sat).to_dense(), P_sat)


def test_a_kernel_without_any_row_is_exported_as_zeros():
    # Found by reading: the exports looked up row −1 of no rows.
    kernel = Kernel.read(np.full((2, 1), -1))
    np.testing.assert_array_equal(kernel.to_dense(), np.zeros((2, 1, 2)))
    np.testing.assert_array_equal(kernel.to_next_states(), [[-1], [-1]])
    assert kernel.to_sparse().nnz == 0


def test_a_large_sparse_world_is_never_made_dense():
    S = 300_000
    kernel = Kernel.read(sp.eye_array(S, format="csr"))
    assert kernel.nbytes < 100 * S
    assert kernel.to_sparse().nnz == S


# ---- what is stored ------------------------------------------------------------------------


@each_seed(SEEDS)
def test_each_distinct_row_of_a_layer_is_stored_once(seed):
    rng = np.random.default_rng(seed)
    H, S, A = 3, 12, 3
    pool_rt = rng.dirichlet(np.ones(S), size=5)
    pool_rt[0] = np.eye(S)[1]
    P_hsat = pool_rt[rng.integers(5, size=(H, S, A))]
    P_hsat[rng.random((H, S, A)) < 0.2] = 0.0
    kernel = Kernel.read(P_hsat)
    for h in range(H):
        rows = matrix(P_hsat[h])
        distinct = np.unique(rows[rows.any(axis=1)], axis=0)
        assert kernel.first_row[h + 1] - kernel.first_row[h] == len(distinct)
    assert kernel.n_rows == kernel.first_row[-1]


def test_rows_that_differ_in_the_last_bit_are_not_shared():
    P_sat = np.array([[[0.5, 0.5]], [[0.5, np.nextafter(0.5, 1.0)]]])
    assert Kernel.read(P_sat).n_rows == 2


def test_rows_are_numbered_by_first_use():
    assert Kernel.read([[1, 0], [1, 1]]).row.tolist() == [[[0, 1], [0, 0]]]


@each_seed(SEEDS)
def test_pairs_without_transitions_have_no_row(seed):
    P_hsat = draw(seed)
    np.testing.assert_array_equal(Kernel.read(P_hsat).row == NO_ROW, ~P_hsat.any(axis=-1))


def test_a_world_that_never_changes_has_one_layer():
    assert Kernel.read(draw(0)[0]).n_layers == 1
    assert Kernel.read(draw(0)).n_layers == len(draw(0))


def test_sizes_are_those_of_the_array():
    kernel = Kernel.read(np.ones((2, 5, 3, 5)) / 5)
    assert (kernel.n_layers, kernel.n_states, kernel.n_actions, kernel.n_rows) == (2, 5, 3, 2)


def test_bytes_are_those_of_all_arrays():
    kernel = Kernel.read(draw(3))
    names = ("row", "first_row", "indptr", "next_state", "probability")
    assert kernel.nbytes == sum(getattr(kernel, name).nbytes for name in names)


def test_an_unused_row_does_not_shift_the_table_of_next_states():
    # Found in review: rows were taken to be used in order.
    row = np.array([[[1, 2]], [[1, 2]]][:1])
    kernel = Kernel.from_rows(
        np.array([[[1]], [[1]]]).reshape(1, 2, 1),
        np.array([0, 2]),
        np.array([0, 1, 2]),
        np.array([0, 1]),
        np.array([1.0, 1.0]),
    )
    assert row.shape == (1, 1, 2)
    np.testing.assert_array_equal(kernel.to_next_states(), [[1], [1]])


# ---- ownership -----------------------------------------------------------------------------


def arrays_of(kernel):
    return {name: getattr(kernel, name) for name in Kernel.__slots__}


@pytest.mark.parametrize("form", ["dense", "table", "csr", "coo", "list"])
def test_changing_what_was_given_changes_nothing_and_it_stays_writable(form):
    table = np.array([[1, 0], [0, 1], [2, 2]])
    dense = (table[..., None] == np.arange(3)).astype(float)
    transition = {
        "dense": dense,
        "table": table,
        "csr": sp.csr_matrix(matrix(dense)),
        "coo": sp.coo_matrix(matrix(dense)),
        "list": [sp.csr_matrix(matrix(dense)), sp.csr_matrix(matrix(dense))],
    }[form]
    kernel = Kernel.read(transition)
    before = kernel.to_dense().copy()
    for part in transition if form == "list" else [transition]:
        if sp.issparse(part):
            part.data[:] = 0.125
            if form != "coo":
                part.indices[:] = 0
        else:
            part[:] = 0
    np.testing.assert_array_equal(kernel.to_dense(), before)


def test_all_arrays_of_a_kernel_are_read_only():
    assert not any(array.flags.writeable for array in arrays_of(Kernel.read(draw(1))).values())


def stored_form():
    kernel = Kernel.read(draw(5))
    names = ("row", "first_row", "indptr", "next_state", "probability")
    return kernel, {name: getattr(kernel, name).copy() for name in names}


def test_a_kernel_is_rebuilt_from_its_stored_rows():
    kernel, stored = stored_form()
    again = Kernel.from_rows(**stored)
    for name, array in arrays_of(kernel).items():
        np.testing.assert_array_equal(getattr(again, name), array)


def test_stored_rows_are_taken_over_and_made_read_only():
    _, stored = stored_form()
    kernel = Kernel.from_rows(**stored)
    assert not any(array.flags.writeable for array in arrays_of(kernel).values())


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("whole", "real"), [("i8", "f8"), ("i4", "f8"), ("i8", "f4")])
def test_stored_rows_get_their_own_types_whatever_was_given(order, whole, real):
    kernel = Kernel.read([[[0, 1], [1, 1]], [[1, 0], [0, 0]]])
    stored = {
        name: getattr(kernel, name).astype(order + (real if name == "probability" else whole))
        for name in ("row", "first_row", "indptr", "next_state", "probability")
    }
    again = Kernel.from_rows(**stored)
    for name, array in arrays_of(kernel).items():
        assert getattr(again, name).dtype == array.dtype
    np.testing.assert_array_equal(again.to_dense(), kernel.to_dense())


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda k: pickle.loads(pickle.dumps(k))]
)
def test_a_copied_or_pickled_kernel_is_the_same_and_still_read_only(again):
    kernel = Kernel.read(draw(1))
    other = again(kernel)
    for name, array in arrays_of(kernel).items():
        np.testing.assert_array_equal(getattr(other, name), array)
        assert not getattr(other, name).flags.writeable


@pytest.mark.parametrize(
    "spoil",
    [
        {"row": [[[0, 5]]]},
        {"row": [[[0, -2]]]},
        {"first_row": [0, 3]},
        {"first_row": [1, 2]},
        {"first_row": [0]},
        {"indptr": [0, 0, 2]},
        {"indptr": [0, 2, 1]},
        {"indptr": [1, 1, 2]},
        {"next_state": [0]},
        {"next_state": [0, 1]},
        {"next_state": [-1, 0]},
        {"probability": [1.0, 0.5]},
        {"probability": [1.0, np.nan]},
        {"probability": [1.0, np.inf]},
        {"probability": [2.0, -1.0]},
    ],
    ids=str,
)
def test_damaged_stored_rows_are_refused(spoil):
    sound = {
        "row": [[[0, 1]]],
        "first_row": [0, 2],
        "indptr": [0, 1, 2],
        "next_state": [0, 0],
        "probability": [1.0, 1.0],
    }
    Kernel.from_rows(**{name: np.array(value) for name, value in sound.items()})
    with pytest.raises(counsel.CounselError, match="transition row"):
        Kernel.from_rows(**{name: np.array(value) for name, value in (sound | spoil).items()})
