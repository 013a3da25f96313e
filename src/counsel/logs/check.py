"""Check whether a log can be fitted, and report what a data engineer can act on.

*Faults* stop a fit: required values are missing or invalid, or two rows have the same step of an
episode. *Warnings* say what a fit leaves out, or what the log cannot show. Every finding has a
count and some rows as examples.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from counsel._arrays import real
from counsel.errors import CounselError
from counsel.estimate.intervals import wilson
from counsel.logs.casting import as_time, sort_key
from counsel.logs.count import advice_flags, count_true
from counsel.logs.read import Log, report_engine_errors

EXAMPLES = 3
"""Rows shown for each finding."""

LARGEST = 1e100
"""Rewards above this are not finite."""

THIN = 10
"""States with fewer decisions than this have little data."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A fact about the log that matters to a fit.

    ``what`` says the fact and its consequence; ``count`` is the number of rows, episodes, states,
    actions or pieces of advice concerned; ``fatal`` findings stop a fit.
    """

    what: str
    count: int
    fatal: bool
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LogCheck:
    """The size of a log, and the findings of a check."""

    rows: int
    episodes: int
    people: int | None  # None if they are not recorded
    states: int
    longest: int  # decisions in the longest episode
    advised: int  # rows with advice that was seen
    matched: int  # rows with advice that was seen and matched
    actions: tuple[str, ...]  # all actions and advice, in order
    findings: tuple[Finding, ...]  # fatal ones first

    @property
    def faults(self) -> tuple[Finding, ...]:
        """The findings that stop a fit."""
        return tuple(finding for finding in self.findings if finding.fatal)

    @property
    def fatal(self) -> bool:
        """Whether a finding stops a fit."""
        return bool(self.faults)

    @property
    def match_rate(self) -> tuple[float, float, float]:
        """The share of seen advice that was matched, with the ends of its 95 % interval."""
        low, high = wilson(self.matched, self.advised)
        return self.matched / max(self.advised, 1), float(low), float(high)


def check_log(
    log: Log,
    *,
    actions: tuple[str, ...] | None = None,
    reward_range: tuple[float, float] | None = None,
) -> LogCheck:
    """Check whether a log can be fitted.

    Parameters
    ----------
    log
        The log, from ``read_log``.
    actions
        All possible actions, if known: any other action is a fault.
    reward_range
        The smallest and the largest possible reward, if known: any other reward is a fault.

    Returns
    -------
    LogCheck
        The size of the log and the findings, fatal ones first.

    Raises
    ------
    CounselError
        If the log has no rows or cannot be read, or ``reward_range`` is not a range. Faults of the
        log are returned, not raised.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from counsel.logs import read_log
    >>> table = pa.table(
    ...     {
    ...         "episode": [1, 1, 1],
    ...         "step": [0, 1, 1],
    ...         "state": ["calm", "calm", "storm"],
    ...         "advice": [None, "reef", "reef"],
    ...         "action": ["sail", None, "reef"],
    ...         "reward": [1.0, 1.0, 0.0],
    ...     }
    ... )
    >>> for fault in check_log(read_log(table)).faults:
    ...     print(fault.count, fault.what)
    1 action is empty; every decision needs one
    1 several rows have the same step of the same episode
    """
    with report_engine_errors(log.name):
        return _check(log, actions, check_range(reward_range))


def _check(
    log: Log, actions: tuple[str, ...] | None, reward_range: tuple[float, float] | None
) -> LogCheck:
    table = log.table
    spoken, seen = advice_flags(log, table)
    tests = list(_row_tests(log, actions, reward_range))
    totals = _first_row(
        table.aggregate(
            rows=table.count(),
            rewards=table.raw_reward.count(),
            spoken=count_true(spoken),
            people=table.person.nunique() if log.has("person") else table.count(),
            advised=count_true(seen),
            matched=count_true(seen & (table.advice == table.action)),
            **{f"test_{i}": count_true(where) for i, (_, _, where) in enumerate(tests)},
        )
    )
    if totals["rows"] == 0:
        raise CounselError(f"{log.name} has a header and no rows")
    findings = [
        Finding(what, totals[f"test_{i}"], fatal=fatal, examples=_describe(table.filter(where)))
        for i, (what, fatal, where) in enumerate(tests)
        if totals[f"test_{i}"]
    ]
    if totals["rewards"] == 0:
        what = "no decision has a reward; the value of actions is unknown"
        findings.append(Finding(what, totals["rows"], fatal=True))
    if totals["spoken"] and not totals["advised"]:
        what = "no piece of advice was seen; adherence is unknown"
        findings.append(Finding(what, totals["spoken"], fatal=False))
    episodes, longest, step_findings = _check_steps(log)
    all_actions, advice_findings = _check_advice(log)
    states, state_findings = _check_states(log)
    findings += [*step_findings, *advice_findings, *state_findings]
    return LogCheck(
        rows=totals["rows"],
        episodes=episodes,
        people=totals["people"] if log.has("person") else None,
        states=states,
        longest=longest,
        advised=totals["advised"],
        matched=totals["matched"],
        actions=all_actions,
        findings=tuple(sorted(findings, key=lambda finding: not finding.fatal)),
    )


def _row_tests(
    log: Log, actions: tuple[str, ...] | None, reward_range: tuple[float, float] | None
) -> Iterator[tuple[str, bool, Any]]:
    """Yield what may be wrong with a row: in words, whether it is fatal, and the condition."""
    table = log.table
    for role in ("episode", "step", "state", "action"):
        raw = table[{"step": "raw_step", "episode": log.episode_key}.get(role, role)]
        what = f"{role} is empty; every decision needs one"
        if role == "state" and log.bins:
            what = f"state is empty, or {', '.join(log.bins)} is not a number and cannot be binned"
        yield what, True, raw.isnull()
    what = "reward is empty; these rows are ignored when rewards are estimated"
    yield what, False, table.raw_reward.isnull()
    for role in ("step", "reward", "advice_probability"):
        if log.has(role):
            kind = "a whole number" if role == "step" else "a number"
            raw = table[f"raw_{role}"]
            invalid = raw.notnull() & table[role].isnull()
            if role != "step" and raw.type().is_string():
                invalid &= raw.lower() != "nan"  # empty to Spark; reported below
            yield f"{role} is not {kind}", True, invalid
    # Engines sort NaN after all numbers; not all can test for it.
    infinite = (table.reward > LARGEST) | (table.reward < -LARGEST)
    yield "reward is not a finite number", True, infinite
    if log.has("advice_probability"):
        chance = table.advice_probability
        off = (chance <= 0.0) | (chance > 1.0)
        yield "advice_probability is not above 0 and at most 1", True, off
    yield "step is below 0; steps count from 0", True, table.step < 0
    for role in ("seen", "terminated", "truncated"):
        if log.has(role):
            neither = table[f"raw_{role}"].notnull() & table[role].isnull()
            yield f"{role} is neither true nor false", True, neither
    if log.has("terminated") and log.has("truncated"):
        both = table.terminated.fill_null(False) & table.truncated.fill_null(False)  # noqa: FBT003
        what = "terminated and truncated are both true; these episodes count as terminated"
        yield what, False, both
    if log.has("person"):
        what = "person is empty; these rows are ignored when people are compared"
        yield what, False, table.person.isnull()
    if log.has("timestamp"):
        what = "timestamp is neither a date nor a number; trends over time ignore these rows"
        yield what, False, as_time(table.timestamp).isnull()
    if actions is not None:
        for role in ("action", "advice"):
            other = table[role].notnull() & ~table[role].isin(list(actions))
            yield f"{role} is none of {', '.join(actions)}", True, other
    if reward_range is not None:
        low, high = reward_range
        off = (table.reward < low) | (table.reward > high)
        yield f"reward is not between {low:g} and {high:g}", True, off


def _check_steps(log: Log) -> tuple[int, int, list[Finding]]:
    """Check the steps of episodes; also return how many there are, and the size of the longest."""
    import ibis

    table = log.table
    over = table.terminated.fill_null(False) if log.has("terminated") else ibis.literal(False)  # noqa: FBT003
    pairs = table.select("step", key=table[log.episode_key], n=1, over=over.ifelse(1, 0))
    spans, totals = _measure_spans(pairs)
    if not _is_in_order(pairs, totals["episodes"]):  # otherwise every row is a step of its own
        pairs = pairs.group_by(["key", "step"]).aggregate(n=pairs.count(), over=pairs.over.max())
        spans, totals = _measure_spans(pairs)
    tests = (
        (
            "continues",
            spans.filter(spans.ended < spans.last),
            "episodes continue after terminated; is terminated the right column?",
            "episode {episode}: terminated at {ended}, continues to {last}",
        ),
        (
            "repeated",
            pairs.filter(_is_repeated(pairs)),
            "several rows have the same step of the same episode",
            "episode {episode}, step {step}: {n} rows",
        ),
        (
            "gaps",
            spans.filter(spans.last - spans.first + 1 > spans.n),
            "episodes lack steps; the outcome of the row before a gap is unknown",
            "episode {episode}: {n} of steps {first} to {last}",
        ),
        (
            "late",
            spans.filter(spans.first > 0),
            "episodes do not begin at step 0; their first row counts as step 0",
            "episode {episode} begins at {first}",
        ),
    )
    findings = [
        Finding(
            what,
            int(totals[name]),
            fatal=name == "repeated",
            examples=tuple(example.format(**row) for row in _first_rows(_name_episodes(rows))),
        )
        for name, rows, what, example in tests
        if totals[name]
    ]
    return totals["episodes"], int(totals["longest"] or 0), findings


def _measure_spans(pairs: Any) -> tuple[Any, dict[str, Any]]:  # noqa: ANN401
    """Return the span of each episode, and totals over all; ``pairs`` are episodes and steps."""
    spans = pairs.group_by("key").aggregate(
        first=pairs.step.min(),
        last=pairs.step.max(),
        n=pairs.step.count(),
        rows=pairs.n.sum(),
        repeated=count_true(_is_repeated(pairs)),
        ended=(pairs.over == 1).ifelse(pairs.step, None).min(),
    )
    totals = spans.aggregate(
        episodes=spans.key.count(),
        longest=spans.rows.max(),
        continues=count_true(spans.ended < spans.last),
        repeated=spans.repeated.sum().fill_null(0),
        gaps=count_true(spans.last - spans.first + 1 > spans.n),
        late=count_true(spans.first > 0),
    )
    return spans, _first_row(totals)


def _is_repeated(pairs: Any) -> Any:  # noqa: ANN401
    return (pairs.n > 1) & pairs.key.notnull() & pairs.step.notnull()


def _is_in_order(rows: Any, episodes: int) -> bool:  # noqa: ANN401
    """Return whether the rows of each episode follow each other, with rising steps.

    The first row of an episode does not rise above the row before it. If there are only as many
    such rows as episodes, all other rows rise, whatever order an engine reads rows in.
    """
    if rows.get_backend().name != "duckdb":  # other engines may have to move all rows to one place
        return False
    rows = rows.mutate(key_before=rows.key.lag(), step_before=rows.step.lag())
    rises = (rows.key == rows.key_before) & (rows.step > rows.step_before)
    totals = _first_row(rows.aggregate(n=rows.count(), rising=count_true(rises)))
    return bool(totals["n"] - totals["rising"] == episodes)


def _name_episodes(rows: Any) -> Any:  # noqa: ANN401
    """Return rows by key with the name of each episode instead of its key."""
    others = [name for name in rows.columns if name != "key"]
    return rows.select(rows.key.cast("string").name("episode"), *others)


def _check_advice(log: Log) -> tuple[tuple[str, ...], list[Finding]]:
    """Check what the log can show about advice and silence; also return all actions."""
    table = log.table
    counts = table.group_by(["advice", "action"]).aggregate(
        n=table.count(), refused=count_true(table.advice != table.action)
    )
    refusals, taken, silent = dict[str, int](), set[str](), 0
    for row in counts.to_pyarrow().to_pylist():
        if row["action"] is not None:
            taken.add(row["action"])
        if row["advice"] is None:
            silent += row["n"]
        else:
            refusals[row["advice"]] = refusals.get(row["advice"], 0) + row["refused"]
    actions = tuple(sorted(taken | set(refusals)))
    findings = []
    if not refusals:
        what = "no advice was ever given; adherence is unknown"
        findings.append(Finding(what, 0, fatal=False))
    if silent == 0:
        what = "silence is never recorded; only refusals show what people do without advice"
        findings.append(Finding(what, 0, fatal=False))
    for what, names in (
        (
            "advice that nobody ever took; do these actions have another name?",
            sorted(set(refusals) - taken),
        ),
        (
            "actions that were never advised; the effect of advising them is unknown",
            [name for name in actions if refusals and name not in refusals],
        ),
        (
            "advice that was never refused; its adherence may be anything up to 1",
            sorted(name for name, count in refusals.items() if count == 0),
        ),
    ):
        if names:
            examples = tuple(names[:EXAMPLES])
            findings.append(Finding(what, len(names), fatal=False, examples=examples))
    return actions, findings


def _check_states(log: Log) -> tuple[int, list[Finding]]:
    """Check whether certain advice varies and where decisions are few; also count the states."""
    import ibis

    table = log.table
    if log.has("advice_probability"):
        is_certain = table.advice_probability >= 1.0
        certain = is_certain.ifelse(table.advice.fill_null(""), None).nunique()
    else:
        certain = ibis.literal(0)
    states = table.group_by("state").aggregate(n=table.count(), certain=certain)
    varies, is_thin = states.certain > 1, (states.n < THIN) & states.state.notnull()
    totals = _first_row(
        states.aggregate(
            states=states.state.count(), varying=count_true(varies), thin=count_true(is_thin)
        )
    )
    tests = (
        (
            "varying",
            varies,
            "states where advice_probability is 1 although the advice varies",
            "{state}",
        ),
        (
            "thin",
            is_thin,
            f"states with fewer than {THIN} decisions; estimates there rely on other states",
            "{state}: {n} decisions",
        ),
    )
    findings = [
        Finding(
            what,
            totals[name],
            fatal=False,
            examples=tuple(example.format(**row) for row in _first_rows(states.filter(where))),
        )
        for name, where, what, example in tests
        if totals[name]
    ]
    return totals["states"], findings


def _first_row(table: Any) -> dict[str, Any]:  # noqa: ANN401
    return dict(table.to_pyarrow().to_pylist()[0])


def _first_rows(rows: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """Return the first few rows in an order that does not depend on the engine."""
    keys = [sort_key(rows[name]) for name in rows.columns]
    return list(rows.order_by(keys).limit(EXAMPLES).to_pyarrow().to_pylist())


def _describe(rows: Any) -> tuple[str, ...]:  # noqa: ANN401
    """Return the first few rows in words."""
    roles = ("episode", "step", "state", "advice", "action", "reward")
    texts = []
    for row in _first_rows(rows.select(*roles, "raw_step", "raw_reward")):
        values = (
            (name, row.get(f"raw_{name}") if row[name] is None else row[name]) for name in roles
        )
        texts.append(", ".join(f"{name} {_plain(value)}" for name, value in values))
    return tuple(texts)


def _plain(value: object) -> str:
    """Return a value as text; engines write the same number as 1 or 1.0."""
    if value is None:
        return "empty"
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def check_range(ends: tuple[float, float] | None) -> tuple[float, float] | None:
    """Return a range of rewards as numbers; None if it is unknown."""
    if ends is None:
        return None
    low, high = (real("reward_range", end) for end in ends)
    if not low <= high:
        raise CounselError(
            f"reward_range is {low:g} to {high:g}; give the smallest reward, then the largest"
        )
    return low, high
