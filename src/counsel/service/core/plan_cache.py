"""Plans, made anew in the background when what they rest on has moved.

Whoever asks for advice never waits for a plan where there is one at all: the last one is used until
the next is ready, and somebody new is advised as everybody is. One thread makes plans, and rests
four times as long as it works so that answers come first.
"""

import logging
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from counsel._arrays import brief
from counsel.service.core.adviser import NOBODY, Advising, Limit

LOG = logging.getLogger("counsel.service")

MOST_BYTES = 256_000_000
"""What plans may take together; those not used for longest go first."""

REST = 4.0
"""Seconds of rest for each second of planning."""


class PlanKey(NamedTuple):
    """Whom a plan is for, by which adviser, at what cost."""

    adviser: str
    person: int
    limit: Limit


class Plans:
    """The plans of all advisers.

    Parameters
    ----------
    make
        Makes a plan.
    stale
        Whether a plan should be made anew.
    """

    def __init__(
        self, make: Callable[[PlanKey], Advising], stale: Callable[[PlanKey, Advising], bool]
    ) -> None:
        self._make, self._stale = make, stale
        self._made: OrderedDict[PlanKey, Advising] = OrderedDict()  # the last used is last
        self._bytes = self._drops = 0
        self._lock = threading.Lock()
        self._wanted: dict[PlanKey, None] = {}
        self._queue: queue.SimpleQueue[PlanKey | None] = queue.SimpleQueue()
        self._idle, self._stopping = threading.Condition(), threading.Event()
        self._thread = threading.Thread(target=self._work, name="planner", daemon=True)
        self._thread.start()

    def of(self, key: PlanKey) -> Advising:
        """Return the last plan for somebody, or for everybody; the first ever is made here."""
        made = self._use(key)
        if made is None:
            everybody = key._replace(person=NOBODY)
            made = self._use(everybody)
            if made is None:
                made = self._make(everybody)
                self._keep(everybody, made)
            if key.person != NOBODY:
                self.renew(key)
        elif self._stale(key, made):
            self.renew(key)
        return made

    def last(self, key: PlanKey) -> Advising | None:
        """Return the last plan for exactly this, if any."""
        return self._made.get(key)

    def renew(self, key: PlanKey) -> None:
        """Have a plan made anew."""
        with self._idle:
            if key not in self._wanted:
                self._wanted[key] = None
                self._queue.put(key)

    def refresh(self, adviser: str) -> None:
        """Forget the plans of an adviser, which rest on what is to be forgotten.

        Those for everybody are made anew, and used until then: there is nothing to fall back on.
        """
        with self._lock:
            self._drops += 1
            those = [key for key in self._made if key.adviser == adviser]
            for key in those:
                if key.person != NOBODY:
                    self._bytes -= self._made.pop(key).size
        for key in those:
            if key.person == NOBODY:
                self.renew(key)

    def settle(self) -> None:
        """Wait until all plans that were asked for are made."""
        with self._idle:
            self._idle.wait_for(lambda: not self._wanted)

    def close(self) -> None:
        """Stop; plans that were asked for and not begun are left."""
        self._stopping.set()
        self._queue.put(None)
        self._thread.join()

    def _use(self, key: PlanKey) -> Advising | None:
        """Return the last plan for exactly this, if any, and remember that it was used."""
        with self._lock:
            made = self._made.get(key)
            if made is not None:
                self._made.move_to_end(key)
            return made

    def _keep(self, key: PlanKey, made: Advising, drops: int | None = None) -> None:
        with self._lock:
            if drops is not None and drops != self._drops:
                return  # what it rests on may have been erased meanwhile
            last = self._made.pop(key, None)
            self._bytes += made.size - (last.size if last else 0)
            self._made[key] = made
            while self._bytes > MOST_BYTES and len(self._made) > 1:
                self._bytes -= self._made.popitem(last=False)[1].size

    def _work(self) -> None:
        while (key := self._queue.get()) is not None and not self._stopping.is_set():
            began, drops = time.monotonic(), self._drops
            try:
                made = self._make(key)
            except SQLAlchemyError as fault:
                LOG.warning("no plan was made: %s", brief(str(getattr(fault, "orig", fault))))
            except Exception:
                LOG.exception("a plan could not be made; the last one stays in use")
            else:
                self._keep(key, made, drops)
            took = time.monotonic() - began
            with self._idle:
                del self._wanted[key]
                self._idle.notify_all()
            if not self._queue.empty():
                self._stopping.wait(REST * took)
