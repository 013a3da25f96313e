"""
Planning as if everybody listened can be worse than silence
===========================================================

For a team whose system assumes that people follow its advice. Such a system advises where a match
would pay, not where advice does, and pays for each piece. Here the pilot listens more or less, and
each piece of advice costs 0.3.
"""

import matplotlib.pyplot as plt
import numpy as np

import counsel
from counsel.drawing.palette import ADVICE, HARM, SILENCE, SILENCE_TEXT
from counsel.worlds import make

PENALTY = 0.3

# %%
# For each adherence: the best plan, the plan for a person who always listens, and silence. Plans do
# not use advice that repels.
grid = np.linspace(0, 1, 21)
best, naive = np.empty_like(grid), np.empty_like(grid)
for i, theta in enumerate(grid):
    problem = make("flappy-bird/safe", adherence=theta)
    best[i] = counsel.solve(problem, penalty=PENALTY, allow_reverse=False).penalised_value
    as_if = counsel.baselines.as_if_all_listened(problem, penalty=PENALTY)
    evaluation = counsel.evaluate(problem, as_if)
    naive[i] = evaluation.value - PENALTY * evaluation.advice_count
alone = counsel.frontier(problem).vertices[0].value

# %%
# Below the adherence at which the two meet, silence is better.
even = float(np.interp(alone, naive, grid))
print(f"planning as if all listened does harm below an adherence of {even:.2f}")

# %%
# The plan for the true adherence is never worse than silence.
figure, axes = plt.subplots()
axes.fill_between(grid, np.minimum(naive, alone), alone, color=HARM, alpha=0.15)
axes.plot(grid, best, "-^", color=ADVICE, markevery=2)
axes.plot(grid, naive, "-s", color=HARM, markevery=2, markersize=5)
axes.axhline(alone, color=SILENCE, linestyle="--")
axes.text(0.98, alone + 0.1, "silence", color=SILENCE_TEXT, ha="right")
axes.text(0.5, best[10] + 0.35, "planned for the true adherence", color=ADVICE, ha="right")
axes.text(0.62, naive[12] - 0.35, "as if everybody listened", color=HARM, va="top")
axes.set(xlabel="adherence θ: how often advice is matched", ylabel="stars less penalty per flight")
axes.set_title(f"Assuming that people listen does harm below θ = {even:.2f}")
plt.show()
