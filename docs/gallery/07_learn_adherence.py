"""
How much somebody listens is learnt in a few flights
====================================================

For a team about to go live. The world and the habit are known, the adherence is not: it is learnt
from what people do with the advice. Two choices decide how much is lost on the way: to be
optimistic (UCB-AD) or to act on a draw from the belief (Thompson), and to take the adherence of a
piece of advice for one number in all states (pooled) or for another in each.
"""

import matplotlib.pyplot as plt
import numpy as np

import counsel
from counsel.estimate.intervals import band
from counsel.worlds import make

LOOKS = ("#0B7A75", "-^"), ("#9A6B0F", "-D"), ("#0B7A75", "--^"), ("#9A6B0F", "--D")

# %%
# Each learner is told the world and the habit. ``groups=[0, 1, 2]`` says that each of the three
# pieces of advice has one adherence in all states: pooled.
problem = make("flappy-bird/safe")
known, shared = problem.without_adherence(), [0, 1, 2]
learners = {
    "UCB-AD, pooled": lambda rng: counsel.UCBAD(known, groups=shared),
    "Thompson, pooled": lambda rng: counsel.Thompson(known, groups=shared, rng=rng),
    "UCB-AD": lambda rng: counsel.UCBAD(known),
    "Thompson": lambda rng: counsel.Thompson(known, rng=rng),
}

# %%
# Eight runs of a thousand flights each, planned anew after every ten.
simulator = counsel.Simulator(problem)
runs = {name: [] for name in learners}
for name, build in learners.items():
    for seed in range(8):
        rng = np.random.default_rng(seed)
        told = counsel.learn(build(rng), simulator, episodes=1000, every=10, records=50, rng=rng)
        runs[name].append([(record.episode, record.regret) for record in told])
runs = {name: np.array(told) for name, told in runs.items()}

# %%
# Lines are means, bands their 95 % intervals.
figure, axes = plt.subplots()
for (name, told), (colour, look) in zip(runs.items(), LOOKS, strict=True):
    x, y = told[0, :, 0], told[:, :, 1]
    axes.fill_between(x, *np.maximum(band(y), 0), color=colour, alpha=0.18, lw=0)
    axes.plot(x, y.mean(axis=0), look, color=colour, markevery=10)
    axes.text(1015, max(y[:, -1].mean(), 4), name, color=colour, va="center")
axes.set(xlabel="flights", ylabel="regret (stars lost so far)", xlim=(0, 1320), ylim=(0, None))
axes.set_xticks(range(0, 1001, 200))
last = {name: told[:, -1, 1].mean() for name, told in runs.items()}
axes.set_title(
    f"Pooled over states UCB-AD loses {last['UCB-AD, pooled']:.1f} stars while it learns, "
    f"else {last['UCB-AD']:.0f}"
)
plt.show()
