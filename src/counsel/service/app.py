"""The service as one app: routes, pages, who may come in, and how faults are answered.

Errors are problem details (RFC 9457) with one sentence. Every path of the API wants a key as
``Authorization: Bearer …`` unless the app was made without; pages, ``/healthz`` and ``/metrics`` do
not.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from typing import Any

import sqlalchemy as sa
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from counsel import __version__
from counsel.errors import CounselError
from counsel.service import schemas
from counsel.service.desk import ConflictError, Desk, MissingError
from counsel.service.doors import Doorman
from counsel.service.pages import add_pages
from counsel.service.play_routes import add_play_routes
from counsel.service.routes import Counters, add_routes
from counsel.service.sources import LARGEST_MODEL

LOG = logging.getLogger("counsel.service")

LARGEST = 1_000_000
"""Bytes of a request."""

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
"""How faults are answered, as the OpenAPI document says it."""

CAREFUL = [(name.lower().encode(), text.encode()) for name, text in HEADERS.items()]


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
        Whose data everybody sees; without it every request needs a key.
    lifespan
        What is to be done when it starts and stops.
    """
    app = FastAPI(
        lifespan=lifespan,
        title="Counsel",
        version=__version__,
        summary="What to advise a person, when to stay silent, and what advice is worth.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        responses=PROBLEMS,
    )
    counters = Counters()
    _answer_faults(app)
    app.add_middleware(_Guard)
    doorman = Doorman(desk.engine, tenant)
    add_routes(app, desk, doorman, counters)
    add_play_routes(app, desk, doorman)
    add_pages(app)

    @app.get("/healthz", include_in_schema=False)
    def healthz() -> dict[str, str]:
        """Say that the database answers."""
        with desk.engine.connect() as connection:
            connection.execute(sa.select(1))
        return {"status": "ok", "version": __version__}

    @app.get("/metrics", include_in_schema=False)
    def metrics() -> Response:
        """Return what Prometheus reads."""
        return Response(generate_latest(counters.registry), media_type=CONTENT_TYPE_LATEST)

    return app


def _answer_faults(app: FastAPI) -> None:
    """Answer what goes wrong with problem details."""

    def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
        told = schemas.Problem(title=HTTPStatus(status).phrase, status=status, detail=detail)
        said = {**(headers or {}), **({"WWW-Authenticate": "Bearer"} if status == 401 else {})}
        return JSONResponse(
            told.model_dump(), status, headers=said, media_type="application/problem+json"
        )

    @app.exception_handler(CounselError)
    async def refused(_: Request, fault: CounselError) -> JSONResponse:
        kinds = {MissingError: 404, ConflictError: 409}
        return problem(kinds.get(type(fault), 400), str(fault))

    @app.exception_handler(sa.exc.OperationalError)
    async def away(_: Request, fault: sa.exc.OperationalError) -> JSONResponse:
        LOG.error("the database does not answer: %s", fault.orig)
        return problem(503, "the database does not answer; try again")

    @app.exception_handler(HTTPException)
    async def failed(request: Request, fault: HTTPException) -> JSONResponse:
        if fault.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            verbs = ", ".join(_verbs(request))
            return problem(405, f"this address takes {verbs}", {"Allow": verbs})
        return problem(fault.status_code, str(fault.detail), fault.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, fault: RequestValidationError) -> JSONResponse:
        first = fault.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return problem(422, f"{where}: {first['msg']}"[:500])


def _verbs(request: Request) -> list[str]:
    """Return what an address takes, over all routes that it has."""
    return sorted(
        verb
        for route in request.app.routes
        if isinstance(route, Route) and route.matches(request.scope)[0] != Match.NONE
        for verb in route.methods or ()
    )


class _Guard:
    """Refuses what is too large, and sends the headers that keep browsers careful."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        most = LARGEST_MODEL if scope["path"] == "/v1/models" else LARGEST
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if not declared.isdigit() or int(declared) > most:
            await _too_large(send, most)
            return
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > most:
                raise HTTPException(413, f"the request is larger than {most} bytes")
            return message

        async def careful(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = message.get("headers", [])
                there = {name for name, _ in own}
                message["headers"] = [*own, *(one for one in CAREFUL if one[0] not in there)]
            await send(message)

        await self.app(scope, counted, careful)


async def _too_large(send: Callable[[Message], Awaitable[None]], most: int) -> None:
    told = schemas.Problem(
        title="Content Too Large", status=413, detail=f"the request is larger than {most} bytes"
    )
    body = json.dumps(told.model_dump()).encode()
    headers = [(b"content-type", b"application/problem+json")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body})
