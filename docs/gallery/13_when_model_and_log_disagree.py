"""
When the model and the log disagree
===================================

For readers who wonder whom to believe. A model compares *actions*: acting pays, advice makes people
act, so advice must pay. If advice annoys people, that is wrong, and the model cannot see it.
Episodes weighted by their *advice* can, because advice was random. :py:func:`counsel.fit` tests
whether decisions with advice turn out otherwise than those without, in the same state and after the
same action; where they do, the values of the model are withheld.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import counsel
from counsel.logs import evaluate_policy

TRUTH, MODEL, EPISODES = "#1F2430", "#C8553D", "#0B7A75"
ANNOYANCE = np.linspace(0.0, 0.4, 9)


# %%
# Alone 30 % walk, advised 70 %. Walking brings 0.5; being told costs something, whatever one does.
def log_of(cost: float, n: int = 1500) -> pd.DataFrame:
    rng = np.random.default_rng(round(1000 * cost))
    told = rng.random(n) < 0.5
    walks = rng.random(n) < np.where(told, 0.7, 0.3)
    reward = 0.5 * walks - cost * told + rng.normal(0.0, 0.3, n)
    columns = {"episode": range(n), "step": 0, "state": "home", "reward": reward}
    columns |= {"advice": np.where(told, "walk", None), "action": np.where(walks, "walk", "stay")}
    return pd.DataFrame(columns | {"advice_probability": 0.5})


# %%
# What always advising brings beyond silence: in the model, and by weighted episodes.
promised, weighted, flagged = [], [], []
for cost in ANNOYANCE:
    log = log_of(cost)
    fit = counsel.fit(log)
    always = counsel.Policy([[fit.tally.actions.index("walk")]], n_actions=2)
    never = counsel.Policy.never(horizon=1, n_states=1, n_actions=2)
    values = [counsel.evaluate(fit.problem, policy).value for policy in (always, never)]
    promised.append(values[0] - values[1])
    gain = evaluate_policy(log, always, fitted=fit).policy.beyond_silence.doubly_robust
    weighted.append((gain.value, gain.value - gain.low, gain.high - gain.value))
    flagged.append(not fit.is_trusted)

# %%
# From the first logs on in which advice costs something, the test of the model fails.
figure, axes = plt.subplots()
middle, *ends = np.array(weighted).T
axes.plot(ANNOYANCE, 0.4 * 0.5 - ANNOYANCE, color=TRUTH, label="truth")
axes.plot(ANNOYANCE, promised, "o--", color=MODEL, label="in the model")
axes.errorbar(ANNOYANCE, middle, ends, fmt="^", color=EPISODES, label="weighted episodes [95 %]")
axes.axvspan(ANNOYANCE[flagged.index(True)], 0.41, color=MODEL, alpha=0.1, lw=0)
axes.text(0.4, 0.27, "the log contradicts the model", color=MODEL, ha="right")
axes.axhline(0.0, color="#B9BDC7", lw=1)
axes.legend(frameon=False, loc="lower left")
axes.set(xlabel="what being told costs", ylabel="reward that advice adds", ylim=(-0.3, 0.32))
axes.set_title("Whatever advice costs, the model promises a gain")
plt.show()
