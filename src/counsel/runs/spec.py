"""The settings of one learning run, as data."""

from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.random import Generator

from counsel._arrays import Ints, whole
from counsel.baselines.black_box import BlackBoxLearner
from counsel.errors import CounselError
from counsel.learning.learn import DOUBLING
from counsel.learning.learner import Learner
from counsel.model.problem import AdviceProblem
from counsel.runs.algorithms import ALGORITHMS, OPTIONS, PHASE
from counsel.simulate.simulator import Simulator

SHARES = {
    "pair": "each pair its own adherence",
    "advice": "adherence shared by advice",
    "all": "one adherence for all",
}
BOUNDS = ("kl", "theory", "paper")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """The settings of a run: world, algorithm, episodes, seed and options of the algorithm.

    A setting that is None has the default of the algorithm.

    Settings whose meaning is not obvious:

    * ``every``, between updates, may be "doubling", or "phase" for ucfh and uc-cfh;
    * ``share`` says which pairs share an adherence: "pair" (none), "advice" (all states of an
      advice), or "all";
    * ``scale`` is a factor on the bonus;
    * ``random_rewards`` replaces certain rewards by the least or the largest of their range, with
      the same means;
    * ``burn_in`` is a number of episodes of random advice before the run, without regret; states
      that they do not reach count as unreachable;
    * ``known_support`` tells the learner which states can follow which.
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
    random_rewards: bool = False
    may_repel: bool = False
    burn_in: int | None = None
    known_support: bool = False

    def __post_init__(self) -> None:
        _check_choice("algorithm", self.algorithm, tuple(ALGORITHMS))
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
        for name, choices in (("bound", BOUNDS), ("share", tuple(SHARES))):
            if getattr(self, name) is not None:
                _check_choice(name, getattr(self, name), choices)
        if self.every == PHASE:
            _check_takes(self.algorithm, PHASE, f"every {PHASE}")
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in OPTIONS and value is not None and value is not False:
                _check_takes(self.algorithm, field.name, field.name)
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
        """The number of episodes between updates, or "doubling"."""
        if self.every == PHASE:
            return 1
        return ALGORITHMS[self.algorithm].every if self.every is None else self.every

    @property
    def fixed_length(self) -> bool:
        """Whether the bounds depend on the number of episodes, so that a run cannot be extended."""
        return ALGORITHMS[self.algorithm].fixed_length or self.bound == "theory"

    @property
    def title(self) -> str:
        """The algorithm, the world and the main settings in words."""
        limits = {"penalty": self.penalty, "budget": self.budget}
        words = [f"{name} {limit:g}" for name, limit in limits.items() if limit is not None]
        shared = [] if self.share is None else [SHARES[self.share]]
        return ", ".join([f"{self.algorithm} on {self.world}", *words, *shared])

    def settings(self) -> dict[str, Any]:
        """Return all settings by name."""
        return asdict(self)

    def build(self, problem: AdviceProblem) -> tuple[Learner, Generator]:
        """Return a new learner and the random generator of its episodes.

        The learner sees only the part of the problem that its algorithm may know.
        """
        learner_rng, episode_rng, burn_in_rng = np.random.default_rng(self.seed).spawn(3)
        learner = ALGORITHMS[self.algorithm].build(self, problem, learner_rng)
        if self.burn_in is not None and isinstance(learner, BlackBoxLearner):
            learner.burn_in(Simulator(problem), episodes=self.burn_in, rng=burn_in_rng)
        return learner, episode_rng

    @property
    def penalty_or_zero(self) -> float:
        """The penalty, or 0 without one."""
        return self.penalty or 0.0

    def guarantee(self) -> dict[str, Any]:
        """Return those of δ, ε and the scale that are set."""
        values = {"delta": self.delta, "epsilon": self.epsilon, "scale": self.scale}
        return {name: value for name, value in values.items() if value is not None}

    def groups(self, problem: AdviceProblem) -> Ints | None:
        """Return which pairs share an adherence; None for the groups of the world.

        Levels of a memory share nothing.
        """
        if self.share is None:
            return None
        S, A, M = problem.n_states, problem.n_actions, problem.n_levels
        pairs = {"pair": (M, S, A), "advice": (M, A), "all": (M, 1)}[self.share]
        groups = np.arange(int(np.prod(pairs))).reshape(pairs)
        if self.share == "all":
            groups = np.repeat(groups, A, axis=1)
        return groups if problem.memory is not None else groups[0]


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise CounselError(f"{name} is {value!r}; it must be one of {', '.join(choices)}")


def _check_takes(algorithm: str, option: str, shown: str) -> None:
    """Raise an error if the algorithm does not take the option."""
    if option not in ALGORITHMS[algorithm].takes:
        others = [name for name, other in ALGORITHMS.items() if option in other.takes]
        raise CounselError(f"{shown} goes with {', '.join(others)}, not with {algorithm}")
