"""
How to read a self-check
========================

For readers who fit a model to a log. Every fit plays the advice of the log in its model and
compares what comes of it with the log. Here games last eight to twelve rounds, whatever happens in
them. A model that pools all rounds believes that a game may end at any time; the self-check sees
it, and :py:func:`counsel.fit` fits the ends of games round by round instead.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import counsel
from counsel.logs.estimate import estimate
from counsel.logs.self_check import logged_rule
from counsel.report.findings import model_and_log

LOG, POOLED, REPAIRED = "#1F2430", "#C8553D", "#0B7A75"

# %%
# 600 games: raising wins half of the rounds, holding two in five; advice to raise comes by chance.
rng, rows = np.random.default_rng(0), []
for game in range(600):
    rounds = rng.integers(8, 13)
    for step in range(rounds):
        advice = rng.choice(["raise", None])
        action = "raise" if advice and rng.random() < 0.5 else rng.choice(["raise", "hold"])
        won = float(rng.random() < (0.5 if action == "raise" else 0.4))
        rows.append((game, step, "table", advice, action, won, step == rounds - 1))
names = ["episode", "step", "state", "advice", "action", "reward", "terminated"]
log = pd.DataFrame(rows, columns=names)
fit = counsel.fit(log)
print(*model_and_log(fit), sep="\n")

# %%
# How many games last how long: in the log, in the model that pools all rounds, and in the model
# that was used instead.
pooled = estimate(replace(fit.tally, endings_by_step=False), fit.sharing).problem
lasting = {"log": log.groupby("step").episode.nunique().to_numpy() / log.episode.nunique()}
for name, problem in (("pooled", pooled), ("round by round", fit.problem)):
    played = counsel.evaluate(problem, logged_rule(fit.tally, problem))
    lasting[name] = played.occupancy[:, : len(fit.tally.states)].sum(axis=1)

# %%
# A share of 600 games is known to 0.04; the pooled model is off by up to half of all games.
figure, axes = plt.subplots()
looks = (LOG, "s", ""), (POOLED, "o", "--"), (REPAIRED, "^", "-")
rounds = np.arange(1, fit.tally.horizon + 1)
for (name, share), (colour, mark, line) in zip(lasting.items(), looks, strict=True):
    size = 9 if name == "log" else 5
    axes.plot(rounds, share, mark + line, color=colour, markersize=size, label=name)
axes.legend(frameon=False)
axes.set(xlabel="round", ylabel="share of games that last so long", ylim=(0, 1.05))
value = fit.pooled.value
axes.set_title(
    f"Pooled rounds promise {value.model:.1f} wins per game; the log has {value.logged:.1f}"
)
plt.show()
