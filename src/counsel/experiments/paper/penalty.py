"""Value gaps of RFE-β for several penalties (figures 3a and 5), and trajectories (figure 4).

RFE explores without rewards, so these are the runs of the regret experiments, evaluated at β = 0,
0.2 and 0.4, and at the end shown at β = 0.3. Figures show the shipped map, claims are about random
maps. Where advice is given depends on the map: what the paper shows is true of the shipped map and
of few random maps of the same kind.
"""

import math

import numpy as np

from counsel.drawing.figure_style import Line, draw_lines, subplots
from counsel.drawing.maps import draw_map
from counsel.experiments.claim import Claim, digits
from counsel.experiments.experiment import Experiment, Picture, Run, Size
from counsel.experiments.map_families import PHASES
from counsel.experiments.paper.regret import (
    MAPS,
    PENALTIES,
    PEOPLE,
    SHOWN,
    explorer_runs,
    per_person,
)
from counsel.experiments.rows import Rows, RowsByRun, seeds_of, series
from counsel.experiments.run_types import flight_of

ENOUGH = 0.05  # a smaller value gap counts as none
PHASE_STARTS = {
    f"phase {n}: {name}": PHASES[n][0] for n, name in ((1, "stars"), (2, "walls"), (3, "both"))
}

QUIET_PHASE = {"greedy": 1, "safe": 2}  # the phase in which each person does well without advice


def runs(size: Size) -> tuple[Run, ...]:
    """Return the runs of RFE for both people."""
    return explorer_runs(size, *PEOPLE)


def gaps(rows: RowsByRun, name: str, penalty: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of explored episodes, and the value gaps of the plans [seed, update]."""
    x, y = series(rows, name, "value_gap", over="explored", when=0, penalty=penalty)
    last, end = series(rows, name, "value_gap", over="explored", when=1, penalty=penalty)
    return np.append(x[1:], last), np.concatenate((y[:, 1:], end), axis=1)


def pictures(rows: RowsByRun) -> tuple[Picture, ...]:
    """Draw the value gaps of both people."""
    figure, panels = subplots(2)
    for axes, person in zip(panels, PEOPLE, strict=True):
        axes.set_xscale("log")
        lines = [Line(f"β = {b:g}", *gaps(rows, f"regret-{person}/rfe-ad", b)) for b in PENALTIES]
        draw_lines(axes, lines, "episodes (logarithmic)", "value gap", PEOPLE[person])
    caption = (
        "Value gaps of the advice of RFE-β after so many explored episodes, from its first update "
        "on, on the shipped map. The axis of episodes is logarithmic because most of the change is "
        "early."
    )
    return (Picture.of("value-gap-penalty", figure, caption, claims(rows)),)


@per_person
def claims(rows: RowsByRun, person: str) -> Claim:
    """Test that the gap closes for every penalty."""
    last, shipped = (
        np.stack([gaps(rows, f"regret-{person}/{name}", b)[1][:, -1] for b in PENALTIES]).max(
            axis=0
        )
        for name in ("maps-rfe-ad", "rfe-ad")
    )
    return Claim.share(
        f"{PEOPLE[person]}: the gap ends below {ENOUGH} for every β, on most maps.",
        "the largest gap over β",
        last,
        below=ENOUGH,
        unit="maps",
        note=f"at most {digits(last.max())}, on the shipped map {digits(shipped.max())}",
    )


def by_phase(run: Rows) -> dict[int, float]:
    """Return the expected pieces of advice in each phase."""
    rate = run["advice_rate"][~np.isnan(run["advice_rate"])]
    return {name: float(rate[first:last].sum()) for name, (first, last) in PHASES.items()}


def share_in(run: Rows, phase: int) -> float:
    """Return the share of advice in a phase; NaN if there is hardly any advice."""
    pieces = by_phase(run)
    total = sum(pieces.values())
    return pieces[phase] / total if total > 0.1 else math.nan


def trajectory_pictures(rows: RowsByRun) -> tuple[Picture, ...]:
    """Draw the most common flight of each person with the policy learnt for β = 0.3."""
    pictures = []
    for person, claim in zip(PEOPLE, trajectory_claims(rows), strict=True):
        run = seeds_of(rows, f"regret-{person}/rfe-ad")[0]
        title = f"{PEOPLE[person]}, advised by RFE-β at β = {SHOWN}"
        flight = flight_of(run, "flight_")
        figure = draw_map("three-phases", episodes=flight, title=title, phases=PHASE_STARTS)
        caption = f"The most common flight of {PEOPLE[person]} on the shipped map (first seed)."
        pictures.append(Picture.of(f"trajectories-{person}", figure, caption, [claim]))
    return tuple(pictures)


@per_person
def trajectory_claims(rows: RowsByRun, person: str) -> Claim:
    """Test in which phases advice is given."""
    quiet = QUIET_PHASE[person]
    share, shipped = (
        np.array([share_in(run, quiet) for run in seeds_of(rows, f"regret-{person}/{name}")])
        for name in ("maps-rfe-ad", "rfe-ad")
    )
    first, second = (n for n in PHASES if n != quiet)
    return Claim.share(
        f"{PEOPLE[person]} at β = {SHOWN}: almost all advice comes in phases {first} and {second}, "
        f"less than a tenth of it in phase {quiet}, on most maps.",
        f"the share of advice in phase {quiet}",
        share,
        below=0.1,
        unit="maps",
        note=f"on the shipped map at most {shipped.max():.2f} of the advice in phase {quiet}",
    )


VALUE_GAP = Experiment(
    "value-gap-penalty", "Value gaps of RFE-β for several penalties", runs, pictures, claims, MAPS
)
TRAJECTORIES = Experiment(
    "trajectories",
    "Where advice is given: typical flights",
    runs,
    trajectory_pictures,
    trajectory_claims,
    MAPS,
)
