"""A cache of plans, renewed in the background when the counts they are based on have changed.

Nobody who asks for advice waits for a plan: the last plan is used until the next is ready, and a
new person is advised by the plan for everybody. One thread makes plans, and rests four times as
long as it works so that answers come first. A plan that cannot be made is tried again.
"""

import logging
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from counsel._arrays import brief
from counsel.errors import CounselError
from counsel.learning.population import NOBODY, Limit
from counsel.service.core.explained_plan import ExplainedPlan
from counsel.service.errors import BusyError, NotFoundError

LOG = logging.getLogger("counsel.service")

MOST_BYTES = 256_000_000
"""The size of all plans together; those not used for longest are dropped first."""

REST = 4.0
"""Seconds of rest for each second of planning."""

RETRY = 5.0
"""Seconds after which a plan that could not be made is tried again."""

ATTEMPTS = 5
"""How often a plan is made for a caller while the adviser is changed again and again."""


class PlanKey(NamedTuple):
    """The adviser and the person of a plan, and what advice may cost."""

    adviser: str
    person: int
    limit: Limit


class PlanCache:
    """The plans of all advisers; ``is_stale`` says whether a plan should be renewed."""

    def __init__(
        self,
        make: Callable[[PlanKey], ExplainedPlan],
        is_stale: Callable[[PlanKey, ExplainedPlan], bool],
    ) -> None:
        self._make, self._is_stale = make, is_stale
        self._plans: OrderedDict[PlanKey, ExplainedPlan] = OrderedDict()  # the last used is last
        self._bytes = self._drops = 0
        self._failed: dict[PlanKey, tuple[float, Exception]] = {}  # when it was tried, and why
        self._lock, self._making = threading.Lock(), threading.Lock()
        self.observe: Callable[[float], None] = lambda _seconds: None
        self._wanted: dict[PlanKey, None] = {}
        self._queue: queue.SimpleQueue[PlanKey | None] = queue.SimpleQueue()
        self._idle, self._stopping = threading.Condition(), threading.Event()
        self._thread = threading.Thread(target=self._work, name="planner", daemon=True)
        self._thread.start()

    def of(self, key: PlanKey) -> ExplainedPlan | None:
        """Return the last plan for a person, or the one for everybody; None if there is none.

        A plan that is missing or stale is made in the background.
        """
        plan = self._find(key)
        if plan is None:
            self.renew(key._replace(person=NOBODY))
        return plan

    def wait_for(self, key: PlanKey) -> ExplainedPlan | None:
        """Return a plan as ``of`` does, but make the one for everybody if it is missing."""
        with suppress(Exception):  # it is in the log
            return self.require(key)
        return None

    def require(self, key: PlanKey) -> ExplainedPlan:
        """Return a plan as ``wait_for`` does, or raise what keeps it from being made."""
        plan = self._find(key)
        if plan is None:
            everybody = key._replace(person=NOBODY)
            with self._making:  # of several who need it, one makes it
                plan = self._use(everybody)
                for _ in range(ATTEMPTS):
                    if plan is not None:
                        break
                    if not self._has_just_failed(everybody):
                        self._try(everybody)
                    if everybody in self._failed:
                        raise self._failed[everybody][1]
                    plan = self._use(everybody)
        if plan is None:
            raise BusyError("the adviser changes faster than plans can be made; try again")
        return plan

    @property
    def failing(self) -> int:
        """The number of advisers with a plan that could not be made when it was last tried."""
        return len({key.adviser for key in list(self._failed)})

    def last(self, key: PlanKey) -> ExplainedPlan | None:
        """Return the last plan for exactly this key, if any."""
        return self._plans.get(key)

    def renew(self, key: PlanKey) -> None:
        """Have a plan made again in the background."""
        with self._idle:
            if key not in self._wanted:
                self._wanted[key] = None
                self._queue.put(key)

    def drop(self, adviser: str) -> None:
        """Drop all plans of an adviser, because it was changed or deleted."""
        with self._lock:
            self._drops += 1
            for key in [key for key in self._plans if key.adviser == adviser]:
                self._bytes -= self._plans.pop(key).size
            for key in [key for key in self._failed if key.adviser == adviser]:
                del self._failed[key]

    def refresh(self, adviser: str) -> None:
        """Drop the plans of an adviser, because they are based on counts that are erased.

        Plans for everybody are used until they are renewed: there is nothing to fall back on.
        """
        with self._lock:
            self._drops += 1
            keys = [key for key in self._plans if key.adviser == adviser]
            for key in keys:
                if key.person != NOBODY:
                    self._bytes -= self._plans.pop(key).size
        for key in keys:
            if key.person == NOBODY:
                self.renew(key)

    def settle(self) -> None:
        """Wait until all requested plans are made."""
        with self._idle:
            self._idle.wait_for(lambda: not self._wanted)

    def close(self, timeout: float | None = None) -> None:
        """Stop without making the plans that are still requested."""
        self._stopping.set()
        self._queue.put(None)
        self._thread.join(timeout)

    def _find(self, key: PlanKey) -> ExplainedPlan | None:
        """Return the last plan for a person, or for everybody; renew the person's if need be."""
        plan = self._use(key)
        if plan is None:
            plan = self._use(key._replace(person=NOBODY))
            if key.person != NOBODY:
                self.renew(key)
        elif self._is_stale(key, plan):
            self.renew(key)
        return plan

    def _use(self, key: PlanKey) -> ExplainedPlan | None:
        """Return the last plan for exactly this key, if any, and note that it was used."""
        with self._lock:
            plan = self._plans.get(key)
            if plan is not None:
                self._plans.move_to_end(key)
            return plan

    def _store(self, key: PlanKey, plan: ExplainedPlan, drops: int | None = None) -> None:
        with self._lock:
            if drops is not None and drops != self._drops:
                return  # its counts may have been erased meanwhile
            last = self._plans.pop(key, None)
            self._bytes += plan.size - (last.size if last else 0)
            self._plans[key] = plan
            while self._bytes > MOST_BYTES and len(self._plans) > 1:
                self._bytes -= self._plans.popitem(last=False)[1].size

    def _has_just_failed(self, key: PlanKey) -> bool:
        failed = self._failed.get(key)
        return failed is not None and time.monotonic() - failed[0] < RETRY

    def _try(self, key: PlanKey) -> None:
        """Make and keep a plan; the reason is in the log if it cannot be made."""
        began, drops = time.monotonic(), self._drops
        try:
            plan = self._make(key)
        except NotFoundError as fault:  # the adviser was deleted, which is no failure
            self._failed.pop(key, None)
            LOG.info("no plan is made: %s", fault)
            return
        except Exception as fault:
            if key not in self._failed:
                LOG.warning(
                    "no plan can be made for adviser %s: %s",
                    key.adviser,
                    brief(str(getattr(fault, "orig", fault))),
                    exc_info=not isinstance(fault, SQLAlchemyError | CounselError),
                )
            self._failed[key] = (time.monotonic(), fault)
            return
        self._failed.pop(key, None)
        self.observe(time.monotonic() - began)
        self._store(key, plan, drops)

    def _work(self) -> None:
        while (key := self._queue.get()) is not None and not self._stopping.is_set():
            began = time.monotonic()
            if not self._has_just_failed(key):
                self._try(key)
            took = time.monotonic() - began
            with self._idle:
                del self._wanted[key]
                self._idle.notify_all()
            if not self._queue.empty():
                self._stopping.wait(REST * took)
