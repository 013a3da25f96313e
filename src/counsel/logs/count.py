"""All that a fit needs of a log, counted by the engine that holds it.

One pass groups the decisions by everything that matters at once: the state, what was said and
whether it was seen, the action, and what followed. Only the groups reach Python. Everything else
(what people do alone, how often they match, where they go next, what is paid) is a sum over them.

Episodes are also put into up to 256 *blocks* by the first two digits of the MD5 of their name, the
same on every engine. Drawing blocks with replacement is a bootstrap over episodes that needs the
counts only; with few episodes nearly every one is a block of its own.

What follows a decision is, in this order: the end, where ``terminated``; ``next_state``; the state
of the next row, where its step is the next. Behind a gap, and where ``truncated``, it is not known.
Where an episode stops and the log does not say why, it has ended if it is shorter than the longest
one, and else was cut by the horizon.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counsel._arrays import Floats, Ints, sealed
from counsel.errors import CounselError
from counsel.logs.read import Log, blaming_engine

MOST_STATES = 100_000
"""States beyond which a log is not a table of situations but of measurements."""

MOST_ACTIONS = 1000
"""Actions beyond which they are no choice but texts."""

MOST_CELLS = 20_000_000
"""Numbers of step, state and action beyond which a fit by step is refused."""

TRACE = 1e-6
"""What a block that was not drawn counts."""

ENDED, CUT = -1, -2
"""What followed a decision when it was no state: nothing, or nobody knows."""

FOLLOWED = (
    *("episode", "step", "state", "advice", "action", "reward"),
    *("next_state", "terminated", "truncated", "advice_probability"),
)
"""The columns that ``follow`` keeps."""


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Decisions by kind: entry i happened ``times[i]`` times.

    Attributes
    ----------
    states, actions
        Their labels, in order.
    horizon
        Steps of the longest episode.
    block, step, state, advice, action, then
        Of each kind. ``advice`` is the number of actions for silence, ``then`` a state, ``ENDED``
        or ``CUT``; ``step`` is 0 unless counted by step.
    seen
        False where the advice was shown but not seen.
    opens
        True for the first decision of an episode.
    times, priced
        How often, and how often with a reward.
    paid, paid_squares
        The sum of those rewards above the least, and of their squares.
    by_step
        Whether steps were told apart.
    least
        The least reward of all.
    other
        The other reward, where there are only two.
    contradictions
        Rows whose ``next_state`` is not the state of the next row.
    """

    states: tuple[str, ...]
    actions: tuple[str, ...]
    horizon: int
    block: Ints
    step: Ints
    state: Ints
    advice: Ints
    action: Ints
    then: Ints
    seen: NDArray[np.bool_]
    opens: NDArray[np.bool_]
    times: Floats
    priced: Floats
    paid: Floats
    paid_squares: Floats
    by_step: bool
    least: float = 0.0
    other: float | None = None
    contradictions: int = 0

    @property
    def n_blocks(self) -> int:
        """How many blocks of episodes there are."""
        return int(self.block.max(initial=-1)) + 1

    @property
    def heard(self) -> Ints:
        """What was said and seen; silence where it was not."""
        return np.where(self.seen, self.advice, len(self.actions))

    @property
    def episodes(self) -> float:
        """How many episodes there are."""
        return float(self.times[self.opens].sum())

    @property
    def mean_return(self) -> float:
        """The mean reward of an episode; a decision without a reward has the mean of the others."""
        mean = self.least + self.paid.sum() / max(self.priced.sum(), 1.0)
        return float(mean * self.times.sum() / max(self.episodes, 1.0))

    def drawn(self, rng: np.random.Generator) -> "Tally":
        """Return the counts of as many blocks drawn with replacement.

        Blocks that are not drawn count a millionth: a pair of state and action that is in none of
        those drawn keeps what the whole log says of it, instead of being unknown.

        Parameters
        ----------
        rng
            Where the draws come from.

        Returns
        -------
        Tally
            The same kinds of decisions with other counts.
        """
        blocks = self.n_blocks
        drawn = rng.multinomial(blocks, np.full(blocks, 1.0 / blocks))
        weight = np.where(drawn > 0, drawn, TRACE)[self.block]
        return replace(
            self,
            times=self.times * weight,
            priced=self.priced * weight,
            paid=self.paid * weight,
            paid_squares=self.paid_squares * weight,
        )


def count_log(log: Log, *, by_step: bool = False) -> Tally:
    """Count a log that has been checked.

    Parameters
    ----------
    log
        What ``read_log`` returned; ``check_log`` has found nothing fatal in it.
    by_step
        Whether to tell steps apart.
    """
    with blaming_engine(log.name):
        return _counted(log, by_step=by_step)


def spoken_and_heard(log: Log, table: Any) -> tuple[Any, Any]:  # noqa: ANN401 (Ibis ships no types)
    """Return whether something was said in each row of a log's table, and whether it was seen."""
    spoken = table.advice.notnull()
    if not log.has("seen"):
        return spoken, spoken
    return spoken, spoken & table.seen.fill_null(True)  # noqa: FBT003 (Ibis has no name)


def pieces_before(table: Any) -> Any:  # noqa: ANN401 (Ibis ships no types)
    """Return how many pieces of advice were given earlier in the episode of each row."""
    import ibis

    before = ibis.window(group_by="episode", order_by="step", preceding=(None, 1))
    return table.advice.notnull().ifelse(1, 0).sum().over(before).fill_null(0)


def follow(log: Log, *, horizon: int) -> Any:  # noqa: ANN401 (Ibis ships no types)
    """Return the decisions with what followed each, and its place in the episode.

    Columns kept: those of ``FOLLOWED`` that the log has. Columns added: ``place`` (the step counted
    from the episode's first), ``spoken``, ``heard``, ``earlier`` (pieces said before it in the
    episode), ``fate`` (0 where a state followed, else ``ENDED`` or ``CUT``), ``then``, and
    ``apart`` (``next_state`` is not the next row's state).
    """
    import ibis

    spoken, heard = spoken_and_heard(log, log.table)
    kept = [role for role in FOLLOWED if role in log.table.columns]
    table = log.table.select(*kept, spoken=spoken, heard=heard)
    order = ibis.window(group_by="episode", order_by="step")
    table = table.mutate(
        place=table.step - table.step.first().over(order),
        after=table.state.lead().over(order),
        gap=table.step.lead().over(order) - table.step,
        earlier=pieces_before(table),
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
    told = table.next_state if log.has("next_state") else ibis.null("string")
    then = told.fill_null((table.gap == 1).ifelse(table.after, ibis.null("string")))
    fate = ibis.cases(
        (ends, ENDED),
        (then.notnull(), 0),
        (cut, CUT),
        (last, at_last),
        else_=CUT,
    )
    apart = (table.gap == 1) & told.notnull() & (told != table.after) & ~ends
    return table.mutate(
        fate=fate.cast("int64"),
        then=(fate == 0).ifelse(then, None),
        apart=apart.fill_null(False),  # noqa: FBT003
    )


def _flag(log: Log, table: Any, role: str) -> Any:  # noqa: ANN401
    import ibis

    if not log.has(role):
        return ibis.literal(False)  # noqa: FBT003
    return table[role].fill_null(False)  # noqa: FBT003


def _counted(log: Log, *, by_step: bool) -> Tally:
    import ibis

    states, actions = _labels(log)
    horizon = horizon_of(log)
    if by_step and horizon * len(states) * len(actions) > MOST_CELLS:
        raise CounselError(
            f"by step there are {horizon} × {len(states)} × {len(actions)} numbers to estimate; "
            "fit without --by-step"
        )
    table = follow(log, horizon=horizon)
    table = table.mutate(
        block=_md5(table.episode).substr(0, 2),
        at=table.place if by_step else ibis.literal(0),
        opens=table.place == 0,
        deaf=table.spoken & ~table.heard,
    )
    paid = log.table.reward
    told = log.table.aggregate(least=paid.min(), most=paid.max(), kinds=paid.nunique())
    least, most, kinds = told.to_pyarrow().to_pylist()[0].values()
    least = 0.0 if least is None else float(least)
    above = table.reward - least
    keys = ["block", "at", "state", "advice", "deaf", "action", "fate", "then", "opens"]
    groups = table.group_by(keys).aggregate(
        times=table.count(),
        priced=table.reward.count(),
        paid=above.sum().fill_null(0.0),
        squares=(above * above).sum().fill_null(0.0),
        apart=table.apart.ifelse(1, 0).sum(),
    )
    found = groups.to_pyarrow()
    return Tally(
        states=states,
        actions=actions,
        horizon=horizon,
        by_step=by_step,
        least=least,
        other=float(most) if kinds == 2 else None,
        contradictions=int(found["apart"].to_numpy().sum()),
        **_as_arrays(found, states, actions),
    )


def _as_arrays(
    found: Any,  # noqa: ANN401 (an Arrow table)
    states: tuple[str, ...],
    actions: tuple[str, ...],
) -> dict[str, Any]:
    """Return the groups as the arrays of a tally, in an order that no engine decides on."""
    state_of: dict[str | None, int] = {name: i for i, name in enumerate(states)}
    action_of: dict[str | None, int] = {name: i for i, name in enumerate(actions)}
    fate = found["fate"].to_numpy()
    then = np.where(fate == 0, codes_of(found["then"], state_of | {None: 0}), fate)
    blocks = found["block"].to_numpy(zero_copy_only=False).astype(str)
    columns = {
        "block": np.unique(blocks, return_inverse=True)[1],
        "step": found["at"].to_numpy().astype(np.int64),
        "state": codes_of(found["state"], state_of),
        "advice": codes_of(found["advice"], action_of | {None: len(actions)}),
        "action": codes_of(found["action"], action_of),
        "then": then,
        "seen": ~found["deaf"].to_numpy(zero_copy_only=False).astype(np.bool_),
        "opens": found["opens"].to_numpy(zero_copy_only=False).astype(np.bool_),
        "times": found["times"].to_numpy().astype(np.float64),
        "priced": found["priced"].to_numpy().astype(np.float64),
        "paid": found["paid"].to_numpy().astype(np.float64),
        "paid_squares": found["squares"].to_numpy().astype(np.float64),
    }
    by = ("opens", "seen", "then", "action", "advice", "state", "step", "block")
    order = np.lexsort([columns[name] for name in by])
    return {name: sealed(np.ascontiguousarray(column[order])) for name, column in columns.items()}


def _md5(column: Any) -> Any:  # noqa: ANN401
    """Return the hexadecimal MD5 of a text, which every engine has under this name."""
    import ibis

    def md5(text: str) -> str:  # type: ignore[empty-body]
        ...

    return ibis.udf.scalar.builtin(md5)(column)


def horizon_of(log: Log) -> int:
    """Return the steps of the longest episode, gaps included."""
    table = log.table
    ends = table.group_by("episode").aggregate(span=table.step.max() - table.step.min() + 1)
    return int(ends.span.max().to_pyarrow().as_py())


def _labels(log: Log) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return all states and all actions, sorted; raise where there are too many."""
    table = log.table
    places = [table.state] + ([table.next_state] if log.has("next_state") else [])
    if log.has("next_state") and log.has("terminated"):
        # What an episode ends in is no state of its own: nothing more can happen.
        live = ~table.terminated.fill_null(False)  # noqa: FBT003
        places[1] = live.ifelse(table.next_state, None)
    found = set[str]()
    for column in places:
        names = column.name("x").as_table().distinct().limit(MOST_STATES + 1).to_pyarrow()["x"]
        if len(names) > MOST_STATES:
            raise CounselError(
                f"{log.name} has more than {MOST_STATES:,} different states; put numbers into bins "
                "with --bins COLUMN=…, or use fewer columns for the state"
            )
        found |= set(names.to_pylist()) - {None}
    pairs = table.select("action", "advice").distinct().to_pyarrow()
    acted = {name for column in pairs.columns for name in column.unique().to_pylist()} - {None}
    if len(acted) > MOST_ACTIONS:
        raise CounselError(
            f"{log.name} has {len(acted):,} different actions; {MOST_ACTIONS:,} are the most: "
            "join rare ones"
        )
    return tuple(sorted(found)), tuple(sorted(acted))


def codes_of(column: Any, index: dict[str | None, int]) -> Ints:  # noqa: ANN401
    """Return the place of each label."""
    import pyarrow as pa

    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    encoded = whole.dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
    names = encoded.dictionary.to_pylist()
    places = np.array([index[name] for name in names], dtype=np.int64)
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    missing = index.get(None, -1)
    if not places.size:
        return np.full(len(codes), missing, dtype=np.int64)
    return np.where(codes < 0, missing, places[codes]).astype(np.int64)
