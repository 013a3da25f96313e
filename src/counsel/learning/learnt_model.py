"""What was learnt of the machine's world as a problem, and plans made on it.

One state more stands for what is not known: all advice that was never tried leads there. Silence is
what people are left with, so advice is planned only where silence was tried as well: elsewhere
there is nothing to compare it with, and what follows silence is taken to be what followed on
average, whatever was said.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from counsel._arrays import Bools, Floats, Ints
from counsel.learning.replanning import spend_where_planned
from counsel.model.human import Human
from counsel.model.kernel import Kernel
from counsel.model.mdp import MDP
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem, Shape
from counsel.planning.solve import solve


@dataclass(frozen=True, slots=True, eq=False)
class LearntPlan:
    """A policy planned on what was learnt, and what it promises there.

    Attributes
    ----------
    value
        The reward of an episode in the learnt model, not in truth.
    advice_count
        Pieces of advice in an episode in the learnt model, not in truth.
    price
        The price of a piece there, as in ``Plan``.
    policy
        What to advise, for people: states and actions are those of the problem.
    """

    value: float
    advice_count: float
    price: float
    policy: Policy


def plan_on(
    model: AdviceProblem,
    shape: Shape,
    *,
    penalty: float | None,
    budget: float | None,
    hard: bool,
) -> LearntPlan:
    """Plan on a learnt model, as ``solve``, for people in a world of this shape."""
    found = solve(model, penalty=penalty, budget=budget, hard=hard)
    policy = found.policy
    if budget is not None and not hard:
        policy = spend_where_planned(model, policy)
    return LearntPlan(
        value=found.value,
        advice_count=found.advice_count,
        price=found.price,
        policy=_for_people(policy, shape),
    )


class Seen(NamedTuple):
    """What was seen: visits and average rewards [h, s, b], and how often what followed each row.

    A row is numbered (h·S + s)·B + b; ``times[i]`` times state ``then[i]`` followed ``row[i]``.
    """

    visits: Ints
    reward: Floats
    row: Ints
    then: Ints
    times: Ints | Floats


def with_silence(seen: Seen) -> Seen:
    """Return what was seen with silence wherever anything was tried.

    Where silence was not tried all that was seen there counts as silence, and as nothing else.
    """
    B = seen.visits.shape[2]
    total = seen.visits.sum(axis=2)
    quiet = (total > 0) & (seen.visits[..., -1] == 0)
    if not quiet.any():
        return seen
    cell = seen.row // B
    row = np.where(quiet.reshape(-1)[cell], cell * B + B - 1, seen.row)
    visits, reward = seen.visits.copy(), seen.reward.copy()
    reward[quiet, -1] = (visits * reward).sum(axis=2)[quiet] / total[quiet]
    visits[quiet] = 0
    visits[quiet, -1] = total[quiet]
    return Seen(visits, reward, row, seen.then, seen.times)


def seen_problem(
    seen: Seen, ended: Bools, least: float, start: Floats, *, idle: float = 0.0
) -> AdviceProblem:
    """Return the machine's world as far as it was seen, as a problem.

    Its actions are the advice and, last, to be left alone, which is what its person does unless
    advised, and its person always listens. One state more stands for the unknown: all advice that
    was never tried leads there, and it pays ``least``.

    Parameters
    ----------
    seen
        Counts and averages.
    ended
        Where nothing more can happen [h, s].
    least
        What the unknown pays at every step.
    start
        The chance to begin in each state, the unknown last.
    idle
        The chance to begin where all is over; another state more stands for that.
    """
    H, S, B = seen.visits.shape
    tried, extra = seen.visits > 0, 1 + (idle > 0.0)
    paid = np.full((H, S + extra, B), least)
    paid[:, S + 1 :] = 0.0
    paid[:, :S][~tried & ended[:H, :, None]] = 0.0
    paid[:, :S][tried] = seen.reward[tried]
    chance = seen.times / seen.visits.reshape(-1)[seen.row]
    h, sb = seen.row // (S * B), seen.row % (S * B)
    more, over = np.arange((S + 1) * B, (S + extra) * B), np.full((extra - 1) * B, S + 1)
    matrices = []
    for step in range(H):
        here = h == step
        rows, columns, data = fill_unknown(
            sb[here], seen.then[here], chance[here], tried[step], ended[step]
        )
        rows, columns = np.append(rows, more), np.append(columns, over)
        entries = (np.append(data, np.ones(more.size)), (rows, columns))
        matrices.append(sp.csr_matrix(entries, shape=((S + extra) * B, S + extra)))
    allowed = np.ones((H, S + extra, B), dtype=np.bool_)
    allowed[:, :S, :-1] = tried[..., :-1]
    alone = np.zeros((S + extra, B))
    alone[:, -1] = 1.0
    law = np.append(start, np.full(extra - 1, idle))
    mdp = MDP(Kernel.from_sparse(matrices), paid, horizon=H, start=law, allowed=allowed)
    return AdviceProblem(mdp, Human(alone, 1.0))


def fill_unknown(
    rows: Ints, columns: Ints, chance: Floats, known: Bools, ended: Bools
) -> tuple[Ints, Ints, Floats]:
    """Complete the rows (state, choice) of one step so that each leads somewhere.

    ``known`` [s, choice] says which were seen, ``ended`` [s] where nothing more can happen: there
    nothing changes. All else that was not seen leads to the state after the last, the unknown,
    which is never left.
    """
    n_states, choices = known.shape
    lost = np.flatnonzero(~known.reshape(-1))
    to = np.where(ended[lost // choices], lost // choices, n_states)
    beyond = np.arange(n_states * choices, (n_states + 1) * choices)
    return (
        np.concatenate((rows, lost, beyond)),
        np.concatenate((columns, to, np.full(choices, n_states))),
        np.concatenate((chance, np.ones(lost.size + choices))),
    )


def _for_people(policy: Policy, shape: Shape) -> Policy:
    """Turn a policy of the learnt model into one for people: drop states that are none.

    Where in the model to be left alone is an action and silence one more, both are silence.
    """
    n_states, n_actions = shape.n_states, shape.n_actions
    advice = np.minimum(policy.advice[..., :n_states], n_actions)
    if not policy.random.cell.size:
        return Policy.trusted(advice.astype(np.int16), n_actions=n_actions)
    chances = policy.probabilities()[..., :n_states, :]
    table = chances[..., : n_actions + 1].copy()
    table[..., n_actions] += chances[..., n_actions + 1 :].sum(axis=-1)
    return Policy.from_probabilities(table)
