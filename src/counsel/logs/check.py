"""Is this log fit to be learnt from? A report a data engineer can act on.

*Fatal* findings stop a fit: values that must be there are missing or are none, two rows claim the
same step of an episode. *Warnings* say what will be left out, or what cannot be told from this log.
Every finding has a count and some rows as examples.
"""

from dataclasses import dataclass
from typing import Any

from counsel._arrays import real
from counsel.errors import CounselError
from counsel.logs.read import Log, blaming_engine

EXAMPLES = 3
"""Rows shown for each finding."""

LARGEST = 1e300
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
        How many rows, states or pieces of advice it is about.
    fatal
        Whether it stops a fit.
    examples
        Some of them.
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
    rows, episodes, people, states
        How many; ``people`` is None where they are not recorded.
    longest
        Decisions in the longest episode.
    advised, matched
        Rows with advice that was seen, and those among them where the action was the advice.
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
    """Look through a log.

    Parameters
    ----------
    log
        What ``read_log`` returned.
    actions
        All actions there are, where that is known: others are faults.
    reward_range
        The least and the largest reward there can be, where that is known.
    """
    with blaming_engine(log.name):
        return _checked(log, actions, _read_range(reward_range))


def _checked(
    log: Log, actions: tuple[str, ...] | None, reward_range: tuple[float, float] | None
) -> Checked:
    table = log.table
    seen = table.advice.notnull()
    if log.has("seen"):
        seen &= table.seen.fill_null(True)  # noqa: FBT003 (Ibis has no name for it)
    told = _row(
        table.aggregate(
            rows=table.count(),
            episodes=table.episode.nunique(),
            states=table.state.nunique(),
            people=table.person.nunique() if log.has("person") else table.count(),
            advised=seen.sum().fill_null(0),
            matched=(seen & (table.advice == table.action)).sum().fill_null(0),
        )
    )
    if told["rows"] == 0:
        raise CounselError(f"{log.name} has a header and no rows")
    said = _names(table.action) | _names(table.advice)
    findings = [
        *_missing(log),
        *_unreadable(log),
        *_steps(log),
        *_outside(log, actions, reward_range),
        *_advice(log, sorted(said)),
        *_thin(log),
    ]
    sizes = table.group_by("episode").aggregate(n=table.count())
    return Checked(
        rows=told["rows"],
        episodes=told["episodes"],
        people=told["people"] if log.has("person") else None,
        states=told["states"],
        longest=int(_row(sizes.aggregate(n=sizes.n.max()))["n"] or 0),
        advised=told["advised"],
        matched=told["matched"],
        actions=tuple(sorted(said)),
        findings=tuple(sorted(findings, key=lambda finding: not finding.fatal)),
    )


def _missing(log: Log) -> list[Finding]:
    """Look for empty values where there must be some."""
    table, found = log.table, []
    for role in ("episode", "step", "state", "action"):
        raw = table.raw_step if role == "step" else table[role]
        rows = table.filter(raw.isnull())
        count = _count(rows)
        if count:
            what = f"{role} is empty; every decision needs one"
            found.append(Finding(what, count, fatal=True, examples=_shown(rows)))
    rows = table.filter(table.raw_reward.isnull())
    count = _count(rows)
    if count:
        what = "reward is empty; these rows tell nothing about rewards"
        found.append(Finding(what, count, fatal=False, examples=_shown(rows)))
    return found


def _unreadable(log: Log) -> list[Finding]:
    """Look for values that should be numbers and are none."""
    table, found = log.table, []
    for role in ("step", "reward", "advice_probability"):
        if not log.has(role):
            continue
        rows = table.filter(table[f"raw_{role}"].notnull() & table[role].isnull())
        count = _count(rows)
        if count:
            kind = "a whole number" if role == "step" else "a number"
            found.append(Finding(f"{role} is not {kind}", count, fatal=True, examples=_shown(rows)))
    if log.has("reward"):
        # Engines sort what is no number after all numbers; not all can ask for it by name.
        rows = table.filter((table.reward > LARGEST) | (table.reward < -LARGEST))
        count = _count(rows)
        if count:
            found.append(
                Finding("reward is not a finite number", count, fatal=True, examples=_shown(rows))
            )
    if log.has("advice_probability"):
        chance = table.advice_probability
        rows = table.filter((chance <= 0.0) | (chance > 1.0))
        count = _count(rows)
        if count:
            what = "advice_probability is not above 0 and at most 1"
            found.append(Finding(what, count, fatal=True, examples=_shown(rows)))
    return found


def _steps(log: Log) -> list[Finding]:
    """Look at the order of rows within episodes."""
    table, found = log.table, []
    rows = table.filter(table.step < 0)
    count = _count(rows)
    if count:
        found.append(
            Finding("step is below 0; steps count from 0", count, fatal=True, examples=_shown(rows))
        )
    pairs = table.group_by(["episode", "step"]).aggregate(n=table.count())
    twice = pairs.filter((pairs.n > 1) & pairs.episode.notnull() & pairs.step.notnull())
    count = _count(twice)
    if count:
        shown = [f"episode {r['episode']}, step {r['step']}: {r['n']} rows" for r in _some(twice)]
        what = "two rows or more are the same step of the same episode"
        found.append(Finding(what, count, fatal=True, examples=tuple(shown)))
    ends = table.group_by("episode").aggregate(
        first=table.step.min(), last=table.step.max(), n=table.step.nunique()
    )
    gaps = ends.filter(ends.last - ends.first + 1 > ends.n)
    count = _count(gaps)
    if count:
        shown = [
            f"episode {r['episode']}: {r['n']} of steps {r['first']} to {r['last']}"
            for r in _some(gaps)
        ]
        what = "episodes lack steps; what followed the row before a gap is not known"
        found.append(Finding(what, count, fatal=False, examples=tuple(shown)))
    late = ends.filter(ends.first > 0)
    count = _count(late)
    if count:
        shown = [f"episode {r['episode']} begins at {r['first']}" for r in _some(late)]
        what = "episodes do not begin at step 0; their first row is taken for it"
        found.append(Finding(what, count, fatal=False, examples=tuple(shown)))
    return found


def _outside(
    log: Log, actions: tuple[str, ...] | None, reward_range: tuple[float, float] | None
) -> list[Finding]:
    """Look for what was declared impossible."""
    table, found = log.table, []
    if actions is not None:
        for role in ("action", "advice"):
            rows = table.filter(table[role].notnull() & ~table[role].isin(list(actions)))
            count = _count(rows)
            if count:
                what = f"{role} is none of {', '.join(actions)}"
                found.append(Finding(what, count, fatal=True, examples=_shown(rows)))
    if reward_range is not None:
        low, high = reward_range
        rows = table.filter((table.reward < low) | (table.reward > high))
        count = _count(rows)
        if count:
            what = f"reward is not between {low:g} and {high:g}"
            found.append(Finding(what, count, fatal=True, examples=_shown(rows)))
    return found


def _advice(log: Log, said: list[str]) -> list[Finding]:
    """Look at what can be told of advice and silence at all."""
    table, found = log.table, []
    spoken = table.filter(table.advice.notnull())
    refused = (spoken.advice != spoken.action).sum().fill_null(0)
    counts = spoken.group_by("advice").aggregate(n=spoken.count(), refused=refused)
    given = {row["advice"]: (row["n"], row["refused"]) for row in counts.to_pyarrow().to_pylist()}
    silent = _count(table.filter(table.advice.isnull()))
    if not given:
        what = "no advice was ever given; how much people listen cannot be told"
        found.append(Finding(what, 0, fatal=False))
    if silent == 0:
        what = "silence is never recorded; what people do alone is told by refusals only"
        found.append(Finding(what, 0, fatal=False))
    never = [name for name in said if name not in given]
    if given and never:
        what = "actions that were never advised; what advising them would do cannot be told"
        found.append(Finding(what, len(never), fatal=False, examples=tuple(never[:EXAMPLES])))
    always = sorted(name for name, (n, refused) in given.items() if n and refused == 0)
    if always:
        what = "advice that was never refused; its adherence may be anything up to 1"
        found.append(Finding(what, len(always), fatal=False, examples=tuple(always[:EXAMPLES])))
    return found


def _thin(log: Log) -> list[Finding]:
    """Look for states with few decisions."""
    table = log.table
    sizes = table.group_by("state").aggregate(n=table.count())
    few = sizes.filter((sizes.n < THIN) & sizes.state.notnull())
    count = _count(few)
    if not count:
        return []
    shown = tuple(f"{row['state']}: {row['n']} decisions" for row in _some(few))
    what = f"states with fewer than {THIN} decisions; estimates there lean on the others"
    return [Finding(what, count, fatal=False, examples=shown)]


def _names(column: Any) -> set[str]:  # noqa: ANN401 (Ibis ships no types)
    values = column.name("x").as_table().distinct().to_pyarrow()["x"].to_pylist()
    return {value for value in values if value is not None}


def _count(rows: Any) -> int:  # noqa: ANN401
    return int(rows.count().to_pyarrow().as_py())


def _row(table: Any) -> dict[str, Any]:  # noqa: ANN401
    return dict(table.to_pyarrow().to_pylist()[0])


def _some(rows: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """Return the first few rows, always the same."""
    return list(rows.order_by(list(rows.columns)).limit(EXAMPLES).to_pyarrow().to_pylist())


def _shown(rows: Any) -> tuple[str, ...]:  # noqa: ANN401
    """Show a few rows by what they hold."""
    kept = ("episode", "raw_step", "state", "advice", "action", "raw_reward")
    shown = []
    for row in _some(rows.select(*kept)):
        told = ((name.removeprefix("raw_"), row[name]) for name in kept)
        shown.append(", ".join(f"{n} {'empty' if v is None else v}" for n, v in told))
    return tuple(shown)


def _read_range(given: tuple[float, float] | None) -> tuple[float, float] | None:
    if given is None:
        return None
    low, high = (real("reward_range", end) for end in given)
    if not low <= high:
        raise CounselError(f"reward_range is {low:g} to {high:g}; give the least, then the largest")
    return low, high
