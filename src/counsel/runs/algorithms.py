"""Every algorithm by name: the settings it takes, and how it is built from them.

``ALGORITHMS`` is the one table of algorithms; ``Spec`` and the command line read it.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.random import Generator

from counsel.baselines.bonuses import Bernstein, Freedman, Hoeffding
from counsel.baselines.confidence_sets import Phases
from counsel.baselines.euler import EULER
from counsel.baselines.q_learning import QLearning
from counsel.baselines.reference_advisers import Fixed, as_if_all_listened
from counsel.baselines.rf_express import RFExpress
from counsel.baselines.uc_cfh import UCCFH
from counsel.baselines.ucbvi import UCBVI
from counsel.baselines.ucfh import UCFH
from counsel.errors import CounselError
from counsel.estimate.bounds import KL, Bound, PaperBonus, Theory
from counsel.learning.learner import Learner
from counsel.learning.rfe import RFE
from counsel.learning.structured import Structured
from counsel.learning.thompson import Thompson
from counsel.learning.ucb_ad import UCBAD
from counsel.model.machine import machine_rewards, support_of
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.planning.reference_policies import always_best_action, never_advise
from counsel.planning.solve import solve

if TYPE_CHECKING:
    from counsel.runs.spec import Spec

PHASE = "phase"  # the schedule of UCFH and UC-CFH: update when the counts of a pair have doubled
DELTA = 0.1  # the default failure probability of bounds that need one


class Algorithm(NamedTuple):
    """An algorithm of ``counsel learn``.

    ``build`` builds the learner, ``every`` is the default number of episodes between updates, and
    ``takes`` are the settings it takes besides those of every run, of which it needs ``needs``.
    ``fixed_length`` says that its bounds depend on the number of episodes, so that a run cannot be
    extended.
    """

    build: "Callable[[Spec, AdviceProblem, Generator], Learner]"
    every: int
    takes: frozenset[str]
    needs: tuple[str, ...] = ()
    fixed_length: bool = False


def _bound(spec: "Spec") -> Bound:
    if spec.bound == "theory":
        return Theory(delta=DELTA if spec.delta is None else spec.delta, episodes=spec.episodes)
    if spec.bound == "paper":
        return PaperBonus() if spec.scale is None else PaperBonus(scale=spec.scale)
    return KL(delta=spec.delta)


def _ucb_ad(spec: "Spec", problem: AdviceProblem, rng: Generator) -> Learner:
    setting = problem.without_adherence()
    return UCBAD(
        setting.without_rewards() if spec.unknown_rewards else setting,
        bound=_bound(spec),
        groups=spec.groups(problem),
        rng=rng,
        may_repel=spec.may_repel,
        penalty=spec.penalty_or_zero,
        budget=spec.budget,
    )


def _thompson(spec: "Spec", problem: AdviceProblem, rng: Generator) -> Learner:
    setting, groups = problem.without_adherence(), spec.groups(problem)
    return Thompson(
        setting, rng=rng, groups=groups, penalty=spec.penalty_or_zero, budget=spec.budget
    )


def _explorer(kind: Any, spec: "Spec", problem: AdviceProblem, rng: Generator) -> Learner:  # noqa: ANN401 (a class)
    """Build a learner of person and world."""
    options = spec.guarantee()
    if kind is Structured:
        options["groups"] = spec.groups(problem)
    learner: Learner = kind(
        problem.shape,
        rng=rng,
        reward=None if spec.unknown_rewards else problem.mdp.reward,
        most_penalty=spec.penalty_or_zero,
        penalty=spec.penalty_or_zero,
        budget=spec.budget,
        **options,
    )
    return learner


def _black_box(
    kind: Any,  # noqa: ANN401 (a class)
    spec: "Spec",
    problem: AdviceProblem,
    rng: Generator,
    **options: object,
) -> Learner:
    """Build a learner of the machine's world, which ignores its structure."""
    algorithm = ALGORITHMS[spec.algorithm]
    if problem.memory is not None and not spec.unknown_rewards:
        blind = ", or unknown rewards" if "unknown_rewards" in algorithm.takes else ""
        raise CounselError(
            f"algorithm {spec.algorithm} knows no levels, and this person has a memory "
            f"({problem.memory.name}); use {', '.join(KNOW_LEVELS)}{blind}"
        )
    if algorithm.fixed_length:
        options["episodes"] = spec.episodes + (spec.burn_in or 0)
    if "known_support" in algorithm.takes:
        options["support"] = support_of(problem) if spec.known_support else None
        options["phases"] = Phases() if spec.every == PHASE else None
    if "budget" in algorithm.takes:
        options["budget"] = spec.budget or 0.0
    else:
        options["penalty"] = spec.penalty_or_zero
    reward = None if spec.unknown_rewards else machine_rewards(problem)
    learner: Learner = kind(problem.shape, rng=rng, reward=reward, **spec.guarantee(), **options)
    return learner


def _fixed(
    plan: Callable[..., Policy], spec: "Spec", problem: AdviceProblem, rng: Generator
) -> Learner:
    """Build an adviser that does not learn; ``plan`` takes the problem, a penalty and a budget."""
    policy = plan(problem, penalty=spec.penalty, budget=spec.budget)
    return Fixed(policy, penalty=spec.penalty_or_zero, budget=spec.budget, rng=rng)


KNOW_LEVELS = ("ucb-ad", "thompson", "rfe-ad", "rfe-beta", "rfe-cmdp", "structured")
"""Algorithms that learn on the levels of a person's memory."""

LIMIT = frozenset({"penalty", "budget"})
GUARANTEE = frozenset({"delta", "epsilon", "scale", "unknown_rewards"})
BLACK_BOX = frozenset({"penalty", "delta", "scale", "burn_in"})
CONFIDENCE_SETS = frozenset({"delta", "epsilon", "scale", "burn_in", "known_support", PHASE})
OPTIONS = LIMIT | GUARANTEE | {"bound", "share", "may_repel", "burn_in", "known_support"}
"""Settings that some algorithms take and others do not."""


def _with_bonus(kind: type, every: int, *more: str, **bonus: Any) -> Algorithm:  # noqa: ANN401 (options)
    """Return a learner with a bonus that depends on the number of episodes."""
    build = partial(_black_box, kind, **bonus)
    return Algorithm(build, every, BLACK_BOX.union(more), fixed_length=True)


ALGORITHMS = {
    "ucb-ad": Algorithm(_ucb_ad, 1, OPTIONS - {"epsilon", "burn_in", "known_support"}),
    "thompson": Algorithm(_thompson, 1, LIMIT | {"share"}),
    "rfe-ad": Algorithm(partial(_explorer, RFE), 50, GUARANTEE),
    "rfe-beta": Algorithm(partial(_explorer, RFE), 50, GUARANTEE | {"penalty"}, ("penalty",)),
    "rfe-cmdp": Algorithm(partial(_explorer, RFE), 50, GUARANTEE | {"budget"}, ("budget",)),
    "structured": Algorithm(partial(_explorer, Structured), 50, GUARANTEE | LIMIT | {"share"}),
    "euler": _with_bonus(EULER, 50, "unknown_rewards"),
    "ucbvi": _with_bonus(UCBVI, 1, bonus=Freedman()),
    "ucbvi-hoeffding": _with_bonus(UCBVI, 1, bonus=Hoeffding()),
    "q-learning": _with_bonus(QLearning, 1, "unknown_rewards", bonus=Bernstein()),
    "q-learning-hoeffding": _with_bonus(QLearning, 1, "unknown_rewards", bonus=Hoeffding()),
    "rf-express": Algorithm(partial(_black_box, RFExpress), 1, GUARANTEE | {"penalty", "burn_in"}),
    "ucfh": Algorithm(partial(_black_box, UCFH), 50, CONFIDENCE_SETS | {"penalty"}),
    "uc-cfh": Algorithm(partial(_black_box, UCCFH), 50, CONFIDENCE_SETS | {"budget"}, ("budget",)),
    "never": Algorithm(partial(_fixed, lambda problem, **_: never_advise(problem)), 1000, LIMIT),
    "best-action": Algorithm(
        partial(_fixed, lambda problem, **_: always_best_action(problem)), 1000, LIMIT
    ),
    "all-listen": Algorithm(partial(_fixed, as_if_all_listened), 1000, LIMIT),
    "optimum": Algorithm(
        partial(_fixed, lambda problem, **limit: solve(problem, **limit).policy), 1000, LIMIT
    ),
}
