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
from counsel.service.api.auth import Doorman
from counsel.service.api.pages import add_pages
from counsel.service.api.routes import Counters, add_routes
from counsel.service.core.desk import Desk
from counsel.service.core.problem_sources import LARGEST_MODEL
from counsel.service.errors import ConflictError, MissingError
from counsel.service.playground.routes import add_play_routes

LOG = logging.getLogger("counsel.service")

LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""What this machine calls itself."""

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
        redirect_slashes=False,
        responses=PROBLEMS,
    )
    counters = Counters()
    _answer_faults(app)
    app.add_middleware(_Guard, open_door=tenant is not None)
    doorman = Doorman(desk.engine, tenant)
    add_routes(app, desk, doorman, counters)
    add_play_routes(app, desk, doorman)
    add_pages(app)
    if tenant is None:
        _tell_roles(app)

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


def _tell_roles(app: FastAPI) -> None:
    """Have the OpenAPI document say which role a route takes."""
    plain = app.openapi
    for route in app.routes:
        if isinstance(route, APIRoute):
            for role in (getattr(one.call, "role", None) for one in route.dependant.dependencies):
                told = {"security": [{"key": [role]}]} if role else {}
                route.openapi_extra = (route.openapi_extra or {}) | told

    def openapi() -> dict[str, Any]:
        document = plain()
        document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        return document

    app.openapi = openapi  # type: ignore[method-assign]


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

    @app.exception_handler(sa.exc.DataError)
    async def unkept(_: Request, __: sa.exc.DataError) -> JSONResponse:
        return problem(400, "the database cannot keep one of these values")

    @app.exception_handler(sa.exc.SQLAlchemyError)
    async def away(_: Request, fault: sa.exc.SQLAlchemyError) -> JSONResponse:
        LOG.warning("the database does not answer: %s", brief(str(getattr(fault, "orig", fault))))
        return problem(503, "the database does not answer; try again")

    @app.exception_handler(ClientDisconnect)
    async def gone(_: Request, __: ClientDisconnect) -> JSONResponse:
        return problem(400, "the request ended before its body did")

    @app.exception_handler(Exception)
    async def broken(_: Request, __: Exception) -> JSONResponse:
        return problem(500, "something went wrong here; it is in the service's log")

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

    def __init__(self, app: ASGIApp, *, open_door: bool) -> None:
        self.app, self.open_door = app, open_door

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
            await _refuse(send, 400, "the address has NUL in it")
            return
        if self.open_door and not _from_here(headers):
            await _refuse(send, 403, "without keys only pages of this machine itself may ask")
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


def _from_here(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request was meant for this machine, and no page from elsewhere sent it.

    A page of another host could have its name lead here and so ask whatever it likes.
    """
    host = urlsplit("//" + headers.get(b"host", b"").decode("latin-1"))
    origin = headers.get(b"origin")
    own = origin is None or urlsplit(origin.decode("latin-1")).netloc == host.netloc
    return own and host.hostname in LOOPBACK


async def _refuse(send: Callable[[Message], Awaitable[None]], status: int, detail: str) -> None:
    told = schemas.Problem(title=HTTPStatus(status).phrase, status=status, detail=detail)
    body = json.dumps(told.model_dump()).encode()
    headers = [(b"content-type", b"application/problem+json"), *CAREFUL]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
