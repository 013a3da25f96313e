"""
Where advice matters most
=========================

For anyone who decides which alerts to keep. The criticality of an hour and a state is the largest
penalty at which advice there still pays. It ranks all moments by how much a piece of advice may
cost, for any budget. (In a crisis this nurse treats without advice. The only number there is advice
to wait: this world ends with the night, so in its last hour treatment no longer pays.)
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap

import counsel
from counsel.drawing.palette import ADVICE, INK
from counsel.worlds import make

# %%
# A night of twelve hours: the nurse tires, the patient may slip.
problem = make("night-shift")
critical = counsel.criticality(problem).lower.T
states = problem.mdp.state_labels

# %%
# The highest criticality, in words.
state, hour = np.unravel_index(critical.argmax(), critical.shape)
plan = counsel.solve(problem, penalty=0.1)
print(counsel.explain(problem, plan, step=int(hour), state=int(state)))

# %%
# Darker is more critical; cells below 0.005 are left empty.
figure, axes = plt.subplots()
shades = LinearSegmentedColormap.from_list("advice", ["white", ADVICE])
image = axes.imshow(critical, cmap=shades, vmin=0, aspect="auto")
for (s, h), value in np.ndenumerate(critical):
    dark = value > 0.8 * critical.max()
    if value >= 0.005:
        axes.text(h, s, f"{value:.2f}", ha="center", va="center", color="white" if dark else INK)
axes.set_xticks(range(problem.horizon), range(1, problem.horizon + 1))
axes.set_yticks(range(len(states)), states)
axes.set(xlabel="hour of the night", ylabel="the patient is")
axes.grid(visible=False)
axes.spines[:].set_visible(False)
axes.tick_params(length=0)
figure.colorbar(image, label="criticality (reward)", pad=0.02).outline.set_visible(False)
axes.set_title(
    f"A {states[state]} patient in hour {hour + 1}: "
    f"advice may cost {critical.max():.2f} and still pays"
)
plt.show()
