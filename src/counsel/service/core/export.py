"""The log of an adviser in the schema that ``counsel fit`` reads.

There is one row per decision with an outcome. Advice that was not shown (shadow mode, silent
episodes) is silence; advice that was shown but not seen has ``seen`` false. An episode that ended
by itself is ``terminated`` at its last row if the outcome of its last decision was reported; every
other episode is ``truncated`` there.

``advice_probability`` is the probability of what was shown, given what was shown before in the
episode. A share η of episodes is kept silent, so at first an episode is silent with probability η.
After silence that plans would have kept with probabilities q₁, q₂, … that probability is

    η / (η + (1 − η) q₁ q₂ …).

Each row mixes both: the product over an episode is the probability of everything shown in it.
"""

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from counsel._tables import column, need_pyarrow, write_stream
from counsel.errors import CounselError
from counsel.service.core.desk import Desk
from counsel.service.core.live_adviser import LiveAdviser
from counsel.service.core.settings import AdviserSettings
from counsel.service.db.queries import SAME_STEP
from counsel.service.db.tables import decisions, episodes, outcomes, people
from counsel.simulate.decision_log import DECISION_COLUMNS

FORMATS = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}

BATCH = 20_000
"""Rows per batch, at least."""


def export_log(connection: sa.Connection, live: LiveAdviser, format_: str) -> bytes:
    """Return the log of an adviser as a file."""
    if format_ not in FORMATS:
        raise CounselError(f"format is {format_[:20]!r}; it must be one of {', '.join(FORMATS)}")
    if format_ == "parquet":
        need_pyarrow()
    return _file(_batches(connection, live), format_)


def export_person(desk: Desk, tenant: int, person: int) -> bytes:
    """Return all decisions of one person as CSV, over all advisers."""
    query = sa.select(episodes.c.adviser).where(episodes.c.person == person).distinct()
    with desk.engine.connect() as connection:
        advisers = [desk.live(tenant, id_) for id_ in sorted(connection.scalars(query))]
        batches = (batch for live in advisers for batch in _batches(connection, live, person))
        return _file(batches, "csv")


def _file(batches: Iterable[list[dict[str, object]]], format_: str) -> bytes:
    sink = io.BytesIO()
    kinds = DECISION_COLUMNS.items()
    tables = (
        {name: column([row[name] for row in batch], kind) for name, kind in kinds}
        for batch in batches
    )
    write_stream(sink, f".{format_}", next(tables), tables)
    return sink.getvalue()


def _batches(
    connection: sa.Connection, live: LiveAdviser, person: int | None = None
) -> Iterator[list[dict[str, object]]]:
    """Yield the rows of an adviser, or of one person with it, in batches of whole episodes."""
    which = episodes.c.adviser == live.id
    if person is not None:
        which &= episodes.c.person == person
    query = (
        sa.select(decisions, episodes.c.id, episodes.c.terminated, people.c.name)
        .add_columns(outcomes.c.action, outcomes.c.reward, outcomes.c.next_state, outcomes.c.seen)
        .select_from(episodes)
        .join(people, people.c.id == episodes.c.person)
        .join(decisions, decisions.c.episode == episodes.c.number)
        .join(outcomes, SAME_STEP, isouter=True)
        .where(which)
        .order_by(episodes.c.number, decisions.c.step)
    )
    rows: list[dict[str, object]] = []
    recorded = connection.execution_options(yield_per=10_000).execute(query)
    for _, episode in groupby(recorded, key=lambda row: row.id):
        rows += _logged(list(episode), live)
        if len(rows) >= BATCH:
            yield rows
            rows = []
    yield rows


def _logged(episode: Sequence[Any], live: LiveAdviser) -> Iterator[dict[str, object]]:
    """Yield the rows of those decisions of an episode that have an outcome."""
    states = live.state_names
    chances = _chances(episode, live.settings)
    reported = [pair for pair in zip(episode, chances, strict=True) if pair[0].action is not None]
    ended = bool(episode[-1].terminated) and episode[-1].action is not None
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
        }


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
