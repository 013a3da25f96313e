"""Security of requests and answers: their size, where they come from, and headers for browsers."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from counsel.service.api.errors import problem_details
from counsel.service.settings import variable_of

LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""Names of this machine."""

LARGEST = 1_000_000
"""The largest request, in bytes."""

DIGITS = 15
"""Digits of a Content-Length, at most."""

HOST = re.compile(rb"([A-Za-z0-9._~-]*|\[[0-9A-Fa-f:.]*\])(:[0-9]{0,5})?")
"""A Host header: a name or an address, and perhaps a port."""

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}

RAW_HEADERS = [(name.lower().encode(), text.encode()) for name, text in HEADERS.items()]


class SecurityMiddleware:
    """Refuses requests that are too large or from elsewhere, and adds security headers."""

    def __init__(self, app: ASGIApp, *, local_only: bool, model_bytes: int) -> None:
        self.app, self.local_only, self.model_bytes = app, local_only, model_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        most, too_large = LARGEST, f"the request is larger than {LARGEST} bytes"
        if scope["path"] == "/v1/models":
            most, variable = self.model_bytes, variable_of("model_bytes")
            too_large = f"the model is larger than {most} bytes; raise {variable}"
        declared = headers.get(b"content-length", b"0")
        if not declared.isdigit() or len(declared) > DIGITS:
            await refuse(send, 400, "Content-Length is not a number of bytes")
            return
        if HOST.fullmatch(headers.get(b"host", b"")) is None:
            await refuse(send, 400, "Host is not the name of a host")
            return
        if int(declared) > most:
            await refuse(send, 413, too_large)
            return
        if "\x00" in scope["path"] or b"%00" in scope["query_string"]:
            await refuse(send, 400, "the address contains NUL")
            return
        if self.local_only and not _is_local(headers):
            await refuse(send, 403, "without keys, only pages of this machine may send requests")
            return
        size = 0

        async def receive_counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > most:
                raise HTTPException(413, too_large)
            return message

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = message.get("headers", [])
                names = {name for name, _ in own}
                message["headers"] = [*own, *(pair for pair in RAW_HEADERS if pair[0] not in names)]
            await send(message)

        await self.app(scope, receive_counted, send_with_headers)


def _is_local(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request is addressed to this machine and no page of another host sent it.

    A page of another host could make its host name resolve to this machine.
    """
    try:
        host = urlsplit("//" + headers.get(b"host", b"").decode("latin-1"))
        origin = headers.get(b"origin")
        is_own = origin is None or urlsplit(origin.decode("latin-1")).netloc == host.netloc
        return is_own and host.hostname in LOOPBACK
    except ValueError:  # e.g. "[", which begins an address that does not end
        return False


async def refuse(send: Callable[[Message], Awaitable[None]], status: int, detail: str) -> None:
    """Answer with problem details and security headers."""
    body = json.dumps(problem_details(status, detail)).encode()
    headers = [(b"content-type", b"application/problem+json"), *RAW_HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
