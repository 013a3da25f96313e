"""A population: people who are advised one by one, each believed to be like the others at first.

The world is known; habits and lifts are learnt from what people do (``estimate/person.py``). Each
person is advised by the best plan for the estimate of them, with an optimistic lift (UCB-AD) or a
drawn one (Thompson sampling). A plan is renewed when the decisions of the person, or of everybody,
have grown by a tenth. An adviser of ``counsel serve`` is a population whose counts are read from
the database.

*Must-say* advice is given wherever its state is met, whatever the limit. To the planner such a
state is one where the person acts as they do when advised so, and nothing more can be said.

*A memory* is the model's: its levels, how advice moves people between them, and the fading, a
factor for each level that multiplies the lift. The lift itself is learnt, on whichever level a
piece found the person. Plans have one plane per level. To the planner must-say advice is said to
somebody on the start level, and moves nobody to another: plans do not foresee that it tires, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from counsel._arrays import Bools, Floats, layers, unlayered, whole
from counsel.errors import CounselError
from counsel.estimate.faded_lift import LevelCounts
from counsel.estimate.people_counts import DecisionCounts, PeopleCounts
from counsel.estimate.person import PersonEstimate, PersonModel
from counsel.learning.arguments import read_limit, read_setting, shared_parameters
from counsel.learning.person_learner import PersonLearner
from counsel.model.human import Human, read_fading
from counsel.model.memory import Memory
from counsel.model.problem import AdviceProblem
from counsel.model.setting import Setting
from counsel.planning.evaluate import evaluate
from counsel.planning.plan import Plan, PlanOutcome
from counsel.planning.reference_policies import always_best_action
from counsel.planning.solve import solve

NOBODY = -1  # a person of whom nothing was observed
GROWTH = 1.1  # a plan is renewed when decisions have grown by this factor since it was made


@dataclass(frozen=True, slots=True)
class Limit:
    """What advice may cost: a penalty per unit of cost, or a budget, hard or on average.

    The penalty is one number, or one for each step.

    ``always`` advises the best action at every step, whatever it costs and whoever listens.
    """

    penalty: float | tuple[float, ...] | None = None
    budget: float | None = None
    hard: bool = False
    always: bool = False

    def __post_init__(self) -> None:
        if self.always and (self.penalty, self.budget, self.hard) != (None, None, False):
            raise CounselError("always advising takes no penalty and no budget")

    @property
    def is_paced(self) -> bool:
        """Whether it is a budget that is met on average."""
        return self.budget is not None and not self.hard


@dataclass(frozen=True, slots=True, eq=False)
class PersonPlan:
    """The best plan for the estimate of one person, and the problem it solves.

    ``decisions`` counts those of this person and of everybody when the plan was made.
    """

    estimate: PersonEstimate
    problem: AdviceProblem
    plan: Plan
    decisions: tuple[int, int]


@dataclass(slots=True)
class Population:
    """Learns how each of many people listens, and shares what it learns among them.

    Parameters
    ----------
    setting
        What is known: ``problem.without_adherence()``. Its person is the prior habit, or the habit
        itself with ``knows_habit``.
    algorithm
        "ucb-ad" plans with an upper bound of each lift, "thompson" with a draw.
    knows_habit
        Whether every person is known to act as the setting's person does when left alone.
    must_say
        Advice by state that is given whatever the limit.
    counts
        What people did so far, and where more is added.
    fading
        Where people have a memory: the factor [m] that multiplies the lift on each level.

    Raises
    ------
    CounselError
        If an argument is invalid, e.g. ``knows_habit`` where the habit changes from step to step.

    Examples
    --------
    Two nurses on the same ward. What the first one made of advice is a start for the second:

    >>> import numpy as np
    >>> import counsel
    >>> problem = counsel.make("ward")
    >>> population = Population(problem.without_adherence(), knows_habit=True)
    >>> population.estimate(2).lift.round(2).tolist()
    [0.5, 0.5, 0.5]
    >>> first = population.learner(1, penalty=0.05)
    >>> *_, last = counsel.learn(
    ...     first, counsel.Simulator(problem), episodes=200, rng=np.random.default_rng(0)
    ... )
    >>> population.estimate(2).lift.round(2).tolist()
    [0.5, 0.33, 0.71]
    """

    setting: Setting
    algorithm: str = "ucb-ad"
    knows_habit: bool = False
    must_say: Mapping[int, int] = field(default_factory=dict)
    counts: PeopleCounts = field(default_factory=PeopleCounts)
    fading: Floats | None = None
    _model: PersonModel = field(init=False, repr=False)
    _silent: Bools = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not read_setting(self.setting).knows_rewards:
            raise CounselError("a population needs rewards that are known; UCBAD learns them")
        policy = self.setting.policy
        if self.knows_habit and np.ptp(policy, axis=0).any():
            raise CounselError(
                "knows_habit is for people who act alike at every step; this world's do not"
            )
        if self.memory is not None and self.fading is None:
            raise CounselError(
                f"the people have a memory ({self.memory.name}), whose fading is not learnt; give "
                f"fading, a factor for each of its {self.memory.n_levels} levels"
            )
        self.fading = read_fading(self.memory, self.fading)
        prior = policy[0] if self.knows_habit else policy.mean(axis=0)
        self._model = PersonModel(prior, self.knows_habit, self.algorithm, self.fading)
        self._silent = np.zeros(policy.shape[1], dtype=np.bool_)
        self._silent[self._check_must_say()] = True

    @property
    def memory(self) -> Memory | None:
        """What every person carries over from advice given; None if nothing."""
        return self.setting.memory

    @shared_parameters
    def learner(
        self,
        person: int,
        *,
        penalty: ArrayLike = 0.0,
        budget: float | None = None,
        hard: bool = False,
        rng: Generator | None = None,
    ) -> PersonLearner:
        """Return the learner of one person, which adds to what is known of everybody.

        Parameters
        ----------
        person
            The person's number, 0 or more.
        hard
            Whether no episode may exceed the budget; otherwise it is met on average.
        rng
            The source of randomness for Thompson sampling and for policies that draw.

        Raises
        ------
        CounselError
            If a number is out of range, or Thompson sampling has no ``rng``.
        """
        price, _ = read_limit(penalty, budget, self.setting.mdp.horizon)
        own = price if isinstance(price, float) else tuple(price.tolist())
        limit = Limit(None if budget is not None else own, budget, hard)
        return PersonLearner(self, whole("person", person, least=0), limit, rng)

    def estimate(self, person: int, rng: Generator | None = None) -> PersonEstimate:
        """Return the habit of a person, the lift of each advice, and the lift that plans use.

        Parameters
        ----------
        person
            The person's number; one who was never observed is believed to be like everybody.
        rng
            The source of Thompson sampling's draws.
        """
        return self._model.estimate(*self.counts_of(person), rng, self._levels_of(person))

    def faded_interval(self, person: int | None) -> tuple[Floats, Floats] | None:
        """Return the ends [b] of the interval of each lift where the levels of a memory differ.

        Elsewhere the result is None: an interval follows from the lift and its exposure.

        Parameters
        ----------
        person
            The person's number; None for the lift over all people.
        """
        levels = self._levels_of(NOBODY if person is None else person)
        if levels is None or not self._model.fades:
            return None
        own, everybody = self.counts_of(NOBODY if person is None else person)
        return self._model.faded_interval(None if person is None else own, everybody, levels)

    def _levels_of(self, person: int) -> tuple[LevelCounts, LevelCounts] | None:
        return None if self.memory is None else self.counts.by_level(person, self.possible)

    def counts_of(self, person: int) -> tuple[DecisionCounts, DecisionCounts]:
        """Return what a person did, and what everybody did, as arrays [s, a].

        Actions that the world rules out are left out: nothing can be learnt of them.

        Parameters
        ----------
        person
            The person's number.
        """
        return self.counts.arrays(person, self.possible)

    @property
    def possible(self) -> Bools:
        """Where an action is possible at some step, as an array [s, a]."""
        return np.asarray(layers(self.setting.mdp.allowed).any(axis=0))

    def population_lift(self) -> tuple[Floats, Floats]:
        """Return the lift [b] of each advice over all people, and its exposure [b]."""
        levels = self._levels_of(NOBODY)
        everybody = self.counts_of(NOBODY)[1]
        return self._model.population_lift(everybody, None if levels is None else levels[1])

    def problem(self, estimate: PersonEstimate) -> AdviceProblem:
        """Return the world with a person; must-say advice is part of what they do.

        Parameters
        ----------
        estimate
            The estimate of the person.
        """
        mdp = self.setting.mdp
        allowed = layers(mdp.allowed)  # [layer, s, a]: one layer where masks do not change
        habit = np.where(allowed, estimate.habit, 0.0)
        fading, start = np.ones(1), 0
        if self.memory is not None and self.fading is not None:
            fading, start = self.fading, self.memory.start
        by_level = np.minimum(fading[:, None] * estimate.planned_lift, 1.0)  # [m, b]
        lift = np.where(allowed, by_level[:, None, None, :], 0.0)
        for state, advice in self.must_say.items():
            said = lift[start, :, state, advice, None]
            habit[:, state] *= 1.0 - said
            habit[:, state, advice] += said[:, 0]
            lift[:, :, state] = 0.0
        total = habit.sum(axis=2, keepdims=True)
        # Where only actions that were never taken are allowed, people do as the setting says.
        fallback = self.setting.policy[: len(habit)]
        habit = np.where(total > 0.0, habit / np.where(total > 0.0, total, 1.0), fallback)
        if self.memory is None:
            person = Human(unlayered(habit), lift=unlayered(lift[0]))
        else:
            levels = np.stack([unlayered(table) for table in lift])
            person = Human(unlayered(habit), lift=levels, memory=self.memory)
        return AdviceProblem(mdp, person, self.setting.cost)

    def plan(self, person: int, limit: Limit, rng: Generator | None = None) -> PersonPlan:
        """Return the best plan for the estimate of a person.

        Parameters
        ----------
        person
            The person's number.
        limit
            What advice may cost.
        rng
            The source of Thompson sampling's draws.
        """
        decisions = self.counts.decisions(person)
        return self.plan_for(self.estimate(person, rng), limit, decisions)

    def plan_for(
        self, estimate: PersonEstimate, limit: Limit, decisions: tuple[int, int]
    ) -> PersonPlan:
        """Return the best plan for an estimate that rests on so many decisions.

        Parameters
        ----------
        estimate
            The estimate of the person.
        limit
            What advice may cost.
        decisions
            Decisions of the person and of everybody behind the estimate.
        """
        problem = self.problem(estimate)
        plan = solve(
            problem,
            penalty=0.0 if limit.always else limit.penalty,
            budget=limit.budget,
            hard=limit.hard,
            forbidden=self.forbidden,
            allow_reverse=False,
        )
        if limit.always:
            silent = np.broadcast_to(self._silent, (problem.horizon, self._silent.size))
            policy = always_best_action(problem).silent_where(silent)
            worth = evaluate(problem, policy)
            outcome = PlanOutcome(worth.value, worth.advice_count, worth.advice_cost)
            plan = plan.with_policy(policy, outcome)
        return PersonPlan(estimate, problem, plan, decisions)

    @property
    def forbidden(self) -> Bools | None:
        """States [s] where nothing more can be said; None where there are none."""
        return self._silent if self._silent.any() else None

    def has_moved(self, decisions: tuple[int, int], person: int) -> bool:
        """Return whether a plan is to be renewed: decisions have grown, or were taken out.

        Parameters
        ----------
        decisions
            ``PersonPlan.decisions`` of the plan.
        person
            The person's number.
        """
        own, everybody = self.counts.decisions(person)
        was_own, was_everybody = decisions
        fewer = everybody < was_everybody
        return fewer or own > GROWTH * was_own or everybody > GROWTH * was_everybody + 1

    def _check_must_say(self) -> list[int]:
        mdp = self.setting.mdp
        for state, advice in self.must_say.items():
            if not (0 <= state < mdp.n_states and 0 <= advice < mdp.n_actions):
                raise CounselError(
                    f"must_say has state {state} and advice {advice}; there are {mdp.n_states} "
                    f"states and {mdp.n_actions} actions"
                )
            if not mdp.allowed[:, state, advice].all():
                raise CounselError(
                    f"must_say advises {mdp.action_name(advice)} in {mdp.state_name(state)}, "
                    "where it cannot be done"
                )
        return list(self.must_say)
