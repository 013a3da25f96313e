"""Rows are sorted as a stable sort does it, whatever their length, and searched as NumPy does."""

import numpy as np

from counsel.model._kernels import RUN, first_at_least, sort_row
from tests.support.each import each, each_seed


@each_seed(range(20))
@each("length", [0, 1, 2, RUN - 1, RUN, RUN + 1, 2 * RUN, 2 * RUN + 1, 3 * RUN, 5 * RUN + 7, 1000])
def test_a_row_is_sorted_stably_and_nothing_beside_it_is_touched(seed, length):
    rng = np.random.default_rng([seed, length])
    index = rng.integers(
        0, max(1, length // int(rng.integers(1, 4))), size=length + 10, dtype=np.int32
    )
    data = np.arange(length + 10, dtype=np.float64)
    order = 5 + np.argsort(index[5 : 5 + length], kind="stable")
    expected_index, expected_data = index.copy(), data.copy()
    expected_index[5 : 5 + length], expected_data[5 : 5 + length] = index[order], data[order]
    sort_row(index, data, 5, 5 + length)
    np.testing.assert_array_equal(index, expected_index)
    np.testing.assert_array_equal(data, expected_data)


@each_seed(range(20))
def test_a_number_is_found_where_numpy_finds_it(seed):
    rng = np.random.default_rng(seed)
    numbers = np.sort(rng.integers(0, 30, size=int(rng.integers(0, 40))))
    found = [first_at_least(numbers, number) for number in range(-1, 31)]
    np.testing.assert_array_equal(found, np.searchsorted(numbers, np.arange(-1, 31)))
