"""An adviser that learns how each person listens, from the log alone.

What it knows is the world (p and r). What it learns are counts (``seen.py``).

*Habit.* Where the person's own policy is not known it is the likeliest one given silence and
refusals (``estimate/habit.py``), with the population's added as ``LEAN`` silent decisions in every
state, and to the population's a stated prior, worth ``LEAN`` decisions too.

*Lift.* Pairs that share one lift λ (all states of one advice) have n pieces seen, k matches and Σπ
expected ones; e = n − Σπ is how often it could have moved somebody and x = k − Σπ how often it did.
One person leans on all:

    λ̂ = (x + κ λ_all) / (e + κ),     λ_all = (Σ x + 1/2) / (Σ e + 1),      κ = POOL

so a new person starts as everybody and drifts to their own. *UCB-AD* plans with the largest λ that
(e + κ) kl(λ̂, λ) ≤ log(1 + t) allows after t pieces of advice, *Thompson* with a draw from
Beta(x + κ λ_all + 1/2, …).

*Must-say* entries are said wherever their state is met, whatever the budget. To the planner such a
state is one where the person acts as they do when advised so, and nothing more can be said.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from counsel._arrays import Bools, Floats
from counsel.errors import CounselError
from counsel.estimate.habit import likeliest_habit
from counsel.model.human import Human
from counsel.model.problem import AdviceProblem
from counsel.planning.best_action import always_best_action
from counsel.planning.criticality import criticality
from counsel.planning.evaluate import evaluate
from counsel.planning.gains import gains
from counsel.planning.plan import Plan
from counsel.planning.solve import solve
from counsel.service.core.person_counts import Seen, Tables

LEAN = 5.0
"""Silent decisions in each state that what is believed beforehand counts for."""

POOL = 5.0
"""Pieces of advice that the population counts for, for one person."""

ALGORITHMS = ("ucb-ad", "thompson")


NOBODY = -1
"""The person of whom nothing was seen."""

RANKED = 20_000
"""Cells up to which the criticality of each is worked out with a plan."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What advice may cost: a penalty for each piece, or a budget, hard or on average.

    ``always`` is the best action at every step, whatever it costs and whoever listens.
    """

    penalty: float | None = None
    budget: float | None = None
    hard: bool = False
    always: bool = False

    def __post_init__(self) -> None:
        if self.always and (self.penalty, self.budget, self.hard) != (None, None, False):
            raise CounselError("always advising takes no penalty and no budget")

    @property
    def paced(self) -> bool:
        """Whether it is a budget that is to be met on average."""
        return self.budget is not None and not self.hard


@dataclass(frozen=True, slots=True, eq=False)
class Believed:
    """What is believed of one person.

    Attributes
    ----------
    habit
        [s, a]: what they do alone.
    lift, room
        [b]: the share that each advice moves, and how often it could have moved somebody.
    optimistic
        [b]: the lift that is planned with.
    """

    habit: Floats
    lift: Floats
    room: Floats
    optimistic: Floats


@dataclass(frozen=True, slots=True, eq=False)
class PersonPlan:
    """A plan for one person, and what is needed to say why.

    Attributes
    ----------
    believed, plan
        What it is based on, and the plan itself.
    advantage, gain
        [h, s, a] at the plan's price; under a hard budget with all pieces left.
    criticality
        [h, s]: the largest penalty at which advice still pays; None in worlds of many cells.
    seen
        Decisions of this person, and of all, that were known when it was made.
    episodes
        Episodes whose spending was known when it was made, where a budget is met on average.
    """

    believed: Believed
    problem: AdviceProblem
    plan: Plan
    advantage: Floats
    gain: Floats
    criticality: Floats | None
    seen: tuple[int, int]
    episodes: int = 0

    @property
    def size(self) -> int:
        """Bytes it takes, about."""
        return 3 * self.gain.nbytes + self.plan.values.nbytes


@dataclass(slots=True)
class Adviser:
    """Plans for one person at a time, on what was seen of them and of everybody.

    Parameters
    ----------
    problem
        The world; its person is the prior habit, or the habit itself where that is known.
    algorithm
        "ucb-ad" or "thompson".
    knows_habit
        Whether the problem's person is known to act so when left alone.
    must_say
        What is said in which state, whatever the budget.
    seen
        What was seen so far, and where more is added.
    """

    problem: AdviceProblem
    algorithm: str = "ucb-ad"
    knows_habit: bool = False
    must_say: Mapping[int, int] = field(default_factory=dict)
    seen: Seen = field(default_factory=Seen)

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise CounselError(
                f"algorithm is {self.algorithm!r}; it must be one of {', '.join(ALGORITHMS)}"
            )
        if self.knows_habit and np.ptp(self.problem.policy, axis=0).any():
            raise CounselError(
                "knows_habit is for people who act alike at every step; this world's do not"
            )
        S, A = self.problem.n_states, self.problem.n_actions
        for state, advice in self.must_say.items():
            if not (0 <= state < S and 0 <= advice < A):
                raise CounselError(
                    f"must_say has state {state} and advice {advice}; there are {S} states and "
                    f"{A} actions"
                )
            if not self.problem.mdp.allowed[:, state, advice].all():
                raise CounselError(
                    f"must_say advises {self.problem.mdp.action_name(advice)} in "
                    f"{self.problem.mdp.state_name(state)}, where it cannot be done"
                )

    def believe(self, person: int, rng: np.random.Generator | None = None) -> Believed:
        """Return what is believed of one person; ``rng`` is where Thompson draws."""
        policy = self.problem.policy
        prior = policy[0] if self.knows_habit else policy.mean(axis=0)
        own, everybody = self.seen.tables(person, self.problem.n_states, self.problem.n_actions)
        common = prior if self.knows_habit else _habit(everybody, prior)
        habit = prior if self.knows_habit else _habit(own, common)
        lift_all, _ = _common_lift(everybody, common)
        x, e = _moved(own, habit)
        room = e + POOL
        lift = np.clip((x + POOL * lift_all) / room, 0.0, 1.0)
        if self.algorithm == "thompson":
            if rng is None:
                raise CounselError("Thompson draws; give rng")
            drawn = rng.beta(room * lift + 0.5, room * (1.0 - lift) + 0.5)
            return Believed(habit, lift, e, drawn)
        # What everybody did narrows what one person may be like only as far as people are alike.
        level = np.log1p(float(everybody.given.sum()))
        return Believed(habit, lift, e, _upper(lift, room, level))

    def common_lift(self) -> tuple[Floats, Floats]:
        """Return the lift of each advice over all people, and how often it could have moved one."""
        habit = self.believe(NOBODY, np.random.default_rng(0)).habit
        _, everybody = self.seen.tables(NOBODY, self.problem.n_states, self.problem.n_actions)
        return _common_lift(everybody, habit)

    def plan(
        self, person: int, limit: Limit, rng: np.random.Generator | None = None, episodes: int = 0
    ) -> PersonPlan:
        """Plan for one person on what is believed of them."""
        seen = self.seen.amount(person)
        believed = self.believe(person, rng)
        problem = self.believed_problem(believed)
        forbidden = np.zeros(self.problem.n_states, dtype=np.bool_)
        forbidden[list(self.must_say)] = True
        mask = forbidden if forbidden.any() else None
        found = solve(
            problem,
            penalty=0.0 if limit.always else limit.penalty,
            budget=limit.budget,
            hard=limit.hard,
            forbidden=mask,
            allow_reverse=False,
        )
        if limit.always:
            policy = always_best_action(problem).silent_where(
                np.broadcast_to(forbidden, (problem.horizon, forbidden.size))
            )
            worth = evaluate(problem, policy)
            found = replace(
                found, policy=policy, value=worth.value, advice_count=worth.advice_count
            )
        advantage, gain = gains(problem, found.value_planes[-1])
        bearable = None
        if problem.horizon * problem.n_states <= RANKED:
            bearable = criticality(problem, forbidden=mask, allow_reverse=False).upper
        return PersonPlan(believed, problem, found, advantage, gain, bearable, seen, episodes)

    def moved(self, made: PersonPlan, person: int) -> bool:
        """Whether so much has been seen since a plan was made that it should be made anew."""
        mine, everybody = self.seen.amount(person)
        fewer = everybody < made.seen[1]
        return fewer or mine > 1.1 * made.seen[0] or everybody > 1.1 * made.seen[1] + 1

    def believed_problem(self, believed: Believed) -> AdviceProblem:
        """Return the world with a person as believed; must-say states have their advice in them."""
        S, A = self.problem.n_states, self.problem.n_actions
        own, lift = believed.habit.copy(), np.broadcast_to(believed.optimistic, (S, A)).copy()
        lift[~self.problem.mdp.allowed.all(axis=0)] = 0.0
        for state, advice in self.must_say.items():
            said = lift[state, advice]
            own[state] *= 1.0 - said
            own[state, advice] += said
            lift[state] = 0.0
        own /= own.sum(axis=1, keepdims=True)
        return AdviceProblem(self.problem.mdp, Human(own, lift=lift))


def _habit(counts: Tables, prior: Floats) -> Floats:
    """Return the likeliest habit with a prior worth ``LEAN`` silent decisions."""
    refused = (counts.given - counts.matched).astype(np.float64)
    silent = counts.silent + LEAN * prior
    own, _ = likeliest_habit(silent, counts.refusing.astype(np.float64), refused, silent)
    return own


def _common_lift(everybody: Tables, habit: Floats) -> tuple[Floats, Floats]:
    x, e = _moved(everybody, habit)
    return np.clip((x + 0.5) / (e + 1.0), 0.0, 1.0), e


def _moved(counts: Tables, habit: Floats) -> tuple[Floats, Floats]:
    """Return how often each advice moved somebody, and how often it could have, [b]."""
    telling: Bools = habit < 1.0
    n = np.where(telling, counts.given, 0)
    k = np.where(telling, counts.matched, 0)
    anyway = n * habit
    x: Floats = (k - anyway).sum(axis=0)
    e: Floats = (n - anyway).sum(axis=0)
    return x, e


def _upper(share: Floats, room: Floats, level: float) -> Floats:
    """Return the largest q with room · kl(share, q) ≤ level."""
    low, high = share.copy(), np.ones_like(share)
    for _ in range(50):
        middle = (low + high) / 2.0
        inside = room * _kl(share, middle) <= level
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return low


def _kl(p: Floats, q: Floats) -> Floats:
    q = np.clip(q, 1e-12, 1.0 - 1e-12)
    with np.errstate(divide="ignore", invalid="ignore"):
        hit = np.where(p > 0.0, p * np.log(p / q), 0.0)
        miss = np.where(p < 1.0, (1.0 - p) * np.log((1.0 - p) / (1.0 - q)), 0.0)
    divergence: Floats = hit + miss
    return divergence


def advice_at(plan: Plan, step: int, state: int, spent: int) -> dict[int, float]:
    """Return what a plan says and with what probability, given the pieces already spent."""
    return plan.policy.at(step, state, plan.policy.left_after(spent))
