"""Outcomes of decisions: checked, and turned into rows and counts."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from counsel._arrays import index_in
from counsel.errors import CounselError
from counsel.service.core.episode import Episode

LARGEST_REWARD = 1e12
"""The largest size of a reward; sums of rewards must stay finite."""


class OutcomeReport(NamedTuple):
    """The rows of outcomes that were reported together.

    ``remembering`` has those of their episodes, by number, whose person has a memory.
    """

    rows: list[dict[str, Any]]
    remembering: dict[int, Episode]


@dataclass(frozen=True, slots=True)
class OutcomeReceipt:
    """How many outcomes of a report were taken, and how many replaced one that was on record."""

    taken: int
    corrected: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a person did after a decision, which is named by its id.

    Without a ``version``, an outcome that differs from the last one is its next version. With one,
    outcomes may come in any order: the highest version counts.
    """

    decision: str
    action: int
    reward: float | None = None
    next_state: int | None = None
    seen: bool = True
    reason_code: str | None = None
    comment: str | None = None
    version: int | None = None

    def to_row(self, episode: Episode, step: int, at: float) -> dict[str, Any]:
        """Check the outcome of a step against the problem and return its row in the database."""
        mdp = episode.live.mdp
        index_in("action", self.action, mdp.n_actions)
        if self.next_state is not None:
            index_in("next_state", self.next_state, mdp.n_states)
        if self.reward is not None and not abs(self.reward) <= LARGEST_REWARD:
            raise CounselError(
                f"reward is {self.reward}; give a number of at most {LARGEST_REWARD:g}"
            )
        return {
            "decision": self.decision,
            "episode": episode.number,
            "step": step,
            "action": self.action,
            "reward": self.reward,
            "next_state": self.next_state,
            "seen": self.seen,
            "reason_code": self.reason_code,
            "comment": self.comment,
            "version": self.version,
            "at": at,
        }
