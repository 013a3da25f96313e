"""Fast routes: the routes called at every decision, without FastAPI's work per request.

They are declared like any other route and appear in the OpenAPI document. What FastAPI works out
for each request (dependencies, where values come from, validation of the answer) is fixed
beforehand: path parameters are text, one parameter is the body, and one is the holder of the key.
They are compared with the address of a request before all other routes.
"""

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, get_args, get_type_hints

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.params import Depends
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.types import Receive, Scope, Send

Endpoint = Callable[..., Awaitable[Response]]


class FastRoute(APIRoute):
    """A route that takes text from its path, a body and the holder of the key.

    Nothing is opened for a request that would have to be closed after it, and errors are answered
    by the handlers of the app, so a request passes none of FastAPI's wrappers.
    """

    def __init__(self, path: str, endpoint: Endpoint, **options: Any) -> None:  # noqa: ANN401
        super().__init__(path, endpoint, **options)
        handle = self.get_route_handler()

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            response = await handle(Request(scope, receive, send))
            await response(scope, receive, send)

        self.app = answer

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return a function that handles a request."""
        endpoint: Endpoint = self.endpoint
        body, model, holder, check_key = _parameters(endpoint)

        async def handle(request: Request) -> Response:
            key_holder = await check_key(request)
            try:
                content = model.model_validate_json(await request.body() or b"{}")
            except ValidationError as fault:
                raise RequestValidationError(
                    [{**error, "loc": ("body", *error["loc"])} for error in fault.errors()]
                ) from None
            return await endpoint(**request.path_params, **{body: content, holder: key_holder})

        return handle


def fast_post(app: FastAPI, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:  # noqa: ANN401
    """Add a fast POST route to an app, with ``options`` of FastAPI."""

    def add(endpoint: Endpoint) -> Endpoint:
        app.router.add_api_route(
            path, endpoint, methods=["POST"], route_class_override=FastRoute, **options
        )
        routes = app.router.routes
        routes.insert(0, routes.pop())
        return endpoint

    return add


def _parameters(
    endpoint: Callable[..., Any],
) -> tuple[str, type[BaseModel], str, Callable[[Request], Awaitable[Any]]]:
    """Return the body parameter and its model, and the key holder parameter and its dependency."""
    hints = get_type_hints(endpoint, include_extras=True)
    body = holder = ""
    check_key = None
    for name in inspect.signature(endpoint).parameters:
        kind = hints[name]
        dependencies = [extra for extra in get_args(kind) if isinstance(extra, Depends)]
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            body = name
        elif dependencies:
            holder, check_key = name, dependencies[0].dependency
    if check_key is None:
        raise TypeError("a fast route must declare an auth dependency")
    return body, hints[body], holder, check_key
