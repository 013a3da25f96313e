"""Load the decisions of a log as arrays, for off-policy evaluation.

An episode counts up to where its record breaks off: a gap, or a last row that is not its end. It is
*complete* if it ends or reaches the horizon without a break.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel.errors import CounselError
from counsel.logs.casting import as_time
from counsel.logs.count import (
    Tally,
    block_of,
    cluster_of,
    count_steps,
    encode_labels,
    link_decisions,
)
from counsel.logs.levels import add_level
from counsel.logs.memory_kind import MemoryKind
from counsel.logs.read import Log, report_engine_errors
from counsel.model.problem import AdviceProblem

MOST_KEPT = 500_000
"""The most decisions that a log keeps in memory, for the next evaluation."""

ROW_ARRAYS = (
    *("episode", "place", "state", "advice", "action", "earlier", "pieces", "reward", "heard"),
    *("since", "recorded"),
)
"""The arrays of decisions that have one entry for each."""


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """The decisions of episodes in order, each up to where its record breaks off."""

    episode: Ints
    place: Ints  # counted from the first decision of the episode
    state: Ints
    advice: Ints  # silence is the last advice
    action: Ints
    earlier: Ints  # pieces of advice earlier in the episode, each counted by its cost
    reward: Floats  # the model's expectation if it is not recorded
    heard: Bools  # whether there was advice and it was seen
    since: Floats  # the time since the person's first decision; NaN if it is unknown
    recorded: Floats  # the recorded probability of the advice or silence; NaN if there is none
    pieces: Ints  # pieces of advice earlier in the episode
    people: tuple[str, ...]  # their names
    person: Ints  # the number of the person of each episode; −1 if unknown [episode]
    cluster: Ints  # the number of what is drawn with replacement, mostly the person [episode]
    context: Ints  # the number of the context; 0 without contexts [episode]
    block: Ints  # the block of the fit's counts that the episode belongs to [episode]
    complete: Bools  # whether nothing is missing [episode]
    horizon: int
    levels: Ints | None = None  # of each memory that was asked for [row, memory]

    @property
    def n_episodes(self) -> int:
        """The number of episodes."""
        return self.complete.size

    def select(self, kept: Bools) -> "Decisions":
        """Return some of the decisions, of the same episodes."""
        levels = None if self.levels is None else self.levels[kept]
        columns = {name: getattr(self, name)[kept] for name in ROW_ARRAYS}
        return replace(self, levels=levels, **columns)

    @staticmethod
    def join(parts: Sequence["Decisions"]) -> "Decisions":
        """Return decisions that were selected from the same episodes in one."""
        columns = {name: [getattr(part, name) for part in parts] for name in ROW_ARRAYS}
        joined: dict[str, Any] = {name: np.concatenate(part) for name, part in columns.items()}
        return replace(parts[0], levels=None, **joined)

    @property
    def last(self) -> Ints:
        """The place of the last decision of each episode [episode]."""
        return np.bincount(self.episode, minlength=self.n_episodes) - 1


def refuse_unknown(log: Log, tally: Tally) -> None:
    """Raise an error if a log has a step, state or action that a model does not know."""
    table = log.table
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


def load_decisions(
    log: Log,
    tally: Tally,
    problem: AdviceProblem,
    most: float = math.inf,
    kinds: Sequence[MemoryKind] = (),
) -> Decisions:
    """Load the decisions of a log; if there are more than ``most``, those of some people.

    ``kinds`` are memories whose levels are computed, too.
    """
    with report_engine_errors(log.name):
        return _load(log, tally, problem, most, tuple(kinds))


def _load(
    log: Log, tally: Tally, problem: AdviceProblem, most: float, kinds: tuple[MemoryKind, ...]
) -> Decisions:
    decisions = float(tally.times.sum())
    if decisions > most:
        blocks = f"{int(256 * most / decisions):02x}"
        block = block_of(cluster_of(log, log.table))
        log = replace(log, table=log.table.filter(block < blocks))
        rows, names = _read_rows(log, tally, kinds)
    else:
        rows, names = _read_all_rows(log, tally, kinds)
    rows["pieces"] = rows["earlier"]
    if not problem.has_unit_cost:
        rows["earlier"] = _earlier_cost(rows, problem)
    layer = np.where(tally.by_step, rows["place"], 0)
    expected = problem.mdp.reward[layer, rows["state"], rows["action"]]
    rows["reward"] = np.where(np.isnan(rows["reward"]), expected, rows["reward"])
    cut = rows["breaks"] & (rows["place"] < tally.horizon - 1)
    # After a break nothing is known.
    before = np.cumsum(cut) - cut
    starts = np.flatnonzero(np.diff(rows["episode"], prepend=-1))
    kept = before == before[starts][rows["episode"]]
    who = sorted({name for name in names["person"] if name is not None})
    number = {name: i for i, name in enumerate(who)} | {None: -1}
    return Decisions(
        people=tuple(who),
        person=np.array([number[name] for name in names["person"]], dtype=np.int64),
        context=np.unique(names["context"], return_inverse=True)[1],
        cluster=np.unique(names["cluster"], return_inverse=True)[1],
        block=np.unique(names["block"], return_inverse=True)[1],
        complete=np.bincount(rows["episode"], cut, starts.size) == 0,
        horizon=tally.horizon,
        levels=rows["levels"][kept] if kinds else None,
        **{name: rows[name][kept] for name in ROW_ARRAYS},
    )


def _read_all_rows(
    log: Log, tally: Tally, kinds: tuple[MemoryKind, ...]
) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Return ``_read_rows`` of the whole log; a fit and an evaluation need the same rows."""
    decisions = float(tally.times.sum())
    size = (tally.states, tally.actions, tally.horizon, decisions, float(tally.paid.sum()))
    counted = (*size, kinds)
    known = log.memory.get("rows")
    if known is None or known[0] != counted:
        known = (counted, *_read_rows(log, tally, kinds))
        if decisions <= MOST_KEPT:
            log.memory["rows"] = known
    _, rows, names = known
    return dict(rows), names


def _read_rows(
    log: Log, tally: Tally, kinds: tuple[MemoryKind, ...]
) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Return the columns of the decisions [row], and names that belong to episodes [episode]."""
    import ibis

    table = link_decisions(log, horizon=tally.horizon)
    levels = [f"level_{i}" for i in range(len(kinds))]
    for name, kind in zip(levels, kinds, strict=True):
        table = add_level(log, table, kind, name)
    recorded = table.advice_probability if log.has("advice_probability") else ibis.null("float64")
    cluster = cluster_of(log, table)
    table = table.select(
        *levels,
        *("episode", "place", "state", "advice", "action", "earlier", "reward", "breaks", "heard"),
        recorded=recorded,
        since=_own_clock(log, table),
        person=table.person.cast("string") if log.has("person") else ibis.null("string"),
        context=table.context if log.has("context") else ibis.literal(""),
        cluster=cluster,
        block=block_of(cluster),
    ).order_by(["episode", "place"])
    return _read_batches(table, tally, levels)


def _read_batches(
    table: Any,  # noqa: ANN401
    tally: Tally,
    levels: list[str],
) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Return the columns of a table [row], and of its names those of each episode [episode]."""
    import pyarrow as pa

    states, actions = tally.states, tally.actions
    batches: list[dict[str, Any]] = []
    names: dict[str, list[Any]] = {"person": [], "context": [], "cluster": [], "block": []}
    last_name: object = None
    last_episode = -1
    for batch in table.to_pyarrow_batches(chunk_size=1_000_000):

        def numbers(column: str, kind: type, batch: Any = batch) -> Any:  # noqa: ANN401
            return batch.column(column).to_numpy(zero_copy_only=False).astype(kind)

        episodes = batch.column("episode").to_numpy(zero_copy_only=False)
        if not episodes.size:
            continue
        is_new = np.empty(episodes.size, dtype=np.bool_)
        is_new[1:] = episodes[1:] != episodes[:-1]
        is_new[0] = episodes[0] != last_name
        last_name = episodes[-1]
        opening = batch.filter(pa.array(is_new))
        for column, found in names.items():
            found += opening.column(column).to_pylist()
        episode = last_episode + np.cumsum(is_new)
        last_episode = int(episode[-1])
        batches.append(
            {
                "episode": episode,
                "state": encode_labels(batch.column("state"), states),
                "advice": encode_labels(batch.column("advice"), actions, len(actions)),
                "action": encode_labels(batch.column("action"), actions),
                **{name: numbers(name, np.int64) for name in ("place", "earlier")},
                **{name: numbers(name, np.float64) for name in ("reward", "since", "recorded")},
                **{name: numbers(name, np.bool_) for name in ("breaks", "heard")},
                "levels": np.stack([numbers(name, np.int64) for name in levels], axis=1)
                if levels
                else np.zeros((episode.size, 0), dtype=np.int64),
            }
        )
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}, names


def _own_clock(log: Log, table: Any) -> Any:  # noqa: ANN401 (Ibis ships no types)
    """Return the time since the person's first decision; since the log's if it names nobody."""
    import ibis

    if not log.has("timestamp"):
        return ibis.null("float64")
    time = as_time(table.timestamp)
    people = ibis.window(group_by="person") if log.has("person") else ibis.window()
    return (time - time.min().over(people)).cast("float64")


def _earlier_cost(rows: dict[str, Any], problem: AdviceProblem) -> Ints:
    """Return the cost of the advice before each decision of its episode, in whole units."""
    cost_hsb = np.pad(problem.cost, ((0, 0), (0, 0), (0, 1)))  # silence costs nothing
    cost = cost_hsb[rows["place"], rows["state"], rows["advice"]].astype(np.int64)
    before = np.cumsum(cost) - cost
    starts = np.flatnonzero(np.diff(rows["episode"], prepend=-1))
    return np.asarray(before - before[starts][rows["episode"]])
