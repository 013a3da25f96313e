"""
Knowing nothing at first: learning person and world separately
==============================================================

For researchers. Neither the world nor the person is known, only the numbers of steps, states and
actions. RFE learns where each piece of advice leads, as one black box; Structured learns the world,
the habit and the adherence separately, and every episode informs all three.
"""

import matplotlib.pyplot as plt
import numpy as np

import counsel
from counsel.drawing.palette import ADVICE, DARK_GOLD, INK
from counsel.estimate.intervals import band
from counsel.worlds import make

STYLES = (ADVICE, "^"), (DARK_GOLD, "D"), (INK, "s")

# %%
# A small map where two pieces of advice lead past a wall. The learners know only ``problem.shape``;
# the pooled learner also knows that each advice has the same adherence in all states.
problem = make("flappy-bird-budget/greedy")
shape, simulator = problem.shape, counsel.Simulator(problem)
learners = {
    "Structured, pooled": lambda rng: counsel.Structured(shape, groups=[0, 1, 2], rng=rng),
    "Structured": lambda rng: counsel.Structured(shape, rng=rng),
    "RFE": lambda rng: counsel.RFE(shape, rng=rng),
}

# %%
# Twenty runs each; every ten episodes, the value gap of the advice at that point.
runs = {name: [] for name in learners}
for name, build in learners.items():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        records = counsel.learn(build(rng), simulator, episodes=240, every=10, records=24, rng=rng)
        runs[name].append([(record.episode, record.value_gap) for record in records])
runs = {name: np.array(rows) for name, rows in runs.items()}

# %%
# Lines are means, bands their 95 % intervals; near the best means a mean gap of at most 0.05.
figure, axes = plt.subplots()
for (name, rows), (colour, mark) in zip(runs.items(), STYLES, strict=True):
    x, y = rows[0, :, 0], rows[:, :, 1]
    axes.fill_between(x, *np.maximum(band(y), 0), color=colour, alpha=0.2, lw=0)
    axes.plot(x, y.mean(axis=0), color=colour, marker=mark, markevery=4, label=name)
axes.set(xlabel="episodes", ylabel="value gap (stars)", xlim=(0, 240), ylim=(0, None))
axes.legend(labelcolor="linecolor")
far = {name: rows[:, :, 1].mean(axis=0) > 0.05 for name, rows in runs.items()}
last = {name: x[np.flatnonzero(over)[-1]] for name, over in far.items()}
axes.set_title(
    f"Structured is near the best after {last['Structured']:.0f} episodes, "
    f"RFE after {last['RFE']:.0f}"
)
plt.show()
