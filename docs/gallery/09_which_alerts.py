"""
Which alerts to keep when there is room for one a shift
=======================================================

For a team with a table of past decisions. A ward sends one and a half alerts a shift and has room
for one. Fit the log, plan for one alert a shift, and see which alerts survive. An alert survives
because it is taken *and* because taking it matters, so the one with the largest lift may still go.
"""

import matplotlib.pyplot as plt
import numpy as np

import counsel
from counsel.logs import plan
from counsel.worlds.ward import ward_log

ADVICE, SILENCE, INK = "#0B7A75", "#8A8178", "#1F2430"

# %%
# The log that ``counsel demo-log`` writes, here two thousand shifts of it.
fit = counsel.fit(ward_log(shifts=2000, rng=np.random.default_rng(0)))
kept = plan(fit, budget=1)
print(fit)
print(f"{fit.logged_pieces:.2f} alerts a shift, planned {kept.plan.advice_count:.2f}")

# %%
# How often each alert was seen in each state, its lift with its 95 % interval, and whether the plan
# for one alert a shift still gives it. Alerts seen less than twenty times are left out.
found, states, alerts = fit.estimates, fit.tally.states, fit.tally.actions
seen, lift, policy = found.given[0], found.lift[0], kept.plan.policy
pairs = sorted(zip(*np.nonzero(seen >= 20), strict=True), key=lambda pair: lift[pair])
steps = range(fit.problem.horizon)
alive = [(s, b) for s, b in pairs if any(b in policy.at(h, int(s)) for h in steps)]

# %%
# Lift alone does not decide: an alert must also ask for something that matters there.
figure, axes = plt.subplots()
for y, (s, b) in enumerate(pairs):
    colour, mark, told = (ADVICE, "^", "kept") if (s, b) in alive else (SILENCE, "o", "")
    low, high = found.lift_low[0, s, b], found.lift_high[0, s, b]
    axes.hlines(y, low, high, color=colour, lw=2)
    axes.plot(lift[s, b], y, mark, color=colour, markersize=9)
    axes.text(high + 0.015, y, told, color=colour, va="center")
    axes.text(1.03, y, f"seen {seen[s, b]:,.0f} times", color=INK, va="center")
axes.set_yticks(range(len(pairs)), [f"{states[s]}: {alerts[b]}" for s, b in pairs])
axes.set(xlabel="lift: share moved of those who would have done otherwise", xlim=(-0.06, 1.37))
axes.set_xticks(np.linspace(0, 1, 6))
axes.grid(axis="y", visible=False)
names = " or ".join(sorted({alerts[b] for _, b in alive}))
axes.set_title(f"{len(alive)} of {len(pairs)} alerts survive, all of them: {names}")
plt.show()
