"""A client for wards: what must be said is said even if the service is down.

A ``FallbackClient`` stores the must-say advice of its adviser on disk and renews it every few
minutes. While the service does not answer, it says what must be said in a state and is silent
otherwise, marks the answer with ``fallback``, and writes into a journal what it showed and what
people did (``journal.py``). When the service is back, the journal is delivered (``courier.py``).
"""

import json
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import uuid4

from counsel._files import make_folder
from counsel.errors import CounselError
from counsel.service.client import Client
from counsel.service.connection import NoAnswerError, ServiceError
from counsel.service.courier import OFFLINE, Courier, send_outcome
from counsel.service.journal import Entry, Journal, Progress, locked
from counsel.service.must_say import MustSayRules

__all__ = ["FallbackClient"]

LOG = logging.getLogger("counsel.fallback")

_T = TypeVar("_T")

DELIVERY_SECONDS = 30.0
"""Seconds to wait for an answer when nobody at a bedside is waiting."""

CLOSE_SECONDS = 2.0
"""Seconds that a delivery under way may take when the client is closed."""


class _UnavailableError(Exception):
    """The service cannot be asked now."""


class FallbackClient:
    """A client of one adviser that says what must be said while the service is down.

    Use one client per thread; processes may share a folder. A thread in the background renews the
    stored must-say advice and delivers what was kept. As a context manager the client closes its
    connections.

    Parameters
    ----------
    url, adviser
        The address of the service, and the adviser's id.
    folder
        Where must-say advice and undelivered entries are kept, readable by their owner only.
    key
        A key with the role advise, if the service needs one.
    timeout
        Seconds to wait for an answer before the fallback answers.
    retry
        Seconds after a failure before the service is asked again.
    refresh
        Seconds after which the stored must-say advice is renewed.
    background
        Whether a thread renews and delivers; otherwise call ``refresh`` and ``deliver``.

    Raises
    ------
    CounselError
        If an argument is not valid, the folder cannot be used, or the service has no such adviser
        and nothing is stored. Methods raise a ``ServiceError`` if the service refuses a request,
        but not if it does not answer or somebody else, e.g. a proxy, answers in its place.

    Examples
    --------
    Nobody answers here, and nothing was stored before, so nothing can be said:

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with FallbackClient("http://127.0.0.1:9", "alerts", folder.name) as client:
    ...     episode = client.start("ann")
    ...     decision = client.advise(episode, 0, "critical")
    ...     client.report(decision["id"], "call doctor")
    >>> decision["advice"], decision["fallback"], client.pending
    (None, True, 3)
    >>> folder.cleanup()
    """

    def __init__(  # noqa: PLR0913 (options)
        self,
        url: str,
        adviser: str,
        folder: str | Path,
        key: str | None = None,
        *,
        timeout: float = 1.0,
        retry: float = 5.0,
        refresh: float = 300.0,
        background: bool = True,
    ) -> None:
        for name, seconds in (("timeout", timeout), ("retry", retry), ("refresh", refresh)):
            if not 0.0 < seconds < threading.TIMEOUT_MAX:
                raise CounselError(f"{name} is {seconds}; it must be above 0 seconds")
        self._client = Client(url, key, timeout)
        self._courier = Client(url, key, max(timeout, DELIVERY_SECONDS))
        self.adviser = adviser
        self._folder = Path(folder) / quote(adviser, safe="")
        make_folder(self._folder)
        with suppress(OSError):
            self._folder.chmod(0o700)
        self._journal, self._progress = Journal(self._folder), Progress(self._folder)
        self._unwritten, self._disk_fault = list[Entry](), ""
        self._writing, self._sending = threading.Lock(), threading.Lock()
        self._retry, self._retry_at, self._fault = retry, 0.0, ""
        self._refresh, self._refresh_at = refresh, 0.0
        self._rules, self._rules_fault = MustSayRules.load(self._folder)
        try:
            with suppress(_UnavailableError):
                self._store_rules(self._ask(lambda: self._rules_of(self._client)))
        except ServiceError as fault:
            if self._rules is None:
                self._client.close()
                raise
            self._fault = str(fault)
            LOG.warning("must-say advice %s is used: %s", self._rules.origin, fault)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        if background:
            self._thread = threading.Thread(target=self._work, name="courier", daemon=True)
            self._thread.start()

    def __enter__(self) -> "FallbackClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop; what is not delivered stays on disk for the next client with this folder."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(CLOSE_SECONDS)
        with suppress(OSError):
            self._write()
        self._client.close()
        if self._thread is None or not self._thread.is_alive():
            self._courier.close()

    @property
    def pending(self) -> int:
        """The number of entries that are not delivered."""
        return len(self._journal.entries()) + len(self._unwritten)

    @property
    def fault(self) -> str:
        """Why the service was not available when it was asked last; empty if it was."""
        return self._fault

    # What a ward asks

    def start(self, person: str) -> str:
        """Start an episode with a person.

        If there is must-say advice, the episode is started even if the service refuses, e.g.
        because a quota is reached. If the service refuses again when the start is delivered, the
        start is set aside in ``refused.jsonl``.

        Parameters
        ----------
        person
            The person's name.

        Returns
        -------
        str
            The episode's id, which begins with ``offline-`` if it was started without the service.
        """
        if not 1 <= len(person) <= 200 or "\x00" in person:
            raise CounselError("person must have 1 to 200 characters, none of them NUL")
        request = uuid4().hex
        try:
            return self._ask(lambda: self._client.start(self.adviser, person, request))
        except _UnavailableError:
            pass
        except ServiceError as fault:
            if self._rules is None or self._rules.mode != "live" or not self._rules.must_say:
                raise
            self._fault = str(fault)
        episode = OFFLINE + request
        self._keep({"kind": "start", "episode": episode, "person": person, "request": request})
        return episode

    def advise(self, episode: str, step: int, state: str) -> dict[str, Any]:
        """Ask what to advise at a step; without the service, say what must be said.

        What must be said is said even if the service refuses the request, e.g. because it lost the
        episode; the ``reason`` of the answer then has the refusal.

        Parameters
        ----------
        episode, step, state
            The episode's id, the step counted from 0, and the state by its label.

        Returns
        -------
        dict
            As ``Client.advise``, and ``fallback``: whether the client decided without the service.
        """
        said, cause = self._said(episode, step), "the episode waits to be delivered"
        if self._fault:
            cause += f"; when last asked, {self._fault}"
        if said is None:
            real = self._real(episode)
            try:
                if real is not None:
                    decision = self._ask(lambda: self._client.advise(real, step, state))
                    return decision | {"fallback": False}
            except _UnavailableError as fault:
                cause = str(fault)
            except ServiceError as fault:
                if not self._must_be_said(step, state):
                    raise
                cause = f"the service refuses to decide: {fault}"
            said = self._decide(episode, step, state)
        elif said["state"] != state:
            raise CounselError(
                f"step {step} of episode {episode} was decided with another state than {state!r}"
            )
        advice = said["advice"]
        return {
            "id": f"{episode}-{step}",
            "advice": advice,
            "shadow": None,
            "probability": 1.0,
            "reason": {"why": self._why(advice, cause)},
            "fallback": True,
        }

    def report(self, advice_id: str, action: str, **outcome: Any) -> None:  # noqa: ANN401
        """Report the outcome of a decision, at once or when the service is back.

        Parameters
        ----------
        advice_id, action
            The ``id`` that ``advise`` returned, and what the person did, by its label.
        **outcome
            As in the API: ``reward``, ``next_state``, ``seen``, ``reason_code`` and ``comment``.
        """
        episode = advice_id.rpartition("-")[0]
        entry = {**outcome, "kind": "outcome", "advice_id": advice_id, "action": action}
        with suppress(_UnavailableError):
            if self._is_direct(episode):
                self._ask(lambda: self._report_now(entry))
                return
        if self._rules is not None:
            self._rules.check("action", action)
            self._rules.check("next_state", outcome.get("next_state"))
        self._keep(entry)

    def end(self, episode: str, *, terminated: bool = True) -> None:
        """End an episode, at once or when the service is back.

        Parameters
        ----------
        episode, terminated
            Its id, and whether it ended by itself; false where only the recording ends.
        """
        real = self._real(episode)
        with suppress(_UnavailableError):
            if real is not None and self._is_direct(episode):
                self._ask(lambda: self._client.end(real, terminated=terminated))
                return
        self._keep({"kind": "end", "episode": episode, "terminated": terminated})

    # In the background

    def refresh(self) -> None:
        """Renew the stored must-say advice; raises an error if the service does not answer."""
        with self._sending:
            rules = self._rules_of(self._courier)
        self._store_rules(rules)

    def deliver(self) -> int:
        """Deliver what was kept while the service was down, unless another process is doing so.

        Returns
        -------
        int
            The number of entries that are not delivered; ``fault`` says why.
        """
        with suppress(OSError):
            self._write()
        try:
            with self._sending, locked(self._folder / "delivery.lock", 0.0) as is_mine:
                if is_mine:
                    Courier(self._courier, self.adviser, self._folder).deliver()
                    self._fault = ""
        except (CounselError, OSError) as fault:
            self._fault = str(fault)
        return self.pending

    def _work(self) -> None:
        """Renew and deliver until the client is closed."""
        last = ""
        while not self._stopping.wait(self._retry):
            fault = ""
            try:
                if time.monotonic() >= self._refresh_at:
                    self.refresh()
                if self.pending and self.deliver():
                    fault = self._fault
            except (CounselError, OSError) as raised:
                fault = str(raised)
            if fault and fault != last:
                LOG.warning("%s; %d entries wait to be delivered", fault, self.pending)
            last = fault

    # Asking the service

    def _ask(self, call: Callable[[], _T]) -> _T:
        """Call the service, unless it failed a moment ago."""
        if time.monotonic() < self._retry_at:
            raise _UnavailableError(self._fault)
        try:
            answer = call()
        except NoAnswerError as fault:
            self._fault = str(fault)
        except ServiceError as fault:
            if fault.is_refusal:
                raise
            self._fault = str(fault)
        else:
            self._fault = ""
            return answer
        self._retry_at = time.monotonic() + self._retry
        raise _UnavailableError(self._fault)

    def _real(self, episode: str) -> str | None:
        """Return the id of an episode at the service, or None if that does not know it yet."""
        if not episode.startswith(OFFLINE):
            return episode
        self._progress.load()
        return self._progress.episodes.get(episode)

    def _is_direct(self, episode: str) -> bool:
        """Whether nothing of an episode waits to be delivered."""
        if self._journal.is_empty and not self._unwritten:
            return True
        waiting = (_episode_of(entry) for entry in self._waiting())
        return self._real(episode) is not None and episode not in waiting

    def _report_now(self, entry: Entry) -> None:
        self._progress.load()
        send_outcome(self._client, self._progress, entry)

    # Deciding without it

    def _must_be_said(self, step: int, state: str) -> bool:
        """Whether there is must-say advice for a step and a state; false for what is neither."""
        with suppress(CounselError, TypeError):
            return self._rules is not None and self._rules.advice_at(step, state) is not None
        return False

    def _decide(self, episode: str, step: int, state: str) -> Entry:
        rules, advice = self._rules, None
        if rules is not None:
            advice = rules.advice_at(step, state)
        entry = {"kind": "decision", "episode": episode, "step": step, "state": state}
        entry |= {"advice": advice, "at": time.time()}
        self._keep(entry)
        return entry

    def _why(self, advice: str | None, cause: str) -> str:
        rules = self._rules
        if rules is None:
            why = f"silent without the service, {self._rules_fault}"
        else:
            manner = "silent" if advice is None else "said"
            why = f"{manner} without the service, by must-say advice {rules.origin}"
        disk = f"; it is not on disk yet: {self._disk_fault}" if self._disk_fault else ""
        return f"{why}: {cause}{disk}"

    def _rules_of(self, client: Client) -> MustSayRules:
        """Ask for the rules that are valid now."""
        adviser = client.adviser(self.adviser)
        try:
            return MustSayRules.of(adviser)
        except (KeyError, TypeError, ValueError):
            raise NoAnswerError(f"the service does not describe adviser {self.adviser}") from None

    def _store_rules(self, rules: MustSayRules) -> None:
        self._rules, self._refresh_at = rules, time.monotonic() + self._refresh
        rules.save(self._folder)

    # The journal

    def _waiting(self) -> list[Entry]:
        return [*self._journal.entries(), *self._unwritten]

    def _said(self, episode: str, step: int) -> Entry | None:
        """Return the decision of a step that was made without the service, if one waits."""
        if self._journal.is_empty and not self._unwritten:
            return None
        asked = ("decision", episode, step)
        for entry in self._waiting():
            if (entry.get("kind"), entry.get("episode"), entry.get("step")) == asked:
                return entry
        return None

    def _keep(self, entry: Entry) -> None:
        """Write an entry into the journal; in memory, if the disk does not take it."""
        try:
            json.dumps(entry)
        except (TypeError, ValueError) as fault:
            raise CounselError(f"the report cannot be stored as JSON: {fault}") from None
        self._unwritten.append(entry)
        try:
            self._write()
        except OSError as fault:
            LOG.warning("%s cannot be written: %s", self._journal.path, fault.strerror or fault)

    def _write(self) -> None:
        with self._writing:
            if self._unwritten:
                count = len(self._unwritten)
                try:
                    self._journal.append(self._unwritten[:count])
                except OSError as fault:
                    self._disk_fault = str(fault.strerror or fault)
                    raise
                del self._unwritten[:count]
            self._disk_fault = ""


def _episode_of(entry: Entry) -> str:
    """Return the episode that an entry is about."""
    if entry.get("kind") == "outcome":
        return str(entry.get("advice_id", "")).rpartition("-")[0]
    return str(entry.get("episode", ""))
