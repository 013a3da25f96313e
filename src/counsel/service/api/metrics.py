"""The metrics of the service for Prometheus: what it answers, how fast, and what waits.

With several workers each process writes its numbers into a file in ``PROMETHEUS_MULTIPROC_DIR``
(the client's multiprocess mode), and ``/metrics`` of any of them sums over all files. Counters of a
worker that has ended still count; its gauges do not. Gauges cannot be asked for across processes,
so each worker writes its own once per second.
"""

import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from counsel.service.api.lanes import Lanes
from counsel.service.core.decide import Decision
from counsel.service.core.desk import Desk
from counsel.service.core.outcomes import OutcomeReceipt
from counsel.service.core.shared_limit import Offer

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
FOLDER = os.environ.get(VARIABLE)
"""Where workers write their numbers; the client reads the variable when it is imported."""

KINDS = ("advice", "must", "silence")
SHARED = ("given", "price", "used up")
"""What a shared limit does with advice: it is given, worth less than the price, or too late."""
REFUSED = ("invalid", "slow", "large", "unread", "crowded")
"""Why connections are closed: what came was not HTTP or too much at once, headers or a body took
too long, headers were too large, an answer was not read, or there were too many connections."""
REQUEST_BUCKETS = (0.005, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0)
COMMIT_BUCKETS = (0.002, 0.005, 0.02, 0.1, 0.5, 2.0)
SIZE_BUCKETS = (1, 3, 10, 30, 100, 300, 1000)
PLAN_BUCKETS = (0.001, 0.01, 0.1, 1.0, 10.0)
REFRESH_SECONDS = 1.0
"""Seconds between two writes of the gauges, with several workers."""


class Metrics:
    """The metrics of one process; ``render`` returns those of all workers."""

    def __init__(self, desk: Desk, lanes: Lanes) -> None:
        registry = self._registry = CollectorRegistry()

        def counter(name: str, what: str, *labels: str) -> Counter:
            return Counter(f"counsel_{name}_total", what, labels, registry=registry)

        def histogram(name: str, what: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"counsel_{name}", what, labels, buckets=buckets, registry=registry)

        advice = counter("advice", "Decisions answered, by kind.", "kind")
        self.advice = {kind: advice.labels(kind) for kind in KINDS}
        shared = counter("shared_limit", "What plans would say under a shared limit.", "answer")
        self.shared = {answer: shared.labels(answer) for answer in SHARED}
        self.outcomes = counter("outcomes", "Outcomes taken in, repeated ones included.")
        self.corrections = counter("corrections", "Outcomes that replaced an earlier version.")
        self.late = counter("late", "Requests answered with 503 because their deadline passed.")
        self.failed_logins = counter("failed_logins", "Requests with a key that is not valid.")
        refused = counter("refused_connections", "Connections closed at a limit.", "reason")
        self.refused = {reason: refused.labels(reason) for reason in REFUSED}
        self.connections = 0
        errors = counter("errors", "Answers with an error, by class of status.", "status")
        self._errors = {4: errors.labels("4xx"), 5: errors.labels("5xx")}
        self._requests = histogram(
            "request_seconds",
            "Seconds from a request to the end of its answer.",
            REQUEST_BUCKETS,
            "method",
            "route",
        )
        self._of_route = dict[tuple[str, str], Histogram]()
        commits = histogram("commit_seconds", "Seconds of a transaction.", COMMIT_BUCKETS)
        sizes = histogram("commit_items", "Items written in a transaction.", SIZE_BUCKETS)
        plans = histogram("plan_seconds", "Seconds in which a plan was made.", PLAN_BUCKETS)

        def observe_commit(seconds: float, items: int) -> None:
            commits.observe(seconds)
            sizes.observe(items)

        desk.committer.observe = observe_commit
        desk.plans.observe = plans.observe
        self._gauges = list[tuple[Gauge, Callable[[], float]]]()
        self._add_gauges(desk, lanes)
        self._stopping = threading.Event()
        if FOLDER is not None:
            threading.Thread(target=self._refresh, name="metrics", daemon=True).start()

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        of_route = self._of_route.get((method, route))
        if of_route is None:
            of_route = self._of_route[method, route] = self._requests.labels(method, route)
        of_route.observe(seconds)
        if status >= 400:
            self._errors[status // 100].inc()

    def count_decision(self, decision: Decision) -> None:
        """Count a decision that was answered, and what a shared limit did with its advice."""
        self.advice[_kind_of(decision)].inc()
        if decision.offer is not None and decision.shown:
            self.shared[_shared_answer(decision, decision.offer)].inc()

    def count_outcomes(self, receipt: OutcomeReceipt) -> None:
        """Count outcomes that were taken."""
        self.outcomes.inc(receipt.taken)
        if receipt.corrected:
            self.corrections.inc(receipt.corrected)

    def render(self) -> bytes:
        """Return all metrics as Prometheus reads them."""
        if FOLDER is None:
            return generate_latest(self._registry)
        for file in Path(FOLDER).glob("gauge_live*.db"):
            process = int(file.stem.rpartition("_")[2])
            if not _is_running(process):
                _forget_gauges(process)
        registry = CollectorRegistry()
        MultiProcessCollector(registry, FOLDER)  # type: ignore[no-untyped-call]
        return generate_latest(registry)

    def close(self) -> None:
        """Take back the gauges of this process."""
        self._stopping.set()
        if FOLDER is not None:
            _forget_gauges(os.getpid())

    def _add_gauges(self, desk: Desk, lanes: Lanes) -> None:
        def add(gauge: Gauge, read: Callable[[], float]) -> None:
            if FOLDER is None:
                gauge.set_function(read)
            self._gauges.append((gauge, read))

        def gauge(name: str, what: str, *labels: str) -> Gauge:
            return Gauge(
                f"counsel_{name}",
                what,
                labels,
                registry=self._registry,
                multiprocess_mode="livesum",
            )

        add(
            gauge("queue_items", "Decisions, outcomes and changes that wait to be written."),
            lambda: desk.committer.waiting,
        )
        add(gauge("connections", "Connections that are open."), lambda: self.connections)
        add(
            gauge("plans_failing", "Advisers with a plan that cannot be made."),
            lambda: desk.plans.failing,
        )
        pending = gauge("lane_pending", "Requests in the threads of a lane or before them.", "lane")
        for lane in lanes.all:
            add(pending.labels(lane.name), partial(getattr, lane, "pending"))

    def _refresh(self) -> None:
        """Write the gauges of this process for the others."""
        while True:
            for gauge, read in self._gauges:
                gauge.set(read())
            if self._stopping.wait(REFRESH_SECONDS):
                return


def _forget_gauges(process: int) -> None:
    mark_process_dead(process, FOLDER)  # type: ignore[no-untyped-call]


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _kind_of(decision: Decision) -> str:
    """Return the kind of a decision in the counters."""
    if decision.shown_advice is None:
        return "silence"
    return "must" if decision.must else "advice"


def _shared_answer(decision: Decision, offer: Offer) -> str:
    """Return what a shared limit did with the advice of a plan, for the counters."""
    if decision.advice is not None:
        return "given"
    return "price" if decision.reason["shared_left"] >= offer.cost else "used up"
