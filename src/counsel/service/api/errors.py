"""Error responses: problem details (RFC 9457) with one sentence."""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, cast

import sqlalchemy as sa
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match, Route
from starlette.types import Send

from counsel._arrays import brief
from counsel.errors import CounselError
from counsel.service.api import schemas
from counsel.service.errors import BusyError, ConflictError, NotFoundError
from counsel.service.field_faults import sentence_of

LOG = logging.getLogger("counsel.service")

Handler = Callable[[Request, Exception], Awaitable[Response]]
"""Answers a fault of a request."""

PROBLEM = "#/components/schemas/Problem"
"""Where the OpenAPI document has the schema of an error, once for all responses."""

PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {
        "description": HTTPStatus(code).phrase,
        "content": {"application/problem+json": {"schema": {"$ref": PROBLEM}}},
    }
    for code in (400, 401, 403, 404, 409, 413, 422, 429, 503)
}
"""The error responses in the OpenAPI document."""

RETRY_AFTER = (b"retry-after", b"1")
"""The header of answers that ask to try again, in seconds."""


def problem_details(status: int, detail: str) -> dict[str, Any]:
    """Return problem details."""
    title = HTTPStatus(status).phrase
    return schemas.Problem(title=title, status=status, detail=detail).model_dump()


async def answer_busy(send: Send, detail: str) -> None:
    """Answer a request with 503 from a middleware; the caller may try again."""
    body = json.dumps(problem_details(503, detail)).encode()
    headers = [(b"content-type", b"application/problem+json"), RETRY_AFTER]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def add_error_handlers(app: FastAPI) -> None:
    """Answer errors with problem details."""

    def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
        own = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": RETRY_AFTER[1].decode()}}
        return JSONResponse(
            problem_details(status, detail),
            status,
            headers={**(headers or {}), **own.get(status, {})},
            media_type="application/problem+json",
        )

    @app.exception_handler(CounselError)
    async def on_counsel_error(_: Request, fault: CounselError) -> JSONResponse:
        statuses = {NotFoundError: 404, ConflictError: 409, BusyError: 503}
        return problem(statuses.get(type(fault), 400), str(fault))

    @app.exception_handler(sa.exc.DataError)
    async def on_data_error(_: Request, __: sa.exc.DataError) -> JSONResponse:
        return problem(400, "the database cannot store one of these values")

    @app.exception_handler(sa.exc.SQLAlchemyError)
    async def on_database_error(_: Request, fault: sa.exc.SQLAlchemyError) -> JSONResponse:
        # Further lines may quote a row.
        reason = str(getattr(fault, "orig", fault)).partition("\n")[0]
        LOG.warning("the database does not answer: %s", brief(reason))
        return problem(503, "the database does not answer; try again")

    @app.exception_handler(ClientDisconnect)
    async def on_disconnect(_: Request, __: ClientDisconnect) -> JSONResponse:
        return problem(400, "the request ended before its body was complete")

    @app.exception_handler(HTTPException)
    async def on_http_error(request: Request, fault: HTTPException) -> JSONResponse:
        if fault.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            verbs = ", ".join(_verbs(request))
            return problem(405, f"this address takes {verbs}", {"Allow": verbs})
        return problem(fault.status_code, str(fault.detail), fault.headers)

    @app.exception_handler(RequestValidationError)
    async def on_invalid_request(_: Request, fault: RequestValidationError) -> JSONResponse:
        return problem(422, sentence_of(fault.errors()[0])[:500])


def handler_of(app: FastAPI, fault: Exception) -> Handler | None:
    """Return the handler of an app that answers a fault, if there is one."""
    for kind in type(fault).__mro__:
        if kind in app.exception_handlers:
            return cast("Handler", app.exception_handlers[kind])
    return None


def _verbs(request: Request) -> list[str]:
    """Return the methods of an address, over all routes that match it."""
    return sorted(
        verb
        for route in request.app.routes
        if isinstance(route, Route) and route.matches(request.scope)[0] != Match.NONE
        for verb in route.methods or ()
    )
