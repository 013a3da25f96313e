"""A cache of plans, renewed in the background when the counts they are based on have changed.

Nobody who asks for advice waits for a plan: the last plan is used until the next is ready, and a
new person is advised by the plan for everybody. Only where there is none yet, callers wait for it:
such plans are made by threads that serve tenants in turn (``fair_threads.py``), one plan of a
tenant at a time, so that nobody waits for another's plan and planning takes no more memory than
that. One thread renews plans, and rests four times as long as it works so that answers come first.
A plan that cannot be made is tried again.
"""

import logging
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TypeVar

from sqlalchemy.exc import SQLAlchemyError

from counsel._arrays import brief
from counsel.errors import CounselError
from counsel.learning.population import NOBODY, Limit
from counsel.service.core.explained_plan import ExplainedPlan
from counsel.service.core.fair_threads import FairThreads
from counsel.service.core.kept_plans import KeptPlans, PlanKey
from counsel.service.errors import BusyError, NotFoundError

LOG = logging.getLogger("counsel.service")

_R = TypeVar("_R")

PLANNING_THREADS = 4
"""Plans that callers wait for and that are made at once, each for another tenant."""

REST = 4.0
"""Seconds of rest for each second in which a plan was renewed."""

REST_OF_OTHERS = 1.0
"""Seconds of such a rest, at most, in which no plan of another tenant is renewed either."""

RETRY = 5.0
"""Seconds after which a plan that could not be made is tried again."""

ATTEMPTS = 5
"""How often a plan is made for a caller while the adviser is changed again and again."""


class PlanCache:
    """The plans of all advisers.

    ``is_stale`` says whether a plan should be renewed, and ``owner_of`` who shares room and threads
    with others: the tenant of a plan; by default each adviser is on its own.
    """

    def __init__(
        self,
        make: Callable[[PlanKey], ExplainedPlan],
        is_stale: Callable[[PlanKey, ExplainedPlan], bool],
        owner_of: Callable[[PlanKey], Hashable] = lambda key: key.adviser,
    ) -> None:
        self._make, self._is_stale, self._owner_of = make, is_stale, owner_of
        self._plans = KeptPlans()
        self._drops: Counter[str] = Counter()  # of each adviser
        self._failed: dict[PlanKey, tuple[float, Exception]] = {}  # when it was tried, and why
        self.observe: Callable[[float], None] = lambda _seconds: None
        self._changed = threading.Condition()  # its lock is the lock of everything here
        self._threads = FairThreads("planning", PLANNING_THREADS, each=1)
        self._making: dict[PlanKey, Future[ExplainedPlan]] = {}  # those that callers wait for
        self._wanted: OrderedDict[Hashable, dict[PlanKey, None]] = OrderedDict()  # by owner
        self._rested: dict[Hashable, float] = {}  # when an owner's next plan may be renewed
        self._all_rested = 0.0
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name="planner", daemon=True)
        self._thread.start()

    def of(self, key: PlanKey) -> ExplainedPlan | None:
        """Return the last plan for a person, or the one for everybody; None if there is none.

        A plan that is missing or stale is made in the background.
        """
        plan = self._use(key)
        if plan is None:
            plan = self._use(key._replace(person=NOBODY))
            if plan is None:
                self.request(key)
            if key.person != NOBODY:
                self.renew(key)
        elif self._is_stale(key, plan):
            self.renew(key)
        return plan

    def wait_for(self, key: PlanKey) -> ExplainedPlan | None:
        """Return a plan as ``of`` does, but make the one for everybody if it is missing."""
        with suppress(Exception):  # it is in the log
            return self.require(key)
        return None

    def require(self, key: PlanKey) -> ExplainedPlan:
        """Return a plan as ``wait_for`` does, or raise what keeps it from being made."""
        plan = self.of(key)
        return self.request(key).result() if plan is None else plan

    def request(self, key: PlanKey) -> "Future[ExplainedPlan]":
        """Have the plan for everybody made, which several may wait for, without waiting here."""
        everybody = key._replace(person=NOBODY)
        owner = self._owner_of(everybody)
        with self._changed:
            making = self._making.get(everybody)
            if making is None and self._is_closed:
                return _refusal(BusyError("the service is stopping and makes no more plans"))
            if making is None and self._has_just_failed(everybody):
                return _refusal(self._failed[everybody][1])
            if making is None:
                making = self._threads.submit(partial(self._make_for_caller, everybody), owner)
                self._making[everybody] = making
        return making

    def run(self, function: Callable[[], _R], owner: Hashable) -> _R:
        """Call a function that takes as much as a plan, when it is the owner's turn."""
        return self._threads.submit(function, owner).result()

    @property
    def failing(self) -> int:
        """The number of advisers with a plan that could not be made when it was last tried."""
        return len({key.adviser for key in list(self._failed)})

    def note_unusable(self, adviser: str, fault: Exception) -> None:
        """Count an adviser that cannot even be put to use, until its plans are dropped."""
        self._note(PlanKey(adviser, NOBODY, Limit()), fault)

    def _note(self, key: PlanKey, fault: Exception) -> None:
        """Note that a plan cannot be made; the log has it once."""
        if key not in self._failed:
            LOG.warning(
                "no plan can be made for adviser %s: %s",
                key.adviser,
                brief(str(getattr(fault, "orig", fault))),
                exc_info=not isinstance(fault, SQLAlchemyError | CounselError),
            )
        self._failed[key] = (time.monotonic(), fault)

    def last(self, key: PlanKey) -> ExplainedPlan | None:
        """Return the last plan for exactly this key, if any."""
        with self._changed:
            return self._plans.get(key)

    def renew(self, key: PlanKey) -> None:
        """Have a plan made again in the background."""
        owner = self._owner_of(key)
        with self._changed:
            self._wanted.setdefault(owner, {})[key] = None
            self._changed.notify_all()

    def drop(self, adviser: str) -> None:
        """Drop all plans of an adviser, because it was changed or deleted."""
        with self._changed:
            self._drops[adviser] += 1
            for key in self._plans.keys_of(adviser):
                self._plans.remove(key)
            for key in [key for key in self._failed if key.adviser == adviser]:
                del self._failed[key]

    def refresh(self, adviser: str) -> None:
        """Drop the plans of an adviser, because they are based on counts that are erased.

        Plans for everybody are used until they are renewed: there is nothing to fall back on.
        """
        with self._changed:
            self._drops[adviser] += 1
            keys = self._plans.keys_of(adviser)
            for key in keys:
                if key.person != NOBODY:
                    self._plans.remove(key)
        for key in keys:
            if key.person == NOBODY:
                self.renew(key)

    def settle(self) -> None:
        """Wait until all requested plans are made."""
        with self._changed:
            self._changed.wait_for(lambda: not self._wanted and not self._making)

    def close(self, timeout: float | None = None) -> None:
        """Stop without making the plans that are still requested."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._threads.close()
        self._thread.join(timeout)

    def _use(self, key: PlanKey) -> ExplainedPlan | None:
        """Return the last plan for exactly this key, if any, and note that it was used."""
        with self._changed:
            return self._plans.use(key)

    def _has_just_failed(self, key: PlanKey) -> bool:
        failed = self._failed.get(key)
        return failed is not None and time.monotonic() - failed[0] < RETRY

    def _make_for_caller(self, everybody: PlanKey) -> ExplainedPlan:
        """Return a plan that was missing, or raise what keeps it from being made."""
        try:
            for _ in range(ATTEMPTS):
                plan = self._use(everybody)  # it may have been renewed meanwhile
                if plan is not None:
                    return plan
                if not self._has_just_failed(everybody):
                    self._try(everybody)
                failed = self._failed.get(everybody)
                if failed is not None:
                    raise failed[1]
            plan = self._use(everybody)
            if plan is None:
                raise BusyError("the adviser changes faster than plans can be made; try again")
            return plan
        finally:
            with self._changed:
                self._making.pop(everybody, None)
                self._changed.notify_all()

    def _try(self, key: PlanKey) -> None:
        """Make and keep a plan; the reason is in the log if it cannot be made."""
        began, drops, owner = time.monotonic(), self._drops[key.adviser], self._owner_of(key)
        try:
            plan = self._make(key)
        except NotFoundError as fault:  # the adviser was deleted, which is no failure
            self._failed.pop(key, None)
            LOG.info("no plan is made: %s", fault)
            return
        except Exception as fault:
            self._note(key, fault)
            return
        self._failed.pop(key, None)
        self.observe(time.monotonic() - began)
        with self._changed:
            if drops == self._drops[key.adviser]:  # else its counts may have been erased meanwhile
                self._plans.add(key, plan, owner)

    def _next(self) -> tuple[Hashable, PlanKey] | None:
        """Wait for a plan to renew, of the owner whose turn it is; None when there are no more.

        Plans that callers wait for come first.
        """
        with self._changed:
            while not self._is_closed:
                now, rested = time.monotonic(), list[float]()
                waited_for = {self._owner_of(key) for key in self._making}
                for owner, keys in self._wanted.items():
                    if owner in waited_for:
                        continue
                    rested.append(max(self._all_rested, self._rested.get(owner, 0.0)))
                    if rested[-1] <= now:
                        return owner, next(iter(keys))
                self._changed.wait(min(rested) - now if rested else None)
            return None

    def _work(self) -> None:
        while (turn := self._next()) is not None:
            owner, key = turn
            began = time.monotonic()
            if not self._has_just_failed(key):
                self._try(key)
            ended = time.monotonic()
            rest = REST * (ended - began)
            with self._changed:
                del self._wanted[owner][key]
                if self._wanted[owner]:
                    self._wanted.move_to_end(owner)
                    self._rested[owner] = ended + rest
                else:
                    del self._wanted[owner]
                    self._rested.pop(owner, None)
                if self._wanted:
                    self._all_rested = ended + min(rest, REST_OF_OTHERS)
                self._changed.notify_all()


def _refusal(reason: Exception) -> "Future[ExplainedPlan]":
    refused: Future[ExplainedPlan] = Future()
    refused.set_exception(reason)
    return refused
