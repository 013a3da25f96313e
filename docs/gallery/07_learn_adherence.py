"""
How much somebody listens is learnt in a few flights
====================================================

For a team about to go live. The world and the habit are known; the adherence is learnt from what
people do with the advice. Two choices decide how much learning costs: optimism (UCB-AD) or
posterior sampling (Thompson), and one adherence per advice in all states (pooled) or one in each
state.
"""

import matplotlib.pyplot as plt
import numpy as np

import counsel
from counsel.drawing.palette import ADVICE, DARK_GOLD
from counsel.estimate.intervals import band
from counsel.worlds import make

STYLES = (ADVICE, "-^"), (DARK_GOLD, "-D"), (ADVICE, "--^"), (DARK_GOLD, "--D")

# %%
# Each learner knows the world and the habit. With ``groups=[0, 1, 2]`` each of the three pieces of
# advice has the same adherence in all states (pooled).
problem = make("flappy-bird/safe")
known, shared = problem.without_adherence(), [0, 1, 2]
learners = {
    "UCB-AD, pooled": lambda rng: counsel.UCBAD(known, groups=shared),
    "Thompson, pooled": lambda rng: counsel.Thompson(known, groups=shared, rng=rng),
    "UCB-AD": lambda rng: counsel.UCBAD(known),
    "Thompson": lambda rng: counsel.Thompson(known, rng=rng),
}

# %%
# Eight runs of a thousand flights each, with a new plan every ten flights.
simulator = counsel.Simulator(problem)
runs = {name: [] for name in learners}
for name, build in learners.items():
    for seed in range(8):
        rng = np.random.default_rng(seed)
        records = counsel.learn(build(rng), simulator, episodes=1000, every=10, records=50, rng=rng)
        runs[name].append([(record.episode, record.regret) for record in records])
runs = {name: np.array(rows) for name, rows in runs.items()}

# %%
# Lines are means, bands their 95 % intervals.
figure, axes = plt.subplots()
for (name, rows), (colour, style) in zip(runs.items(), STYLES, strict=True):
    x, y = rows[0, :, 0], rows[:, :, 1]
    axes.fill_between(x, *np.maximum(band(y), 0), color=colour, alpha=0.18, lw=0)
    axes.plot(x, y.mean(axis=0), style, color=colour, markevery=10)
    axes.text(1015, max(y[:, -1].mean(), 4), name, color=colour, va="center")
axes.set(xlabel="flights", ylabel="regret (stars lost so far)", xlim=(0, 1320), ylim=(0, None))
axes.set_xticks(range(0, 1001, 200))
last = {name: rows[:, -1, 1].mean() for name, rows in runs.items()}
axes.set_title(
    f"Learning costs UCB-AD {last['UCB-AD, pooled']:.1f} stars when pooled over states, "
    f"else {last['UCB-AD']:.0f}"
)
plt.show()
