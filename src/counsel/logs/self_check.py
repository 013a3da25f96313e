"""A fitted model confronted with its log: the rule of the log, played inside the model.

The rule of the log gives each advice in each state and step as often as the log did. Played in the
model, it must bring about what the log has: the return, how many episodes last how long, and at
each step the rewards, states, actions and matches. A model that contradicts its own log on the
return or on how long episodes last is not *trusted*: its values are withheld.

Two numbers contradict each other if they differ by more than 3 % and by more than chance explains.
Errors are jackknifed over blocks of people (of episodes if the log does not name people), and the
limit of 3 standard errors is raised where many numbers are compared, so that a model that is right
is blamed in about 3 of 1,000 logs for each of the six comparisons.

Episodes that were cut off count up to where they were cut: the share of episodes that last to a
step is the product of the shares of those observed that went on (Kaplan and Meier; a record that
breaks off after a decision says that the episode did not end with it), so the return of a log is
that of whole episodes if cuts depend on nothing else than the step.
"""

import math
from dataclasses import dataclass

import numpy as np

from counsel._arrays import Floats, Ints
from counsel.logs.count import ENDED, MOST_CELLS, Tally
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.planning.evaluate import evaluate

DIFFERENCE = 0.03
"""Smaller differences are no contradiction: a share of the return, or of the episodes."""

TAIL = 0.00135
"""The chance that a normal number is above 3; shared by all numbers of a comparison."""

FEWEST_BLOCKS = 10
"""With fewer people, or episodes, errors are unknown and nothing is a contradiction."""

CAUSES = {
    "endings": "how long episodes last depends on more than the state",
    "reward": "rewards depend on the step, or on more than the state and the action",
    "states": "what follows depends on the step, or on more than the state and the action",
    "actions": "what people do depends on the step, or on more than the state",
    "matches": "how much people listen depends on the step, or on more than the state",
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A number of the log with its standard error, and the same number in the model.

    Of several numbers, e.g. one for each step, it is the one furthest apart; ``where`` names it.
    """

    what: str
    logged: float
    error: float
    model: float
    limit: float  # the largest difference that is no contradiction
    where: str = ""

    @property
    def contradicts(self) -> bool:
        """Whether the model contradicts the log."""
        return abs(self.model - self.logged) > self.limit


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """The comparisons of a model with its log; ``value`` is the return of an episode."""

    value: Comparison
    endings: Comparison  # the share of episodes that last to a step
    reward: Comparison  # the mean reward at a step
    states: Comparison  # the share of a state at a step
    actions: Comparison  # the share of an action at a step
    matches: Comparison  # the share of advice that is matched at a step

    @property
    def is_trusted(self) -> bool:
        """Whether return and endings of the model are those of the log."""
        return not (self.value.contradicts or self.endings.contradicts)

    @property
    def contradictions(self) -> tuple[Comparison, ...]:
        """What the model contradicts, the return first."""
        every = (self.value, self.endings, self.reward, self.states, self.actions, self.matches)
        return tuple(comparison for comparison in every if comparison.contradicts)

    @property
    def cause(self) -> str:
        """The likely cause of the first contradiction, in words; empty if there is none."""
        names = [comparison.what for comparison in self.contradictions]
        return next((words for name, words in CAUSES.items() if name in names), "")


def logged_return(tally: Tally) -> float:
    """Return the mean reward of an episode of the log over the whole horizon."""
    if not tally.has_steps:
        mean = tally.least + tally.paid.sum() / max(tally.priced.sum(), 1.0)
        return float(mean * tally.times.sum() / max(tally.episodes, 1.0))
    _, value = _lasting(tally, np.ones((1, tally.n_blocks)))
    return float(value[0])


def logged_sum(tally: Tally, each: Floats) -> float:
    """Return the mean sum of a number per decision [row] over the whole horizon of an episode."""
    if not tally.has_steps:
        return float((tally.times * each).sum() / max(tally.episodes, 1.0))
    alive, _ = _lasting(tally, np.ones((1, tally.n_blocks)))
    total, times = (
        np.bincount(tally.step, weight, tally.n_steps).astype(np.float64)
        for weight in (tally.times * each, tally.times)
    )
    steps = np.bincount(tally.step_group, minlength=tally.n_steps)
    return float((alive[0] * steps * _ratio(total, times, 0.0)).sum())


def confront(tally: Tally, problem: AdviceProblem) -> SelfCheck:
    """Play the rule of the log in the model, and compare what comes of it with the log."""
    logged = _of_log(tally)
    model = _of_model(tally, problem)
    largest = float(np.nanmax(np.abs(logged["reward"][0]), initial=0.0))
    scales = {"return": abs(float(logged["return"][0])), "reward": largest}
    return SelfCheck(
        *(
            _compare(what, *numbers, model[what], scales.get(what, 1.0), tally)
            for what, numbers in logged.items()
        )
    )


def can_confront(tally: Tally) -> bool:
    """Whether steps were counted, and the rule of the log is not too large to play."""
    cells = tally.horizon * len(tally.states) * (len(tally.actions) + 1)
    return tally.has_steps and cells <= MOST_CELLS


def logged_rule(tally: Tally, problem: AdviceProblem) -> Policy:
    """Return how often the log gave each advice, by step and state; where unknown, by state.

    With a memory it is by level, too, where the level occurred at that step and state.
    """
    S, A, G = len(tally.states), len(tally.actions), tally.n_steps
    cell = (tally.step * S + tally.state) * (A + 1) + tally.advice
    times = np.bincount(cell, tally.times, G * S * (A + 1)).astype(np.float64)
    sent = times.reshape(G, S, A + 1)
    by_state = np.broadcast_to(sent.sum(axis=0), sent.shape)
    sent = np.where(sent.sum(axis=2, keepdims=True) > 0.0, sent, by_state)
    if problem.memory is None or tally.level is None:
        return Policy.from_probabilities(_rule_of(sent, tally, problem))
    M = problem.n_levels
    place = tally.level * sent.size + cell
    own = np.bincount(place, tally.times, M * sent.size).reshape(M, *sent.shape).astype(np.float64)
    own = np.where(own.sum(axis=3, keepdims=True) > 0.0, own, sent)
    rules = [_rule_of(by_level, tally, problem) for by_level in own]
    return Policy.from_probabilities(np.stack(rules), levels=M)


def _rule_of(sent: Floats, tally: Tally, problem: AdviceProblem) -> Floats:
    """Return the chance of each advice [h, s, b], given how often it was sent by group of steps."""
    S, A = len(tally.states), len(tally.actions)
    chance = np.zeros((problem.horizon, problem.n_states, A + 1))
    chance[:, :S] = sent[tally.step_group]
    allowed = problem.mdp.allowed
    chance[..., :A][~allowed] = 0.0  # nobody can follow such advice: it changes nothing
    lost = np.maximum(sent[tally.step_group].sum(axis=2) - chance[:, :S].sum(axis=2), 0.0)
    chance[:, :S, A] += lost
    total = chance.sum(axis=2, keepdims=True)
    chance[..., A:] += np.where(total == 0.0, 1.0, 0.0)
    rule: Floats = chance / chance.sum(axis=2, keepdims=True)
    return rule


def _of_log(tally: Tally) -> dict[str, tuple[Floats, Floats]]:
    """Return the numbers of the log with their standard errors."""
    S, A, n, step = len(tally.states), len(tally.actions), tally.times, tally.step
    spoken = n * (tally.advice < A)
    matched = spoken * (tally.advice == tally.action)
    blocks = tally.n_blocks
    # All blocks, then all but one.
    alive, value = _lasting(tally, np.vstack([np.ones(blocks), 1.0 - np.eye(blocks)]))
    reward, error = _share(tally, tally.paid, tally.priced, step, 1)
    matches, off = _share(tally, matched, spoken, step, 1)
    return {
        "return": _jackknife(value),
        "endings": _jackknife(alive),
        "reward": (tally.least + reward[:, 0], error[:, 0]),
        "states": _share(tally, n, n, step * S + tally.state, S),
        "actions": _share(tally, n, n, step * A + tally.action, A),
        "matches": (matches[:, 0], off[:, 0]),
    }


def _lasting(tally: Tally, kept_jb: Floats) -> tuple[Floats, Floats]:
    """Return the share of episodes that last to each step [j, g], and the return [j].

    Row j of ``kept_jb`` weights the blocks.
    """
    G, B = tally.n_steps, tally.n_blocks
    place, group = tally.block * G + tally.step, tally.step_group

    def sums(weight: Floats) -> Floats:
        total: Floats = kept_jb @ np.bincount(place, weight, B * G).reshape(B, G)
        return total

    ended = sums(tally.times * (tally.then == ENDED))
    goes_on = 1.0 - _ratio(ended, sums(tally.times), 0.0)[:, group[:-1]]
    alive = np.concatenate((np.ones((len(kept_jb), 1)), np.cumprod(goes_on, axis=1)), axis=1)
    reward = tally.least + _ratio(sums(tally.paid), sums(tally.priced), 0.0)
    return _mean_by_group(alive.T, group).T, (alive * reward[:, group]).sum(axis=1)


def _jackknife(numbers_j: Floats) -> tuple[Floats, Floats]:
    """Return a statistic of all blocks, and its standard error from those without one block."""
    others = numbers_j[1:]
    B = len(others)
    square = ((others - others.mean(axis=0)) ** 2).sum(axis=0)
    return numbers_j[0], np.sqrt((B - 1.0) / B * square)


def _share(
    tally: Tally, part: Floats, whole: Floats, key: Ints, width: int
) -> tuple[Floats, Floats]:
    """Return sums of ``part`` by key over sums of ``whole`` by step [g, width], with errors.

    With x and n the sums of a block, the error of p = Σ x / Σ n is that of Σ (x − p n) / Σ n.
    """
    G, B = tally.n_steps, tally.n_blocks
    n_bg = np.bincount(tally.block * G + tally.step, whole, B * G).reshape(B, G)
    n_g = n_bg.sum(axis=0)
    total = np.bincount(key, part, G * width).astype(np.float64).reshape(G, width)
    share = _ratio(total, n_g[:, None])
    pair, where = np.unique(tally.block * (G * width) + key, return_inverse=True)
    x = np.bincount(where, part, pair.size)
    block, cell = pair // (G * width), pair % (G * width)
    expected = share.reshape(-1)[cell] * n_bg[block, cell // width]
    # Blocks without the key differ from p n by p n.
    square = np.bincount(cell, (x - expected) ** 2 - expected**2, G * width).reshape(G, width)
    square += share**2 * (n_bg**2).sum(axis=0)[:, None]
    error = np.sqrt(B / max(B - 1.0, 1.0) * np.maximum(square, 0.0))
    return share, _ratio(error, n_g[:, None])


def _of_model(tally: Tally, problem: AdviceProblem) -> dict[str, Floats]:
    """Return the same numbers of the model."""
    S, A, group = len(tally.states), len(tally.actions), tally.step_group
    rule = logged_rule(tally, problem)
    played = evaluate(problem, rule)
    occupancy, own = played.occupancy[:, :S], problem.policy[:, :S]
    chance = rule.probabilities().reshape(-1, *problem.mdp.allowed.shape[:2], A + 1)
    sent, moved, matched = np.zeros((3, *own.shape))
    for m, chance_hsb in enumerate(chance):
        here = played.level_occupancy[:, m, :S, None] * chance_hsb[:, :S, :A]
        lift = problem.level_lift[m, :, :S]
        sent += here
        matched += here * (own + lift * (1.0 - own))
        # An action is taken because it was advised, or as before by those who were not moved.
        moved += here * lift
    acts = moved + (occupancy - moved.sum(axis=2))[..., None] * own
    alive = _sum_by_group(occupancy.sum(axis=1), group)
    spoken = _sum_by_group(sent.sum(axis=(1, 2)), group)
    return {
        "return": np.array(played.value),
        "endings": _mean_by_group(occupancy.sum(axis=1), group),
        "reward": _ratio(_sum_by_group(played.reward, group), alive),
        "states": _ratio(_sum_by_group(occupancy, group), alive[:, None]),
        "actions": _ratio(_sum_by_group(acts.sum(axis=1), group), alive[:, None]),
        "matches": _ratio(_sum_by_group(matched.sum(axis=(1, 2)), group), spoken),
    }


def _compare(  # noqa: PLR0913 (what is compared)
    what: str, logged: Floats, error: Floats, model: Floats, scale: float, tally: Tally
) -> Comparison:
    """Return the comparison of the number that is furthest apart, in units of its limit."""
    from scipy.special import ndtri

    known = np.isfinite(logged) & np.isfinite(model) & (tally.n_blocks >= FEWEST_BLOCKS)
    limit = np.maximum(-ndtri(TAIL / max(int(known.sum()), 1)) * error, DIFFERENCE * scale)
    apart = np.where(known, np.abs(model - logged) / np.where(limit > 0.0, limit, 1.0), -1.0)
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(apart)), apart.shape))
    return Comparison(
        what=what,
        logged=float(logged[at]),
        error=float(error[at]),
        model=float(model[at]),
        limit=float(limit[at]) if known[at] else math.inf,
        where=_name(what, at, tally),
    )


def _name(what: str, at: tuple[int, ...], tally: Tally) -> str:
    """Return the place of a number in words."""
    if not at:
        return ""
    first = int(np.flatnonzero(tally.step_group == at[0])[0])
    label = {"states": tally.states, "actions": tally.actions}.get(what)
    return f"step {first}" if label is None else f"{label[at[1]]} at step {first}"


def _ratio(part: Floats, whole: Floats, otherwise: float = math.nan) -> Floats:
    """Return shares; ``otherwise`` where there is nothing to divide by."""
    whole = np.broadcast_to(whole, part.shape)
    share: Floats = np.divide(part, whole, out=np.full(part.shape, otherwise), where=whole > 0.0)
    return share


def _mean_by_group(x_h: Floats, group: Ints) -> Floats:
    """Return means over the steps of each group [g, …]."""
    steps = np.bincount(group).reshape(-1, *[1] * (x_h.ndim - 1))
    mean: Floats = _sum_by_group(x_h, group) / steps
    return mean


def _sum_by_group(x_h: Floats, group: Ints) -> Floats:
    """Return sums over the steps of each group [g, …]."""
    total: Floats = np.zeros((int(group.max()) + 1, *x_h.shape[1:]))
    np.add.at(total, group, x_h)
    return total
