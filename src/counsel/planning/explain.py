"""Why a plan advises, or is silent, in one cell: as numbers and as one sentence.

gain = lift × advantage: how far the advice moves the person, times how much better the advised
action is than their habit; for a person with a memory less the burden, what saying it now costs of
later listening. The gain is compared with the price of a piece: the penalty, the dual price of an
expected budget, or d_k − d_{k−1} under a hard budget.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from counsel._arrays import Floats, by_step, index_in, sealed
from counsel.errors import CounselError
from counsel.model.problem import AdviceProblem
from counsel.planning.criticality import Criticality, criticality_from
from counsel.planning.gains import gains_at, nearest_advice
from counsel.planning.plan import Plan
from counsel.planning.planners import planner_for
from counsel.planning.prepared_problem import check_planned

NOTICEABLE = 5e-4
"""A smaller burden is not worth a word."""

KINKS_FOR_ONE_CELL = 300_000
"""The exact criticality of a single cell is worth at most this many kinks in a step."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Explanation:
    """The advice of a plan in one cell, and the reasons: the result of ``explain``.

    Attributes
    ----------
    step, state
        The cell, counted from 0; in work without end the step is None.
    state_name, action_names
        The labels of the state and of each action [a].
    pieces_left
        The number of pieces left under a hard budget, else None.
    level, level_name
        The level of the person's memory and its label; None without a memory.
    advice
        The advice, None for silence.
    probability
        The probability of the advice: below 1 in the random cell of a plan with a budget.
    considered
        The advice that the numbers describe: the advice of the plan, or under silence the advice
        with the largest gain; None if no advice is permitted.
    own
        The person's habit [a].
    lift, advantage, burden, gain, price
        gain = lift × advantage − burden, compared with the price of this piece. Without a memory
        the burden is 0.
    cost
        What this piece of advice costs: without a hard budget, its price is the cost times the
        price of a unit.
    criticality
        Lower and upper bound on the largest penalty at which advising here still pays; equal if
        exact.
    reverse
        Whether the advice is reverse advice.
    must
        Whether advice is required here.

    Examples
    --------
    >>> from counsel import explain, make, solve
    >>> night = make("night-shift")
    >>> why = explain(night, solve(night, penalty=0.3), step=6, state=2)
    >>> why.action_names[why.advice]
    'treat'
    >>> print(f"{why.lift:.3f} × {why.advantage:.3f} = {why.gain:.3f} against {why.price:.3f}")
    0.500 × 0.853 = 0.427 against 0.300
    """

    step: int | None
    state: int
    state_name: str
    action_names: tuple[str, ...]
    pieces_left: int | None
    level: int | None
    level_name: str | None
    advice: int | None
    probability: float
    considered: int | None
    own: Floats
    lift: float
    advantage: float
    burden: float
    gain: float
    price: float
    cost: float
    criticality: tuple[float, float]
    reverse: bool
    must: bool

    @property
    def sentence(self) -> str:
        """The explanation in one English sentence."""
        return f"{self.place}, {self._choice()}{self._criticality()}."

    @property
    def place(self) -> str:
        """The cell in words, e.g. At step 3 in drifting."""
        where = self.state_name if self.level is None else f"{self.state_name} ({self.level_name})"
        where = where if where.startswith("in ") else f"in {where}"
        return f"I{where[1:]}" if self.step is None else f"At step {self.step} {where}"

    def __str__(self) -> str:
        return self.sentence

    def _habit(self) -> str:
        top = float(self.own.max())
        names = [n for n, p in zip(self.action_names, self.own, strict=True) if p > top - 1e-9]
        if top >= 1.0 - 1e-12:
            return f"alone the person always takes {names[0]}"
        if len(names) == len(self.own):
            return "alone the person takes any action"
        each = " each" if len(names) > 1 else ""
        return f"alone the person most often takes {' or '.join(names)} ({top:.0%}{each})"

    def _choice(self) -> str:
        if self.considered is None:
            return "stay silent: no advice is permitted here"
        name = self.action_names[self.considered]
        if self.advice is None:
            return f"stay silent: {self._silence(name)}"
        often = "" if self.probability >= 1.0 else f" in {self.probability:.1%} of cases"
        if self.gain == inf:
            return f"advise {name}{often} because otherwise required advice may become impossible"
        if self.must and self.gain <= self.price:
            return f"advise {name}{often} because advice is required here, {self._balance()}"
        if self.reverse:
            return (
                f"advise {name}{often} because it repels: {self._habit()}, naming {name} makes "
                f"them less likely to take it (lift {_short(self.lift)}), and it is worth "
                f"{self._comparison()}, {self._balance()}"
            )
        return (
            f"advise {name}{often}: {self._habit()}, the advice moves them with probability "
            f"{_short(self.lift)} and {name} is worth {self._comparison()}, {self._balance()}"
        )

    def _comparison(self) -> str:
        """Return the advantage in words."""
        more = "less" if self.advantage < 0.0 else "more"
        return f"{_short(abs(self.advantage))} {more} than what they would do"

    def _balance(self) -> str:
        burden = self._burden()
        if self.gain < 0.0:
            return f"{burden}at a loss of {_short(-self.gain)}"
        if self.price == 0.0:
            return f"{burden}a gain of {_short(self.gain)}"
        if abs(self.gain - self.price) <= 1e-9 * abs(self.price):
            return f"{burden}a gain of {_short(self.gain)} that equals {self._price()}"
        if self.gain > self.price:
            return f"{burden}a gain of {_short(self.gain)} against {self._price()}"
        return f"{burden}a gain of {_short(self.gain)}, no more than {self._price()}"

    @property
    def _has_burden(self) -> bool:
        """Whether the burden is worth a word: infinite ones are about required advice."""
        return NOTICEABLE <= abs(self.burden) < inf

    def _burden(self) -> str:
        """Return what saying it now costs of later listening, with a comma; empty if nothing."""
        if not self._has_burden:
            return ""
        if self.burden > 0.0:
            return f"and saying it now costs {_short(self.burden)} of later listening, "
        return f"and saying it now adds {_short(-self.burden)} by later listening, "

    def _price(self) -> str:
        amount = _short(self.price)
        if self.pieces_left is not None:
            what = "a piece is" if self.cost == 1.0 else f"its cost of {_short(self.cost)} is"
            return f"the {amount} {what} worth later"
        if self.cost not in (0.0, 1.0):
            return f"its price of {_short(self.cost)} × {_short(self.price / self.cost)}"
        return f"its price of {amount}"

    def _silence(self, name: str) -> str:
        if self.pieces_left == 0:
            return "no piece of advice is left"
        if self.pieces_left is not None and self.cost > self.pieces_left:
            return f"{name} costs {_short(self.cost)}, and only {self.pieces_left} is left"
        if self.price == inf:
            return "every piece left is needed for required advice"
        if self.burden >= NOTICEABLE and self.gain + self.burden > self.price:
            return (
                f"letting them rest, because the best advice, {name}, would gain "
                f"{_short(self.gain + self.burden)} now (lift {_short(self.lift)} × advantage "
                f"{_short(self.advantage)}) but cost {_short(self.burden)} of later listening"
                f"{'' if self.price == 0.0 else f' and {self._price()}'}"
            )
        if self.gain <= 0.0 or self.price == 0.0:
            return f"{self._habit()}, and no advice would gain anything"
        how = "repelling them " if self.lift < 0.0 else ""
        rest = ""
        if self._has_burden:
            sign = "−" if self.burden > 0.0 else "+"
            rest = f" {sign} {_short(abs(self.burden))} of later listening"
        return (
            f"{self._habit()}, and the best advice, {name}, would gain {_short(self.gain)} "
            f"{how}(lift {_short(self.lift)} × advantage {_short(self.advantage)}{rest}), "
            f"no more than {self._price()}"
        )

    def _criticality(self) -> str:
        low, high = self.criticality
        if self.considered is None or self.must or high == 0.0 or self.pieces_left == 0:
            return ""
        limit = f"of {_short(low)}"
        if low != high:
            limit = f"between {_short(low)} and {_short(high)}"
        limit += " per piece" if self.cost == 1.0 else " per unit of cost"
        if self.advice is None and low * self.cost > self.price * (1.0 + 1e-9):
            return f"; with less advice later, advice here would pay up to a penalty {limit}"
        return f"; advice here stays worthwhile up to a penalty {limit}"


def explain(  # noqa: PLR0913 (a problem, a plan, a cell and its criticality)
    problem: AdviceProblem,
    plan: Plan,
    *,
    step: int | None = None,
    state: int | str,
    pieces_left: int | None = None,
    level: int | str | None = None,
    criticality: Criticality | None = None,
) -> Explanation:
    """Explain the advice of a plan at one step in one state.

    Parameters
    ----------
    problem
        The problem that was solved.
    plan
        The result of ``solve``.
    step
        The step, counted from 0. Leave it out for work without end, where every step is alike.
    state
        The number or the label of the state.
    pieces_left
        Under a hard budget: the number of pieces left, by default the whole budget.
    level
        The number or the label of the level of the person's memory, by default the start.
    criticality
        The result of ``counsel.criticality``. By default it is computed, which takes most of the
        time: pass it to explain many cells.

    Returns
    -------
    Explanation
        Prints as a sentence; its attributes are the numbers.

    Raises
    ------
    CounselError
        If an index is out of range, the plan is not for this problem, or ``pieces_left`` is passed
        for a plan without a hard budget.

    Examples
    --------
    >>> import counsel
    >>> problem = counsel.make("night-shift")
    >>> plan = counsel.solve(problem, penalty=0.3)
    >>> explanation = counsel.explain(problem, plan, step=0, state="failing")
    >>> print(explanation)  # doctest: +NORMALIZE_WHITESPACE
    At step 0 in failing, stay silent: alone the person most often takes treat (60%), and the best
    advice, treat, would gain 0.0593 (lift 0.125 × advantage 0.474), no more than its price of 0.3;
    advice here stays worthwhile up to a penalty of 0.0536 per piece.
    """
    if not isinstance(problem, AdviceProblem):
        raise CounselError(f"expected an AdviceProblem, not {type(problem).__name__}")
    if not isinstance(plan, Plan):
        raise CounselError(f"expected a Plan from solve, not {type(plan).__name__}")
    _check_criticality(problem, criticality)
    check_planned(problem, plan.constraints)
    h = _step_of(problem, step)
    s = index_in("state", _number_of(problem, state), problem.n_states)
    left = plan.policy.budget if pieces_left is None else pieces_left
    m = _level_of(problem, level)
    problem.check_fits(plan.policy)
    advantage_a, gain_a, price_a, burden_a = gains_at(problem, plan, h, s, left, m)
    permitted_a = by_step(plan.constraints.permitted, problem.n_steps)[h, s]
    advice, probability = _likeliest_advice(plan.policy.at(h, s, left, m), problem.defer)
    considered = advice
    if advice is None and permitted_a.any():
        considered = nearest_advice(gain_a, price_a, permitted_a)
    lift = advantage = burden = gain = 0.0
    price, cost = plan.price_at(h), 1.0
    if considered is not None:
        numbers_a = (problem.level_lift[m, h, s], advantage_a, burden_a, gain_a, price_a)
        lift, advantage, burden, gain, price = (float(table[considered]) for table in numbers_a)
        cost = float(problem.cost[h, s, considered])
    cells = criticality
    if cells is None:
        planner = planner_for(problem, plan.constraints)
        cells = criticality_from(planner, h, KINKS_FOR_ONE_CELL, 16)
    critical = (m, h, s) if problem.memory else (h, s)
    return Explanation(
        step=h if problem.discount is None else None,
        state=s,
        state_name=problem.mdp.state_name(s),
        action_names=tuple(problem.mdp.action_name(a) for a in range(problem.n_actions)),
        pieces_left=left,
        level=m if problem.memory else None,
        level_name=problem.memory.labels[m] if problem.memory else None,
        advice=advice,
        probability=probability,
        considered=considered,
        own=sealed(problem.policy[h, s].copy()),
        lift=lift,
        advantage=advantage,
        burden=burden,
        gain=gain,
        price=price,
        cost=cost,
        criticality=(float(cells.lower[critical]), float(cells.upper[critical])),
        reverse=advice is not None and lift < 0.0 and advantage < 0.0,
        must=bool(by_step(plan.constraints.required, problem.n_steps)[h, s]),
    )


def _step_of(problem: AdviceProblem, step: int | None) -> int:
    """Return a step; 0, which stands for all steps, in work without end."""
    if problem.discount is None:
        if step is None:
            raise CounselError(f"step is missing; give a step from 0 to {problem.horizon - 1}")
        return index_in("step", step, problem.horizon)
    if step is not None:
        raise CounselError(
            f"step is {step!r}, but in work without end every step is alike; leave it out"
        )
    return 0


def _check_criticality(problem: AdviceProblem, criticality: Criticality | None) -> None:
    """Raise unless a criticality, if given, is that of a problem of this size."""
    if criticality is None:
        return
    if not isinstance(criticality, Criticality):
        raise CounselError(f"expected a Criticality, not {type(criticality).__name__}")
    levels = () if problem.memory is None else (problem.n_levels,)
    if criticality.lower.shape != (*levels, problem.n_steps, problem.n_states):
        *given, H, S = criticality.lower.shape
        sizes = [f"{H} steps and {S} states", f"{problem.n_steps} and {problem.n_states}"]
        if given or levels:
            sizes = [
                f"{_counted(given)}, {H} steps and {S} states",
                f"{_counted(levels)}, {problem.n_steps} and {problem.n_states}",
            ]
        raise CounselError(f"the criticality is for {sizes[0]}; the problem has {sizes[1]}")


def _counted(levels: Sequence[int]) -> str:
    return f"{levels[0]} levels of memory" if levels else "no memory"


def _level_of(problem: AdviceProblem, level: int | str | None) -> int:
    """Return a level from its number or label; the start by default."""
    if level is None:
        return problem.level_of(None)
    if problem.memory is not None:
        return problem.memory.number_of(level)
    if level in (0, "0"):
        return 0
    raise CounselError(f"level is {level!r}, but the person has no memory; leave it out")


def _number_of(problem: AdviceProblem, state: int | str) -> int:
    """Return the number of a state from its number or label."""
    names = problem.mdp.state_labels or ()
    if isinstance(state, str) and state in names:
        return names.index(state)
    try:
        return int(state) if isinstance(state, str) else state
    except ValueError:
        some = f" ({', '.join(names[:8])}{', …' if len(names) > 8 else ''})" if names else ""
        raise CounselError(
            f"state is {state!r}; give a number from 0 to {problem.n_states - 1} or a label{some}"
        ) from None


def _likeliest_advice(chances: dict[int, float], defer: int) -> tuple[int | None, float]:
    """Return the advice of a cell and its probability; None only if the cell is always silent."""
    spoken = {advice: p for advice, p in chances.items() if advice != defer}
    if not spoken:
        return None, 1.0
    advice = max(spoken, key=spoken.__getitem__)
    return advice, spoken[advice]


def _short(number: float) -> str:
    return "∞" if number == inf else f"{number:.3g}"
