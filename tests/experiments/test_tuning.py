"""Factors are chosen on other maps than those they are judged on."""

import numpy as np
import pytest

from counsel.experiments.tuning import best_on_other_half, of_each


def test_each_half_has_the_factor_that_is_best_on_the_other():
    loss = np.array([[1.0, 1.0, 9.0, 9.0], [5.0, 5.0, 2.0, 2.0]])
    chosen = best_on_other_half(loss)
    assert chosen.tolist() == [1, 1, 0, 0]
    assert of_each(loss, chosen).tolist() == [5.0, 5.0, 9.0, 9.0]


@pytest.mark.parametrize("maps", [1, 2, 3, 5])
def test_no_map_has_a_say_in_its_own_factor(maps):
    loss = np.random.default_rng(0).random((3, maps))
    before = best_on_other_half(loss)
    for i in range(maps):
        other = loss.copy()
        other[:, i] = np.random.default_rng(1).random(3)
        half = slice(0, (maps + 1) // 2) if i < (maps + 1) // 2 else slice((maps + 1) // 2, None)
        assert best_on_other_half(other)[half].tolist() == before[half].tolist()
    assert len(before) == maps
