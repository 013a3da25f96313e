"""
Where advice repels, naming the opposite still helps
====================================================

For anyone whose advice meets defiance. A person who takes an action half of the time without
advice, and less often when it is advised, is repelled: the adherence is below the habit. Advising
the opposite then moves them the right way. Whether that is acceptable is another question;
``allow_reverse=False`` excludes such advice.
"""

import matplotlib.pyplot as plt
import numpy as np

import counsel
from counsel.drawing.palette import ADVICE, HARM, INK, SILENCE, SILENCE_TEXT
from counsel.worlds import make

# %%
# Policy Greedy at every adherence from 0 to 1: the best advice with and without reverse advice.
grid = np.linspace(0, 1, 21)
problems = [make("flappy-bird/greedy", adherence=theta) for theta in grid]
free = np.array([counsel.solve(p).value for p in problems])
plain = np.array([counsel.solve(p, allow_reverse=False).value for p in problems])
alone = counsel.frontier(problems[0]).vertices[0].value

# %%
# The strongest habit that leaves a choice; advice with a lower adherence repels.
own = problems[0].policy
habit = own[own < 1].max()
print(problems[0].repels())

# %%
# Where the curves part, advice works by repelling.
figure, axes = plt.subplots()
axes.fill_between(grid, plain, free, color=HARM, alpha=0.15)
axes.plot(grid, free, color=HARM, marker="v", markevery=2)
axes.plot(grid, plain, color=ADVICE, marker="^", markevery=2)
axes.axhline(alone, color=SILENCE, linestyle="--")
axes.text(0.98, alone + 0.15, "silence", color=SILENCE_TEXT, ha="right")
axes.text(0.02, free[0] + 0.3, "with reverse advice", color=HARM)
axes.text(0.3, plain[6] - 0.25, "without", color=ADVICE, va="top")
axes.axvline(habit, color=INK, linewidth=1, linestyle=":")
axes.text(
    habit - 0.015, 11.8, f"below the habit of {habit:.1f}\nadvice repels", ha="right", va="top"
)
axes.set(xlabel="adherence θ: how often advice is matched", ylabel="stars per flight")
axes.set_title(f"A pilot who never listens can reach {free[0]:.1f} stars, alone {alone:.1f}")
plt.show()
