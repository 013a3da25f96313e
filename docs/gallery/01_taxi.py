"""
Advice for a taxi driver who listens half the time
==================================================

For anyone with an environment of Gymnasium's and a person in it. Taxi publishes its transitions, so
:py:func:`counsel.worlds.from_gymnasium` makes an exact problem of it. The driver knows the town,
but not perfectly; where they would have done otherwise, advice moves them half of the time.
"""

import matplotlib.pyplot as plt
import numpy as np

import counsel
from counsel.worlds import Boltzmann, from_gymnasium

ADVICE, SILENCE, WORDS = "#0B7A75", "#8A8178", "#6B635B"

# %%
# The driver prefers better actions, softly (``Boltzmann``); a lift of 0.5 is how far advice moves
# them.
taxi = from_gymnasium(
    "Taxi",
    horizon=30,
    human=lambda mdp: counsel.Human(Boltzmann(temperature=2.0)(mdp), lift=0.5),
)

# %%
# The frontier tells what every number of pieces of advice is worth at best. Forty vertices trace it
# closely, and the plan for any one budget is exact all the same.
front = counsel.frontier(taxi, max_vertices=40)
alone, most = front.vertices[0], front.vertices[-1]
pieces = np.array([1, 2, 5, 10])
worth = np.array([front.at_budget(n).value for n in pieces])
kept = (worth - alone.value) / (most.value - alone.value)
print(front.at_budget(2))

# %%
# The first pieces go where they gain most, so each further one brings a little less.
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
axes.text(14.5, alone.value + 0.04, "the driver alone", color=WORDS, ha="right")
axes.set(xlabel="pieces of advice in a ride, on average", ylabel="reward of a ride")
axes.set_title(f"{pieces[2]} pieces of advice bring {kept[2]:.0%} of what all advice could")
plt.show()
