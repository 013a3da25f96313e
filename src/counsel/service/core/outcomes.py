"""What came of decisions, as it is reported: checked, and as it is put on record."""

from dataclasses import dataclass
from typing import Any

from counsel._arrays import index_in
from counsel.errors import CounselError
from counsel.model.problem import AdviceProblem

LARGEST_REWARD = 1e12
"""The size of a reward; sums of them must stay numbers."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a decision, which is named by its id."""

    decision: str
    action: int
    reward: float | None = None
    next_state: int | None = None
    seen: bool = True
    reason_code: str | None = None
    comment: str | None = None

    def check(self, problem: AdviceProblem) -> None:
        """Raise unless it can have happened in a problem."""
        index_in("action", self.action, problem.n_actions)
        if self.next_state is not None:
            index_in("next_state", self.next_state, problem.n_states)
        if self.reward is not None and not abs(self.reward) <= LARGEST_REWARD:
            raise CounselError(
                f"reward is {self.reward}; give a number of at most {LARGEST_REWARD:g}"
            )

    def to_row(self, episode: int, step: int, at: float) -> dict[str, Any]:
        """Return it as it is put on record, for the step of an episode (by number)."""
        return {
            "episode": episode,
            "step": step,
            "action": self.action,
            "reward": self.reward,
            "next_state": self.next_state,
            "seen": self.seen,
            "reason_code": self.reason_code,
            "comment": self.comment,
            "at": at,
        }
