"""
Knowing nothing at first: person and world are learnt apart
===========================================================

For researchers. Neither the world nor the person is known, only how many steps, states and actions
there are. RFE learns what each piece of advice leads to, as one black box; Structured learns the
world, the habit and the adherence apart, so that every episode teaches all three.
"""

import matplotlib.pyplot as plt
import numpy as np

import counsel
from counsel.estimate.intervals import band
from counsel.worlds import make

LOOKS = ("#0B7A75", "^"), ("#9A6B0F", "D"), ("#1F2430", "s")

# %%
# A small map where two pieces of advice lead past a wall. The learners get ``problem.shape`` and
# nothing else; the pooled one also that each piece of advice has one adherence in all states.
problem = make("flappy-bird-budget/greedy")
shape, simulator = problem.shape, counsel.Simulator(problem)
learners = {
    "Structured, pooled": lambda rng: counsel.Structured(shape, groups=[0, 1, 2], rng=rng),
    "Structured": lambda rng: counsel.Structured(shape, rng=rng),
    "RFE": lambda rng: counsel.RFE(shape, rng=rng),
}

# %%
# Twenty runs each; every ten episodes, how far is what it would advise now from the best?
runs = {name: [] for name in learners}
for name, build in learners.items():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        told = counsel.learn(build(rng), simulator, episodes=240, every=10, records=24, rng=rng)
        runs[name].append([(record.episode, record.value_gap) for record in told])
runs = {name: np.array(told) for name, told in runs.items()}

# %%
# Lines are means, bands their 95 % intervals; near the best is a mean gap of at most 0.05.
figure, axes = plt.subplots()
for (name, told), (colour, mark) in zip(runs.items(), LOOKS, strict=True):
    x, y = told[0, :, 0], told[:, :, 1]
    axes.fill_between(x, *np.maximum(band(y), 0), color=colour, alpha=0.2, lw=0)
    axes.plot(x, y.mean(axis=0), color=colour, marker=mark, markevery=4, label=name)
axes.set(xlabel="episodes", ylabel="value gap (stars)", xlim=(0, 240), ylim=(0, None))
axes.legend(labelcolor="linecolor")
far = {name: told[:, :, 1].mean(axis=0) > 0.05 for name, told in runs.items()}
last = {name: x[np.flatnonzero(over)[-1]] for name, over in far.items()}
axes.set_title(
    f"Structured is near the best after {last['Structured']:.0f} episodes, "
    f"RFE after {last['RFE']:.0f}"
)
plt.show()
