"""Value gaps of RFE-β for several penalties (figure 3a): value-gap-penalty; and trajectories (4).

RFE explores without a goal, so these are the runs of the regret experiments judged for β = 0, 0.2
and 0.4, and at the end shown at β = 0.3.
"""

from collections.abc import Mapping

import numpy as np

from counsel.drawing.figure_style import Line, draw_lines, name_axes, sheet
from counsel.drawing.maps import draw_map
from counsel.estimate.intervals import interval
from counsel.experiments.experiment import (
    Claim,
    Experiment,
    Picture,
    Rows,
    Run,
    Size,
    seeds_of,
    series,
)
from counsel.experiments.paper.regret import PENALTIES, PEOPLE, SHOWN, explored
from counsel.experiments.run_types import flight_of

ENOUGH = 0.05
"""A value gap of less than this counts as none."""

PHASES = {1: (0, 7), 2: (7, 14), 3: (14, 20)}
"""The columns of the phases of our map (stars, walls, both); column and step are the same."""

SPARED = {"greedy": 1, "safe": 2}
"""The phase in which each person does well alone."""


def runs(size: Size) -> tuple[Run, ...]:
    """Return the runs of RFE for both people."""
    return tuple(run for person in PEOPLE for run in explored(person, size))


def gaps(rows: Mapping[str, Rows], person: str, penalty: float) -> tuple[np.ndarray, np.ndarray]:
    """Return episodes explored, and the value gaps [seed, update] of plans made then."""
    name = f"regret-{person}/rfe-ad"
    x, y = series(rows, name, "value_gap", over="explored", when=0, penalty=penalty)
    last, end = series(rows, name, "value_gap", over="explored", when=1, penalty=penalty)
    return np.append(x[1:], last), np.concatenate((y[:, 1:], end), axis=1)


def ends(rows: Mapping[str, Rows], person: str, penalty: float) -> np.ndarray:
    """Return the last value gap of each seed for a penalty."""
    return series(rows, f"regret-{person}/rfe-ad", "value_gap", when=1, penalty=penalty)[1][:, 0]


def pictures(rows: Mapping[str, Rows]) -> tuple[Picture, ...]:
    """Draw the value gaps of both people."""
    figure, panels = sheet(2)
    for axes, person in zip(panels, PEOPLE, strict=True):
        axes.set_xscale("log")
        lines = [Line(f"β = {b:g}", *gaps(rows, person, b)) for b in PENALTIES]
        draw_lines(axes, lines)
        name_axes(axes, "episodes (logarithmic)", "value gap", f"Policy {person.title()}")
    told = " ".join(claim.sentence for claim in claims(rows))
    caption = (
        "Value gaps of what RFE-β would advise after exploring for so many episodes, from its "
        f"first update on. Episodes are on a logarithmic axis because most happens early. {told}"
    )
    return (Picture("value-gap-penalty", figure, caption),)


def claims(rows: Mapping[str, Rows]) -> tuple[Claim, ...]:
    """Test that the gap closes for every penalty."""
    found = []
    for person in PEOPLE:
        last = np.stack([ends(rows, person, b) for b in PENALTIES])
        found.append(
            Claim(
                f"Policy {person.title()}: the gap ends below {ENOUGH} for every β and seed.",
                "paper",
                f"at most {last.max():.4f}",
                "largest gap over β",
                interval(last.max(axis=0)),
                bool((last < ENOUGH).all()),
            )
        )
    return tuple(found)


def by_phase(run: Rows) -> dict[int, float]:
    """Return the expected pieces of advice in each phase."""
    rate = run["advice_rate"][~np.isnan(run["advice_rate"])]
    return {name: float(rate[first:last].sum()) for name, (first, last) in PHASES.items()}


def trajectory_pictures(rows: Mapping[str, Rows]) -> tuple[Picture, ...]:
    """Draw the commonest flight of each person with the policy learnt for β = 0.3."""
    found = []
    for person, claim in zip(PEOPLE, trajectory_claims(rows), strict=True):
        run = seeds_of(rows, f"regret-{person}/rfe-ad")[0]
        title = f"Policy {person.title()}, advised by RFE-β at β = {SHOWN}"
        figure = draw_map("three-phases", episodes=flight_of(run, "flight_"), title=title)
        caption = f"The commonest flight of Policy {person.title()} (first seed). {claim.sentence}"
        found.append(Picture(f"trajectories-{person}", figure, caption))
    return tuple(found)


def trajectory_claims(rows: Mapping[str, Rows]) -> tuple[Claim, ...]:
    """Test where advice is given."""
    found = []
    for person in PEOPLE:
        pieces = [by_phase(run) for run in seeds_of(rows, f"regret-{person}/rfe-ad")]
        share = np.array([p[SPARED[person]] / max(sum(p.values()), 1e-12) for p in pieces])
        each = ", ".join(f"{np.mean([p[n] for p in pieces]):.2f} in phase {n}" for n in PHASES)
        first, second = (n for n in PHASES if n != SPARED[person])
        found.append(
            Claim(
                f"Policy {person.title()} at β = {SHOWN}: advice comes almost only in phases "
                f"{first} and {second}: less than a tenth of it in phase {SPARED[person]}.",
                "paper",
                each,
                f"share of advice in phase {SPARED[person]}",
                interval(share),
                bool((share < 0.1).all() and all(sum(p.values()) > 0.1 for p in pieces)),
            )
        )
    return tuple(found)


VALUE_GAP = Experiment(
    "value-gap-penalty", "Value gaps of RFE-β for several penalties", runs, pictures, claims
)
TRAJECTORIES = Experiment(
    "trajectories",
    "Where advice is given: typical flights",
    runs,
    trajectory_pictures,
    trajectory_claims,
)
