"""
Advice for a taxi driver who listens half the time
==================================================

For anyone with a Gymnasium environment and a person in it. Taxi publishes its transitions, so
:py:func:`counsel.worlds.from_gymnasium` turns it into an exact problem. The driver knows the town,
but not perfectly; where they would have done something else, advice moves them half of the time.
"""

import matplotlib.pyplot as plt
import numpy as np

import counsel
from counsel.drawing.palette import ADVICE, SILENCE, SILENCE_TEXT
from counsel.worlds import Boltzmann, from_gymnasium

# %%
# A ``Boltzmann`` driver chooses better actions more often; a lift of 0.5 means that advice changes
# their mind half of the time.
taxi = from_gymnasium(
    "Taxi",
    horizon=30,
    human=lambda mdp: counsel.Human(Boltzmann(temperature=2.0)(mdp), lift=0.5),
)

# %%
# The frontier has the best value for every number of pieces of advice. Forty vertices trace it
# closely, and the plan for a single budget is still exact.
front = counsel.frontier(taxi, max_vertices=40)
alone, most = front.vertices[0], front.vertices[-1]
pieces = np.array([1, 2, 5, 10])
worth = np.array([front.at_budget(n).value for n in pieces])
kept = (worth - alone.value) / (most.value - alone.value)
print(front.at_budget(2))

# %%
# The first pieces go where they gain most, so each further piece adds a little less.
figure, axes = plt.subplots()
curve = np.array([(vertex.advice_count, vertex.value) for vertex in front.vertices])
axes.plot(*curve.T, color=ADVICE)
axes.plot(pieces, worth, "^", color=ADVICE, markersize=8)
axes.axhline(alone.value, color=SILENCE, linestyle="--")
axes.plot(0, alone.value, "o", color=SILENCE, markersize=8)
for n, value, share in zip(pieces, worth, kept, strict=True):
    axes.text(n + 0.25, value - 0.12, f"{n}: {share:.0%}")
axes.text(most.advice_count, most.value - 0.16, "all", ha="center")
axes.plot(most.advice_count, most.value, "^", color=ADVICE, markersize=8)
axes.text(14.5, alone.value + 0.04, "the driver alone", color=SILENCE_TEXT, ha="right")
axes.set(xlabel="average pieces of advice per ride", ylabel="reward per ride")
axes.set_title(f"{pieces[2]} pieces of advice give {kept[2]:.0%} of the benefit of all advice")
plt.show()
