"""
Which alerts to keep when there is room for one per shift
=========================================================

For a team with a table of past decisions. A ward sends one and a half alerts per shift and has room
for one. Fit the log, plan for one alert per shift, and see which alerts remain. An alert remains if
people follow it *and* the action matters, so even the alert with the largest lift may be dropped.
"""

import matplotlib.pyplot as plt
import numpy as np

import counsel
from counsel.logs import plan_advice
from counsel.worlds.ward import ward_log

ADVICE, SILENCE, INK = "#0B7A75", "#8A8178", "#1F2430"

# %%
# The log that ``counsel demo-log`` writes, here with two thousand shifts.
fit = counsel.fit(ward_log(shifts=2000, rng=np.random.default_rng(0)))
kept = plan_advice(fit, budget=1)
print(fit)
print(f"{fit.logged_pieces:.2f} alerts per shift, planned {kept.plan.advice_count:.2f}")

# %%
# How often each alert was seen in each state, its lift with its 95 % interval, and whether the plan
# for one alert per shift still gives it. Alerts seen fewer than twenty times are left out.
estimates, states, alerts = fit.estimates, fit.tally.states, fit.tally.actions
seen, lift, policy = estimates.given[0], estimates.lift[0], kept.plan.policy
pairs = sorted(zip(*np.nonzero(seen >= 20), strict=True), key=lambda pair: lift[pair])
steps = range(fit.problem.horizon)
kept_pairs = [(s, b) for s, b in pairs if any(b in policy.at(h, int(s)) for h in steps)]

# %%
# Lift alone does not decide: an alert must also ask for something that matters there.
figure, axes = plt.subplots()
for y, (s, b) in enumerate(pairs):
    colour, mark, label = (ADVICE, "^", "kept") if (s, b) in kept_pairs else (SILENCE, "o", "")
    low, high = estimates.lift_low[0, s, b], estimates.lift_high[0, s, b]
    axes.hlines(y, low, high, color=colour, lw=2)
    axes.plot(lift[s, b], y, mark, color=colour, markersize=9)
    axes.text(high + 0.015, y, label, color=colour, va="center")
    axes.text(1.03, y, f"seen {seen[s, b]:,.0f} times", color=INK, va="center")
axes.set_yticks(range(len(pairs)), [f"{states[s]}: {alerts[b]}" for s, b in pairs])
axes.set(xlabel="lift: share of people moved who would have done otherwise", xlim=(-0.06, 1.37))
axes.set_xticks(np.linspace(0, 1, 6))
axes.grid(axis="y", visible=False)
names = " or ".join(sorted({alerts[b] for _, b in kept_pairs}))
axes.set_title(f"{len(kept_pairs)} of {len(pairs)} alerts remain, all of them: {names}")
plt.show()
