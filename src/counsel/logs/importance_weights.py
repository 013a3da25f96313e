"""Decisions of a log, how likely a policy would have made them, and what it expects of them.

For every decision of a whole episode (one without gaps that ended or reached the horizon): how
likely what was said was in the log, how likely it is under the policy given what was said before,
and Q and V of the policy in a model. Under a hard budget the pieces left are part of the state; a
policy that does not count them has one plane.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from counsel._arrays import Floats, Ints, one_type
from counsel.logs.count import CUT, codes_of, follow
from counsel.logs.fit import Fit
from counsel.logs.read import Log, blaming_engine
from counsel.model.human import advantages, gain_of
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.planning._backward_kernels import Model, action_values
from counsel.planning.advice_rules import Rules
from counsel.planning.backward import model_of


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """The decisions of whole episodes, in order.

    Attributes
    ----------
    episode, place, state, advice
        Of each decision; ``place`` counts from the episode's first, silence is the last advice.
    earlier
        Pieces of advice said before it in the episode.
    reward
        What was paid; the model's expectation where that is not recorded.
    recorded
        The probability of what was said as recorded; NaN where it is not.
    n_episodes, horizon
        How many whole episodes there are, and their most steps.
    """

    episode: Ints
    place: Ints
    state: Ints
    advice: Ints
    earlier: Ints
    reward: Floats
    recorded: Floats
    n_episodes: int
    horizon: int


def decisions_of(log: Log, found: Fit) -> Decisions:
    """Bring the decisions of whole episodes over, as numbers."""
    with blaming_engine(log.name):
        return _brought(log, found)


def _brought(log: Log, found: Fit) -> Decisions:
    import ibis

    tally, problem = found.tally, found.problem
    table = follow(log, horizon=tally.horizon)
    chance = table.advice_probability if log.has("advice_probability") else ibis.null("float64")
    table = table.select(
        *("episode", "place", "state", "advice", "action", "earlier", "reward", "fate"),
        chance=chance,
    ).order_by(["episode", "place"])
    states: dict[str | None, int] = {name: i for i, name in enumerate(tally.states)}
    actions: dict[str | None, int] = {name: i for i, name in enumerate(tally.actions)}
    parts: list[dict[str, Any]] = []
    last: object = None
    count = -1
    for batch in table.to_pyarrow_batches(chunk_size=1_000_000):
        names = batch.column("episode").to_numpy(zero_copy_only=False)
        new = np.empty(names.size, dtype=np.bool_)
        if not names.size:
            continue
        new[1:] = names[1:] != names[:-1]
        new[0] = names[0] != last
        last = names[-1]
        index = count + np.cumsum(new)
        count = int(index[-1])
        parts.append(
            {
                "episode": index,
                "place": batch.column("place").to_numpy(zero_copy_only=False).astype(np.int64),
                "state": codes_of(batch.column("state"), states),
                "advice": codes_of(batch.column("advice"), actions | {None: len(actions)}),
                "action": codes_of(batch.column("action"), actions),
                "earlier": batch.column("earlier").to_numpy(zero_copy_only=False).astype(np.int64),
                "reward": batch.column("reward").to_numpy(zero_copy_only=False).astype(np.float64),
                "fate": batch.column("fate").to_numpy(zero_copy_only=False).astype(np.int64),
                "recorded": batch.column("chance")
                .to_numpy(zero_copy_only=False)
                .astype(np.float64),
            }
        )
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    gone = np.isnan(rows["reward"])
    layer = np.where(found.tally.by_step, rows["place"], 0)
    paid = problem.mdp.reward[layer, rows["state"], rows["action"]]
    rows["reward"] = np.where(gone, paid, rows["reward"])
    episodes = count + 1
    cut = (rows["fate"] == CUT) & (rows["place"] < tally.horizon - 1)
    broken = np.bincount(rows["episode"], cut, episodes) > 0
    kept = ~broken[rows["episode"]]
    again = np.cumsum(~broken) - 1
    columns = ("place", "state", "advice", "earlier", "reward", "recorded")
    return Decisions(
        episode=again[rows["episode"][kept]],
        n_episodes=int((~broken).sum()),
        horizon=tally.horizon,
        **{name: rows[name][kept] for name in columns},
    )


def logged_chances(rows: Decisions, problem: AdviceProblem) -> tuple[Floats, bool]:
    """Return how likely what was said was: as recorded everywhere, else by state and step."""
    if rows.recorded.size and not np.isnan(rows.recorded).any():
        return rows.recorded, True
    S, B = problem.n_states, problem.n_actions + 1
    cell = rows.place * S + rows.state
    of = np.bincount(cell, minlength=rows.horizon * S)
    said = np.bincount(cell * B + rows.advice, minlength=rows.horizon * S * B)
    return said[cell * B + rows.advice] / np.maximum(of[cell], 1), False


def policy_chances(policy: Policy, rows: Decisions) -> Floats:
    """Return how likely the policy says what was said, given what it said before."""
    plane = _planes_of(policy, rows)
    chance = np.empty(rows.place.size)
    for h in range(rows.horizon):
        here = np.flatnonzero(rows.place == h)
        chance[here] = _said(policy, h)[plane[here], rows.state[here], rows.advice[here]]
    if policy.budget is not None:
        chance[rows.earlier > policy.budget] = 0.0
    return chance


def second_moment(policy: Policy, problem: AdviceProblem, rows: Decisions, chance: Floats) -> float:
    """Return E W² in the model; what was never said where it is needed counts as said once.

    u_h(s) = Σ_b e(b | s)² / μ(b | s) Σ_t p^M(t | s, b) u_{h+1}(t), 1 where nothing is decided.
    """
    H, S, B = problem.horizon, problem.n_states, problem.n_actions + 1
    cell = (rows.place * S + rows.state) * B + rows.advice
    times = np.bincount(cell, minlength=H * S * B)
    likely = np.bincount(cell, chance, H * S * B) / np.maximum(times, 1)
    visits = times.reshape(H, S, B).sum(axis=2, keepdims=True)
    mu = np.maximum(likely.reshape(H, S, B), 1.0 / np.maximum(visits, 1.0))
    model = _model(problem)
    nothing = np.zeros_like(model.reward_lsa)  # weights earn nothing
    model = one_type(model._replace(reward_lsa=nothing))
    u_ks = np.ones((len(policy.planes), S))
    for h in range(H - 1, -1, -1):
        q_ksb = _ahead(problem, model, policy, h, u_ks)
        u_ks = (_said(policy, h) ** 2 / mu[h] * q_ksb).sum(axis=2)
        u_ks[:, problem.mdp.over[h]] = 1.0
    return float(problem.mdp.start @ u_ks[-1])


def policy_values(problem: AdviceProblem, policy: Policy, rows: Decisions) -> tuple[Floats, Floats]:
    """Return Q of what was said and V of where it was said, for each decision, in the model."""
    model, plane = _model(problem), _planes_of(policy, rows)
    q, v = np.empty(rows.place.size), np.empty(rows.place.size)
    v_ks = np.zeros((len(policy.planes), problem.n_states))
    for h in range(problem.horizon - 1, -1, -1):
        q_ksb = _ahead(problem, model, policy, h, v_ks)
        v_ks = (_said(policy, h) * q_ksb).sum(axis=2)
        here = np.flatnonzero(rows.place == h)
        k, s = plane[here], rows.state[here]
        q[here], v[here] = q_ksb[k, s, rows.advice[here]], v_ks[k, s]
    return q, v


def _model(problem: AdviceProblem) -> Model:
    rules = Rules.read(problem, forbidden=None, required=None, allow_reverse=True)
    return model_of(problem, rules)


def _planes_of(policy: Policy, rows: Decisions) -> Ints:
    """Return the plane of the policy that holds at each decision."""
    plane: Ints = np.maximum(len(policy.planes) - 1 - rows.earlier, 0)
    return plane


def _said(policy: Policy, h: int) -> Floats:
    """Return the probability of each advice at a step [plane, s, b], silence last."""
    chance_ksb: Floats = np.eye(policy.n_actions + 1)[policy.planes[:, h]]
    k, step, s = np.unravel_index(policy.random.cell_of_entry, policy.planes.shape)
    here = step == h
    chance_ksb[k[here], s[here]] = 0.0
    chance_ksb[k[here], s[here], policy.random.advice[here]] = policy.random.probability[here]
    return chance_ksb


def _ahead(
    problem: AdviceProblem, model: Model, policy: Policy, h: int, values_ks: Floats
) -> Floats:
    """Return r^M(s, b) + Σ_t p^M(t | s, b) values(t) as [plane, s, b], silence last."""
    A, states = problem.n_actions, np.arange(problem.n_states)
    q_ksb = np.empty((len(values_ks), states.size, A + 1))
    q_sa = np.empty((states.size, A))
    for k, values in enumerate(values_ks):
        action_values(model, h, values, states, q_sa)
        known = np.where(np.isinf(q_sa), 0.0, q_sa)
        alone = (problem.policy[h] * known).sum(axis=1, keepdims=True)
        gain = gain_of(problem.lift[h], advantages(problem.policy[h], known))
        q_ksb[k, :, :A], q_ksb[k, :, A:] = alone + gain, alone
    if policy.budget is not None:
        # Advice leads to the plane before; with no piece left nothing can be said.
        q_ksb[1:, :, :A] = q_ksb[:-1, :, :A].copy()
        q_ksb[0, :, :A] = 0.0
    return q_ksb
