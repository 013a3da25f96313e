"""
What the machine says to a pilot who plays safe
===============================================

For the curious. Policy Safe dodges walls and never looks at stars. At a penalty of 0.3 per piece of
advice the machine advises where there are stars to win, and is almost silent among the walls.
:py:func:`counsel.drawing.draw_map` draws such a picture in one call; here it is drawn by hand to
show what the records contain.
"""

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np

import counsel
from counsel.drawing.palette import ADVICE, GOLD, INK, SILENCE, SILENCE_TEXT
from counsel.worlds import GridMap, make
from counsel.worlds.grid_map import MOVES, STAR, WALL

PENALTY = 0.3

# %%
# Plan at the penalty and fly 300 times. The records hold every decision: state, advice and action.
problem = make("flappy-bird/safe")
plan = counsel.solve(problem, penalty=PENALTY)
rng = np.random.default_rng(0)
flights = counsel.Simulator(problem).play(plan.policy, episodes=300, rng=rng)
advised = flights.advice != problem.defer

# %%
# The map has three phases: stars, walls, and both. Count the advice in each.
grid = GridMap.named("three-phases")
column, row = np.divmod(flights.state, grid.rows)
phase = np.digitize(column, [7, 14])
pieces = np.bincount(phase, advised) / len(flights)

# %%
# Steps that many flights share are thick: solid with a triangle where the machine advises, dashed
# with a disc where it is silent.
figure, axes = plt.subplots()
landing = row + np.array(list(MOVES.values()))[flights.action]
steps = Counter(zip(column, row, landing, advised, strict=True))
for (x, y, end, with_advice), times in steps.items():
    share = (times / len(flights)) ** 0.5
    look = {"color": ADVICE, "ls": "-"} if with_advice else {"color": SILENCE, "ls": "--"}
    axes.plot([x, x + 1], [y, end], alpha=0.2 + 0.8 * share, lw=0.6 + 2.4 * share, **look)
    axes.plot(x, y, "^" if with_advice else "o", color=look["color"], ms=2 + 6 * share, zorder=4)
walls, stars = np.argwhere(grid.cells == WALL), np.argwhere(grid.cells == STAR)
axes.scatter(*walls.T[::-1], marker="s", s=190, color=INK)
axes.scatter(*stars.T[::-1], marker="*", s=150, color=GOLD, edgecolor=INK, lw=0.4, zorder=3)
axes.text(0.35, 3.3, "silent", color=SILENCE_TEXT)
axes.text(1.3, 1.62, "advised", color=ADVICE, ha="right")
for name, at, count in zip(("stars", "walls", "both"), (3, 10, 16.5), pieces, strict=True):
    axes.text(at, 7.35, f"{name}: {count:.1f} pieces", ha="center", va="center", color=INK)
axes.vlines([6.5, 13.5], -0.6, 7.8, color=INK, lw=0.8)
axes.set(xlim=(-0.6, 19.6), ylim=(7.8, -0.6), xticks=[], yticks=[], aspect="equal")
axes.grid(visible=False)
starry = pieces[0] + pieces[2]
axes.set_title(
    f"At penalty {PENALTY}, {starry:.1f} of {pieces.sum():.1f} pieces of advice "
    "come where there are stars"
)
plt.show()
