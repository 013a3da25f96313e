"""From counts to a problem: transitions, rewards, habit and lift, each with its interval.

* p(t | s, a): shares of the outcomes; a pair that never occurred is masked.
* r(s, a): means.
* π(a | s): the likeliest habit given silence and refusals (``estimate/habit.py``).
* λ(s, b), the lift: partially pooled (``estimate/pooling.py``); θ = λ + (1 − λ) π.

Advice that was not seen counts as silence for π. The sender does not know whether advice will be
seen: if a share σ(b) is, sending b has the lift σ(b) λ(s, b), and the problem holds this lift.

Gaps in the counts are filled so that the plan promises nothing: if the habit is unknown, or an
advice was never given, the lift is 0 and the plan stays silent; if the outcome of a decision is
unknown, the outcomes of other decisions in that state stand in; a state without decisions pays the
average of all decisions and is never left.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel.errors import CounselError
from counsel.estimate.habit import Habit, chance_of_others, estimate_habit, least_lift
from counsel.estimate.intervals import student, wilson
from counsel.estimate.pooling import AdviceCounts, PooledLifts, pool, pool_not
from counsel.logs.count import Tally
from counsel.logs.estimate_world import (
    WorldBuilder,
    build_person,
    count_moves,
    person_with_memory,
)
from counsel.logs.fading import estimate_fading
from counsel.logs.lift_errors import design_effects
from counsel.model.problem import AdviceProblem

SHARES = ("pair", "advice", "all")
SCALES = ("lift", "adherence")


@dataclass(frozen=True, slots=True)
class Sharing:
    """Which pairs of state and advice share a lift, and on which scale they are pooled.

    ``share`` is "pair" (each state and advice has its own lift, similar for one advice), "advice"
    (one lift per advice) or "all" (one lift); ``groups`` by label of the advice replace it.
    ``scale`` is the scale on which similar pairs are pooled: "lift" or "adherence".
    """

    share: str = "pair"
    scale: str = "lift"
    groups: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        if self.share not in SHARES:
            raise CounselError(f"share is {self.share!r}; it must be one of {', '.join(SHARES)}")
        if self.scale not in SCALES:
            raise CounselError(f"scale is {self.scale!r}; it must be one of {', '.join(SCALES)}")

    def units(self, tally: Tally, cells: int) -> tuple[Ints, Ints]:
        """Return the unit of each pair [cell, b], which has one lift, and the family of each unit.

        A cell is a layer and a state; the units of one family are similar.
        """
        A = len(tally.actions)
        if self.groups is not None:
            unit = _groups(self.groups, tally.actions)
        elif self.share == "pair":
            return np.arange(cells * A).reshape(cells, A), np.tile(np.arange(A), cells)
        else:
            unit = np.arange(A) if self.share == "advice" else np.zeros(A, dtype=np.int64)
        return np.broadcast_to(unit, (cells, A)), np.zeros(int(unit.max()) + 1, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """A problem and the estimates behind it, with 95 % intervals.

    Arrays are [layer, s, a], with a single layer or one per step.
    """

    problem: AdviceProblem  # after the states of the log comes "over", the end of an episode
    taken: Floats  # decisions
    priced: Floats  # decisions with a reward
    reward: Floats  # means
    reward_low: Floats
    reward_high: Floats
    habit: Habit  # its arrays are [layer · S + s, a]
    given: Floats  # pieces of advice that were seen
    matched: Floats
    sent: Floats  # pieces of advice, seen or not; silence last
    adherence_low: Floats  # of the share matched, by the pair's own data
    adherence_high: Floats
    lift: Floats  # of advice that is seen, after pooling
    lift_low: Floats
    lift_high: Floats
    seen: Floats  # the share of each advice that is seen [s, b]
    design: Floats  # by how much decisions of alike people say less than others [b]
    move_row: Ints  # (layer · S + s) · A + a of each kind of move
    move_then: Ints  # the state that followed, or the number of states for the end
    move_times: Floats  # how often it followed
    usable: Bools  # whether the lift is estimated rather than set to 0
    guessed_rows: int  # the number of pairs without any outcome
    unknown_states: Ints  # the states without any decision
    fading: Floats | None = None  # what multiplies the lift at each level of a memory [m]

    @property
    def adherence(self) -> Floats:
        """θ [layer, s, a] of advice that is seen, after pooling."""
        own = self.habit.policy.reshape(self.lift.shape)
        theta: Floats = np.clip(own + self.lift * chance_of_others(own), 0.0, 1.0)
        return theta

    def with_range(self, reward_range: tuple[float, float] | None) -> "Estimates":
        """Return the estimates with the range of rewards, if it is known, in the problem.

        The range is widened to the rewards of the problem: 0 where an episode is over, and means
        that rounding puts outside.
        """
        if reward_range is None:
            return self
        low, high = reward_range
        reward = self.problem.mdp.reward
        ends = (min(low, float(reward.min())), max(high, float(reward.max())))
        return replace(self, problem=replace(self.problem, reward_range=ends))

    def moves(self) -> tuple[Floats, Floats, Floats]:
        """Return the share of each move among the moves of its pair, with a 95 % interval."""
        of = np.bincount(self.move_row, self.move_times, self.taken.size)[self.move_row]
        return (self.move_times / of, *wilson(self.move_times, of))


def estimate(  # noqa: PLR0913 (counts, and what to make of them)
    tally: Tally,
    sharing: Sharing,
    cost: Floats | None = None,
    design: Floats | None = None,
    *,
    shrink: bool = True,
    context: int | None = None,
    seen_by_state: bool = True,
) -> Estimates:
    """Estimate a problem from counts; ``cost`` is that of ``AdviceProblem``, by default 1.

    ``design`` [b] is how much less the decisions of alike people say than independent ones
    (``lift_errors.py``), by default estimated. Without ``shrink`` each unit keeps the lift of its
    own data, right on average though less precise, and intervals are left out. With a ``context``
    lifts are those of advice in this context; everything else is that of the whole log. Unless
    ``seen_by_state``, as in older files, all states share the share of an advice that is seen.

    If the counts have the levels of a memory, lifts are those of somebody at the level of reference
    (``fading.py``) and the person has the memory; if they have bands of time in the study, lifts
    are those of the last band.
    """
    S, A = len(tally.states), len(tally.actions)
    L = tally.horizon if tally.by_step else 1
    cell, heard = tally.layer * S + tally.state, tally.heard
    shape, n = (L * S, A), tally.times

    def sum_by(where: Bools, column: Ints, weight: Floats = n, width: int = A) -> Floats:
        """Return sums over decisions by cell and one more column."""
        key = (cell * width + column)[where]
        total = np.bincount(key, weight[where], L * S * width).astype(np.float64)
        return total.reshape(L * S, width)

    everything = np.ones(n.size, dtype=np.bool_)
    advised, same = heard < A, heard == tally.action
    taken = sum_by(everything, tally.action)
    silent, refused = sum_by(~advised, tally.action), sum_by(advised & ~same, heard)
    habit = estimate_habit(silent, sum_by(advised & ~same, tally.action), refused, taken)
    here = advised if context is None else advised & (tally.context == context)
    given, matched = sum_by(here, heard), sum_by(here & same, heard)
    sent = sum_by(everything, tally.advice, width=A + 1)
    if design is None:
        design = design_effects(tally, habit, given, matched)
    counts, fading, moves_m = (given[..., None], matched[..., None]), None, None
    if tally.memory is not None and tally.level is not None:
        fading, M = estimate_fading(tally, habit), tally.memory.n_levels
        moves_m = fading * np.array(tally.memory.mix or 1.0)
        place = np.minimum(heard, A - 1) * M + tally.level
        by_level = (sum_by(where, place, width=A * M) for where in (here, here & same))
        total, match = (table.reshape(L * S, A, M) for table in by_level)
        counts = (total, match)
    pooled, unit, usable = _pool_lifts(
        counts, moves_m, habit, design, sharing.units(tally, L * S), sharing, shrink=shrink
    )
    memory = None if tally.memory is None else tally.memory.memory
    last = 1.0 if fading is None or memory is not None else float(fading[-1])
    lift, low, high = _lifts(sharing, pooled, unit, usable, habit, last)
    told = tally.advice < A if context is None else (tally.advice < A) & (tally.context == context)
    shown = sum_by(told, tally.advice).reshape(L, S, A).sum(axis=0)
    found = given.reshape(L, S, A).sum(axis=0)
    if not seen_by_state:
        found, shown = (np.tile(table.sum(axis=0), (S, 1)) for table in (found, shown))
    seen = _seen_shares(found, shown)
    priced = sum_by(everything, tally.action, tally.priced)
    above = sum_by(everything, tally.action, tally.paid)
    squares = sum_by(everything, tally.action, tally.paid_squares)
    paid = above + tally.least * priced
    reward = np.divide(paid, priced, out=np.zeros(shape), where=priced > 0.0)
    moves = count_moves(tally, cell)
    going = sum_by(tally.goes_on, tally.action)
    world = WorldBuilder(tally, taken, priced, paid, moves, going)
    person = build_person(world, habit, (lift.reshape(L, S, A) * seen).reshape(shape))
    if memory is not None and fading is not None:
        person = person_with_memory(person, memory.starting_at(tally.start_level), fading)
    reward_low, reward_high = _reward_intervals(tally, priced, above, squares)
    theta_low, theta_high = wilson(matched, given)
    by_pair: dict[str, Any] = {
        "taken": taken,
        "priced": priced,
        "reward": reward,
        "reward_low": reward_low,
        "reward_high": reward_high,
        "given": given,
        "matched": matched,
        "adherence_low": theta_low,
        "adherence_high": theta_high,
        "lift": lift,
        "lift_low": low,
        "lift_high": high,
        "usable": usable,
    }
    return Estimates(
        problem=AdviceProblem(world.mdp, person, np.ones(()) if cost is None else cost),
        habit=habit,
        sent=sent.reshape(L, S, A + 1),
        seen=seen,
        design=design,
        move_row=moves.row,
        move_then=moves.then,
        move_times=moves.times,
        guessed_rows=world.guessed_rows,
        unknown_states=world.unknown,
        fading=fading,
        **{name: table.reshape(L, S, A) for name, table in by_pair.items()},
    )


def _seen_shares(seen_sb: Floats, sent: Floats) -> Floats:
    """Return the share of each advice that is seen, by state as far as states differ [s, b].

    A state's own share counts as much as its pieces, the common share as much as so many pieces
    that the spread between states beyond chance decides: if there is none, all states share it.
    """
    total = sent.sum(axis=0)
    common = np.divide(seen_sb.sum(axis=0), total, out=np.ones(total.size), where=total > 0.0)
    share = np.divide(seen_sb, sent, out=np.zeros_like(sent), where=sent > 0.0)
    chance = common * (1.0 - common)
    # Under one share, Σ n (share − common)² is (K − 1) times the chance variance on average.
    spread = (sent * (share - common) ** 2).sum(axis=0) - ((sent > 0.0).sum(axis=0) - 1) * chance
    room = total - np.divide(
        (sent**2).sum(axis=0), total, out=np.zeros_like(total), where=total > 0
    )
    between = np.divide(spread, room, out=np.zeros_like(total), where=room > 0.0)
    differ = between > 0.0
    prior = np.maximum(np.divide(chance, between, out=np.ones_like(total), where=differ) - 1.0, 0.0)
    known = sent + prior
    own = np.divide(seen_sb + prior * common, known, out=np.zeros_like(sent), where=known > 0.0)
    shares: Floats = np.where(differ & (known > 0.0), own, common)
    return shares


def _reward_intervals(
    tally: Tally, priced: Floats, above: Floats, squares: Floats
) -> tuple[Floats, Floats]:
    """Return intervals of mean rewards; with two distinct rewards, by the share of the larger."""
    if tally.other is None:
        low, high = student(priced, above, squares)
    else:
        gap = tally.other - tally.least
        low, high = (gap * end for end in wilson(above / gap, priced))
    return low + tally.least, high + tally.least


def _groups(groups: Mapping[str, str], actions: tuple[str, ...]) -> Ints:
    """Return the group of each advice; advice without a group is a group of its own."""
    for name in groups:
        if name not in actions:
            raise CounselError(f"groups name {name!r}; the actions are {', '.join(actions)}")
    named = [groups.get(name, f"\0{name}") for name in actions]
    order = {name: i for i, name in enumerate(dict.fromkeys(named))}
    return np.array([order[name] for name in named], dtype=np.int64)


def _pool_lifts(  # noqa: PLR0913 (all that decides on a lift)
    counts: tuple[Floats, Floats],
    fading: Floats | None,
    habit: Habit,
    design: Floats,
    units: tuple[Ints, Ints],
    sharing: Sharing,
    *,
    shrink: bool,
) -> tuple[PooledLifts, Ints, Bools]:
    """Return pooled lifts by unit, the unit of each pair, and where a lift is known.

    ``counts`` are [cell, b, m]. Each level has its share of the choices behind the habit: what is
    unknown of the habit is the same at all of them.
    """
    (given, matched), (unit, family) = counts, units
    certain = habit.policy >= 1.0
    moves = np.ones(given.shape[-1]) if fading is None else fading
    informative = (given > 0.0) & ~(certain & habit.known[:, None])[..., None] & (moves > 0.0)
    on_lift = sharing.scale == "lift"
    if on_lift:
        informative &= habit.known[:, None, None]
    cell, advice, level = np.nonzero(informative)
    pair = (cell, advice)
    alike = np.broadcast_to(design, given.shape[:2])[pair]
    here = given[cell, advice, level]
    share = here / given.sum(axis=-1)[pair]
    seen = AdviceCounts(
        unit=unit[pair],
        family=family,
        given=here / alike,
        matched=matched[cell, advice, level] / alike,
        habit=habit.policy[pair] if on_lift else np.zeros(here.size),
        size=habit.size[pair] * share / alike if on_lift else np.full(here.size, np.inf),
        fading=None if fading is None else moves[level],
    )
    pooled = pool(seen) if shrink else pool_not(seen)
    known = np.isfinite(pooled.own_error)
    if sharing.share == "pair" and sharing.groups is None:
        family_known = np.zeros(int(family.max(initial=0)) + 1, dtype=np.bool_)
        np.logical_or.at(family_known, family, known)
        known = family_known[family]
    return pooled, unit, known[unit] & habit.known[:, None] & ~certain


def _lifts(  # noqa: PLR0913 (all that decides on a lift)
    sharing: Sharing,
    pooled: PooledLifts,
    unit: Ints,
    usable: Bools,
    habit: Habit,
    fading: float = 1.0,
) -> tuple[Floats, Floats, Floats]:
    """Return lifts [cell, b] with intervals, times a fading; 0 where the lift is unknown."""
    own, rest = habit.policy, chance_of_others(habit.policy)
    ends = []
    for value in (pooled.mean, pooled.low, pooled.high):
        lift = value[unit] * fading
        if sharing.scale == "adherence":
            lift = np.divide(lift - own, rest, out=np.zeros(own.shape), where=rest > 0.0)
        ends.append(np.where(usable, np.clip(lift, least_lift(own), 1.0), 0.0))
    return ends[0], np.where(usable, ends[1], -1.0), np.where(usable, ends[2], 1.0)
