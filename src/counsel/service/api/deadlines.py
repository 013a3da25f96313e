"""A deadline for every request: a late request is answered with 503, and can be sent again.

Advice, outcomes and the start and end of episodes have seconds; lists, summaries, exports and
changes, which nobody waits for at a bedside, have more. An answer that has begun is not cut short:
its caller is watched by the edge instead.
"""

import asyncio
import logging
import re
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from counsel.service.api.errors import answer_busy
from counsel.service.settings import ServiceSettings

LOG = logging.getLogger("counsel.service")

PROMPT = re.compile(
    r"/v1/(episodes/[^/]+/(advice|end|reported)|outcomes|advisers/[^/]+/episodes|play(/.*)?)"
    r"|/cds-services/.+"
)
"""Paths whose POST requests are answered at once."""


class DeadlineMiddleware:
    """Answers with 503 where a request takes longer than it may; ``on_late`` counts them."""

    def __init__(
        self, app: ASGIApp, settings: ServiceSettings, on_late: Callable[[], None] | None = None
    ) -> None:
        self.app, self.settings, self.on_late = app, settings, on_late

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        has_begun = False

        async def send_watched(message: Message) -> None:
            nonlocal has_begun
            if not has_begun:
                has_begun = True
                clock.reschedule(None)
            await send(message)

        is_prompt = scope["method"] == "POST" and PROMPT.fullmatch(scope["path"]) is not None
        seconds = self.settings.request_seconds if is_prompt else self.settings.reading_seconds
        try:
            async with asyncio.timeout(seconds) as clock:
                await self.app(scope, receive, send_watched)
        except TimeoutError:
            if has_begun or not clock.expired():
                raise
            LOG.warning("no answer within %g s", seconds)
            if self.on_late is not None:
                self.on_late()
            await answer_busy(send, f"there was no answer within {seconds:g} s; try again")
