"""The log of an adviser in the schema that ``counsel fit`` reads.

There is one row per decision with an outcome. Advice that was not shown (shadow mode, silent
episodes) is silence; advice that was shown but not seen has ``seen`` false. An episode that ended
by itself is ``terminated`` at its last row if the outcome of its last decision was reported; every
other episode is ``truncated`` there. An outcome that was corrected has a ``version`` above 1.
Where people have a memory, ``level`` is the level of each decision as the record has it now; the
column is missing where nobody has one.

``advice_probability`` is the probability of what was shown, given what was shown before in the
episode. A share η of episodes is kept silent, so at first an episode is silent with probability η.
After silence that plans would have kept with probabilities q₁, q₂, … that probability is

    η / (η + (1 − η) q₁ q₂ …).

Each row mixes both: the product over an episode is the probability of everything shown in it.

CSV and Parquet hold every text as it was given, so that what is read back is what was recorded. A
spreadsheet takes a text that begins with =, +, -, @ or a tab for a formula, and runs it; in CSV for
spreadsheets such texts begin with an apostrophe.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain, groupby
from typing import Any

import sqlalchemy as sa

from counsel._tables import column, need_pyarrow, table_chunks
from counsel.errors import CounselError
from counsel.service.core.desk import Desk
from counsel.service.core.episode_levels import EpisodeLevels
from counsel.service.core.live_adviser import LiveAdviser
from counsel.service.core.settings import AdviserSettings
from counsel.service.db.engine import read
from counsel.service.db.level_queries import Step
from counsel.service.db.queries import LAST_OUTCOME, REMARK
from counsel.service.db.tables import decisions, episodes, outcomes, people, remarks
from counsel.simulate.decision_log import DECISION_COLUMNS

SPREADSHEET = "spreadsheet"
"""The format of a CSV file in which no text is a formula."""

FORMATS = {
    "csv": "text/csv; charset=utf-8",
    SPREADSHEET: "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}

FORMULAS = tuple("=+-@\t\r\n＝＋－＠")
"""What formulas of spreadsheets begin with."""

BATCH = 20
"""Episodes per batch: a caller who reads nothing costs few rows, and advice waits for few."""

COLUMNS: dict[str, type | str] = DECISION_COLUMNS | {
    "version": "int32",
    "reason_code": str,
    "comment": str,
}
"""The columns of a log: those of every log, the version of the outcome, and what was said."""

LEVEL: dict[str, type | str] = {"level": str}
"""The last column of a log of people with a memory."""


def export_log(desk: Desk, live: LiveAdviser, format_: str) -> Iterator[bytes]:
    """Yield the log of an adviser as a file, part by part."""
    if format_ not in FORMATS:
        raise CounselError(f"format is {format_[:20]!r}; it must be one of {', '.join(FORMATS)}")
    if format_ == "parquet":
        need_pyarrow()
    return _file(_batches(desk, live), format_, has_levels=live.moves is not None)


def export_person(desk: Desk, tenant: int, person: int, format_: str = "csv") -> Iterator[bytes]:
    """Yield all decisions of one person as a file, over all advisers."""
    query = sa.select(episodes.c.adviser).where(episodes.c.person == person).distinct()
    those = [desk.live(tenant, id_) for id_ in sorted(row[0] for row in read(desk.reading, query))]
    batches = (_batches(desk, live, person) for live in those)
    has_levels = any(live.moves is not None for live in those)
    return _file(chain.from_iterable(batches), format_, has_levels=has_levels)


def _file(
    batches: Iterable[list[dict[str, object]]], format_: str, *, has_levels: bool
) -> Iterator[bytes]:
    kinds = COLUMNS | LEVEL if has_levels else COLUMNS
    as_field = _harmless if format_ == SPREADSHEET else _unchanged
    tables = (
        {
            name: column([as_field(row.get(name)) for row in batch], kind)
            for name, kind in kinds.items()
        }
        for batch in batches
    )
    return table_chunks(".parquet" if format_ == "parquet" else ".csv", tables)


def _unchanged(value: object) -> object:
    return value


def _harmless(value: object) -> object:
    """Return a value that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) else value


def _batches(
    desk: Desk, live: LiveAdviser, person: int | None = None
) -> Iterator[list[dict[str, object]]]:
    """Yield the rows of an adviser, or of one person with it, in batches of whole episodes.

    Each batch is a query of its own: a caller who reads slowly keeps no transaction open.
    """
    which = episodes.c.adviser == live.id
    if person is not None:
        which &= episodes.c.person == person
    mine = sa.select(episodes.c.number).where(which, episodes.c.number > sa.bindparam("after"))
    some = mine.order_by(episodes.c.number).limit(BATCH)
    after = 0
    while True:
        numbers = [row.number for row in read(desk.reading, some.params(after=after))]
        rows: list[dict[str, object]] = []
        recorded = read(desk.reading, _record(numbers)) if numbers else []
        for _, episode in groupby(recorded, key=lambda row: row.id):
            rows += _logged(list(episode), live)
        yield rows
        if len(numbers) < BATCH:
            return
        after = numbers[-1]


def _record(numbers: list[int]) -> sa.Select[Any]:
    """Return the query for everything on record of some episodes."""
    return (
        sa.select(decisions, episodes.c.id, episodes.c.terminated, people.c.name)
        .add_columns(episodes.c.level.label("first_level"))
        .add_columns(outcomes.c.action, outcomes.c.reward, outcomes.c.next_state, outcomes.c.seen)
        .add_columns(outcomes.c.version, remarks.c.reason_code, remarks.c.comment)
        .select_from(episodes)
        .join(people, people.c.id == episodes.c.person)
        .join(decisions, decisions.c.episode == episodes.c.number)
        .join(outcomes, LAST_OUTCOME, isouter=True)
        .join(remarks, REMARK, isouter=True)
        .where(episodes.c.number.in_(numbers))
        .order_by(episodes.c.number, decisions.c.step)
    )


def _logged(episode: Sequence[Any], live: LiveAdviser) -> Iterator[dict[str, object]]:
    """Yield the rows of those decisions of an episode that have an outcome."""
    states = live.state_names
    chances = _chances(episode, live.settings)
    reported = [pair for pair in zip(episode, chances, strict=True) if pair[0].action is not None]
    ended = bool(episode[-1].terminated) and episode[-1].action is not None
    levels = _levels(episode, live)
    for row, chance in reported:
        advice = row.advice if row.shown else None
        is_last = row is reported[-1][0]
        yield {
            "episode": row.id,
            "step": row.step,
            "person": row.name,
            "timestamp": datetime.fromtimestamp(row.at, UTC).isoformat(timespec="seconds"),
            "state": states[row.state],
            "advice": live.action_name(advice),
            "advice_probability": chance,
            "seen": None if advice is None else row.seen,
            "action": live.action_name(row.action),
            "reward": row.reward,
            "next_state": None if row.next_state is None else states[row.next_state],
            "terminated": is_last and ended,
            "truncated": is_last and not ended,
            "version": row.version,
            "reason_code": row.reason_code,
            "comment": row.comment,
        } | ({"level": levels[row.step]} if levels else {})


def _levels(episode: Sequence[Any], live: LiveAdviser) -> list[str | None]:
    """Return the level at each step by its label; empty without a memory."""
    if live.moves is None:
        return []
    steps = (
        Step(row.step, row.level, row.advice if row.shown else None, row.action, row.seen)
        for row in episode
    )
    levels = EpisodeLevels(live.moves, episode[0].id, episode[0].first_level, steps)
    return [live.level_name(level) for level in levels.up_to(levels.last_step)]


def _chances(rows: Sequence[Any], settings: AdviserSettings) -> list[float]:
    """Return the probability of what was shown at each step, given what was shown before."""
    silent, chances = settings.holdout, list[float]()
    for row in rows:
        own, is_silent = row.probability, row.advice is None
        if not row.shown:
            # A silent episode: what plans would have done. In shadow and off silence is certain.
            own, is_silent = json.loads(row.reason).get("silence"), True
        if row.must or own is None:
            chances.append(1.0)
            continue
        chance = silent * is_silent + (1.0 - silent) * own
        chances.append(chance)
        silent = silent / chance if is_silent and chance > 0.0 else 0.0
    return chances
