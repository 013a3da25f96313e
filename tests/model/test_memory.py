"""Memories: levels, how advice moves a person between them, and people who have one."""

import copy
import pickle

import numpy as np
import pytest

import counsel
from counsel import CounselError, Human, Memory
from tests.support import memory_model

HALF = [[0.5, 0.5]]


def test_pieces_count_up_and_stay_at_the_last():
    memory = Memory.pieces(2)
    assert (memory.n_levels, memory.start) == (3, 0)
    assert memory.after_silence.tolist() == np.eye(3).tolist()
    assert memory.after_match.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 1]]
    assert memory.after_refusal.tolist() == memory.after_match.tolist()


def test_silent_steps_count_up_and_any_piece_resets_them():
    memory = Memory.since(2)
    assert (memory.n_levels, memory.start) == (3, 2)
    assert memory.after_silence.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 1]]
    assert memory.after_match.tolist() == memory.after_refusal.tolist() == [[1, 0, 0]] * 3


def test_refusals_in_a_row_end_with_a_match_and_outlast_silence():
    memory = Memory.refusals(2)
    assert memory.after_silence.tolist() == np.eye(3).tolist()
    assert memory.after_match.tolist() == [[1, 0, 0]] * 3
    assert memory.after_refusal.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 1]]


@pytest.mark.parametrize(("decay", "levels"), [(0.5, 2), (0.5, 5), (0.9, 7), (1 / 3, 40)])
def test_the_mean_of_a_dose_is_exact_and_only_two_levels_follow(decay, levels):
    memory = Memory.dose(decay, levels)
    grid = np.linspace(0.0, 1.0 / (1.0 - decay), levels)
    for matrix, spoke in ((memory.after_silence, 0.0), (memory.after_match, 1.0)):
        np.testing.assert_allclose(matrix @ grid, decay * grid + spoke, atol=1e-12)
        assert ((matrix > 0.0).sum(axis=1) <= 2).all()
    assert memory.start == 0


def test_joined_levels_are_pairs_and_move_independently():
    both = Memory.pieces(1) * Memory.since(2)
    assert (both.n_levels, both.start) == (6, 2)
    for m, name in enumerate(("after_silence", "after_match", "after_refusal")):
        expected = np.kron(Memory.pieces(1).after[m], Memory.since(2).after[m])
        assert getattr(both, name).tolist() == expected.tolist()
    assert both.labels[4] == "1 or more pieces so far, 1 silent step since advice"
    assert repr(both) == "Memory(pieces=1 × since=2, 6 levels)"


def test_a_level_goes_by_its_label_as_well():
    memory = Memory.pieces(2)
    assert memory.number_of("1 piece so far") == memory.number_of(1) == 1
    with pytest.raises(CounselError, match=r"level is 'tired'; give a number from 0 to 2 or a lab"):
        memory.number_of("tired")


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        (Memory.pieces(3), memory_model.pieces(3)),
        (Memory.since(4), memory_model.since(4)),
        (Memory.refusals(2), memory_model.refusals(2)),
        (Memory.dose(0.5, 5), memory_model.dose(0.5, 5)),
        (Memory.dose(0.83, 11), memory_model.dose(0.83, 11)),
        (
            Memory.refusals(1) * Memory.dose(0.3, 4),
            memory_model.join(memory_model.refusals(1), memory_model.dose(0.3, 4)),
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Memory) else "",
)
def test_named_memories_equal_those_of_the_oracle(memory, expected):
    assert memory.start == expected.start
    matrices = (expected.K0, expected.Kplus, expected.Kminus)
    np.testing.assert_allclose(memory.after, matrices, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Memory([[1, 0], [0.4, 0.5]], np.eye(2)), r"after_silence\[m=1\] sums to 0.9;"),
        (lambda: Memory(np.eye(2), [[1, 0], [-1, 2]]), r"after_match\[m=1, n=0\] is -1;"),
        (lambda: Memory([[0.5, 0.5]], [[1]]), r"a square matrix \[level, next level\]$"),
        (lambda: Memory(np.eye(2), np.eye(3)), r"after_match has shape \(3, 3\); expected a squ"),
        (lambda: Memory(np.eye(2), np.eye(2), [[1, 0]]), r"after_refusal has shape \(1, 2\)"),
        (lambda: Memory([], []), r"after_silence has shape \(0,\)"),
        (lambda: Memory(np.eye(2), np.eye(2), start=2), "start is 2; it runs from 0 to 1"),
        (lambda: Memory(np.eye(2), np.eye(2), labels=["a", "a"]), "are both 'a'; labels must dif"),
        (lambda: Memory.pieces(0), "pieces must be a whole number of at least 1, not 0"),
        (lambda: Memory.since(10**6), "since is 1,000,000; it must be below 10,000"),
        (lambda: Memory.dose(1.0, 5), "decay is 1.0; it must be above 0 and below 1"),
        (lambda: Memory.dose(0.0, 5), "decay is 0.0; it must be above 0 and below 1"),
        (lambda: Memory.dose(0.5, 1), "levels must be a whole number of at least 2, not 1"),
        (lambda: Memory.pieces(200) * Memory.since(200), "the joined memory has 201 × 201 levels"),
        (lambda: Human(HALF, lift=0.5, memory="pieces"), "memory is 'pieces'; give a counsel.Mem"),
        (lambda: Human(HALF, lift=0.5, fading=[1.0]), "fading is a factor for each level of a me"),
        (
            lambda: Human(HALF, 0.5, memory=Memory.pieces(1)),
            "a person with a memory is given by lift",
        ),
        (
            lambda: Human(HALF, lift=0.8, memory=Memory.pieces(1), fading=[1.0, 1.5]),
            r"fading\[m=1\] is 1.5, so the lift\[m=1, h=0, s=0, a=0\] is 1.2, which means an adher",
        ),
        (
            lambda: Human(HALF, lift=0.8, memory=Memory.pieces(1), fading=[1.0, -0.1]),
            r"fading\[m=1\] is -0.1; it must be 0 or more",
        ),
        (
            lambda: Human(HALF, lift=0.8, memory=Memory.pieces(1), fading=[1.0]),
            r"fading has shape \(1,\); give one factor for each of the 2 levels",
        ),
        (
            lambda: Human(HALF, lift=[0.8, 0.7, 0.6], memory=Memory.pieces(1)),
            r"lift has shape \(3,\); with a memory of 2 levels, give a number, \[m\] = \(2,\)",
        ),
        (
            lambda: Human(HALF, lift=np.zeros((2, 3, 2)), memory=Memory.pieces(1)),
            r"lift has shape \(2, 3, 2\); with a memory of 2 levels, give a number, \[m\] = \(2,\)"
            r", \[m, a\] = \(2, 2\), \[m, s, a\] = \(2, 1, 2\) or \[m, h, s, a\], or one lift and",
        ),
        (lambda: Human(HALF, lift=0.5).with_memory(None), "memory is None; give a counsel.Memory"),
        (lambda: Human(HALF, lift=0.5).with_memory("dose"), "memory is 'dose'; give a counsel.Me"),
        (
            lambda: Human(HALF, lift=[[[0.5, 0.5]], [[0.5, 1.5]]], memory=Memory.pieces(1)),
            r"lift\[m=1, h=0, s=0, a=1\] is 1.5",
        ),
    ],
)
def test_bad_input_is_refused_in_one_sentence(build, message):
    with pytest.raises(CounselError, match=message) as refusal:
        build()
    assert "\n" not in str(refusal.value)


LIFTS = {
    "a number": (0.6, [0.6, 0.6]),
    "by level": ([0.6, 0.3], [0.6, 0.3]),
    "by level and action": ([[0.6, 0.6], [0.3, 0.3]], [0.6, 0.3]),
    "by level, state and action": ([[[0.6, 0.6]], [[0.3, 0.3]]], [0.6, 0.3]),
    "by level, step, state and action": ([[[[0.6, 0.6]]] * 3, [[[0.3, 0.3]]] * 3], [0.6, 0.3]),
}


@pytest.mark.parametrize("name", LIFTS)
def test_lifts_have_a_leading_level_axis(name):
    given, expected = LIFTS[name]
    human = Human(HALF, lift=given, memory=Memory.pieces(1))
    assert human.level_lift[:, 0, 0, 0].tolist() == expected
    np.testing.assert_allclose(
        human.level_adherence, human.level_lift + (1.0 - human.level_lift) * 0.5
    )


def test_fading_multiplies_the_lift():
    human = Human(HALF, lift=0.8, memory=Memory.pieces(2), fading=[1.0, 0.7, 0.5])
    np.testing.assert_allclose(human.level_lift[:, 0, 0, 0], [0.8, 0.56, 0.4])
    assert repr(human) == "Human(1 states, 2 actions, adherence 0.7 to 0.9, memory pieces=2)"


def test_code_that_knows_no_levels_is_stopped():
    """A person who tires must never be taken for one who does not."""
    human = Human(HALF, lift=0.8, memory=Memory.pieces(1), fading=[1.0, 0.5])
    problem = counsel.AdviceProblem(counsel.MDP([[0, 0]], [[0.0, 1.0]], horizon=2), human)
    for read in (
        lambda: human.lift,
        lambda: human.adherence,
        lambda: problem.lift,
        lambda: problem.adherence,
    ):
        with pytest.raises(CounselError, match=r"the person has a memory \(pieces=1\), so there i"):
            read()
    assert problem.level_lift.shape == (2, 2, 1, 2)
    assert problem.law(0, 0, 1).tolist() == pytest.approx([0.1, 0.9])
    assert problem.law(0, 0, 1, level=1).tolist() == pytest.approx([0.3, 0.7])


def test_groups_may_share_over_states_levels_or_both():
    memory = Memory.pieces(1)
    by_level = Human(HALF, lift=[0.6, 0.3], memory=memory, groups=[[[0, 0]], [[1, 1]]])
    assert by_level.groups.tolist() == [[[[0, 0]]], [[[1, 1]]]]
    own = Human(HALF, lift=[0.6, 0.3], memory=memory)
    assert own.groups.reshape(-1).tolist() == [0, 1, 2, 3]
    with pytest.raises(CounselError, match=r"the value at \[m=1, h=0, s=0, a=0\] is 0.3 but grou"):
        Human(HALF, lift=[0.6, 0.3], memory=memory, groups=0)


@pytest.mark.parametrize("fading", [None, [1.0, 0.5]])
def test_a_person_with_a_memory_survives_files_and_copies(fading, tmp_path):
    memory = Memory(
        np.eye(2), [[0.3, 0.7], [0.0, 1.0]], start=1, newcomer=0, labels=["fresh", "tired"]
    )
    lift = [0.6, 0.3] if fading is None else 0.6
    human = Human(HALF, lift=lift, memory=memory, fading=fading)
    problem = counsel.AdviceProblem(counsel.MDP([[0, 0]], [[0.0, 1.0]], horizon=2), human)
    counsel.save(problem, tmp_path / "problem.npz")
    copies = [counsel.load(tmp_path / "problem.npz"), pickle.loads(pickle.dumps(problem))]
    for again in [*copies, copy.deepcopy(problem)]:
        assert again.memory.labels == ("fresh", "tired")
        assert (again.memory.start, again.memory.newcomer) == (1, 0)
        assert again.memory.name == "custom"
        assert again.memory.after.tolist() == memory.after.tolist()
        assert again.human.level_lift.tolist() == human.level_lift.tolist()


def test_another_start_leaves_newcomers_where_they_are():
    memory = Memory.since(2).starting_at(0)
    assert (memory.start, memory.newcomer) == (0, 2)
    joined = memory * Memory.pieces(1)
    assert (joined.start, joined.newcomer) == (0, 4)
    assert Memory.since(2).newcomer == Memory.since(2).start == 2
    with pytest.raises(CounselError, match="newcomer is 3; "):
        Memory(np.eye(2), np.eye(2), newcomer=3)


def test_policies_with_levels_are_checked_drawn_and_saved(tmp_path):
    advice = [[[2, 0]], [[1, 2]]]
    policy = counsel.Policy(advice, n_actions=2, levels=2)
    assert (policy.levels, policy.budget) == (2, None)
    assert policy.at(0, 1, level=0) == {0: 1.0}
    assert policy.at(0, 0, level=1) == {1: 1.0}
    with pytest.raises(CounselError, match="the policy depends on the level of the person's memo"):
        policy.at(0, 0)
    with pytest.raises(CounselError, match="with 3 levels m"):
        counsel.Policy(advice, n_actions=2, levels=3)
    hard = counsel.Policy([[[[2, 2]], [[2, 2]]], advice], n_actions=2, levels=2)
    assert hard.budget == 1
    assert hard.at(0, 1, pieces_left=1, level=0) == {0: 1.0}
    assert hard.at(0, 1, pieces_left=0, level=0) == {2: 1.0}
    for each in (policy, hard):
        counsel.save_policy(each, tmp_path / "policy.npz")
        again = counsel.load_policy(tmp_path / "policy.npz")
        assert (again.levels, again.budget) == (each.levels, each.budget)
        assert again.advice.tolist() == each.advice.tolist()
    counsel.save_policy(hard, tmp_path / "policy.csv")
    rows = (tmp_path / "policy.csv").read_text().splitlines()
    assert rows[0] == '"pieces_left","level","step","state","advice","probability"'
    assert rows[1:5] == ["1,0,0,0,,1", "1,0,0,1,0,1", "1,1,0,0,1,1", "1,1,0,1,,1"]


def test_a_policy_for_other_levels_is_refused():
    mdp = counsel.MDP([[0, 0]], [[0.0, 1.0]], horizon=1)
    with_memory = counsel.AdviceProblem(mdp, Human(HALF, lift=0.5, memory=Memory.pieces(1)))
    without = counsel.AdviceProblem(mdp, Human(HALF, lift=0.5))
    policy = counsel.Policy([[[0]], [[2]], [[2]]], n_actions=2, levels=3)
    with pytest.raises(CounselError, match="for 3 levels of memory; the person has 2"):
        counsel.evaluate(with_memory, policy)
    with pytest.raises(CounselError, match="for 3 levels of memory; the person has no memory"):
        counsel.evaluate(without, policy)
