"""An adviser that learns how each person listens, from the log alone.

What it knows is the world (p and r). What it learns are counts, and nothing else: for every person
and state, what they did when nothing was shown, what they did instead of what was advised, and what
advice they matched. Counts do not depend on the order in which outcomes arrive, so the same log
always makes the same adviser, whenever it is read.

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

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from counsel._arrays import Bools, Floats
from counsel.errors import CounselError
from counsel.estimate.habit import likeliest_habit
from counsel.model.human import Human
from counsel.model.policy import HardPolicy, Policy
from counsel.model.problem import AdviceProblem
from counsel.planning.gains import gains
from counsel.planning.plan import Plan
from counsel.planning.solve import solve

LEAN = 5.0
"""Silent decisions in each state that what is believed beforehand counts for."""

POOL = 10.0
"""Pieces of advice that the population counts for, for one person."""

ALGORITHMS = ("ucb-ad", "thompson")


@dataclass(frozen=True, slots=True)
class Limit:
    """What advice may cost: a penalty for each piece, or a budget, hard or on average."""

    penalty: float | None = None
    budget: float | None = None
    hard: bool = False


@dataclass(frozen=True, slots=True)
class Happened:
    """One decision with its outcome, as the log has it.

    ``advice`` is the number of actions where nothing was shown or seen.
    """

    person: int
    state: int
    advice: int
    action: int


class Counts:
    """What was seen of one person, or of all: [s, a] arrays.

    ``silent``: taken when nothing was shown; ``refusing``: taken against advice; ``given`` and
    ``matched``: advice that was seen, and taken.
    """

    __slots__ = ("given", "matched", "refusing", "silent")

    def __init__(self, n_states: int, n_actions: int) -> None:
        shape = (n_states, n_actions)
        self.silent = np.zeros(shape, dtype=np.int32)
        self.refusing = np.zeros(shape, dtype=np.int32)
        self.given = np.zeros(shape, dtype=np.int32)
        self.matched = np.zeros(shape, dtype=np.int32)

    def add(self, one: Happened) -> None:
        """Count one decision."""
        if one.advice == self.given.shape[1]:
            self.silent[one.state, one.action] += 1
            return
        self.given[one.state, one.advice] += 1
        if one.action == one.advice:
            self.matched[one.state, one.advice] += 1
        else:
            self.refusing[one.state, one.action] += 1

    def habit(self, prior: Floats) -> Floats:
        """Return the likeliest habit with a prior worth ``LEAN`` silent decisions."""
        refused = (self.given - self.matched).astype(np.float64)
        silent = self.silent + LEAN * prior
        refusing = self.refusing.astype(np.float64)
        own, _ = likeliest_habit(silent, refusing, refused, silent)
        return own


@dataclass(frozen=True, slots=True, eq=False)
class Believed:
    """What is believed of one person.

    Attributes
    ----------
    habit
        [s, a]: what they do alone.
    lift, pieces
        [b]: the share that each advice moves, and how often it could have.
    optimistic
        [b]: the lift that is planned with.
    """

    habit: Floats
    lift: Floats
    pieces: Floats
    optimistic: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Advising:
    """A plan for one person, and what is needed to say why.

    Attributes
    ----------
    believed, plan
        What it is based on, and the plan itself.
    advantage, gain
        [h, s, a] at the plan's price; under a hard budget with all pieces left.
    seen
        Pieces of advice of this person, and of all, that were known when it was made.
    """

    believed: Believed
    problem: AdviceProblem
    plan: Plan
    advantage: Floats
    gain: Floats
    seen: tuple[int, int]


@dataclass(slots=True)
class Adviser:
    """Learns from what happened and plans for one person at a time.

    Parameters
    ----------
    problem
        The world; its person is the prior habit, or the habit itself where that is known.
    limit
        What advice may cost.
    algorithm
        "ucb-ad" or "thompson".
    knows_habit
        Whether the problem's person is known to act so when left alone.
    must_say
        What is said in which state, whatever the budget.
    """

    problem: AdviceProblem
    limit: Limit = field(default_factory=Limit)
    algorithm: str = "ucb-ad"
    knows_habit: bool = False
    must_say: Mapping[int, int] = field(default_factory=dict)
    everybody: Counts = field(init=False)
    people: dict[int, Counts] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise CounselError(
                f"algorithm is {self.algorithm!r}; it must be one of {', '.join(ALGORITHMS)}"
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
        self.everybody = Counts(S, A)

    def learn(self, happened: Iterable[Happened]) -> None:
        """Count what happened."""
        for one in happened:
            self.everybody.add(one)
            if one.person not in self.people:
                self.people[one.person] = Counts(self.problem.n_states, self.problem.n_actions)
            self.people[one.person].add(one)

    def forget(self, person: int) -> None:
        """Take out all that was seen of one person."""
        counts = self.people.pop(person, None)
        if counts is not None:
            for name in Counts.__slots__:
                getattr(self.everybody, name)[:] -= getattr(counts, name)

    def believe(self, person: int, rng: np.random.Generator | None = None) -> Believed:
        """Return what is believed of one person; ``rng`` is where Thompson draws."""
        prior = self.problem.policy[0]
        own = self.people.get(person)
        if self.knows_habit:
            common = habit = prior
        else:
            common = self.everybody.habit(prior)
            habit = common if own is None else own.habit(common)
        x_all, e_all = _moved(self.everybody, common)
        lift_all = np.clip((x_all + 0.5) / (e_all + 1.0), 0.0, 1.0)
        x, e = (np.zeros_like(x_all), np.zeros_like(e_all)) if own is None else _moved(own, habit)
        trials = e + POOL
        lift = np.clip((x + POOL * lift_all) / trials, 0.0, 1.0)
        if self.algorithm == "thompson":
            if rng is None:
                raise CounselError("Thompson draws; give rng")
            drawn = rng.beta(trials * lift + 0.5, trials * (1.0 - lift) + 0.5)
            return Believed(habit, lift, e, drawn)
        # What everybody did narrows what one person may be like only as far as people are alike.
        level = np.log1p(float(self.everybody.given.sum()))
        return Believed(habit, lift, e, _upper(lift, trials, level))

    def plan(self, person: int, rng: np.random.Generator | None = None) -> Advising:
        """Plan for one person on what is believed of them."""
        believed = self.believe(person, rng)
        problem = self._problem(believed)
        forbidden = np.zeros(self.problem.n_states, dtype=np.bool_)
        forbidden[list(self.must_say)] = True
        limit = self.limit
        found = solve(
            problem,
            penalty=limit.penalty,
            budget=limit.budget,
            hard=limit.hard,
            forbidden=forbidden if forbidden.any() else None,
            allow_reverse=False,
        )
        values = found.values[-1] if found.hard else found.values
        advantage, gain = gains(problem, values)
        own = self.people.get(person)
        mine = 0 if own is None else int(own.given.sum())
        seen = (mine, int(self.everybody.given.sum()))
        return Advising(believed, problem, found, advantage, gain, seen)

    def moved(self, made: Advising, person: int) -> bool:
        """Whether so much has been seen since a plan was made that it should be made anew."""
        own = self.people.get(person)
        mine = 0 if own is None else int(own.given.sum())
        return mine > made.seen[0] or int(self.everybody.given.sum()) > 1.1 * made.seen[1] + 1

    def _problem(self, believed: Believed) -> AdviceProblem:
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


def _moved(counts: Counts, habit: Floats) -> tuple[Floats, Floats]:
    """Return how often each advice moved somebody, and how often it could have, [b]."""
    telling: Bools = habit < 1.0
    n = np.where(telling, counts.given, 0)
    k = np.where(telling, counts.matched, 0)
    anyway = n * habit
    x: Floats = (k - anyway).sum(axis=0)
    e: Floats = (n - anyway).sum(axis=0)
    return x, e


def _upper(share: Floats, trials: Floats, level: float) -> Floats:
    """Return the largest q with trials · kl(share, q) ≤ level."""
    low, high = share.copy(), np.ones_like(share)
    for _ in range(50):
        middle = (low + high) / 2.0
        inside = trials * _kl(share, middle) <= level
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
    policy: Policy | HardPolicy = plan.policy
    if isinstance(policy, HardPolicy):
        left = max(policy.budget - spent, 0)
        return {policy.at(step, state, left): 1.0}
    return policy.at(step, state)
