"""The must-say advice of an adviser, stored on disk for times without the service."""

import json
import logging
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from counsel.errors import CounselError
from counsel.service.journal import write_private

LOG = logging.getLogger("counsel.fallback")

FILE = "must_say.json"
"""The name of the file in the folder of a client."""


@dataclass(frozen=True, slots=True)
class MustSayRules:
    """What must be said, as the service had it at a time (in seconds since 1970)."""

    at: float
    mode: str
    must_say: dict[str, str]
    states: list[str]
    actions: list[str]
    horizon: int

    def __post_init__(self) -> None:
        """Refuse what is no description of rules, with a TypeError."""
        lists = isinstance(self.states, list) and isinstance(self.actions, list)
        if not (lists and isinstance(self.must_say, dict) and isinstance(self.mode, str)):
            raise TypeError("mode, must_say, states or actions have another type")
        labels = [*self.states, *self.actions, *self.must_say, *self.must_say.values()]
        if not all(isinstance(label, str) for label in labels):
            raise TypeError("a label is no text")
        if not isinstance(self.horizon, int) or not isinstance(self.at, int | float):
            raise TypeError("horizon or at is no number")

    @classmethod
    def of(cls, adviser: Mapping[str, Any]) -> "MustSayRules":
        """Return the rules of an adviser that the service describes now."""
        settings = adviser["settings"]
        return cls(
            at=time.time(),
            mode=settings["mode"],
            must_say=settings["must_say"],
            states=adviser["states"],
            actions=adviser["actions"],
            horizon=adviser["horizon"],
        )

    def check(self, what: str, label: str | None) -> None:
        """Refuse a label that the service would refuse."""
        labels = self.actions if what == "action" else self.states
        if label is not None and label not in labels:
            shown = ", ".join(labels[:8]) + (", …" if len(labels) > 8 else "")
            raise CounselError(f"{what} is {str(label)[:60]!r}; it must be one of {shown}")

    def advice_at(self, step: int, state: str) -> str | None:
        """Return what must be said; a step or a state that does not exist is refused."""
        self.check("state", state)
        if not 0 <= step < self.horizon:
            raise CounselError(f"step is {step}; it must be from 0 to {self.horizon - 1}")
        return self.must_say.get(state) if self.mode == "live" else None

    @property
    def origin(self) -> str:
        """When the rules were stored, and in which mode the adviser was unless it was live."""
        stored = datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
        mode = "" if self.mode == "live" else f" when the adviser was in mode {self.mode}"
        return f"stored on {stored}{mode}"

    @classmethod
    def load(cls, folder: Path) -> "tuple[MustSayRules | None, str]":
        """Return the stored rules, or None and the reason why there are none."""
        path = folder / FILE
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8"))), ""
        except FileNotFoundError:
            return None, "whose must-say advice was never stored here"
        except (OSError, ValueError, TypeError) as fault:
            LOG.warning("%s cannot be read: %s", path, fault)
            return None, f"whose must-say advice cannot be read from {path}"

    def save(self, folder: Path) -> None:
        """Store the rules; without a disk they are kept in memory only."""
        try:
            write_private(folder / FILE, json.dumps(asdict(self)))
        except CounselError as fault:
            LOG.warning("must-say advice is kept in memory only: %s", fault)
