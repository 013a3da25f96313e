"""Requests that arrive while the planner is compiled: they wait, or are answered with 503.

A start that finds the planner compiled takes less time than a request may, so its first callers
wait and are answered. Pages, health checks and metrics do not wait.
"""

from starlette.types import ASGIApp, Receive, Scope, Send

from counsel.service.api.errors import answer_busy
from counsel.service.warm_up import WarmUp

WAITING = ("/v1/", "/cds-services/")
"""How paths begin whose requests wait."""

DOCUMENT = "/v1/openapi.json"


class WarmUpGate:
    """Holds requests back until the planner is compiled, for ``seconds`` at most."""

    def __init__(self, app: ASGIApp, warm_up: WarmUp, seconds: float) -> None:
        self.app, self.warm_up, self.seconds = app, warm_up, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_held = (
            not self.warm_up.is_done
            and scope["type"] == "http"
            and scope["path"].startswith(WAITING)
            and scope["path"] != DOCUMENT
        )
        if not is_held or await self.warm_up.wait(self.seconds):
            await self.app(scope, receive, send)
            return
        detail = "the service has just started and is compiling the planner; try again"
        await answer_busy(send, detail)
