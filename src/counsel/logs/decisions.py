"""Load the decisions of a log's complete episodes as arrays, for off-policy evaluation.

A complete episode has no gaps, and ends or reaches the horizon.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from counsel._arrays import Floats, Ints
from counsel.errors import CounselError
from counsel.logs.count import cluster_of, count_steps, encode_labels, link_decisions
from counsel.logs.fit import Fit
from counsel.logs.read import Log, report_engine_errors
from counsel.model.problem import AdviceProblem


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """The decisions of complete episodes, in order."""

    episode: Ints
    place: Ints  # counted from the first decision of the episode
    state: Ints
    advice: Ints  # silence is the last advice
    earlier: Ints  # pieces of advice earlier in the episode, each counted by its cost
    reward: Floats  # the model's expectation if it is not recorded
    recorded: Floats  # the recorded probability of the advice or silence; NaN if there is none
    cluster: Ints  # the number of the person of each episode; of the episode if unknown [episode]
    n_episodes: int
    all_episodes: int  # also those that are not complete
    horizon: int


def refuse_unknown(log: Log, fit: Fit) -> None:
    """Raise an error if a log has a step, state or action that a model does not know."""
    tally, table = fit.tally, log.table
    known = {"state": tally.states, "advice": tally.actions, "action": tally.actions}
    with report_engine_errors(log.name):
        longest = count_steps(log)
        labels = {
            role: table.select(label=table[role]).distinct().to_pyarrow()["label"].to_pylist()
            for role in known
        }
    if longest > tally.horizon:
        raise CounselError(
            f"{log.name} has an episode of {longest} steps, the model's have at most "
            f"{tally.horizon}; fit a model to this log"
        )
    for role, names in known.items():
        unknown = sorted(set(labels[role]) - {None, *names})
        if unknown:
            raise CounselError(
                f"{log.name} has the {role} {unknown[0]!r}, which the model does not have; fit a "
                "model to this log"
            )


def load_decisions(log: Log, fit: Fit) -> Decisions:
    """Load the decisions of complete episodes."""
    with report_engine_errors(log.name):
        return _load(log, fit)


def _load(log: Log, fit: Fit) -> Decisions:
    import ibis
    import pyarrow as pa

    tally, problem = fit.tally, fit.problem
    table = link_decisions(log, horizon=tally.horizon)
    recorded = table.advice_probability if log.has("advice_probability") else ibis.null("float64")
    table = table.select(
        *("episode", "place", "state", "advice", "action", "earlier", "reward", "breaks"),
        recorded=recorded,
        cluster=cluster_of(log, table, _count_people(log)),
    ).order_by(["episode", "place"])
    states, actions = tally.states, tally.actions
    batches: list[dict[str, Any]] = []
    number_of: dict[str, int] = {}
    cluster = list[int]()
    last_name: object = None
    last_episode = -1
    for batch in table.to_pyarrow_batches(chunk_size=1_000_000):

        def numbers(column: str, kind: type, batch: Any = batch) -> Any:  # noqa: ANN401
            return batch.column(column).to_numpy(zero_copy_only=False).astype(kind)

        names = batch.column("episode").to_numpy(zero_copy_only=False)
        if not names.size:
            continue
        is_new = np.empty(names.size, dtype=np.bool_)
        is_new[1:] = names[1:] != names[:-1]
        is_new[0] = names[0] != last_name
        last_name = names[-1]
        for name in batch.column("cluster").filter(pa.array(is_new)).to_pylist():
            cluster.append(number_of.setdefault(name, len(number_of)))
        episode = last_episode + np.cumsum(is_new)
        last_episode = int(episode[-1])
        batches.append(
            {
                "episode": episode,
                "place": numbers("place", np.int64),
                "state": encode_labels(batch.column("state"), states),
                "advice": encode_labels(batch.column("advice"), actions, len(actions)),
                "action": encode_labels(batch.column("action"), actions),
                "earlier": numbers("earlier", np.int64),
                "reward": numbers("reward", np.float64),
                "breaks": numbers("breaks", np.bool_),
                "recorded": numbers("recorded", np.float64),
            }
        )
    rows = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    if not problem.has_unit_cost:
        rows["earlier"] = _earlier_cost(rows, problem)
    layer = np.where(tally.by_step, rows["place"], 0)
    expected = problem.mdp.reward[layer, rows["state"], rows["action"]]
    rows["reward"] = np.where(np.isnan(rows["reward"]), expected, rows["reward"])
    cut = rows["breaks"] & (rows["place"] < tally.horizon - 1)
    is_complete = np.bincount(rows["episode"], cut, last_episode + 1) == 0
    kept = is_complete[rows["episode"]]
    number = np.cumsum(is_complete) - 1
    columns = ("place", "state", "advice", "earlier", "reward", "recorded")
    return Decisions(
        episode=number[rows["episode"][kept]],
        cluster=np.unique(np.array(cluster)[is_complete], return_inverse=True)[1],
        n_episodes=int(is_complete.sum()),
        all_episodes=is_complete.size,
        horizon=tally.horizon,
        **{name: rows[name][kept] for name in columns},
    )


def _count_people(log: Log) -> int:
    """Return the number of people that a log names."""
    if not log.has("person"):
        return 0
    return int(log.table.person.nunique().to_pyarrow().as_py())


def _earlier_cost(rows: dict[str, Any], problem: AdviceProblem) -> Ints:
    """Return the cost of the advice before each decision of its episode, in whole units."""
    cost_hsb = np.pad(problem.cost, ((0, 0), (0, 0), (0, 1)))  # silence costs nothing
    cost = cost_hsb[rows["place"], rows["state"], rows["advice"]].astype(np.int64)
    before = np.cumsum(cost) - cost
    starts = np.flatnonzero(np.diff(rows["episode"], prepend=-1))
    return np.asarray(before - before[starts][rows["episode"]])
