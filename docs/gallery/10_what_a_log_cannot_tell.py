"""
The longer the episode, the less a log can tell
===============================================

For readers who want to know what another policy would have been worth. Episodes of a log are
weighted by how much likelier the policy makes their advice. Weights of many steps multiply, so soon
a few episodes carry all the weight. The effective sample size counts the episodes that remain; if
it is below 50, :py:func:`counsel.logs.evaluate_policy` returns the reason instead of a number.
"""

import matplotlib.pyplot as plt
import numpy as np

import counsel
from counsel.estimate.intervals import band
from counsel.logs.evaluate_log import LEAST_SAMPLE
from counsel.worlds.ward import ward

LOOKS = ("#9A6B0F", "D"), ("#1F2430", "s"), ("#0B7A75", "^")
HARM, EPISODES, STEPS = "#C8553D", 5000, 16

# %%
# A ward logs shifts of up to sixteen rounds: silent six times in ten, else any alert by chance.
# The policy to evaluate is the best at a penalty of 0.05, or a mixture of that and the rule.
problem = ward(horizon=STEPS)
rule = np.broadcast_to([0.4 / 3] * 3 + [0.6], (STEPS, problem.n_states, 4))
best = np.eye(4)[counsel.solve(problem, penalty=0.05).policy.advice]
mixtures = {"a quarter of the way": 0.25, "halfway": 0.5, "the best policy": 1.0}


# %%
# The weight of an episode after each round is the product of the ratios so far.
def effective(share: float, seed: int) -> np.ndarray:
    logged = counsel.Policy.from_probabilities(rule)
    rng = np.random.default_rng(seed)
    log = counsel.Simulator(problem).play(logged, episodes=EPISODES, rng=rng)
    wanted = (1 - share) * rule + share * best
    ratios = np.ones((EPISODES, STEPS))
    ratios[log.episode, log.step] = (wanted / rule)[log.step, log.state, log.advice]
    weights = ratios.cumprod(axis=1)
    return weights.sum(axis=0) ** 2 / np.maximum((weights**2).sum(axis=0), 1e-300)


left = {name: np.array([effective(x, seed) for seed in range(20)]) for name, x in mixtures.items()}

# %%
# The axis is logarithmic because samples shrink by a factor with every round. Lines are
# geometric means over twenty logs, bands their 95 % intervals.
figure, axes = plt.subplots()
rounds, answerable = np.arange(1, STEPS + 1), {}
for (name, sample), (colour, mark) in zip(left.items(), LOOKS, strict=True):
    logs = np.log(np.maximum(sample, 1))
    mean = np.exp(logs.mean(axis=0))
    answerable[name] = int((mean >= LEAST_SAMPLE).sum())
    axes.fill_between(rounds, *np.exp(band(logs)), color=colour, alpha=0.2, lw=0)
    axes.plot(rounds, mean, color=colour, marker=mark, markersize=5)
    axes.text(STEPS + 0.3, mean[-1], name, color=colour, va="center")
axes.axhspan(0.6, LEAST_SAMPLE, color=HARM, alpha=0.12, lw=0)
axes.text(1, 0.9, f"below {LEAST_SAMPLE:.0f}: the log cannot answer", color=HARM)
axes.set(yscale="log", ylim=(0.6, EPISODES), xlim=(0.6, STEPS + 5), xticks=rounds[1::2])
axes.set(xlabel="rounds into the shift", ylabel=f"effective sample of {EPISODES:,} shifts")
axes.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
axes.minorticks_off()
axes.set_title(
    f"The log can judge the best policy only up to {answerable['the best policy']} rounds"
)
plt.show()
