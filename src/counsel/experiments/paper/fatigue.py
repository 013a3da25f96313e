"""People who tire: fatigue (ours).

Every further piece of advice in an episode moves the person by a factor less. Exactly, for a range
of factors: the value and the pieces of the best plan, of the plan that is blind to the memory, of
"always" (the best action, everywhere) and of "never". By learning, at the factors of
``flappy-bird/tiring``: the regret of UCB-AD that knows of the memory, and of UCB-AD that does not.
Both learn one lift for each advice, the first on every level. The table also has both with a lift
for every step, state and advice: there a blind learner may come to rest in a habit of its own that
is almost best, because step and state tell much about the level. Figures show the shipped map,
claims are about random maps.
"""

from dataclasses import dataclass

import numpy as np

from counsel.drawing.figure_style import Line, draw_lines, name_axes, show_zero, subplots
from counsel.drawing.palette import ADVICE, DARK_GOLD, HARM, INK
from counsel.experiments.claim import Claim, digits
from counsel.experiments.experiment import Experiment, Picture, Run, Size, Table
from counsel.experiments.map_families import problem_of
from counsel.experiments.paper.penalty import ENOUGH
from counsel.experiments.paper.regret import FAMILY, PEOPLE
from counsel.experiments.rows import Rows, RowsByRun, last_of, seeds_of, series, to_columns
from counsel.learning.learn import learn
from counsel.learning.ucb_ad import UCBAD
from counsel.model.memory import Memory
from counsel.model.problem import AdviceProblem
from counsel.planning.evaluate import evaluate
from counsel.planning.reference_policies import always_best_action, never_advise
from counsel.planning.solve import solve
from counsel.simulate.simulator import Simulator

FACTORS = tuple(1.0 - i / 10 for i in range(10))
PIECES = 6  # from the sixth piece on, a further one makes no difference
ANCKER = 0.7  # each further reminder is accepted 30 % less often (Ancker and others, 2017)
ADVISERS = {"best": ADVICE, "blind": HARM, "always": DARK_GOLD, "never": INK}
LABELS = {"best": "best plan", "blind": "plan blind to it", "always": "always", "never": "never"}
QUANTITIES = {
    "reward": (
        "",
        "reward",
        "Reward where every further piece of advice moves the person by a factor less, on the "
        "shipped map.",
    ),
    "pieces": (
        "_pieces",
        "pieces of advice per episode",
        "Pieces of advice where every further one moves the person by a factor less, on the "
        "shipped map.",
    ),
}
TIRING = "flappy-bird/tiring"
KNOWN = {"knows": "knows of the memory", "blind": "blind to it"}
LEARNERS = {"knows": (True, True), "blind": (False, True)} | {
    "knows-by-cell": (True, False),
    "blind-by-cell": (False, False),
}
"""Whether a learner knows of the memory, and whether it learns one lift for each advice."""
EPISODES, EVERY = 20_000, 50
MAPS = 150  # nothing is learnt for a plan, so maps are cheap
LEARNT, LEARNT_MAPS = 24, 12
FIFTH = 0.2
NO_REGRET = 1e-6  # on some maps the blind plan is the best one


@dataclass(frozen=True, slots=True, kw_only=True)
class Fading:
    """Value and pieces of four advisers, for each factor by which a piece moves less.

    Columns are ``factor``, and ``best``, ``blind``, ``always``, ``never`` with their pieces
    (``best_pieces`` and so on).
    """

    id: str
    world: str
    family: str = ""
    seed: int = 0
    factors: tuple[float, ...] = FACTORS
    pieces: int = PIECES

    def rows(self) -> Rows:
        plain = problem_of(self.world, self.family, self.seed)
        policies = {
            "blind": solve(plain).policy,
            "always": always_best_action(plain),
            "never": never_advise(plain),
        }
        memory, lines = Memory.pieces(self.pieces), []
        for factor in self.factors:
            fading = [factor**m for m in range(memory.n_levels)]
            tired = AdviceProblem(plain.mdp, plain.human.with_memory(memory, fading=fading))
            best, lasting = solve(tired), [evaluate(tired, p) for p in policies.values()]
            numbers = [number for o in lasting for number in (o.value, o.advice_count)]
            lines.append((factor, best.value, best.advice_count, *numbers))
        names = [f"{name}{what}" for name in ("best", *policies) for what in ("", "_pieces")]
        return to_columns(("factor", *names), lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class TiringLearning:
    """UCB-AD with a person who tires: episode, regret, value_gap, advice_count.

    ``knows`` is whether it knows of the memory; then lifts are learnt on every level. With
    ``shares`` there is one lift for each advice, otherwise one for each step, state and advice.
    Regret is against the best plan, which knows everything.
    """

    id: str
    knows: bool
    shares: bool
    episodes: int
    every: int
    family: str = ""
    seed: int = 0

    def rows(self) -> Rows:
        problem = problem_of(TIRING, self.family, self.seed)
        seen = problem if self.knows else problem.without_memory()
        shape = (seen.n_levels, seen.n_actions) if self.knows else (seen.n_actions,)
        groups = np.arange(np.prod(shape)).reshape(shape) if self.shares else None
        learner = UCBAD(seen.without_adherence(), groups=groups)
        rng = np.random.default_rng(self.seed)
        records = learn(
            learner, Simulator(problem), episodes=self.episodes, every=self.every, rng=rng
        )
        lines = [(r.episode, r.regret, r.value_gap, r.advice_count) for r in records]
        keep = np.unique(np.linspace(0, len(lines) - 1, 200).round().astype(int))
        names = ("episode", "regret", "value_gap", "advice_count")
        return to_columns(names, [lines[i] for i in keep])


def runs(size: Size) -> tuple[Run, ...]:
    """Return the plans for both people, and the learners, on the shipped and on random maps."""
    runs: list[Run] = []
    for person in PEOPLE:
        world = f"flappy-bird/{person}"
        runs.append(Fading(id=f"fatigue/{person}#0", world=world))
        runs += [
            Fading(
                id=f"fatigue/maps-{person}#{seed}",
                world=world,
                family=FAMILY,
                seed=seed,
                factors=(ANCKER,),
            )
            for seed in size.repeats
        ]
    for name, (knows, shares) in LEARNERS.items():
        for prefix, family, most in (("", "", LEARNT), ("maps-", FAMILY, LEARNT_MAPS)):
            seeds = size.at_most(most) if shares else size.few
            runs += [
                TiringLearning(
                    id=f"fatigue/{prefix}{name}#{seed}",
                    knows=knows,
                    shares=shares,
                    episodes=size.episodes(EPISODES),
                    every=size.every(EVERY, EPISODES),
                    family=family,
                    seed=seed,
                )
                for seed in seeds.repeats
            ]
    return tuple(runs)


def pictures(rows: RowsByRun) -> tuple[Picture, ...]:
    """Draw value and pieces against the factor, and the regret of both learners."""
    figure, (axes,) = subplots(1)
    lines = [
        Line(label, *series(rows, f"fatigue/{name}", "regret")) for name, label in KNOWN.items()
    ]
    draw_lines(axes, lines, "episodes", "regret", "UCB-AD, Policy Safe who tires")
    caption = (
        "Regret of learning to advise a pilot who tires, on the shipped map. Lines are means over "
        "seeds, bands 95 % intervals."
    )
    return (
        *(_plan_picture(rows, quantity) for quantity in QUANTITIES),
        Picture.of("fatigue-regret", figure, caption, _learning_claims(rows)[:1]),
    )


def _plan_picture(rows: RowsByRun, quantity: str) -> Picture:
    ending, title, caption = QUANTITIES[quantity]
    figure, panels = subplots(2)
    for axes, person in zip(panels, PEOPLE, strict=True):
        (run,) = seeds_of(rows, f"fatigue/{person}")
        for name, colour in ADVISERS.items():
            axes.plot(run["factor"], run[name + ending], color=colour, label=LABELS[name])
        axes.invert_xaxis()
        show_zero(axes, 0.0, float(axes.dataLim.y1))
        name_axes(axes, "factor for each further piece", title, PEOPLE[person])
    panels[0].legend(fontsize=7.5, frameon=False, loc="best")
    claims = _plan_claims(rows)[list(QUANTITIES).index(quantity) :: 2]
    return Picture.of(f"fatigue-{quantity}", figure, caption, claims)


def claims(rows: RowsByRun) -> tuple[Claim, ...]:
    """Test what a plan loses that is blind to fatigue, and what a learner loses."""
    return (*_plan_claims(rows), *_learning_claims(rows))


def _plan_claims(rows: RowsByRun) -> tuple[Claim, ...]:
    return tuple(claim for person in PEOPLE for claim in _claims_of(rows, person))


def _claims_of(rows: RowsByRun, person: str) -> tuple[Claim, Claim]:
    maps, (shipped,) = seeds_of(rows, f"fatigue/maps-{person}"), seeds_of(rows, f"fatigue/{person}")
    lost = [_at(run, "best") - _at(run, "blind") for run in maps]
    more = [_at(run, "blind_pieces") - _at(run, "best_pieces") for run in maps]
    here = _at(shipped, "best") - _at(shipped, "blind")
    return (
        Claim.share(
            f"{PEOPLE[person]}: where every further piece moves 30 % less, a plan that is blind to "
            f"it loses at least {ENOUGH} per episode, on most maps.",
            "the value lost",
            lost,
            above=ENOUGH,
            source="ours",
            unit="maps",
            note=f"median {digits(float(np.median(lost)))}, on the shipped map {here:.2f}",
        ),
        Claim.share(
            f"{PEOPLE[person]}: the best plan then says less than the blind one, on most maps.",
            "the pieces of the best plan less those of the blind one",
            [-x for x in more],
            below=0.0,
            source="ours",
            unit="maps",
            note=f"the blind plan gives {digits(float(np.median(more)))} more in the median",
        ),
    )


def _learning_claims(rows: RowsByRun) -> tuple[Claim, ...]:
    return (_learning_claim(rows, "", "runs"), _learning_claim(rows, "maps-", "maps"))


def _learning_claim(rows: RowsByRun, prefix: str, unit: str) -> Claim:
    knows, blind = (last_of(rows, f"fatigue/{prefix}{name}", "regret") for name in KNOWN)
    where = "On random maps" if prefix else "On the shipped map"
    middle = " against ".join(digits(float(np.median(regret))) for regret in (knows, blind))
    return Claim.median(
        f"{where}, UCB-AD that knows of the memory has at most a fifth of the regret of UCB-AD "
        "that does not.",
        "the ratio of the regrets",
        knows / np.maximum(blind, NO_REGRET),
        below=FIFTH,
        source="ours",
        unit=unit,
        note=f"medians {middle}",
    )


def tables(rows: RowsByRun) -> tuple[Table, ...]:
    """Show the regret of all four learners, with the smallest and the largest."""
    lines: list[tuple[str, ...]] = [("memory", "lifts", "shipped map", "random maps")]
    for name, (knows, shares) in LEARNERS.items():
        regrets = [last_of(rows, f"fatigue/{prefix}{name}", "regret") for prefix in ("", "maps-")]
        lines.append(
            (
                "known" if knows else "not known",
                "by advice" if shares else "by step, state and advice",
                *(_spread(regret) for regret in regrets),
            )
        )
    caption = (
        f"Regret of UCB-AD in {EPISODES:,} episodes with a pilot who tires: the median over seeds, "
        "or over maps, and the smallest and largest."
    )
    return (Table("fatigue", caption, tuple(lines)),)


def _spread(regret: np.ndarray) -> str:
    low, middle, high = (digits(float(f(regret))) for f in (np.min, np.median, np.max))
    return f"{middle} [{low}, {high}]"


def _at(run: Rows, name: str) -> float:
    """Return a column of a run where every further piece moves 30 % less."""
    return float(run[name][np.isclose(run["factor"], ANCKER)][0])


FATIGUE = Experiment(
    "fatigue",
    "People who tire: planning and learning with a memory",
    runs,
    pictures,
    claims,
    MAPS,
    tables,
)
