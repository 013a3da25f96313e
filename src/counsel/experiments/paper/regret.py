"""Regret of UCB-AD, RFE-AD and EULER (figure 2): regret-greedy, regret-safe, regret-adherence.

The settings are those of the paper's appendix B: 8·10⁵ episodes, planned every 5000 (Greedy), or
2·10⁵, planned every 1000 (Safe); UCB-AD with the width 0.4 √(2 log n / n); RFE-AD with a tenth of
its bonus; EULER with δ = 0.1, after 3·10⁵ episodes of burn-in without regret, and with unreachable
states declared. Figures show the shipped map; claims are about random maps of three phases, one for
each seed. The experiment ``equal-terms`` tunes the constants of all three learners.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from counsel._arrays import Floats
from counsel.drawing.figure_style import Line, draw_lines, subplots
from counsel.experiments.claim import Claim, digits
from counsel.experiments.experiment import Experiment, Picture, Run, Size, Table
from counsel.experiments.rows import Rows, RowsByRun, last_of, seeds_of, series
from counsel.experiments.run_types import Discovery, learning_runs
from counsel.runs.spec import Spec

EPISODES = {"greedy": 800_000, "safe": 200_000}
EVERY = {"greedy": 5000, "safe": 1000}
BURN_IN = 300_000
PENALTIES = (0.0, 0.2, 0.4)
SHOWN = 0.3
PEOPLE = {"greedy": "Policy Greedy", "safe": "Policy Safe"}
FAMILY = "three-phase"
MAPS = 36  # with so many maps, "on most maps" can be shown if at most one is an exception


def per_person(
    claim: Callable[[RowsByRun, str], Claim],
) -> Callable[[RowsByRun], tuple[Claim, ...]]:
    """Return a function that tests a claim for both people."""
    return lambda rows: tuple(claim(rows, person) for person in PEOPLE)


def ucb_ad(world: str, full: int, every: int, size: Size) -> Spec:
    """Return the settings of UCB-AD with the paper's width, episodes and updates."""
    episodes, every = size.episodes(full), size.every(every, full)
    return Spec(world=world, algorithm="ucb-ad", bound="paper", episodes=episodes, every=every)


def explorer_runs(size: Size, *people: str) -> tuple[Discovery, ...]:
    """Return the runs of RFE on the shipped map and on random maps.

    It explores without rewards, so one run serves every penalty.
    """
    return tuple(
        run
        for person in people
        for prefix, family, seeds in (("", "", size.few), ("maps-", FAMILY, size))
        for run in Discovery.repeat(
            f"regret-{person}/{prefix}rfe-ad",
            EPISODES[person],
            EVERY[person],
            seeds,
            world=f"flappy-bird/{person}",
            family=family,
            penalties=PENALTIES,
            shown=SHOWN,
        )
    )


def runs(person: str, size: Size) -> tuple[Run, ...]:
    """Return the runs of the three learners, on the shipped map and on random maps."""
    ucb = ucb_ad(f"flappy-bird/{person}", EPISODES[person], EVERY[person], size)
    burn_in = size.episodes(BURN_IN)
    euler = replace(ucb, algorithm="euler", bound=None, burn_in=burn_in, delta=0.1)
    learners: list[Run] = []
    for name, spec in {"ucb-ad": ucb, "euler": euler}.items():
        learners += learning_runs(f"regret-{person}/{name}", spec, size.few)
        learners += learning_runs(f"regret-{person}/maps-{name}", spec, size, family=FAMILY)
    return (*learners, *explorer_runs(size, person))


def without_penalty(rows: RowsByRun, name: str) -> tuple[Floats, Floats]:
    """Return episodes, and the regret of an explorer without a penalty [seed, row]."""
    return series(rows, name, "regret", when=0, penalty=0.0)


def final_regret(rows: RowsByRun, name: str, *, after: bool = False) -> Floats:
    """Return the regret of each seed; ``after`` charges blocks with the policy planned after."""
    runs = seeds_of(rows, name)
    if "when" not in runs[0]:
        return last_of(rows, name, "regret_after" if after else "regret")
    if after:
        return np.array([_explorer_regret_after(run) for run in runs])
    return without_penalty(rows, name)[1][:, -1]


def _explorer_regret_after(run: Rows) -> float:
    before, end = ((run["when"] == when) & (run["penalty"] == 0.0) for when in (0, 1))
    block = np.diff(np.append(0.0, run["episode"][before]))
    gaps = np.append(run["value_gap"][before][1:], run["value_gap"][end])
    return float(block @ np.maximum(gaps, 0.0))


def pictures(person: str, rows: RowsByRun) -> tuple[Picture, ...]:
    """Draw the regret of all learners, and beside it without EULER."""
    regret = {
        "UCB-AD": series(rows, f"regret-{person}/ucb-ad", "regret"),
        "RFE-AD": without_penalty(rows, f"regret-{person}/rfe-ad"),
        "EULER": series(rows, f"regret-{person}/euler", "regret"),
    }
    figure, (left, right) = subplots(2)
    lines = [Line(name, *points) for name, points in regret.items()]
    draw_lines(left, lines, "episodes", "regret", PEOPLE[person])
    draw_lines(right, lines[:2], "episodes", "regret", f"{PEOPLE[person]}, without EULER")
    caption = (
        f"Regret of learning to advise {PEOPLE[person]} on the shipped map. Lines are means over "
        "seeds, bands 95 % intervals."
    )
    return (Picture.of(f"regret-{person}", figure, caption, claims(person, rows)[:1]),)


def claims(person: str, rows: RowsByRun) -> tuple[Claim, ...]:
    """Test the order of the three learners, and the distance to EULER."""
    learners = ("ucb-ad", "rfe-ad", "euler")
    ucb, rfe, euler = (final_regret(rows, f"regret-{person}/maps-{name}") for name in learners)
    shipped = [final_regret(rows, f"regret-{person}/{name}") for name in learners]
    return (
        Claim.share(
            "UCB-AD has less regret than RFE-AD, and RFE-AD less than EULER, on most maps.",
            "the larger of the differences UCB-AD − RFE-AD and RFE-AD − EULER",
            np.maximum(ucb - rfe, rfe - euler),
            below=0.0,
            unit="maps",
            note=f"medians {medians(ucb, rfe, euler)}; on the shipped map {medians(*shipped)}",
        ),
        Claim.share(
            "Both tailored algorithms are much more efficient than EULER: less than half its "
            "regret, on most maps.",
            "the larger of the two regrets, divided by that of EULER,",
            np.maximum(ucb, rfe) / euler,
            below=0.5,
            unit="maps",
        ),
        less_regret_after(rows, f"regret-{person}/maps-", "maps"),
    )


def less_regret_after(rows: RowsByRun, prefix: str, unit: str) -> Claim:
    """Compare UCB-AD and RFE-AD by the other reading of an explorer's regret."""
    ucb, rfe = (final_regret(rows, f"{prefix}{name}", after=True) for name in ("ucb-ad", "rfe-ad"))
    return Claim.median(
        "UCB-AD has less regret than RFE-AD also if every block is charged with the policy planned "
        "after it, not before it.",
        "the regret of UCB-AD less that of RFE-AD",
        ucb - rfe,
        below=0.0,
        source="ours",
        unit=unit,
        note=f"medians {medians(ucb, rfe)}",
    )


def medians(*values: Floats) -> str:
    """Return the medians in words."""
    words = [digits(float(np.median(value))) for value in values]
    return f"{', '.join(words[:-1])} and {words[-1]}"


LEVELS = {"high": 0.8, "low": 0.4}


def adherence_runs(size: Size) -> tuple[Run, ...]:
    """Return the runs of UCB-AD with people of high and of low adherence."""
    runs: list[Run] = []
    for person in PEOPLE:
        spec = ucb_ad(f"flappy-bird/{person}", EPISODES[person], EVERY[person], size)
        for level in LEVELS:
            name = f"{person}-{level}"
            runs += learning_runs(f"regret-adherence/{name}", spec, size.few, adherence=level)
            runs += learning_runs(
                f"regret-adherence/maps-{name}", spec, size, family=FAMILY, adherence=level
            )
    return tuple(runs)


def adherence_pictures(rows: RowsByRun) -> tuple[Picture, ...]:
    """Draw the regret of UCB-AD for both people and both levels."""
    figure, panels = subplots(2)
    for axes, person in zip(panels, PEOPLE, strict=True):
        lines = [
            Line(f"θ = {theta}", *series(rows, f"regret-adherence/{person}-{level}", "regret"))
            for level, theta in LEVELS.items()
        ]
        draw_lines(axes, lines, "episodes", "regret", PEOPLE[person])
    caption = "Regret of UCB-AD when all advice has the same adherence θ, on the shipped map."
    return (Picture.of("regret-adherence", figure, caption, adherence_claims(rows)),)


def adherence_claims(rows: RowsByRun) -> tuple[Claim, ...]:
    """Test whether a higher adherence means less regret, also without advice that repels."""
    return tuple(
        claim
        for person in PEOPLE
        for claim in (_less_regret(rows, person), _without_reverse(rows, person))
    )


def _less_regret(rows: RowsByRun, person: str) -> Claim:
    """Compare the regrets at both levels."""
    high, low = (_at_level(rows, f"maps-{person}-{level}", "regret") for level in LEVELS)
    shipped = [_at_level(rows, f"{person}-{level}", "regret") for level in LEVELS]
    return Claim.median(
        f"{PEOPLE[person]}: regret is smaller with θ = 0.8 than with θ = 0.4.",
        "the regret at θ = 0.8 less that at 0.4",
        high - low,
        below=0.0,
        unit="maps",
        note=f"medians {medians(high, low)}; on the shipped map {medians(*shipped)}",
    )


def _without_reverse(rows: RowsByRun, person: str) -> Claim:
    """Compare the regrets against the best plan that never repels, as UCB-AD assumes."""
    remainder = {
        level: _at_level(rows, f"maps-{person}-{level}", "regret")
        - _due_to_reverse(rows, f"maps-{person}-{level}")
        for level in LEVELS
    }
    return Claim.median(
        f"{PEOPLE[person]}: so it is against the best plan that never repels, as UCB-AD assumes.",
        "the regret at θ = 0.8 less that at 0.4, both without the worth of advice that repels",
        remainder["high"] - remainder["low"],
        below=0.0,
        source="ours",
        unit="maps",
        note=f"medians {medians(*remainder.values())}",
    )


def _due_to_reverse(rows: RowsByRun, name: str) -> Floats:
    """Return the worth of advice that repels, in all episodes [seed]."""
    runs = seeds_of(rows, f"regret-adherence/{name}")
    return np.array([run["episode"][-1] * run["reverse"][-1] for run in runs])


def adherence_tables(rows: RowsByRun) -> tuple[Table, ...]:
    """Return how much of the regret at low adherence is due to advice that repels."""
    regret = [f"regret at θ = {theta}" for theta in LEVELS.values()]
    lines: list[tuple[str, ...]] = [
        ("person", "maps", "runs", *regret, "due to advice that repels", "remainder")
    ]
    for person, label in PEOPLE.items():
        for place, maps in {"": "shipped map", "maps-": "random maps"}.items():
            high, low = (_at_level(rows, f"{place}{person}-{level}", "regret") for level in LEVELS)
            due = _due_to_reverse(rows, f"{place}{person}-low")
            shown = [digits(float(np.median(x))) for x in (high, low, due, low - due)]
            lines.append((label, maps, str(low.size), *shown))
    caption = "Median regret of UCB-AD; the last two columns divide the regret at the lower θ."
    return (Table("regret-adherence", caption, tuple(lines)),)


def _at_level(rows: RowsByRun, name: str, column: str) -> Floats:
    return last_of(rows, f"regret-adherence/{name}", column)


REGRET = tuple(
    Experiment(
        f"regret-{person}",
        f"Regret of learning to advise {PEOPLE[person]}",
        partial(runs, person),
        partial(pictures, person),
        partial(claims, person),
        MAPS,
    )
    for person in PEOPLE
)

ADHERENCE = Experiment(
    "regret-adherence",
    "Regret of UCB-AD at high and low adherence",
    adherence_runs,
    adherence_pictures,
    adherence_claims,
    tables=adherence_tables,
)
