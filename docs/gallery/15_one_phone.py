"""
One phone, two hundred people
=============================

For anyone who has fewer calls than people. Two hundred mothers listen to a weekly message or skip
it, and one line can make ten calls per week. The plan ranks mothers by what a call gains at the
price of later calls. No policy can hear more messages than the bound.
"""

import matplotlib.pyplot as plt
import numpy as np

import counsel
from counsel.drawing.palette import ADVICE, SILENCE, SILENCE_TEXT

kinds = ["call-centre", "call-centre/working", "call-centre/tiring"]
mothers, counts = [counsel.make(kind) for kind in kinds], [100, 60, 40]
team = counsel.Team(mothers, counts=counts)

# %%
# One line: at most ten calls in every week. The price of a call is what one more would bring.
plan = counsel.share(mothers, per_step=10, counts=counts)
print(plan)
print("price of a call in weeks 0, 13 and 25:", plan.prices[[0, 13, 25]].round(1).tolist())


# %%
# Two other ways to choose, with the same ten calls and the same luck: call the people who are most
# engaged, or call anybody.
def ranking(*priority: float) -> counsel.simulate.TeamPolicy:
    """Return a policy that calls by the state alone."""
    advice = [member.advice for member in plan.members]
    tables = [np.broadcast_to(priority, member.advice.shape) for member in plan.members]
    return counsel.simulate.TeamPolicy(10, advice=advice, priority=tables)


policies = {
    "most engaged first": ranking(4.0, 3.0, 2.0, 1.0),
    "anybody": ranking(1.0, 1.0, 1.0, 1.0),
    "by gain": plan,
}
heard = {
    name: team.evaluate(policy, episodes=200, rng=np.random.default_rng(0)).value
    for name, policy in policies.items()
}
silent = sum(
    count * counsel.solve(mother, budget=0).value
    for count, mother in zip(counts, mothers, strict=True)
)

# %%
# The bound is an average over all policies that may be thought of, so the ranking is nearly best.
figure, axes = plt.subplots(figsize=(6.4, 2.6))
bars = axes.barh(list(heard), list(heard.values()), color=[SILENCE, SILENCE, ADVICE])
axes.bar_label(bars, fmt="%.0f", label_type="center", color="white")
axes.axvline(silent, color=SILENCE_TEXT, linestyle=":")
axes.axvline(plan.bound, color=SILENCE_TEXT, linestyle="--")
axes.text(silent, 2.6, "nobody is called", color=SILENCE_TEXT, ha="center")
axes.text(plan.bound, 2.6, "bound", color=SILENCE_TEXT, ha="center")
axes.set(xlabel="messages heard in half a year", xlim=(0.8 * silent, 1.08 * plan.bound))
axes.set_title(
    f"Ten calls per week, {1 - heard['by gain'] / plan.bound:.1%} below the bound", pad=18
)
plt.show()
