"""Levels of a memory in what a learner observes: refused where they cannot come from it."""

from dataclasses import replace

import numpy as np
import pytest

import counsel
from counsel.learning.levels import check_memory, levels_of


def episodes(level, *, advice=(1, 2), action=(1, 0)):
    """Return one episode of two decisions: a match, then silence."""
    return counsel.simulate.Episodes(
        first=np.array([0, 2]),
        state=np.zeros(2, dtype=np.int32),
        advice=np.array(advice, dtype=np.int16),
        action=np.array(action, dtype=np.int16),
        reward=np.zeros(2),
        next_state=np.zeros(2, dtype=np.int32),
        terminated=np.array([False]),
        defer=2,
        level=None if level is None else np.array(level, dtype=np.int16),
    )


def test_levels_that_follow_one_another_are_taken():
    assert levels_of(episodes([0, 1]), counsel.Memory.pieces(2)).tolist() == [0, 1]


def test_an_episode_may_begin_on_any_level():
    """Levels may be carried over from one episode of a person to the next."""
    assert levels_of(episodes([1, 2]), counsel.Memory.pieces(2)).tolist() == [1, 2]


def test_levels_of_different_episodes_do_not_follow_one_another():
    batch = replace(episodes([1, 0]), first=np.array([0, 1, 2]), terminated=np.array([True, False]))
    assert levels_of(batch, counsel.Memory.pieces(2)).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("level", "said"),
    [
        (None, "the episodes have no levels but the learner is for a memory of 3 levels"),
        ([0, 3], r"level of decision 1 is 3; the memory of the learner \(pieces=2\) has levels 0"),
        ([0, 0], "level of decision 1 is 0, which cannot follow level 0 after a match"),
    ],
)
def test_levels_that_the_memory_cannot_have_are_refused(level, said):
    with pytest.raises(counsel.CounselError, match=said):
        levels_of(episodes(level), counsel.Memory.pieces(2))


class Knows:
    """A learner that knows a memory."""

    def __init__(self, memory):
        self.memory = memory


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        (None, r"for a memory of 4 levels \(pieces=3\); the person has no memory"),
        (counsel.Memory.pieces(2), r"the person has a memory of 3 \(pieces=2\)"),
        (
            counsel.Memory.since(3),
            r"after_silence\[m=0, m′=0\] is 1 in the memory of the learner \(pieces=3\) and 0 in "
            r"that of the person \(since=3\)",
        ),
    ],
)
def test_a_learner_for_another_memory_is_refused(memory, said):
    with pytest.raises(counsel.CounselError, match=said):
        check_memory(Knows(counsel.Memory.pieces(3)), memory)


def test_a_learner_without_a_memory_may_meet_any_person():
    check_memory(Knows(None), counsel.Memory.pieces(2))
    check_memory(object(), counsel.Memory.pieces(2))
