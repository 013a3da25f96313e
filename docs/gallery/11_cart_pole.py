"""
Learning to help somebody balance a pole, in an environment nobody modelled
===========================================================================

For researchers with an environment of their own. CartPole is a Gymnasium environment: its
transitions are not known, and its observations are real numbers. A clumsy person pushes the cart
too late, and takes advice with probability 0.8. Counsel learns, from 600 attempts, when to speak.
"""

import gymnasium
import matplotlib.pyplot as plt
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.wrappers import TransformObservation

import counsel
from counsel.drawing.palette import ADVICE, DARK_GOLD, SILENCE_TEXT
from counsel.estimate.intervals import band
from counsel.learning import learn_live
from counsel.simulate import Environment
from counsel.worlds import AdviceWrapper

STEPS, BLOCK, BLOCKS, SEEDS = 60, 50, 12, 5

# %%
# The person reacts only once the pole leans to the right by 0.05 radians (3°). The machine sees
# the lean and how fast it changes, each in four intervals: 16 cells.


def clumsy(seen: np.ndarray) -> int:
    return int(seen[2] > 0.05)  # 1 pushes to the right, 0 to the left


def cell(seen: np.ndarray) -> int:
    lean = np.searchsorted([-0.05, 0, 0.05], seen[2])
    return int(4 * lean + np.searchsorted([-0.5, 0, 0.5], seen[3]))


person = AdviceWrapper(gymnasium.make("CartPole-v1"), clumsy, adherence=0.8)
env = TransformObservation(person, cell, Discrete(16))
environment = Environment(env, horizon=STEPS, reward_range=(0, 1))

# %%
# Five learners, each from nothing: 600 attempts in blocks of 50. Structured explores, so its
# attempts are not yet its best advice; ten more attempts before each block measure that.
best, tried = np.zeros((SEEDS, BLOCKS + 1)), np.zeros((SEEDS, BLOCKS))
for seed in range(SEEDS):
    rng = np.random.default_rng(seed)
    learner = counsel.Structured(environment.shape, groups=[0, 1], rng=rng)
    for block in range(BLOCKS + 1):
        best[seed, block] = environment.play(learner.policy, episodes=10, rng=rng).lengths.mean()
        if block < BLOCKS:
            records = learn_live(learner, environment, episodes=BLOCK, rng=rng)
            tried[seed, block] = np.mean([record.steps for record in records])

# %%
# Lines are means over the five learners, bands 95 % intervals, cut at 60 steps, where attempts end.
figure, axes = plt.subplots()
episodes = BLOCK * np.arange(BLOCKS + 1)
for x, y, style, colour, name in (
    (episodes, best, "-^", ADVICE, "its best advice so far"),
    (episodes[:-1] + BLOCK / 2, tried, "--D", DARK_GOLD, "while it explores"),
):
    axes.fill_between(x, *np.clip(band(y), 0, STEPS), color=colour, alpha=0.2, lw=0)
    axes.plot(x, y.mean(axis=0), style, color=colour, label=name)
axes.axhline(best[:, 0].mean(), color=SILENCE_TEXT, ls=":", label="the person alone")
axes.set(xlabel="attempts", ylabel="steps until the pole falls", ylim=(0, 64))
axes.legend(labelcolor="linecolor", loc="lower right")
axes.set_title(
    f"Advice keeps the pole up for {best[:, -1].mean():.0f} of {STEPS} steps, "
    f"alone it falls after {best[:, 0].mean():.0f}"
)
plt.show()
