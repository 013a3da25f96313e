"""Count the decisions of a log, in the engine that holds it.

A single query groups the decisions by everything that matters: the step, the state, the advice and
whether it was seen, the action, and the outcome. Only the groups reach Python.
All estimates (habits, match rates, transitions, rewards) are sums over the groups.

People (clusters if the log names them, episodes if it names nobody) are also put into up to 256
*blocks* by the first two digits of the MD5 of their name, the same on every engine.
``bootstrap.py`` draws blocks with replacement, which needs only the counts; with few people nearly
every block holds one.

The outcome of a decision is, in this order: the end of the episode if ``terminated``;
``next_state``; the state of the next row, if its step is the next. Before a gap, and where
``truncated``, the outcome is unknown. If the log does not say why an episode stops, the episode has
ended if it is shorter than the longest, and was cut off at the horizon otherwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from counsel._arrays import Bools, Floats, Ints, sealed
from counsel.errors import CounselError
from counsel.logs.levels import add_level
from counsel.logs.memory_kind import MemoryKind
from counsel.logs.read import Log, report_engine_errors

MOST_STATES = 100_000
"""Above this many states the state column probably holds measurements."""

MOST_ACTIONS = 1000
"""Above this many distinct values the action column is probably free text."""

MOST_CELLS = 20_000_000
"""The most steps × states × actions of a fit by step."""

MOST_STEPS = 64
"""Steps of longer episodes are counted in so many groups, of which the last is the last step."""

ENDED, CUT = -1, -2
"""Outcomes of a decision other than a state: the episode ended, or the outcome is unknown."""

DECISION_COLUMNS = (
    *("episode", "episode_number", "step", "state", "advice", "action", "reward", "next_state"),
    *("terminated", "truncated", "advice_probability", "person", "cluster", "context", "timestamp"),
)
"""The columns that ``link_decisions`` keeps."""

TALLY_KEYS = ("block", "step", "state", "advice", "action", "then", "seen", "opens")
TALLY_COUNTS = ("times", "priced", "paid", "paid_squares")
"""The arrays of a tally: what distinguishes kinds of decisions, and what is counted of each."""


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Counts of decisions by kind: kind i occurred ``times[i]`` times."""

    states: tuple[str, ...]
    actions: tuple[str, ...]
    horizon: int  # the number of steps of the longest episode
    block: Ints
    step: Ints  # from 0; a group of steps if episodes are long (``step_group``)
    state: Ints
    advice: Ints  # the number of actions for silence
    action: Ints
    then: Ints  # the next state, ``ENDED`` or ``CUT``
    seen: Bools  # false if the advice was shown but not seen
    opens: Bools  # true for the first decision of an episode
    times: Floats
    priced: Floats  # the number of decisions with a reward
    paid: Floats  # the sum of these rewards above the least reward
    paid_squares: Floats  # the sum of the squares of these
    by_step: bool  # whether estimates may differ from step to step
    endings_by_step: bool = False  # whether the chance to end may
    has_steps: bool = True  # false in files of the first version: their steps are all 0
    least: float = 0.0  # the least reward
    other: float | None = None  # the other reward, if there are only two
    contradictions: int = 0  # rows whose ``next_state`` is not the state of the next row
    contexts: tuple[str, ...] = ()  # what changes listening and nothing else
    context: Ints | None = None  # the place among ``contexts``; None if there are none
    memory: MemoryKind | None = None  # whose levels are counted
    level: Ints | None = None  # the level of the memory; None without one

    @property
    def more_keys(self) -> dict[str, Ints]:
        """What else distinguishes kinds of decisions, if it is counted: context and level."""
        more = {"context": self.context, "level": self.level}
        return {name: column for name, column in more.items() if column is not None}

    def without_levels(self) -> "Tally":
        """Return the counts without the levels of a memory."""
        return replace(self, memory=None, level=None)

    @property
    def start_level(self) -> int:
        """The level at which most episodes begin; 0 without a memory."""
        if self.level is None or self.memory is None:
            return 0
        begin = np.bincount(self.level[self.opens], self.times[self.opens], self.memory.n_levels)
        return int(begin.argmax())

    @property
    def n_steps(self) -> int:
        """The number of steps, or of groups of steps, that are counted."""
        return self.horizon if self.by_step else min(self.horizon, MOST_STEPS)

    @property
    def layer(self) -> Ints:
        """The layer of the estimates: the step, or 0 if steps are pooled."""
        return self.step if self.by_step else np.zeros_like(self.step)

    @property
    def step_group(self) -> Ints:
        """The number that ``step`` has for each step of an episode [h]."""
        group: Ints = group_steps(np.arange(self.horizon), self.horizon, self.n_steps)
        return group

    @property
    def ends(self) -> Bools:
        """Whether the episode ended; if all ends are at the last step, they are the horizon.

        Where only the end of a last decision is known and not what would have followed, it says
        nothing: those that would have gone on are unknown.
        """
        ended: Bools = self.then == ENDED
        if not self.has_steps:
            return ended
        last = self.step == self.n_steps - 1
        if not (ended & ~last).any():
            return np.zeros_like(ended)
        early: Bools = ended & ~last
        return early if (last & (self.then == CUT)).any() else ended

    @property
    def goes_on(self) -> Bools:
        """Whether the episode went on but what followed is unknown: the record broke off."""
        cut: Bools = (self.then == CUT) & (self.step < self.n_steps - 1) & self.has_steps
        return cut

    @property
    def n_blocks(self) -> int:
        """The number of blocks of episodes."""
        return int(self.block.max(initial=-1)) + 1

    @property
    def heard(self) -> Ints:
        """The advice that was seen; silence if it was not."""
        return np.where(self.seen, self.advice, len(self.actions))

    @property
    def episodes(self) -> float:
        """The number of episodes."""
        return float(self.times[self.opens].sum())


def group_steps(step: Any, horizon: int, groups: int) -> Any:  # noqa: ANN401 (also of an Ibis column)
    """Return the group of each step; the last group is the last step."""
    return step if groups >= horizon else step * (groups - 1) // (horizon - 1)


def count_log(log: Log, *, by_step: bool = False, memory: MemoryKind | None = None) -> Tally:
    """Count the decisions of a log in which ``check_log`` finds no fault.

    With a ``memory``, a result of ``prepare_kind``, decisions are also counted by its level.
    """
    with report_engine_errors(log.name):
        return _count(log, by_step=by_step, memory=memory)


def advice_flags(log: Log, table: Any) -> tuple[Any, Any]:  # noqa: ANN401 (Ibis ships no types)
    """Return whether each row of a log's table has advice, and whether the advice was seen."""
    spoken = table.advice.notnull()
    if not log.has("seen"):
        return spoken, spoken
    return spoken, spoken & table.seen.fill_null(True)  # noqa: FBT003 (Ibis has no name)


def count_true(condition: Any) -> Any:  # noqa: ANN401 (Ibis ships no types)
    """Return the number of rows in which a condition is true."""
    return condition.ifelse(1, None).count()


def link_decisions(log: Log, *, horizon: int) -> Any:  # noqa: ANN401 (Ibis ships no types)
    """Add to each decision its outcome and its place in the episode.

    The columns of ``DECISION_COLUMNS`` that the log has are kept. Added are: ``place`` (the step
    counted from the episode's first), ``spoken``, ``heard``, ``earlier`` (pieces of advice earlier
    in the episode), ``fate`` (0 if a state follows, else ``ENDED`` or ``CUT``), ``then`` (that
    state), ``breaks`` (whether the record breaks off here: before a gap, or without an end) and
    ``apart`` (whether ``next_state`` differs from the next row's state). Only a log that does not
    say how episodes end needs the ``horizon``.
    """
    import ibis

    spoken, heard = advice_flags(log, log.table)
    kept = [role for role in DECISION_COLUMNS if role in log.table.columns]
    table = log.table.select(*kept, spoken=spoken, heard=heard)
    order = ibis.window(group_by=log.episode_key, order_by="step")
    before = ibis.window(group_by=log.episode_key, order_by="step", preceding=(None, 1))
    table = table.mutate(
        place=table.step - table.step.first().over(order),
        after=table.state.lead().over(order),
        gap=table.step.lead().over(order) - table.step,
        earlier=table.advice.count().over(before),
    )
    ends = _flag(log, table, "terminated")
    cut = _flag(log, table, "truncated")
    last = table.gap.isnull()
    if log.has("terminated"):
        at_last = ibis.literal(CUT)
    elif log.has("truncated"):
        at_last = ibis.literal(ENDED)
    else:
        at_last = (table.place < horizon - 1).ifelse(ENDED, CUT)
    recorded = table.next_state if log.has("next_state") else ibis.null("string")
    then = recorded.fill_null((table.gap == 1).ifelse(table.after, ibis.null("string")))
    fate = ibis.cases((ends, ENDED), (then.notnull(), 0), (cut, CUT), (last, at_last), else_=CUT)
    apart = (table.gap == 1) & recorded.notnull() & (recorded != table.after) & ~ends
    return table.mutate(
        fate=fate.cast("int64"),
        breaks=((last & (fate != ENDED)) | (table.gap > 1)).fill_null(False),  # noqa: FBT003
        then=(fate == 0).ifelse(then, None),
        apart=apart.fill_null(False),  # noqa: FBT003
    )


def _flag(log: Log, table: Any, role: str) -> Any:  # noqa: ANN401
    import ibis

    if not log.has(role):
        return ibis.literal(False)  # noqa: FBT003
    return table[role].fill_null(False)  # noqa: FBT003


def _count(log: Log, *, by_step: bool, memory: MemoryKind | None) -> Tally:
    # A fit by step, long episodes and a log that does not say how they end need the horizon first.
    says_ends = log.has("terminated") or log.has("truncated")
    horizon = 0 if says_ends and not by_step else count_steps(log)
    least, most, longest = _measure(log, steps=horizon if by_step else None)
    if not by_step and longest > MOST_STEPS:
        horizon = horizon or count_steps(log)
    groups = horizon if by_step else min(horizon, MOST_STEPS)
    table = link_decisions(log, horizon=horizon)
    if memory is not None:
        table = add_level(log, table, memory)
    table = table.mutate(
        block=block_of(cluster_of(log, table)),
        at=group_steps(table.place, horizon, groups).cast("int64"),
        opens=table.place == 0,
        deaf=table.spoken & ~table.heard,
    )
    above = table.reward - least
    keys = ["block", "at", "state", "advice", "deaf", "action", "fate", "then", "opens"]
    if log.has("context"):
        _check_contexts(log)
        keys.append("context")
    if memory is not None:
        keys.append("level")
    counts = table.group_by(keys).aggregate(
        times=table.count(),
        priced=table.reward.count(),
        paid=above.sum().fill_null(0.0),
        paid_squares=(above * above).sum().fill_null(0.0),
        between=count_true((table.reward > least) & (table.reward < most)),
        apart=count_true(table.apart),
        last=table.place.max(),
    )
    groups = counts.to_pyarrow()
    states, actions = (_labels(groups, *pair) for pair in (("state", "then"), ("action", "advice")))
    arrays = _as_arrays(groups, states, actions)
    two_rewards = least < most and not groups["between"].to_numpy().any()
    return Tally(
        states=states,
        actions=actions,
        horizon=int(np.nanmax(groups["last"].to_numpy())) + 1,
        by_step=by_step,
        least=least,
        other=most if two_rewards else None,
        contradictions=int(groups["apart"].to_numpy().sum()),
        contexts=_labels(groups, "context") if log.has("context") else (),
        memory=memory,
        **arrays,
    )


def _as_arrays(
    groups: Any,  # noqa: ANN401 (an Arrow table)
    states: tuple[str, ...],
    actions: tuple[str, ...],
) -> dict[str, Any]:
    """Return the groups as arrays, in an order that does not depend on the engine."""
    fate = groups["fate"].to_numpy()
    then = np.where(fate == 0, encode_labels(groups["then"], states, missing=0), fate)
    blocks = groups["block"].to_numpy(zero_copy_only=False).astype(str)
    columns: dict[str, Any] = {
        "block": np.unique(blocks, return_inverse=True)[1],
        "step": groups["at"].to_numpy().astype(np.int64),
        "state": encode_labels(groups["state"], states),
        "advice": encode_labels(groups["advice"], actions, missing=len(actions)),
        "action": encode_labels(groups["action"], actions),
        "then": then,
        "seen": ~groups["deaf"].to_numpy(zero_copy_only=False).astype(np.bool_),
        "opens": groups["opens"].to_numpy(zero_copy_only=False).astype(np.bool_),
    }
    for name in TALLY_COUNTS:
        columns[name] = groups[name].to_numpy().astype(np.float64)
    sorted_by = [columns[name] for name in reversed(TALLY_KEYS)]
    if "context" in groups.column_names:
        columns["context"] = encode_labels(groups["context"], _labels(groups, "context"))
        sorted_by.insert(0, columns["context"])
    if "level" in groups.column_names:
        columns["level"] = groups["level"].to_numpy().astype(np.int64)
        sorted_by.insert(0, columns["level"])
    order = np.lexsort(sorted_by)
    return {name: sealed(np.ascontiguousarray(column[order])) for name, column in columns.items()}


def block_of(cluster: Any) -> Any:  # noqa: ANN401 (Ibis ships no types)
    """Return the block of a person or episode: two digits of an MD5, the same in every engine."""
    import ibis

    def md5(text: str) -> str:  # type: ignore[empty-body]
        ...

    return ibis.udf.scalar.builtin(md5)(cluster).substr(0, 2)


def _check_contexts(log: Log) -> None:
    """Raise an error unless every episode has one context."""
    table = log.table
    kinds = table.group_by("episode").aggregate(
        first=table.context.min(), last=table.context.max(), lack=count_true(table.context.isnull())
    )
    wrong = (
        kinds.filter((kinds.first != kinds.last) | (kinds.lack > 0)).order_by("episode").limit(1)
    )
    for row in wrong.to_pyarrow().to_pylist():
        what = "is empty in a decision" if row["lack"] else f"is {row['first']} and {row['last']}"
        raise CounselError(
            f"{log.name}: the context {what} of episode {row['episode']}; it must be one and the "
            "same in all decisions of an episode"
        )


def count_steps(log: Log) -> int:
    """Return the number of steps of the longest episode, gaps included."""
    table = log.table
    spans = table.group_by(log.episode_key).aggregate(n=table.step.max() - table.step.min() + 1)
    return int(spans.n.max().to_pyarrow().as_py())


def cluster_of(log: Log, table: Any) -> Any:  # noqa: ANN401
    """Return what is drawn with replacement: the cluster, the person, or the episode."""
    episode = table[log.episode_key].cast("string")
    kind = cluster_role(log)
    return episode if kind == "episode" else table[kind].cast("string").fill_null(episode)


def cluster_role(log: Log) -> str:
    """Return what is drawn with replacement: a cluster if named, else people if there are two."""
    if "cluster role" not in log.memory:
        log.memory["cluster role"] = _find_cluster_role(log)
    return str(log.memory["cluster role"])


def _find_cluster_role(log: Log) -> str:
    for role in ("cluster", "person"):
        if log.has(role):
            several = int(log.table[role].nunique().to_pyarrow().as_py()) > 1
            if several:
                return role
            if role == "cluster":
                raise CounselError(
                    f"{log.name}: column {log.roles[role][0]!r} has one value for all decisions; "
                    "name a cluster that has several, or leave it out"
                )
    return "episode"


def _measure(log: Log, *, steps: int | None) -> tuple[float, float, int]:
    """Return the least and the largest reward, and the span of steps.

    Raise an error if there is too much to count.

    The number of different values in two columns is at most the sum of both numbers: the exact
    number is needed only where the sum is too large.
    """
    table = log.table
    states, actions = [table.state], [table.action, table.advice]
    if log.has("next_state"):
        # The next_state of the last decision is not a state: no decision follows.
        states.append((~_flag(log, table, "terminated")).ifelse(table.next_state, None))
    columns = [*states, *actions]
    sizes = {f"size_{i}": column.nunique() for i, column in enumerate(columns)}
    span = table.step.max() - table.step.min() + 1
    ends = {"least": table.reward.min(), "most": table.reward.max(), "span": span}
    totals = table.aggregate(**ends, **sizes)
    least, most, longest, *counts = totals.to_pyarrow().to_pylist()[0].values()
    if max(counts[: len(states)]) > MOST_STATES:
        raise CounselError(
            f"{log.name} has more than {MOST_STATES:,} different states; bin numbers with "
            "--bins COLUMN=…, or use fewer columns for the state"
        )
    S, A = sum(counts[: len(states)]), sum(counts[len(states) :])
    if A > MOST_ACTIONS:
        A = _count_distinct(actions)
    if A > MOST_ACTIONS:
        raise CounselError(
            f"{log.name} has {A:,} different actions; the maximum is {MOST_ACTIONS:,}: "
            "merge rare actions"
        )
    if steps is not None and steps * S * A > MOST_CELLS:
        S, A = _count_distinct(states), _count_distinct(actions)
        if steps * S * A > MOST_CELLS:
            raise CounselError(
                f"a fit by step has {steps} × {S} × {A} numbers to estimate; fit without --by-step"
            )
    lowest, highest = (0.0, 0.0) if least is None else (float(least), float(most))
    return lowest, highest, int(longest)


def _count_distinct(columns: Sequence[Any]) -> int:
    """Return the number of different values in several columns."""
    first, *others = (column.name("label").as_table() for column in columns)
    labels = first.union(*others, distinct=True) if others else first
    return int(labels.label.nunique().to_pyarrow().as_py())


def _labels(groups: Any, *columns: str) -> tuple[str, ...]:  # noqa: ANN401 (an Arrow table)
    """Return the labels in some columns, sorted."""
    labels = {label for name in columns for label in groups[name].unique().to_pylist()}
    return tuple(sorted(labels - {None}))


def encode_labels(column: Any, labels: Sequence[str], missing: int = -1) -> Ints:  # noqa: ANN401
    """Return the index of each label, ``missing`` for NULL."""
    import pyarrow as pa

    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    encoded = whole.dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
    index = {label: i for i, label in enumerate(labels)}
    places = np.array([index[name] for name in encoded.dictionary.to_pylist()], dtype=np.int64)
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    if not places.size:
        return np.full(len(codes), missing, dtype=np.int64)
    return np.where(codes < 0, missing, places[codes]).astype(np.int64)
