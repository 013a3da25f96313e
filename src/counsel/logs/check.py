"""Is this log fit to be learnt from? A report a data engineer can act on.

*Fatal* findings stop a fit: values that must be there are missing or are none, two rows claim the
same step of an episode. *Warnings* say what will be left out, or what cannot be told from this log.
Every finding has a count and some rows as examples.
"""

from dataclasses import dataclass
from typing import Any

from counsel._arrays import real
from counsel.errors import CounselError
from counsel.logs.column_types import as_moment, in_order
from counsel.logs.count import spoken_and_heard
from counsel.logs.read import Log, blaming_engine

EXAMPLES = 3
"""Rows shown for each finding."""

LARGEST = 1e100
"""Rewards beyond this are none."""

THIN = 10
"""States with fewer decisions than this are too thin to say much about."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about the log.

    Attributes
    ----------
    what
        In one sentence, with what follows from it.
    count
        How many rows, episodes, states, actions or pieces of advice it is about.
    fatal
        Whether it stops a fit.
    examples
        Up to three of them, in words.
    """

    what: str
    count: int
    fatal: bool
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """What a log holds, and what was found.

    Attributes
    ----------
    rows
        How many decisions.
    episodes
        How many episodes.
    people
        How many people; None where they are not recorded.
    states
        How many states.
    longest
        Decisions in the longest episode.
    advised
        Rows with advice that was seen.
    matched
        Those among them where the action was the advice.
    actions
        All actions and advice, in order.
    findings
        Fatal ones first.
    """

    rows: int
    episodes: int
    people: int | None
    states: int
    longest: int
    advised: int
    matched: int
    actions: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def fatal(self) -> bool:
        """Whether a fit would be stopped."""
        return any(finding.fatal for finding in self.findings)


def check_log(
    log: Log,
    *,
    actions: tuple[str, ...] | None = None,
    reward_range: tuple[float, float] | None = None,
) -> Checked:
    """Look through a log and tell whether it is fit to be learnt from.

    Parameters
    ----------
    log
        What ``read_log`` returned.
    actions
        All actions there are, where that is known: others are faults.
    reward_range
        The least and the largest reward there can be, where that is known.

    Returns
    -------
    Checked
        How much there is of what, and the findings, fatal ones first.

    Raises
    ------
    CounselError
        When the log has no rows or cannot be read, or ``reward_range`` is no range. Faults of the
        log are not raised but found.

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
    >>> checked = check_log(read_log(table))
    >>> for finding in checked.findings:
    ...     if finding.fatal:
    ...         print(finding.count, finding.what)
    1 action is empty; every decision needs one
    1 two rows or more are the same step of the same episode
    """
    with blaming_engine(log.name):
        return _checked(log, actions, _read_range(reward_range))


def _checked(
    log: Log, actions: tuple[str, ...] | None, reward_range: tuple[float, float] | None
) -> Checked:
    table = log.table
    spoken, heard = spoken_and_heard(log, table)
    faults = _faults(log, actions, reward_range)
    told = _row(
        table.aggregate(
            rows=table.count(),
            priced=table.raw_reward.count(),
            spoken=_times(spoken),
            episodes=table.episode.nunique(),
            states=table.state.nunique(),
            people=table.person.nunique() if log.has("person") else table.count(),
            advised=_times(heard),
            matched=_times(heard & (table.advice == table.action)),
            **{f"fault_{i}": _times(where) for i, (_, _, where) in enumerate(faults)},
        )
    )
    if told["rows"] == 0:
        raise CounselError(f"{log.name} has a header and no rows")
    findings = [
        Finding(what, told[f"fault_{i}"], fatal=fatal, examples=_shown(table.filter(where)))
        for i, (what, fatal, where) in enumerate(faults)
        if told[f"fault_{i}"]
    ]
    if told["priced"] == 0:
        what = "no decision has a reward; what is worth doing cannot be told"
        findings.append(Finding(what, told["rows"], fatal=True))
    if told["spoken"] and not told["advised"]:
        what = "no piece of advice was seen; how much people listen cannot be told"
        findings.append(Finding(what, told["spoken"], fatal=False))
    longest, about_steps = _steps(log)
    said, about_advice = _advice(log)
    findings += [*about_steps, *about_advice, *_thin(log)]
    return Checked(
        rows=told["rows"],
        episodes=told["episodes"],
        people=told["people"] if log.has("person") else None,
        states=told["states"],
        longest=longest,
        advised=told["advised"],
        matched=told["matched"],
        actions=said,
        findings=tuple(sorted(findings, key=lambda finding: not finding.fatal)),
    )


def _faults(
    log: Log, actions: tuple[str, ...] | None, reward_range: tuple[float, float] | None
) -> list[tuple[str, bool, Any]]:
    """Return what may be wrong with a row: in words, whether it is fatal, and the condition."""
    table = log.table
    found: list[tuple[str, bool, Any]] = []
    for role in ("episode", "step", "state", "action"):
        raw = table.raw_step if role == "step" else table[role]
        what = f"{role} is empty; every decision needs one"
        if role == "state" and log.bins:
            what = f"state is empty, or no number where {', '.join(log.bins)} is cut"
        found.append((what, True, raw.isnull()))
    found.append(
        (
            "reward is empty; these rows tell nothing about rewards",
            False,
            table.raw_reward.isnull(),
        )
    )
    for role in ("step", "reward", "advice_probability"):
        if log.has(role):
            kind = "a whole number" if role == "step" else "a number"
            raw = table[f"raw_{role}"]
            none = raw.notnull() & table[role].isnull()
            if role != "step" and raw.type().is_string():
                none &= raw.lower() != "nan"  # Spark takes it for empty; told below
            found.append((f"{role} is not {kind}", True, none))
    # Engines sort what is no number after all numbers; not all can ask for it by name.
    endless = (table.reward > LARGEST) | (table.reward < -LARGEST)
    found.append(("reward is not a finite number", True, endless))
    if log.has("advice_probability"):
        chance = table.advice_probability
        off = (chance <= 0.0) | (chance > 1.0)
        found.append(("advice_probability is not above 0 and at most 1", True, off))
    found.append(("step is below 0; steps count from 0", True, table.step < 0))
    for role in ("seen", "terminated", "truncated"):
        if log.has(role):
            neither = table[f"raw_{role}"].notnull() & table[role].isnull()
            found.append((f"{role} is neither true nor false", True, neither))
    if log.has("terminated") and log.has("truncated"):
        both = table.terminated.fill_null(False) & table.truncated.fill_null(False)  # noqa: FBT003
        what = "terminated and truncated are both true; they are taken for an end"
        found.append((what, False, both))
    if log.has("person"):
        what = "person is empty; these rows tell nothing about people"
        found.append((what, False, table.person.isnull()))
    if log.has("timestamp"):
        what = "timestamp is no date and no number; these rows are left out of trends over time"
        found.append((what, False, as_moment(table.timestamp).isnull()))
    if actions is not None:
        for role in ("action", "advice"):
            other = table[role].notnull() & ~table[role].isin(list(actions))
            found.append((f"{role} is none of {', '.join(actions)}", True, other))
    if reward_range is not None:
        low, high = reward_range
        off = (table.reward < low) | (table.reward > high)
        found.append((f"reward is not between {low:g} and {high:g}", True, off))
    return found


def _steps(log: Log) -> tuple[int, list[Finding]]:
    """Look at the order of rows within episodes; also return the size of the largest."""
    import ibis

    table = log.table
    over = table.terminated.fill_null(False) if log.has("terminated") else None  # noqa: FBT003
    pairs = table.group_by(["episode", "step"]).aggregate(
        n=table.count(), over=ibis.literal(0) if over is None else over.ifelse(1, 0).max()
    )
    known = pairs.episode.notnull() & pairs.step.notnull()
    ends = pairs.group_by("episode").aggregate(
        first=pairs.step.min(),
        last=pairs.step.max(),
        n=pairs.step.count(),
        rows=pairs.n.sum(),
        twice=_times((pairs.n > 1) & known),
        ended=(pairs.over == 1).ifelse(pairs.step, None).min(),
    )
    goes_on = ends.ended < ends.last
    lacks, late = ends.last - ends.first + 1 > ends.n, ends.first > 0
    told = _row(
        ends.aggregate(
            longest=ends.rows.max(),
            twice=ends.twice.sum().fill_null(0),
            lacks=_times(lacks),
            late=_times(late),
            goes_on=_times(goes_on),
        )
    )
    found = []
    if told["goes_on"]:
        shown = [
            f"episode {r['episode']}: terminated at {r['ended']}, goes on to {r['last']}"
            for r in _some(ends.filter(goes_on))
        ]
        what = "episodes go on after terminated; is that column what it is taken for?"
        found.append(Finding(what, told["goes_on"], fatal=False, examples=tuple(shown)))
    if told["twice"]:
        rows = _some(pairs.filter((pairs.n > 1) & known))
        shown = [f"episode {r['episode']}, step {r['step']}: {r['n']} rows" for r in rows]
        what = "two rows or more are the same step of the same episode"
        found.append(Finding(what, int(told["twice"]), fatal=True, examples=tuple(shown)))
    if told["lacks"]:
        shown = [
            f"episode {r['episode']}: {r['n']} of steps {r['first']} to {r['last']}"
            for r in _some(ends.filter(lacks))
        ]
        what = "episodes lack steps; what followed the row before a gap is not known"
        found.append(Finding(what, told["lacks"], fatal=False, examples=tuple(shown)))
    if told["late"]:
        rows = _some(ends.filter(late))
        shown = [f"episode {r['episode']} begins at {r['first']}" for r in rows]
        what = "episodes do not begin at step 0; their first row is taken for it"
        found.append(Finding(what, told["late"], fatal=False, examples=tuple(shown)))
    return int(told["longest"] or 0), found


def _advice(log: Log) -> tuple[tuple[str, ...], list[Finding]]:
    """Look at what can be told of advice and silence at all; also return all actions."""
    table, found = log.table, []
    counts = table.group_by(["advice", "action"]).aggregate(
        n=table.count(), refused=_times(table.advice != table.action)
    )
    given, taken, silent = dict[str, tuple[int, int]](), set[str](), 0
    for row in counts.to_pyarrow().to_pylist():
        if row["action"] is not None:
            taken.add(row["action"])
        if row["advice"] is None:
            silent += row["n"]
            continue
        n, refused = given.get(row["advice"], (0, 0))
        given[row["advice"]] = (n + row["n"], refused + row["refused"])
    said = tuple(sorted(taken | set(given)))
    if not given:
        what = "no advice was ever given; how much people listen cannot be told"
        found.append(Finding(what, 0, fatal=False))
    if silent == 0:
        what = "silence is never recorded; what people do alone is told by refusals only"
        found.append(Finding(what, 0, fatal=False))
    untaken = sorted(set(given) - taken)
    if untaken:
        what = "advice that nobody ever took; are these actions called otherwise?"
        found.append(Finding(what, len(untaken), fatal=False, examples=tuple(untaken[:EXAMPLES])))
    never = [name for name in said if name not in given]
    if given and never:
        what = "actions that were never advised; what advising them would do cannot be told"
        found.append(Finding(what, len(never), fatal=False, examples=tuple(never[:EXAMPLES])))
    always = sorted(name for name, (n, refused) in given.items() if n and refused == 0)
    if always:
        what = "advice that was never refused; its adherence may be anything up to 1"
        found.append(Finding(what, len(always), fatal=False, examples=tuple(always[:EXAMPLES])))
    return said, [*found, *_sure(log)]


def _sure(log: Log) -> list[Finding]:
    """Look for probabilities of one where different things were said."""
    if not log.has("advice_probability"):
        return []
    table = log.table
    sure = table.filter(table.advice_probability >= 1.0)
    kinds = sure.group_by("state").aggregate(kinds=sure.advice.fill_null("").nunique())
    several = kinds.filter(kinds.kinds > 1)
    count = int(several.count().to_pyarrow().as_py())
    if not count:
        return []
    shown = tuple(str(row["state"]) for row in _some(several))
    what = "states where advice_probability is 1 and yet different things were said"
    return [Finding(what, count, fatal=False, examples=shown)]


def _thin(log: Log) -> list[Finding]:
    """Look for states with few decisions."""
    table = log.table
    sizes = table.group_by("state").aggregate(n=table.count())
    few = sizes.filter((sizes.n < THIN) & sizes.state.notnull())
    count = int(few.count().to_pyarrow().as_py())
    if not count:
        return []
    shown = tuple(f"{row['state']}: {row['n']} decisions" for row in _some(few))
    what = f"states with fewer than {THIN} decisions; estimates there lean on the others"
    return [Finding(what, count, fatal=False, examples=shown)]


def _times(condition: Any) -> Any:  # noqa: ANN401 (Ibis ships no types)
    """Return in how many rows a condition is true."""
    return condition.ifelse(1, 0).sum().fill_null(0)


def _row(table: Any) -> dict[str, Any]:  # noqa: ANN401
    return dict(table.to_pyarrow().to_pylist()[0])


def _some(rows: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """Return the first few rows, always the same."""
    keys = [in_order(rows[name]) for name in rows.columns]
    return list(rows.order_by(keys).limit(EXAMPLES).to_pyarrow().to_pylist())


def _shown(rows: Any) -> tuple[str, ...]:  # noqa: ANN401
    """Show a few rows by what they hold."""
    kept = ("episode", "step", "state", "advice", "action", "reward")
    shown = []
    for row in _some(rows.select(*kept, "raw_step", "raw_reward")):
        # Engines write the same number in their own ways: 1, 1.0.
        told = ((name, row.get(f"raw_{name}") if row[name] is None else row[name]) for name in kept)
        shown.append(", ".join(f"{name} {_plain(value)}" for name, value in told))
    return tuple(shown)


def _plain(value: object) -> str:
    if value is None:
        return "empty"
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def _read_range(given: tuple[float, float] | None) -> tuple[float, float] | None:
    if given is None:
        return None
    low, high = (real("reward_range", end) for end in given)
    if not low <= high:
        raise CounselError(f"reward_range is {low:g} to {high:g}; give the least, then the largest")
    return low, high
