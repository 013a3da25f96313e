"""
Work that has no last day
=========================

For anyone who maintains something. A machine wears every day, and its operator repairs it late. A
discount says how much tomorrow counts; an average per step says that every day counts the same.
"""

import matplotlib.pyplot as plt
import numpy as np

import counsel
from counsel.drawing.palette import ADVICE, SILENCE

repair = counsel.make("machine-repair")
average = repair.without_end(average=True)

# %%
# A budget is then a number of pieces per day: one piece in twenty days keeps most of the benefit.
for budget in (0.0, 0.05, None):
    plan = counsel.solve(average, budget=budget)
    print(f"{plan.advice_count:.2f} pieces per day: {plan.value:.2f} per day")

# %%
# Advice matters most where the machine is worn but still runs.
print(counsel.explain(average, counsel.solve(average, budget=0.05), state="worn 6"))

# %%
# With a discount near 1, (1 − γ) times the value comes near the average.
for gamma in (0.9, 0.99, 0.999):
    value = counsel.solve(repair.without_end(gamma)).value
    print(f"discount {gamma}: {(1 - gamma) * value:.3f} per day")

# %%
# The criticality of each condition: the price up to which a piece pays there.
penalty = counsel.criticality(average).lower[0]
places = np.arange(average.n_states)
figure, axes = plt.subplots()
axes.bar(places[penalty <= 1.0], penalty[penalty <= 1.0], color=SILENCE)
axes.bar(places[penalty > 1.0], penalty[penalty > 1.0], color=ADVICE)
axes.set_xticks(places, average.mdp.state_labels)
axes.set(xlabel="condition of the machine", ylabel="criticality")
axes.set_title("Speak when the machine is well worn")
axes.tick_params(axis="x", rotation=60)
plt.show()
