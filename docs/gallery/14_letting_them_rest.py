"""
A plan that knows of fatigue saves its voice
============================================

For anyone whose alerts come too often. A pilot is moved fully by the first piece of advice, and by
every further one less. A plan that does not know this speaks wherever a fresh pilot would listen.
A plan that knows speaks less, later, and earns more.
"""

import matplotlib.pyplot as plt
import numpy as np

import counsel
from counsel.drawing.palette import ADVICE, HARM, SILENCE, SILENCE_TEXT

# %%
# The pilot listens to the second, third and fourth piece 70, 50 and 35 % as well as to the first.
tiring = counsel.make("flappy-bird/tiring")
print(tiring.human)

# %%
# Both plans are exact; only the first one knows of the memory.
best = counsel.solve(tiring)
blind = counsel.evaluate(tiring, counsel.solve(tiring.without_memory()).policy)
for name, plan in (("knows of it", best), ("is blind to it", blind)):
    print(f"A plan that {name}: {plan.value:.2f} stars with {plan.advice_count:.1f} pieces")

# %%
# Why it is silent at the first step, where a fresh pilot would listen:
print(counsel.explain(tiring, best, step=0, state="c0r3"))

# %%
# Pieces of advice so far, over 4,000 flights. Walls begin in column 7.
simulator = counsel.Simulator(tiring)


def pieces_so_far(policy: counsel.Policy) -> np.ndarray:
    """Return the mean number of pieces up to each column."""
    flights = simulator.play(policy, episodes=4000, rng=np.random.default_rng(0))
    spoken = flights.advice != tiring.defer
    return np.bincount(flights.step[spoken], minlength=tiring.horizon).cumsum() / len(flights)


columns = np.arange(tiring.horizon)
figure, axes = plt.subplots()
axes.axvspan(7, 13.5, color=SILENCE, alpha=0.15)
axes.text(10.25, 0.2, "walls, few stars", color=SILENCE_TEXT, ha="center")
for policy, colour, label, place in (
    (counsel.solve(tiring.without_memory()).policy, HARM, "blind to fatigue", (15.8, 6.5)),
    (best.policy, ADVICE, "knows of fatigue", (19.2, 3.2)),
):
    axes.step(columns, pieces_so_far(policy), where="post", color=colour)
    axes.text(*place, label, color=colour, ha="right")
axes.set(xlabel="column of the map", ylabel="pieces of advice so far", xlim=(0, 19.5), ylim=(0, 9))
axes.set_title(
    f"Saying {best.advice_count:.1f} instead of {blind.advice_count:.1f} pieces brings "
    f"{best.value:.1f} instead of {blind.value:.1f} stars"
)
plt.show()
