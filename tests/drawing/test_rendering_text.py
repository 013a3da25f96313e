"""Episodes of the two games as text."""

import gymnasium
import pytest

from counsel.worlds import GridMap, Uniform
from tests.support.played_games import (
    DEFER,
    DOWN,
    FLAPPY,
    LEFT,
    RIGHT,
    UP,
    UP_UP,
    drive,
    flight,
    rows_of,
    stripped,
)


def test_a_flight_as_text_shows_the_map_and_the_bird():
    (text,) = flight([], adherence=1.0, mode="ansi")
    assert text == "step 0 of 6 · reward 0\n.....*\n......\n>.#*..\n..#...\n......\n"


def test_advice_that_is_taken_is_a_full_triangle_and_silence_a_disc():
    text = flight([UP, UP, DEFER], adherence=1.0, mode="ansi")[-1]
    caption, *board = stripped(text).splitlines()
    assert board == ["..●..*", ".▲.>..", "▲.#*..", "..#...", "......"]
    assert caption == "step 3 of 6 · reward 0 · ● silent, did Down"
    second = flight([UP, UP, DEFER], adherence=1.0, mode="ansi")[2]
    assert stripped(second).startswith("step 2 of 6 · reward 0 · ▲ advised Up, did Up\n")


def test_advice_that_is_not_taken_is_a_hollow_triangle():
    frames = flight([UP, UP_UP, DEFER], adherence=0.0, mode="ansi")
    caption, *board = stripped(frames[-1]).splitlines()
    # Down from the last row is out of the map: there is no bird any more.
    assert board == [".....*", "......", "△.#*..", ".△#...", "..●..."]
    assert stripped(frames[2]).startswith("step 2 of 6 · reward 0 · △ advised Up-Up, did Down\n")
    assert caption == "step 3 of 6 · reward 0 · ● silent, did Down"


def test_a_person_certain_of_an_action_takes_it_also_when_it_is_advised():
    # Adherence 0, but there is nothing else they would do: the advice changes nothing.
    board = stripped(flight([DOWN, DEFER], adherence=0.0, mode="ansi")[-1]).splitlines()[1:]
    assert board == [".....*", "......", "▲.#*..", ".●#...", "..>..."]


def test_a_new_episode_is_shown_from_its_beginning():
    env = gymnasium.make(
        FLAPPY, map=GridMap.parse("*..\n"), human="safe", adherence=1.0, render_mode="ansi"
    ).unwrapped
    env.reset(seed=0)
    env.step(UP)
    assert stripped(env.render()) == "step 1 of 3 · reward 1 · ▲ advised Up, did Up\n▲..\n"
    env.reset(seed=0)
    assert env.render() == "step 0 of 3 · reward 0\n>..\n"


def test_colours_repeat_what_the_signs_say():
    green, red, plain = "\033[32m", "\033[31m", "\033[0m"
    text = flight([UP, UP, DEFER], adherence=1.0, mode="ansi")[-1]
    caption, board = text.split("\n", 1)
    assert "\033" not in caption
    assert board.count(f"{green}▲{plain}") == board.count("▲") == 2
    assert board.count(f"{red}●{plain}") == board.count("●") == 1
    assert board.count("\033") == 6
    hollow = flight([UP], adherence=0.0, mode="ansi")[-1].split("\n", 1)[1]
    assert hollow.count(f"{green}△{plain}") == hollow.count("△") == 1


@pytest.mark.parametrize(
    ("text", "advice", "expected"),
    [
        # Stars the bird does not touch pay nothing.
        ("...\n.*.\n*..", [DOWN, UP], "reward 0 · ▲ advised Up, did Up\n...\n▲*>\n*▲.\n"),
        (".*.\n...\n...", [UP, DOWN], "reward 1 · ▲ advised Down, did Down\n.▲.\n▲.>\n...\n"),
    ],
)
def test_stars_are_counted_where_the_bird_was(text, advice, expected):
    env = gymnasium.make(
        FLAPPY, map=GridMap.parse(text), adherence=1.0, human=Uniform(), render_mode="ansi"
    ).unwrapped
    env.reset(seed=0)
    for said in advice:
        env.step(said)
    assert stripped(env.render()) == f"step 2 of 3 · {expected}"


def test_a_road_as_text_shows_the_driver_and_what_was_said():
    frames, _ = drive([LEFT, DEFER, LEFT], mode="ansi")
    assert [stripped(frame) for frame in frames] == [
        "step 0 of 10 · reward 0\n...\n...\n.^.\n",
        "step 1 of 10 · reward 1 · ▲ advised Left, did Left\n...\n...\n^.. ▲\n",
        "step 2 of 10 · reward 2 · ● silent, did Straight\n...\n...\n^.. ●\n",
        # Off the road: the last road is shown, with the crash on it.
        "step 3 of 10 · reward 3 · ▲ advised Left, did Left\n...\n...\nx.. ▲\n",
    ]
    assert "\033[32m▲\033[0m" in frames[1]
    assert "\033[31m●\033[0m" in frames[2]
    (_, frame), _ = drive([LEFT], adherence=0.0, mode="ansi")
    assert stripped(frame).endswith("△ advised Left, did Straight\n...\n...\n.^. △\n")
    assert "\033[32m△\033[0m" in frame


def test_a_road_as_text_is_the_road_of_the_state():
    shown = 0
    for seed in range(6):
        frames, states = drive(
            [RIGHT, DEFER, LEFT, DEFER], mode="ansi", chances=(0.6, 0.3, 0.1), seed=seed
        )
        for frame, state in zip(frames, states, strict=True):
            if state < 3 * 27**3:
                lane, (here, ahead, beyond) = rows_of(state)
                _, *lines = stripped(frame).splitlines()
                assert lines[:2] == [beyond, ahead]
                assert lines[2][:3] == here[:lane] + "^" + here[lane + 1 :]
                shown += 1
    assert shown > 12
