"""How a level moves from step to step: what counts as silence, a match and a refusal."""

import numpy as np
import pytest

from counsel import Memory
from counsel.service.core.level_moves import (
    MATCH,
    REFUSAL,
    SILENCE,
    Happening,
    LevelMoves,
    draw_at,
)
from tests.support.each import each
from tests.support.tiring_people import RANDOM


@each(
    ("happening", "kind"),
    [
        (Happening(None), SILENCE),
        (Happening(None, action=1, seen=True), SILENCE),
        (Happening(1, action=1, seen=True), MATCH),
        (Happening(1, action=0, seen=True), REFUSAL),
        (Happening(1), REFUSAL),  # nobody has answered yet
        (Happening(1, action=1, seen=False), SILENCE),
    ],
)
def test_what_happened_counts_as_silence_a_match_or_a_refusal(happening, kind):
    assert happening.kind == kind


def test_steps_that_nobody_asked_about_are_silent():
    moves = LevelMoves(Memory.since(3))
    assert moves.follow("e", None, {1: Happening(0, 0, seen=True)}, 4) == [3, 3, 0, 1, 2]


def test_a_level_that_the_memory_does_not_have_is_the_start():
    moves = LevelMoves(RANDOM)
    assert [moves.first(level) for level in (None, -1, 0, 2, 3)] == [1, 1, 0, 2, 1]


def test_draws_follow_from_the_episode_and_the_step_alone():
    assert draw_at("a", 1) == draw_at("a", 1)
    assert len({draw_at(episode, step) for episode in "ab" for step in range(50)}) == 100
    drawn = np.array([draw_at("a", step) for step in range(4000)])
    assert drawn.min() >= 0.0
    assert drawn.max() < 1.0
    assert drawn.mean() == pytest.approx(0.5, abs=0.02)


@each("kind", [SILENCE, MATCH, REFUSAL])
def test_levels_are_drawn_with_the_probabilities_of_the_matrix(kind):
    moves, n = LevelMoves(RANDOM), 4000
    for level in range(3):
        reached = [moves.after(level, kind, f"episode {i}", 3) for i in range(n)]
        shares = np.bincount(reached, minlength=3) / n
        assert shares == pytest.approx(RANDOM.after[kind, level], abs=0.035)
        assert not shares[RANDOM.after[kind, level] == 0.0].any()
