"""Bodies of requests: read once the key is checked, and parsed apart from the loop where large.

FastAPI parses a body on the event loop before it checks the key, so that callers without one could
keep everybody waiting. Here the key comes first, on all routes. A body of a single thing is small
(``SINGLE_BYTES``), and its parsing takes a few milliseconds at most. Bodies that may be large, e.g.
a thousand outcomes, are parsed one at a time beside the loop, and have a limit of parts: bytes that
are nothing but brackets take a hundred times as long as text.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Coroutine
from email.message import Message
from typing import Any, NamedTuple, get_args, get_type_hints

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.params import Depends
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from counsel.service.api.lanes import Lanes
from counsel.service.field_faults import WHOLE

SINGLE_BYTES = 16_384
"""The largest body of a single thing, e.g. of a start or a move, in bytes."""

MANY_BYTES = 1_000_000
"""The largest body of many things, e.g. of outcomes or of an adviser's settings, in bytes."""

MANY_PARTS = 100_000
"""The most commas, colons and opening brackets of a body above ``SINGLE_BYTES``."""

MOST_FAULTS = 100
"""Above this many faults of a body none of them is looked for: that takes longer than parsing."""

MANY = re.compile(
    r"/v1/(advisers(/[^/]+)?|outcomes|episodes/[^/]+/reported)|/cds-services/[^/]+(/feedback)?"
)
"""Paths of requests whose body may have many things: settings with must-say advice and schedules,
outcomes, decisions, and calls of CDS Hooks with what the client prefetched."""


class Parameters(NamedTuple):
    """The parameters of an endpoint that are its own business to fill.

    ``body`` is the name of the body, if there is one, and ``model`` what it is; ``holder`` is the
    name of the holder of the key, and ``check_key`` finds them.
    """

    body: str
    model: type[BaseModel] | None
    holder: str
    check_key: Callable[[Request], Awaitable[Any]] | None


def parameters_of(endpoint: Callable[..., Any]) -> Parameters:
    """Return the body and the holder of the key among the parameters of an endpoint."""
    hints = get_type_hints(endpoint, include_extras=True)
    body = holder = ""
    model = check_key = None
    for name in inspect.signature(endpoint).parameters:
        kind = hints[name]
        dependencies = [extra for extra in get_args(kind) if isinstance(extra, Depends)]
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            body, model = name, kind
        elif dependencies and hasattr(dependencies[0].dependency, "role"):
            holder, check_key = name, dependencies[0].dependency
    return Parameters(body, model, holder, check_key)


async def read_body(request: Request) -> bytes:
    """Return the body of a request, mostly from one message."""
    message = await request.receive()
    if message["type"] == "http.request" and not message.get("more_body"):
        body: bytes = message.get("body", b"")
        return body
    parts = [message]
    while message["type"] == "http.request" and message.get("more_body"):
        message = await request.receive()
        parts.append(message)
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return b"".join(part.get("body", b"") for part in parts)


async def parse_body(request: Request, model: type[BaseModel], content: bytes) -> BaseModel:
    """Return a body as an instance of its model."""
    if len(content) <= SINGLE_BYTES:
        return parse(model, content)
    parts = sum(map(content.count, (b",", b":", b"[", b"{")))
    if parts > MANY_PARTS:
        raise HTTPException(
            413,
            f"the body has {parts} commas, colons and opening brackets; it may have {MANY_PARTS}: "
            "send fewer things at once",
        )
    lanes: Lanes = request.app.state.lanes
    return await lanes.parsing.run(parse, model, content)


def parse(model: type[BaseModel], content: bytes) -> BaseModel:
    """Return JSON as an instance of a model, or raise its first fault."""
    try:
        return model.model_validate_json(content)
    except ValidationError as fault:
        count = fault.error_count()
        if count > MOST_FAULTS:
            what = f"the body has {count} faults; compare it with /v1/openapi.json"
            first: Any = {"type": WHOLE, "loc": ("body",), "msg": what, "input": None}
        else:
            first = fault.errors(include_url=False)[0]
            first["loc"] = ("body", *first["loc"])
    raise RequestValidationError([first])


class _ParsedRequest(Request):
    """A request whose body was read and parsed before FastAPI asks for it."""

    def __init__(self, request: Request, content: bytes, parsed: BaseModel) -> None:
        super().__init__(request.scope, request.receive)
        self._content, self._parsed = content, parsed

    async def body(self) -> bytes:
        return self._content

    async def json(self) -> Any:  # noqa: ANN401 (FastAPI takes an instance as it is)
        return self._parsed


class BodyRoute(APIRoute):
    """A route of FastAPI that checks the key first, then reads the body, then parses it."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return a function that handles a request."""
        handle = super().get_route_handler()
        _, model, _, check_key = parameters_of(self.endpoint)
        if model is None:
            return handle

        async def handle_body(request: Request) -> Response:
            if check_key is not None:
                await check_key(request)
            content = await read_body(request)
            if not content:
                raise HTTPException(422, "the request has no body; send a JSON object")
            _check_type(request.headers.get("content-type"))
            parsed = await parse_body(request, model, content)
            return await handle(_ParsedRequest(request, content, parsed))

        return handle_body


def _check_type(kind: str | None) -> None:
    """Refuse a body that is not called JSON."""
    message = Message()
    message["content-type"] = kind or ""
    subtype = message.get_content_subtype()
    is_json = subtype == "json" or subtype.endswith("+json")
    if message.get_content_maintype() != "application" or not is_json:
        what = "missing" if kind is None else repr(kind[:60])
        raise HTTPException(422, f"Content-Type is {what}; it must be application/json")
