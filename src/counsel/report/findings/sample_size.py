"""What a log of some size can tell."""

import math
from collections.abc import Iterator

from counsel.logs.power import Power, Schedule
from counsel.report.number_format import count_of, pieces_per_episode, short


def power(found: Power, lift: float | None, difference: float | None) -> Iterator[str]:
    """Say what a log of this size can tell, and how many people other effects take."""
    who = count_of(found.episodes, "episode")
    if found.people is not None:
        who += f" by {count_of(found.people, 'person', 'people')}"
    told = "no lift" if found.lift is None else f"a lift of {short(found.lift.smallest)}"
    yield (
        f"{who} can tell {told} from 0, and a difference of {short(found.trial.smallest)} per "
        "episode between two halves with different rules (in 80 % of such logs, at the 5 % level)."
    )
    if found.difference is not None:
        yield (
            "In the model, what a plan brings beyond today can be told from "
            f"{short(found.difference.smallest)} on."
        )
    if lift is not None and found.lift is None:
        yield (
            f"How many people a lift of {lift:g} takes cannot be told: nobody was left without "
            "advice where there was any."
        )
    for what, size, effect in (
        ("a lift", lift, found.lift),
        ("a difference", difference, found.trial),
    ):
        if size is not None and effect is not None:
            times = effect.factor(size)
            people = (
                ""
                if found.people is None
                else f"{count_of(math.ceil(times * found.people), 'person', 'people')} with "
            )
            episodes = count_of(math.ceil(times * found.episodes), "episode")
            yield f"To tell {what} of {size:g} takes {people}{episodes} like these."


def schedule(trial: Schedule) -> str:
    """Say what the schedule of a trial is."""
    return (
        "A trial that learns most sends advice at random, with these probabilities by state "
        f"({pieces_per_episode(trial.pieces)}):"
    )
