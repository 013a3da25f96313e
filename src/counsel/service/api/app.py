"""The service as one app: routes, pages, security headers, and error responses.

Errors are problem details (RFC 9457) with one sentence. Every path of the API needs a key as
``Authorization: Bearer …`` unless the app was made for one tenant; pages, ``/healthz`` and
``/metrics`` need none.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import sqlalchemy as sa
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from counsel import __version__
from counsel._arrays import brief
from counsel.errors import CounselError
from counsel.service.api import schemas
from counsel.service.api.auth import ApiKeyCheck
from counsel.service.api.pages import add_pages
from counsel.service.api.play_routes import add_play_routes
from counsel.service.api.routes import Counters, add_routes
from counsel.service.core.desk import Desk
from counsel.service.core.problem_sources import LARGEST_MODEL
from counsel.service.errors import ConflictError, NotFoundError

LOG = logging.getLogger("counsel.service")

LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""Names of this machine."""

LARGEST = 1_000_000
"""The largest request, in bytes."""

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}

PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {
        "description": HTTPStatus(code).phrase,
        "content": {"application/problem+json": {"schema": schemas.Problem.model_json_schema()}},
    }
    for code in (400, 401, 403, 404, 409, 413, 422, 503)
}
"""The error responses in the OpenAPI document."""

RAW_HEADERS = [(name.lower().encode(), text.encode()) for name, text in HEADERS.items()]


def make_app(
    desk: Desk,
    *,
    tenant: int | None = None,
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None,
) -> FastAPI:
    """Return the service.

    Parameters
    ----------
    desk
        Where advice is decided on.
    tenant
        The tenant of every request; without it every request needs a key.
    lifespan
        A context manager that is entered when the app starts and left when it stops.
    """
    app = FastAPI(
        lifespan=lifespan,
        title="Counsel",
        version=__version__,
        summary="What to advise a person, when to stay silent, and what advice is worth.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        redirect_slashes=False,
        responses=PROBLEMS,
    )
    counters = Counters()
    _add_error_handlers(app)
    app.add_middleware(_SecurityMiddleware, local_only=tenant is not None)
    key_check = ApiKeyCheck(desk.engine, tenant)
    add_routes(app, desk, key_check, counters)
    add_play_routes(app, desk, key_check)
    add_pages(app)
    if tenant is None:
        _document_roles(app)

    @app.get("/healthz", include_in_schema=False)
    def healthz() -> dict[str, str]:
        """Return that the database answers."""
        with desk.engine.connect() as connection:
            connection.execute(sa.select(1))
        return {"status": "ok", "version": __version__}

    @app.get("/metrics", include_in_schema=False)
    def metrics() -> Response:
        """Return the counters in the format of Prometheus."""
        return Response(generate_latest(counters.registry), media_type=CONTENT_TYPE_LATEST)

    return app


def _document_roles(app: FastAPI) -> None:
    """Add the role that each route needs to the OpenAPI document."""
    plain = app.openapi
    for route in app.routes:
        if isinstance(route, APIRoute):
            for dependency in route.dependant.dependencies:
                role = getattr(dependency.call, "role", None)
                security = {"security": [{"key": [role]}]} if role else {}
                route.openapi_extra = (route.openapi_extra or {}) | security

    def openapi() -> dict[str, Any]:
        document = plain()
        document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        return document

    app.openapi = openapi  # type: ignore[method-assign]


def _problem(status: int, detail: str) -> dict[str, Any]:
    """Return problem details."""
    title = HTTPStatus(status).phrase
    return schemas.Problem(title=title, status=status, detail=detail).model_dump()


def _add_error_handlers(app: FastAPI) -> None:
    """Answer errors with problem details."""

    def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
        challenge = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
        return JSONResponse(
            _problem(status, detail),
            status,
            headers={**(headers or {}), **challenge},
            media_type="application/problem+json",
        )

    @app.exception_handler(CounselError)
    async def on_counsel_error(_: Request, fault: CounselError) -> JSONResponse:
        statuses = {NotFoundError: 404, ConflictError: 409}
        return problem(statuses.get(type(fault), 400), str(fault))

    @app.exception_handler(sa.exc.DataError)
    async def on_data_error(_: Request, __: sa.exc.DataError) -> JSONResponse:
        return problem(400, "the database cannot store one of these values")

    @app.exception_handler(sa.exc.SQLAlchemyError)
    async def on_database_error(_: Request, fault: sa.exc.SQLAlchemyError) -> JSONResponse:
        LOG.warning("the database does not answer: %s", brief(str(getattr(fault, "orig", fault))))
        return problem(503, "the database does not answer; try again")

    @app.exception_handler(ClientDisconnect)
    async def on_disconnect(_: Request, __: ClientDisconnect) -> JSONResponse:
        return problem(400, "the request ended before its body was complete")

    @app.exception_handler(Exception)
    async def on_any_error(_: Request, __: Exception) -> JSONResponse:
        return problem(500, "the service failed; its log says why")

    @app.exception_handler(HTTPException)
    async def on_http_error(request: Request, fault: HTTPException) -> JSONResponse:
        if fault.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            verbs = ", ".join(_verbs(request))
            return problem(405, f"this address takes {verbs}", {"Allow": verbs})
        return problem(fault.status_code, str(fault.detail), fault.headers)

    @app.exception_handler(RequestValidationError)
    async def on_invalid_request(_: Request, fault: RequestValidationError) -> JSONResponse:
        first = fault.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return problem(422, f"{where}: {first['msg']}"[:500])


def _verbs(request: Request) -> list[str]:
    """Return the methods of an address, over all routes that match it."""
    return sorted(
        verb
        for route in request.app.routes
        if isinstance(route, Route) and route.matches(request.scope)[0] != Match.NONE
        for verb in route.methods or ()
    )


class _SecurityMiddleware:
    """Refuses requests that are too large or from elsewhere, and adds security headers."""

    def __init__(self, app: ASGIApp, *, local_only: bool) -> None:
        self.app, self.local_only = app, local_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        most = LARGEST_MODEL if scope["path"] == "/v1/models" else LARGEST
        declared = headers.get(b"content-length", b"0")
        if not declared.isdigit() or int(declared) > most:
            await _refuse(send, 413, f"the request is larger than {most} bytes")
            return
        if "\x00" in scope["path"] or b"%00" in scope["query_string"]:
            await _refuse(send, 400, "the address contains NUL")
            return
        if self.local_only and not _is_local(headers):
            await _refuse(send, 403, "without keys, only pages of this machine may send requests")
            return
        size = 0

        async def receive_counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > most:
                raise HTTPException(413, f"the request is larger than {most} bytes")
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
    host = urlsplit("//" + headers.get(b"host", b"").decode("latin-1"))
    origin = headers.get(b"origin")
    is_own = origin is None or urlsplit(origin.decode("latin-1")).netloc == host.netloc
    return is_own and host.hostname in LOOPBACK


async def _refuse(send: Callable[[Message], Awaitable[None]], status: int, detail: str) -> None:
    body = json.dumps(_problem(status, detail)).encode()
    headers = [(b"content-type", b"application/problem+json"), *RAW_HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
