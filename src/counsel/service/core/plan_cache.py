"""A cache of plans, renewed in the background when the counts they are based on have changed.

Nobody who asks for advice waits for a plan as long as there is one at all: the last plan is used
until the next is ready, and a new person is advised by the plan for everybody. One thread makes
plans, and rests four times as long as it works so that answers come first.
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
from counsel.learning.population import NOBODY, Limit
from counsel.service.core.explained_plan import ExplainedPlan

LOG = logging.getLogger("counsel.service")

MOST_BYTES = 256_000_000
"""The size of all plans together; those not used for longest are dropped first."""

REST = 4.0
"""Seconds of rest for each second of planning."""


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
        self._lock = threading.Lock()
        self._wanted: dict[PlanKey, None] = {}
        self._queue: queue.SimpleQueue[PlanKey | None] = queue.SimpleQueue()
        self._idle, self._stopping = threading.Condition(), threading.Event()
        self._thread = threading.Thread(target=self._work, name="planner", daemon=True)
        self._thread.start()

    def of(self, key: PlanKey) -> ExplainedPlan:
        """Return the last plan for a person, or the one for everybody, which is made if missing."""
        plan = self._use(key)
        if plan is None:
            everybody = key._replace(person=NOBODY)
            plan = self._use(everybody)
            if plan is None:
                plan = self._make(everybody)
                self._store(everybody, plan)
            if key.person != NOBODY:
                self.renew(key)
        elif self._is_stale(key, plan):
            self.renew(key)
        return plan

    def last(self, key: PlanKey) -> ExplainedPlan | None:
        """Return the last plan for exactly this key, if any."""
        return self._plans.get(key)

    def renew(self, key: PlanKey) -> None:
        """Have a plan made again in the background."""
        with self._idle:
            if key not in self._wanted:
                self._wanted[key] = None
                self._queue.put(key)

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

    def close(self) -> None:
        """Stop without making the plans that are still requested."""
        self._stopping.set()
        self._queue.put(None)
        self._thread.join()

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

    def _work(self) -> None:
        while (key := self._queue.get()) is not None and not self._stopping.is_set():
            began, drops = time.monotonic(), self._drops
            try:
                plan = self._make(key)
            except SQLAlchemyError as fault:
                LOG.warning("no plan was made: %s", brief(str(getattr(fault, "orig", fault))))
            except Exception:
                LOG.exception("making a plan failed; the last one stays in use")
            else:
                self._store(key, plan, drops)
            took = time.monotonic() - began
            with self._idle:
                del self._wanted[key]
                self._idle.notify_all()
            if not self._queue.empty():
                self._stopping.wait(REST * took)
