"""Delivers a journal: what was said and done without the service goes on record.

What is put on record is what was shown. The service did not decide these steps, so it is not asked
to: they are recorded as made without it (``core/reported.py``). A request whose answer was late may
have been carried out all the same. Then the record has advice where the person saw silence, and the
outcome is reported as not seen; if the record contradicts what was shown in any other way, the
entry is set aside in ``refused.jsonl`` with the reason, for somebody to look at.

Delivering again is harmless: starts carry an idempotency key, and repeated decisions, outcomes and
ends change nothing. Of several outcomes of one decision in the journal the last is delivered.
"""

import json
import logging
import os
import time
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

from counsel.service.client import Client
from counsel.service.connection import ServiceError
from counsel.service.journal import Entry, Journal, Line, Progress

LOG = logging.getLogger("counsel.fallback")

OFFLINE = "offline-"
"""The beginning of the ids of episodes that were started without the service."""

SAVE_EVERY = 50
"""Entries after which the progress of a delivery is stored."""

FIELDS = {
    "start": {"episode", "person", "request"},
    "decision": {"episode", "step", "state", "advice", "at"},
    "outcome": {"advice_id", "action"},
    "end": {"episode", "terminated"},
}
"""What an entry of each kind has at least."""

UNSEEN, REFUSED = "unseen", "refused"
"""The record has advice that was not shown; or something else that was not shown."""


class Courier:
    """Delivers the journal of a folder; the caller holds the lock of deliveries."""

    def __init__(self, client: Client, adviser: str, folder: Path) -> None:
        self._client, self._adviser, self._folder = client, adviser, folder
        self._journal = Journal(folder)

    def deliver(self) -> None:
        """Deliver everything; raises if the service does not answer in the middle."""
        while not self._journal.is_empty and self._deliver_some():
            pass

    def _deliver_some(self) -> bool:
        """Deliver what the journal has now; return whether anything was delivered."""
        progress = Progress(self._folder)
        file, begin, lines = self._journal.read()
        progress.load()
        progress.begin(file, begin)
        last = {_outcome_of(line): line.end for line in lines}
        left = [line for line in lines if line.end > progress.end]
        try:
            for number, line in enumerate(left, 1):
                outcome = _outcome_of(line)
                if outcome is None or last[outcome] == line.end:
                    self._deliver(line, progress)
                progress.end = line.end
                if number % SAVE_EVERY == 0:
                    progress.save()
        finally:
            progress.save()
        torn = self._journal.empty(progress.end)
        if torn is not None:
            self._set_aside(torn, "its process died before the entry was complete")
        return bool(left)

    def _deliver(self, line: Line, progress: Progress) -> None:
        """Deliver an entry, or set it aside if the service refuses it."""
        entry = line.entry
        if entry is None or not FIELDS.get(entry.get("kind", ""), {"?"}) <= entry.keys():
            self._set_aside(line, "the line is damaged")
            return
        try:
            self._send(entry, progress)
        except ServiceError as fault:
            if not fault.is_refusal:
                raise
            self._set_aside(line, str(fault))

    def _send(self, entry: Entry, progress: Progress) -> None:
        if entry["kind"] == "outcome":
            send_outcome(self._client, progress, entry)
            return
        episode: str = entry["episode"]
        if entry["kind"] == "start":
            started = self._client.start(self._adviser, entry["person"], entry["request"])
            progress.episodes[episode] = started
            progress.save()
            return
        real = progress.episodes.get(episode, episode)
        if real.startswith(OFFLINE):
            raise ServiceError(HTTPStatus.NOT_FOUND, f"episode {episode} could not be started")
        if entry["kind"] == "decision":
            self._send_decision(real, entry, progress)
        else:
            self._client.end(real, terminated=entry["terminated"])

    def _send_decision(self, real: str, entry: Entry, progress: Progress) -> None:
        decision = {name: entry[name] for name in ("step", "state", "advice", "at")}
        try:
            self._client.report_decisions(real, [decision])
        except ServiceError as fault:
            if fault.status != HTTPStatus.CONFLICT:
                raise
            progress.conflicts[f"{real}-{entry['step']}"] = REFUSED
            recorded = self._client.advise(real, entry["step"], entry["state"])
            if entry["advice"] is not None or recorded["advice"] is None:
                raise
            # The answer was late: the record has advice where the person saw silence.
            progress.conflicts[f"{real}-{entry['step']}"] = UNSEEN

    def _set_aside(self, line: Line, reason: str) -> None:
        """Keep what cannot be delivered, with the reason."""
        path = self._folder / "refused.jsonl"
        note = {"at": time.time(), "reason": reason, "entry": line.entry or line.text}
        with path.open("a", encoding="utf-8") as stream:
            with suppress(OSError):
                path.chmod(0o600)
            stream.write(json.dumps(note) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        LOG.warning("an entry is set aside in %s: %s", path, reason)


def send_outcome(client: Client, progress: Progress, entry: Entry) -> None:
    """Report an outcome under the id that its decision has at the service."""
    outcome = {name: value for name, value in entry.items() if name != "kind"}
    episode, _, step = str(outcome["advice_id"]).rpartition("-")
    outcome["advice_id"] = decision = f"{progress.episodes.get(episode, episode)}-{step}"
    conflict = progress.conflicts.get(decision)
    if conflict == REFUSED:
        reason = f"decision {decision} is on record as something else than what was shown"
        raise ServiceError(HTTPStatus.CONFLICT, reason)
    if conflict == UNSEEN:
        outcome["seen"] = False
    client.report_all([outcome])


def _outcome_of(line: Line) -> str | None:
    """Return the decision whose outcome a line has, if it has one."""
    entry = line.entry or {}
    return str(entry.get("advice_id")) if entry.get("kind") == "outcome" else None
