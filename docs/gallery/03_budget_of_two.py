"""
What a budget of two is worth
=============================

For a team that may send two alerts per shift. An *average* budget spends more in a bad night and
less in a good one; a *hard* budget never sends a third alert. The difference is the price of that
guarantee. The world is the night shift: a nurse who tires and a patient who may slip.
"""

import matplotlib.pyplot as plt
import numpy as np

import counsel
from counsel.drawing.palette import ADVICE, DARK_GOLD, INK, SILENCE, SILENCE_TEXT
from counsel.worlds import make

# %%
# The frontier covers every average budget; hard budgets are planned one by one.
problem = make("night-shift")
front = counsel.frontier(problem)
alone, most = front.vertices[0], front.vertices[-1]
budgets = np.arange(1, 9)
average = np.array([front.at_budget(n).value for n in budgets])
hard = np.array([counsel.solve(problem, budget=int(n), hard=True).value for n in budgets])

# %%
# Both as a share of the benefit of unlimited advice.
benefit = most.value - alone.value
print("on average:", ((average - alone.value) / benefit).round(2))
print("hard:      ", ((hard - alone.value) / benefit).round(2))

# %%
# Both budgets beside the frontier.
figure, axes = plt.subplots()
curve = np.array([(vertex.advice_count, vertex.value) for vertex in front.vertices])
axes.plot(*curve.T, color=ADVICE)
axes.plot(budgets, average, "^", color=ADVICE, markersize=8)
axes.plot(budgets, hard, "s", color=DARK_GOLD, markersize=7, mfc="white", mew=1.6)
axes.plot(0, alone.value, "o", color=SILENCE, markersize=9, clip_on=False, zorder=5)
axes.plot([2, 2], [hard[1], average[1]], color=INK, lw=1, zorder=1)
axes.text(2.2, hard[1], f"{average[1] - hard[1]:.2f} less", color=DARK_GOLD, va="center")
axes.text(0.2, alone.value, "no advice", color=SILENCE_TEXT, va="center")
axes.text(4.2, average[3] + 0.04, "average budget", color=ADVICE)
axes.text(4.2, hard[3] - 0.06, "hard budget: never more", color=DARK_GOLD)
axes.set(xlabel="budget: pieces of advice per night", ylabel="reward per night", xlim=(-0.3, 9))
axes.set_ylim(top=most.value + 0.06)
two = (np.array([average[1], hard[1]]) - alone.value) / benefit
axes.set_title(f"Two alerts keep {two[0]:.0%} of the benefit on average, {two[1]:.0%} hard")
plt.show()
