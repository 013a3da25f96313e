"""Decisions that were made without the service, put on record as what was really shown.

While the service is down, a client says what must be said and is silent otherwise
(``fallback.py``). The service did not decide, so it must not decide again afterwards: the record
has what the person was shown, with probability 1, and a reason that says who decided. Must-say
advice is not charged to the budget.

A step that is on record already stays as it is: sent again, the same decision changes nothing, and
another one is refused.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from counsel._arrays import index_in
from counsel.service.core.desk import Desk
from counsel.service.core.episode import Episode
from counsel.service.core.episode_levels import read_levels, update_levels
from counsel.service.db import queries
from counsel.service.errors import ConflictError, NotFoundError

SAID, SILENT = "said without the service", "silent without the service"
"""The reasons on record."""


@dataclass(frozen=True, slots=True)
class ReportedDecision:
    """A decision made elsewhere: advice that was shown, or None for silence, and when."""

    step: int
    state: int
    advice: int | None
    at: float | None = None

    def to_row(self, episode: Episode, now: float) -> dict[str, Any]:
        """Check the decision against the problem and return its row in the database.

        A decision cannot be later than its report, whatever the caller's clock says.
        """
        mdp = episode.live.mdp
        is_advice = self.advice is not None
        if self.advice is not None:
            index_in("advice", self.advice, mdp.n_actions)
        return {
            "episode": episode.number,
            "step": index_in("step", self.step, mdp.horizon),
            "state": index_in("state", self.state, mdp.n_states),
            "advice": self.advice,
            "shown": is_advice,
            "must": is_advice,
            "probability": 1.0,
            "reason": json.dumps({"why": SAID if is_advice else SILENT}),
            "at": now if self.at is None else min(self.at, now),
        }


def record_decisions(
    desk: Desk, tenant: int, episode_id: str, reported: Sequence[ReportedDecision]
) -> list[str]:
    """Put decisions made elsewhere on record, all or none, and return their ids."""
    episode, now = desk.episode(tenant, episode_id), time.time()
    rows = [decision.to_row(episode, now) for decision in reported]
    desk.committer.submit(lambda at: _add(at, episode, rows), len(rows)).result()
    return [episode.decision_id(row["step"]) for row in rows]


def _add(connection: sa.Connection, episode: Episode, rows: list[dict[str, Any]]) -> None:
    account = queries.episode_accounts(connection, [episode.number]).get(episode.number)
    if account is None:
        raise NotFoundError(f"there is no episode {episode.id!r}")
    cells = [(episode.number, row["step"]) for row in rows]
    recorded = queries.decisions_at(connection, cells) if cells else {}
    shown = {
        step: (row.state, row.advice if row.shown else None)
        for (number, step), row in recorded.items()
        if number == episode.number
    }
    new = list[dict[str, Any]]()
    for row in rows:
        step, decision = row["step"], (row["state"], row["advice"])
        if step not in shown:
            shown[step] = decision
            new.append(row)
        elif shown[step] != decision:
            raise ConflictError(
                f"step {step} of episode {episode.id} is on record with another state or advice"
            )
    if new and account.ended:
        raise ConflictError(f"episode {episode.id} has ended; report its decisions before its end")
    levels = read_levels(connection, [episode]).get(episode.number)
    for row in sorted(new, key=lambda row: int(row["step"])):
        row["level"] = None if levels is None else levels.at(row["step"])
        if levels is not None:
            levels.add(row["step"], row["advice"])
    queries.add_decisions(connection, new, {})
    if new and levels is not None:
        update_levels(connection, [episode])
