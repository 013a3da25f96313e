"""Routes that are asked on every decision, handled with as little as possible around them.

They are declared as any other and appear in the OpenAPI document. What FastAPI would work out for
each request (dependencies, where values come from, checking the answer) is known beforehand: path
parameters are text, one parameter is the body, and one is who asks.
"""

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, get_args, get_type_hints

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.params import Depends
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

Endpoint = Callable[..., Awaitable[Response]]


class LeanRoute(APIRoute):
    """A route that takes text from its path, a body, and who asks, and returns a response."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what handles a request."""
        endpoint: Endpoint = self.endpoint
        body, model, asker, enter = _parts(endpoint)

        async def handle(request: Request) -> Response:
            holder = await enter(request)
            try:
                told = model.model_validate_json(await request.body() or b"{}")
            except ValidationError as fault:
                raise RequestValidationError(
                    [{**one, "loc": ("body", *one["loc"])} for one in fault.errors()]
                ) from None
            given = {body: told, asker: holder}
            return await endpoint(**request.path_params, **given)

        return handle


def lean(app: FastAPI, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:  # noqa: ANN401
    """Add a lean POST route to an app; ``options`` as FastAPI takes them."""

    def add(endpoint: Endpoint) -> Endpoint:
        app.router.add_api_route(
            path, endpoint, methods=["POST"], route_class_override=LeanRoute, **options
        )
        return endpoint

    return add


def _parts(
    endpoint: Callable[..., Any],
) -> tuple[str, type[BaseModel], str, Callable[[Request], Awaitable[Any]]]:
    """Return the names of the body and of who asks, and how each is come by."""
    hints = get_type_hints(endpoint, include_extras=True)
    body, asker = "", ""
    for name in inspect.signature(endpoint).parameters:
        kind = hints[name]
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            body = name
        elif any(isinstance(one, Depends) for one in get_args(kind)):
            asker = name
    enter = next(one for one in get_args(hints[asker]) if isinstance(one, Depends)).dependency
    if enter is None:
        raise TypeError("a lean route needs somebody who lets in")
    return body, hints[body], asker, enter
