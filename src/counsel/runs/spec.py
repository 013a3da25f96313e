"""The settings of one run, as data, and the learner they describe.

``ALGORITHMS`` says for each algorithm which settings it takes and how it is built; everything else,
on the command line too, is read from there.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from counsel._arrays import Ints, whole
from counsel.baselines.black_box import BlackBoxLearner
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
from counsel.learning.learn import DOUBLING
from counsel.learning.learner import Learner
from counsel.learning.rfe import RFE
from counsel.learning.structured import Structured
from counsel.learning.thompson import Thompson
from counsel.learning.ucb_ad import UCBAD
from counsel.model.policy import HardPolicy, Policy
from counsel.model.problem import AdviceProblem, Setting, machine_rewards, support_of
from counsel.planning.best_action import always_best_action
from counsel.planning.silence import never_advise
from counsel.planning.solve import solve
from counsel.simulate.simulator import Simulator

SHARES = {
    "pair": "each pair its own adherence",
    "advice": "adherence shared by advice",
    "all": "one adherence for all",
}
BOUNDS = ("kl", "theory", "paper")
PHASE = "phase"
"""The schedule of UCFH and UC-CFH: what was seen counts once it was seen as often again."""
DELTA = 0.1
"""The probability of failure where a bound needs one and none was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What is learnt, by which algorithm, for how long and from which seed.

    Settings that are None are the algorithm's own.

    Attributes
    ----------
    world
        A world's name, or a problem's file.
    algorithm
        One of ``ALGORITHMS``.
    episodes, every
        How many to play, and after how many to update (or "doubling", or "phase" for ucfh and
        uc-cfh).
    seed
        The same seed gives the same run.
    penalty, budget
        What a piece of advice costs, or how many are expected in an episode at most.
    bound
        "kl", "theory" or "paper".
    share
        Who shares one adherence: each "pair" has its own, all pairs of one "advice", or "all".
    delta, epsilon, scale
        The guarantee asked for, and what a bonus is multiplied by.
    unknown_rewards
        Rewards are learnt too.
    may_repel
        Advice may make an action less likely.
    burn_in
        Episodes of random advice before the run, which count for nothing but what they teach; what
        was not seen in them is then unreachable.
    known_support
        Which states can follow which is known.
    """

    world: str
    algorithm: str
    episodes: int
    every: int | str | None = None
    seed: int = 0
    penalty: float | None = None
    budget: float | None = None
    bound: str | None = None
    share: str | None = None
    delta: float | None = None
    epsilon: float | None = None
    scale: float | None = None
    unknown_rewards: bool = False
    may_repel: bool = False
    burn_in: int | None = None
    known_support: bool = False

    def __post_init__(self) -> None:
        _one_of("algorithm", self.algorithm, tuple(ALGORITHMS))
        whole("episodes", self.episodes, least=1)
        whole("seed", self.seed, least=0)
        if isinstance(self.every, str) and self.every not in (DOUBLING, PHASE):
            raise CounselError(
                f"every is {self.every!r}; give a whole number, {DOUBLING} or {PHASE}"
            )
        if self.every is not None and not isinstance(self.every, str):
            whole("every", self.every, least=1)
        if self.burn_in is not None:
            whole("burn_in", self.burn_in, least=1)
        for name, known in (("bound", BOUNDS), ("share", tuple(SHARES))):
            if getattr(self, name) is not None:
                _one_of(name, getattr(self, name), known)
        takes = ALGORITHMS[self.algorithm].takes
        if self.every == PHASE and PHASE not in takes:
            others = [name for name, a in ALGORITHMS.items() if PHASE in a.takes]
            raise CounselError(
                f"every {PHASE} goes with {', '.join(others)}, not with {self.algorithm}"
            )
        for field in fields(self):
            given = getattr(self, field.name)
            asked = given is not None and given is not False
            if asked and field.name in OPTIONS and field.name not in takes:
                others = [name for name, a in ALGORITHMS.items() if field.name in a.takes]
                raise CounselError(
                    f"{field.name} goes with {', '.join(others)}, not with {self.algorithm}"
                )
        if self.penalty is not None and self.budget is not None:
            raise CounselError(
                f"penalty is {self.penalty} and budget {self.budget}; give one or the other"
            )
        for name in ALGORITHMS[self.algorithm].needs:
            if getattr(self, name) is None:
                raise CounselError(f"{self.algorithm} needs a {name}; none was given")
        if self.delta is not None and self.bound == "paper":
            raise CounselError("the paper's bonus has no delta; give one with kl or theory")
        if self.scale is not None and self.algorithm == "ucb-ad" and self.bound != "paper":
            raise CounselError("scale goes with the paper's bonus, not with kl or theory")

    @property
    def schedule(self) -> int | str:
        """After how many episodes the learner updates."""
        if self.every == PHASE:
            return 1
        return ALGORITHMS[self.algorithm].every if self.every is None else self.every

    @property
    def planned(self) -> bool:
        """Whether how many episodes are played enters the bounds."""
        return ALGORITHMS[self.algorithm].planned or self.bound == "theory"

    @property
    def title(self) -> str:
        """The settings in a few words."""
        limits = [
            f"{name} {getattr(self, name):g}"
            for name in ("penalty", "budget")
            if getattr(self, name) is not None
        ]
        shared = [] if self.share is None else [SHARES[self.share]]
        return ", ".join([f"{self.algorithm} on {self.world}", *limits, *shared])

    def settings(self) -> dict[str, Any]:
        """Return all settings, by name."""
        return asdict(self)

    def build(self, problem: AdviceProblem) -> tuple[Learner, Generator]:
        """Return a new learner, which sees no more than it may, and the chance of its episodes."""
        own, play, before = np.random.default_rng(self.seed).spawn(3)
        learner = ALGORITHMS[self.algorithm].build(self, problem, own)
        if self.burn_in is not None and isinstance(learner, BlackBoxLearner):
            learner.burn_in(Simulator(problem), episodes=self.burn_in, rng=before)
        return learner, play

    @property
    def penalty_or_zero(self) -> float:
        """The penalty; 0 where none was given."""
        return self.penalty or 0.0

    @property
    def episodes_in_all(self) -> int:
        """Episodes with those of the burn-in."""
        return self.episodes + (self.burn_in or 0)

    def guarantee(self) -> dict[str, float]:
        """Return what was given of δ, ε and the scale."""
        given = {"delta": self.delta, "epsilon": self.epsilon, "scale": self.scale}
        return {name: value for name, value in given.items() if value is not None}

    def groups(self, problem: AdviceProblem) -> Ints | None:
        """Return who shares one adherence; None is what the world says."""
        if self.share is None:
            return None
        S, A = problem.n_states, problem.n_actions
        if self.share == "pair":
            return np.arange(S * A).reshape(S, A)
        return np.arange(A) if self.share == "advice" else np.zeros(A, dtype=np.int64)


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise CounselError(f"{name} is {value!r}; it must be one of {', '.join(known)}")


def _bound(spec: Spec) -> Bound:
    if spec.bound == "theory":
        return Theory(delta=DELTA if spec.delta is None else spec.delta, episodes=spec.episodes)
    if spec.bound == "paper":
        return PaperBonus() if spec.scale is None else PaperBonus(scale=spec.scale)
    return KL(delta=spec.delta)


def _setting(spec: Spec, problem: AdviceProblem) -> Setting:
    setting = problem.without_adherence()
    return setting.without_rewards() if spec.unknown_rewards else setting


def _ucb_ad(spec: Spec, problem: AdviceProblem, rng: Generator) -> Learner:
    return UCBAD(
        _setting(spec, problem),
        bound=_bound(spec),
        groups=spec.groups(problem),
        rng=rng,
        may_repel=spec.may_repel,
        penalty=spec.penalty_or_zero,
        budget=spec.budget,
    )


def _thompson(spec: Spec, problem: AdviceProblem, rng: Generator) -> Learner:
    setting, groups = problem.without_adherence(), spec.groups(problem)
    return Thompson(
        setting, rng=rng, groups=groups, penalty=spec.penalty_or_zero, budget=spec.budget
    )


def _rfe(spec: Spec, problem: AdviceProblem, rng: Generator) -> Learner:
    reward = None if spec.unknown_rewards else problem.mdp.reward
    return RFE(
        problem.shape,
        rng=rng,
        reward=reward,
        most_penalty=spec.penalty_or_zero,
        penalty=spec.penalty_or_zero,
        budget=spec.budget,
        **spec.guarantee(),
    )


def _structured(spec: Spec, problem: AdviceProblem, rng: Generator) -> Learner:
    reward = None if spec.unknown_rewards else problem.mdp.reward
    return Structured(
        problem.shape,
        rng=rng,
        groups=spec.groups(problem),
        reward=reward,
        most_penalty=spec.penalty_or_zero,
        penalty=spec.penalty_or_zero,
        budget=spec.budget,
        **spec.guarantee(),
    )


def _black_box(spec: Spec, problem: AdviceProblem, rng: Generator) -> dict[str, Any]:
    """Return what all learners of the machine's world take."""
    reward = None if spec.unknown_rewards else machine_rewards(problem)
    return {"shape": problem.shape, "rng": rng, "reward": reward, **spec.guarantee()}


def _euler(spec: Spec, problem: AdviceProblem, rng: Generator) -> Learner:
    known = _black_box(spec, problem, rng)
    return EULER(**known, episodes=spec.episodes_in_all, penalty=spec.penalty_or_zero)


def _ucbvi(
    bonus: Freedman | Hoeffding, spec: Spec, problem: AdviceProblem, rng: Generator
) -> Learner:
    known = _black_box(spec, problem, rng)
    return UCBVI(**known, bonus=bonus, episodes=spec.episodes_in_all, penalty=spec.penalty_or_zero)


def _q_learning(
    bonus: Bernstein | Hoeffding, spec: Spec, problem: AdviceProblem, rng: Generator
) -> Learner:
    known = _black_box(spec, problem, rng)
    return QLearning(
        **known, bonus=bonus, episodes=spec.episodes_in_all, penalty=spec.penalty_or_zero
    )


def _rf_express(spec: Spec, problem: AdviceProblem, rng: Generator) -> Learner:
    return RFExpress(**_black_box(spec, problem, rng), penalty=spec.penalty_or_zero)


def _boxed(spec: Spec, problem: AdviceProblem, rng: Generator) -> dict[str, Any]:
    """Return what learners with intervals take besides."""
    return _black_box(spec, problem, rng) | {
        "support": support_of(problem) if spec.known_support else None,
        "phases": Phases() if spec.every == PHASE else None,
    }


def _ucfh(spec: Spec, problem: AdviceProblem, rng: Generator) -> Learner:
    return UCFH(**_boxed(spec, problem, rng), penalty=spec.penalty_or_zero)


def _uc_cfh(spec: Spec, problem: AdviceProblem, rng: Generator) -> Learner:
    return UCCFH(**_boxed(spec, problem, rng), budget=spec.budget or 0.0)


def _never(spec: Spec, problem: AdviceProblem, rng: Generator) -> Learner:
    return _fixed(spec, never_advise(problem), rng)


def _best_action(spec: Spec, problem: AdviceProblem, rng: Generator) -> Learner:
    return _fixed(spec, always_best_action(problem), rng)


def _all_listen(spec: Spec, problem: AdviceProblem, rng: Generator) -> Learner:
    policy = as_if_all_listened(problem, penalty=spec.penalty, budget=spec.budget)
    return _fixed(spec, policy, rng)


def _optimum(spec: Spec, problem: AdviceProblem, rng: Generator) -> Learner:
    return _fixed(spec, solve(problem, penalty=spec.penalty, budget=spec.budget).policy, rng)


def _fixed(spec: Spec, policy: Policy | HardPolicy, rng: Generator) -> Learner:
    if not isinstance(policy, Policy):
        raise CounselError("a policy with a hard budget cannot be run here")
    return Fixed(policy, penalty=spec.penalty_or_zero, budget=spec.budget, rng=rng)


class Algorithm(NamedTuple):
    """How an algorithm is built, after how many episodes it updates, and what it takes.

    ``needs`` are settings without which it makes no sense; ``planned`` says that how many episodes
    are played enters its bounds, so that a run cannot be made longer.
    """

    build: Callable[[Spec, AdviceProblem, Generator], Learner]
    every: int
    takes: frozenset[str]
    needs: tuple[str, ...] = ()
    planned: bool = False


LIMIT = frozenset({"penalty", "budget"})
GUARANTEE = frozenset({"delta", "epsilon", "scale", "unknown_rewards"})
BLACK_BOX = frozenset({"penalty", "delta", "scale", "burn_in"})
BOXED = frozenset({"delta", "epsilon", "scale", "burn_in", "known_support", PHASE})
OPTIONS = LIMIT | GUARANTEE | {"bound", "share", "may_repel", "burn_in", "known_support"}
"""Settings that not every algorithm takes."""

ALGORITHMS = {
    "ucb-ad": Algorithm(_ucb_ad, 1, OPTIONS - {"epsilon", "burn_in", "known_support"}),
    "thompson": Algorithm(_thompson, 1, LIMIT | {"share"}),
    "rfe-ad": Algorithm(_rfe, 50, GUARANTEE),
    "rfe-beta": Algorithm(_rfe, 50, GUARANTEE | {"penalty"}, ("penalty",)),
    "rfe-cmdp": Algorithm(_rfe, 50, GUARANTEE | {"budget"}, ("budget",)),
    "structured": Algorithm(_structured, 50, GUARANTEE | LIMIT | {"share"}),
    "euler": Algorithm(_euler, 50, BLACK_BOX | {"unknown_rewards"}, planned=True),
    "ucbvi": Algorithm(partial(_ucbvi, Freedman()), 1, BLACK_BOX, planned=True),
    "ucbvi-hoeffding": Algorithm(partial(_ucbvi, Hoeffding()), 1, BLACK_BOX, planned=True),
    "q-learning": Algorithm(
        partial(_q_learning, Bernstein()), 1, BLACK_BOX | {"unknown_rewards"}, planned=True
    ),
    "q-learning-hoeffding": Algorithm(
        partial(_q_learning, Hoeffding()), 1, BLACK_BOX | {"unknown_rewards"}, planned=True
    ),
    "rf-express": Algorithm(_rf_express, 1, GUARANTEE | {"penalty", "burn_in"}),
    "ucfh": Algorithm(_ucfh, 50, BOXED | {"penalty"}),
    "uc-cfh": Algorithm(_uc_cfh, 50, BOXED | {"budget"}, ("budget",)),
    "never": Algorithm(_never, 1000, LIMIT),
    "best-action": Algorithm(_best_action, 1000, LIMIT),
    "all-listen": Algorithm(_all_listen, 1000, LIMIT),
    "optimum": Algorithm(_optimum, 1000, LIMIT),
}
