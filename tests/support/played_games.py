"""The two games played on small maps and roads, with what they show."""

import re
from functools import cache

import gymnasium
import numpy as np

from counsel.worlds import GridMap

FLAPPY, CAR, NIGHT = "counsel/FlappyBird-v0", "counsel/CarDriving-v0", "counsel/NightShift-v0"
DEFER = 3  # all three worlds have three actions
UP, UP_UP, DOWN = range(3)
LEFT, STRAIGHT, RIGHT = range(3)
MAP = GridMap.parse(".....*\n......\n..#*..\n..#...\n......")
ALWAYS_DOWN = np.tile([0.0, 0.0, 1.0], (31, 1))
"""Someone who flies down unless advice moves them: what follows is certain at adherence 0 or 1."""


def flight(advice, *, adherence, mode):
    env = gymnasium.make(
        FLAPPY, map=MAP, human=ALWAYS_DOWN, adherence=adherence, render_mode=mode
    ).unwrapped
    env.reset(seed=0)
    frames = [env.render()]
    for said in advice:
        env.step(said)
        frames.append(env.render())
    return frames


def stripped(text):
    return re.sub(r"\033\[\d+m", "", text)


ALWAYS_STRAIGHT = np.tile([0.0, 1.0, 0.0], (3 * 27**3 + 1, 1))


@cache
def car_env(mode, adherence, chances):
    return gymnasium.make(
        CAR, human=ALWAYS_STRAIGHT, adherence=adherence, chances=chances, render_mode=mode
    ).unwrapped


def drive(advice, *, mode, adherence=1.0, chances=(1.0, 0.0, 0.0), seed=0):
    """Drive someone who goes straight on unless advice moves them, to the end at most."""
    env = car_env(mode, adherence, chances)
    states = [int(env.reset(seed=seed)[0])]
    frames = [env.render()]
    for said in advice:
        state, _, terminated, _, _ = env.step(said)
        states.append(int(state))
        frames.append(env.render())
        if terminated:
            break
    return frames, states


def rows_of(state):
    """Return the lane and the three rows of a state as texts, the driver's own first."""
    lane, *rows = np.unravel_index(state, (3, 27, 27, 27))
    return int(lane), ["".join(".o#"[k] for k in np.unravel_index(row, (3, 3, 3))) for row in rows]
