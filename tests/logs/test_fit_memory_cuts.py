"""Models of people whom advice moves more at a later level, so much that some lifts are cut."""

import numpy as np
import pyarrow as pa
import pytest

import counsel
from counsel.logs.estimate_world import person_with_memory

HABIT = np.array([[0.5, 0.5], [0.25, 0.75]])


@pytest.fixture(scope="module")
def model():
    """People who do nearly all they are told at first, and listen twice as well the second time.

    Every episode begins late, where "act" is advised, and goes on calm, where "check" is.
    """
    rng, rows = np.random.default_rng(0), []
    for episode in range(2000):
        pieces = 0
        for step, (state, advice, own, lift) in enumerate(
            [("late", "act", 0.5, 0.92), ("calm", "check", 0.25, 0.3)]
        ):
            is_advised = rng.random() < 0.5
            follows = is_advised and rng.random() < min(lift * (1 + pieces), 1.0)
            other = "check" if advice == "act" else "act"
            action = advice if follows or rng.random() < own else other
            said = advice if is_advised else None
            rows.append((episode, step, f"p{episode % 20}", state, said, action, 1.0))
            pieces += is_advised
    names = ("episode", "step", "person", "state", "advice", "action", "reward")
    columns = zip(*rows, strict=True)
    table = pa.table({name: list(column) for name, column in zip(names, columns, strict=True)})
    return counsel.fit(table, memory="pieces=1")


def _pair(model, state, advice):
    return model.tally.states.index(state), model.tally.actions.index(advice)


def test_a_fading_above_one_once_cut_the_lifts_of_every_level(model):
    assert model.fading.factor[1] > 1.5
    S, person = len(model.tally.states), model.problem.human
    np.testing.assert_allclose(person.level_lift[0, 0, :S], model.estimates.lift[0])
    late, calm = _pair(model, "late", "act"), _pair(model, "calm", "check")
    assert person.level_lift[(0, 0, *late)] > 0.88
    assert person.level_lift[(1, 0, *late)] == 1.0
    faded = model.fading.factor[1] * model.estimates.lift[(0, *calm)]
    assert person.level_lift[(1, 0, *calm)] == pytest.approx(faded)


def test_the_limitations_name_the_lifts_that_are_cut(model):
    (note,) = (note for note in model.notes if "it is cut at that level" in note.what)
    assert (note.count, note.examples) == (2, ("act in calm", "act in late"))


def test_a_model_with_cut_lifts_is_saved_and_keeps_its_fading(model, tmp_path):
    model.save(tmp_path / "model.npz")
    again = counsel.load_fit(tmp_path / "model.npz").problem.human
    np.testing.assert_array_equal(again.level_lift, model.problem.human.level_lift)
    np.testing.assert_allclose(again.fading, model.estimates.fading)


def test_lifts_that_no_level_cuts_keep_the_fading_as_it_is():
    person = counsel.Human(HABIT, lift=0.4)
    tired = person_with_memory(person, counsel.Memory.pieces(1), np.array([1.0, 2.0]))
    assert tired.input_fading.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("lift", "fading", "start"),
    [
        ([0.9, 0.2], [1.0, 1.5, 3.0], 0),
        ([0.9, 0.8], [1.0, 0.5, 0.1], 0),
        ([-0.3, 0.2], [1.0, 2.0, 4.5], 0),  # advice repels, at most so that nobody matches
        ([0.9, 0.2], [1.0, 1.5, 3.0], 2),
    ],
)
def test_a_factor_is_found_between_levels_of_which_some_are_cut(lift, fading, start):
    person = counsel.Human(HABIT, lift=lift)
    memory = counsel.Memory.pieces(2).starting_at(start)
    cut = person_with_memory(person, memory, np.array(fading))
    levels = counsel.Human(HABIT, lift=cut.level_lift[:, 0], memory=memory)
    np.testing.assert_allclose(levels.fading, fading, atol=1e-9)


def test_levels_that_differ_in_more_than_a_factor_have_none():
    levels = [[[0.5, 0.2]] * 2, [[0.2, 0.5]] * 2]
    person = counsel.Human(HABIT, lift=levels, memory=counsel.Memory.pieces(1))
    assert person.fading is None
    first_deaf = [[[0.0, 0.0]] * 2, [[0.2, 0.5]] * 2]
    person = counsel.Human(HABIT, lift=first_deaf, memory=counsel.Memory.pieces(1))
    assert person.fading is None
