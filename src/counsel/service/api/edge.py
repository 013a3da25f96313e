"""The edge of the app: what every request passes, and every answer, in one place.

A request gets an id, is checked (``security.py``), waits until the planner is compiled
(``warm_up_gate.py``), has a deadline (``deadlines.py``), is counted and may have a line in the log
(``request_log.py``). An answer gets its id and the security headers. The routes called at every
decision are answered here, without FastAPI's layers (``fast_routes.py``).
"""

import asyncio
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from counsel.service.api.cds_hooks import CdsOrigins
from counsel.service.api.deadlines import Deadline, Deadlines
from counsel.service.api.errors import answer_busy
from counsel.service.api.fast_routes import FastRoutes
from counsel.service.api.metrics import Metrics
from counsel.service.api.request_log import CURRENT, HEADER, LOG, RequestInfo, write_line
from counsel.service.api.security import RequestCheck, refuse, with_security_headers
from counsel.service.api.warm_up_gate import COMPILING, must_wait
from counsel.service.settings import ServiceSettings
from counsel.service.warm_up import WarmUp

ANSWER = "counsel.answer"
"""Where the scope of a request has its answer."""


class Answer:
    """Sends the messages of an answer, the first with the headers that every answer has.

    ``status`` is 0 until the answer begins. An answer that has begun has no deadline any more.
    """

    __slots__ = ("_send", "deadline", "request", "status")

    def __init__(self, send: Send, request: RequestInfo) -> None:
        self._send, self.request = send, request
        self.status = 0
        self.deadline: Deadline | None = None

    async def __call__(self, message: Message) -> None:
        """Send a message."""
        if message["type"] == "http.response.start":
            if self.deadline is not None:
                self.deadline.lift()
            self.status = message["status"]
            headers = with_security_headers(message.get("headers", ()))
            headers.append((HEADER, self.request.id.encode()))
            message["headers"] = headers
        await self._send(message)


class Edge:
    """Takes requests in for an app and its fast routes.

    With ``local_only``, for a service without keys, only requests of this machine are taken.
    Requests wait for ``warm_up``, half of their time at most.
    """

    def __init__(  # noqa: PLR0913 (the one place that joins them)
        self,
        app: ASGIApp,
        fast: FastRoutes,
        settings: ServiceSettings,
        metrics: Metrics,
        *,
        local_only: bool,
        warm_up: WarmUp | None = None,
    ) -> None:
        self.app, self.fast, self.metrics, self.warm_up = app, fast, metrics, warm_up
        self.check = RequestCheck(local_only=local_only, model_bytes=settings.model_bytes)
        self.deadlines, self.writes_all = Deadlines(settings), settings.access_log
        self.patience = settings.request_seconds / 2.0
        self.admit: ASGIApp = self.answer_in_time
        if settings.cds_origins:
            self.admit = CdsOrigins(self.answer_in_time, settings.cds_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, whatever happens."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        request = RequestInfo(scope)
        CURRENT.set(request)
        answer = scope[ANSWER] = Answer(send, request)
        try:
            refusal = self.check(scope)
            if refusal is not None:
                await refuse(answer, *refusal)
            else:
                await self.admit(scope, self.check.limit_body(scope, receive), answer)
        except Exception:
            LOG.exception("the request failed")
            if answer.status:  # the connection is closed, so that nobody takes a part for the whole
                raise
            await refuse(answer, 500, "the service failed; its log says why")
        if answer.status:
            seconds = time.perf_counter() - began
            self.metrics.observe_request(request.method, request.route, answer.status, seconds)
            write_line(answer.status, seconds, writes_all=self.writes_all)

    async def answer_in_time(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that was checked, or say in time that there is no answer."""
        deadline = scope[ANSWER].deadline = self.deadlines.begin(scope)
        try:
            await self._answer(scope, receive, send)
        except asyncio.CancelledError:
            if deadline.has_passed():
                LOG.warning("no answer within %g s", deadline.seconds)
                self.metrics.late.inc()
                detail = f"there was no answer within {deadline.seconds:g} s; try again"
            elif scope[ANSWER].status:
                raise
            else:  # the server stops, and the time to finish requests is over
                detail = "the service is stopping; try again"
            await answer_busy(send, detail)
        finally:
            deadline.lift()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        warm_up = self.warm_up
        is_held = warm_up is not None and not warm_up.is_done and must_wait(scope)
        if warm_up is not None and is_held and not await warm_up.wait(self.patience):
            await answer_busy(send, COMPILING)
        elif not await self.fast.answer(scope, receive, send):
            await self.app(scope, receive, send)
