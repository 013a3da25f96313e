"""Fast routes: the routes called at every decision, without FastAPI's work per request.

They are declared like any other route and appear in the OpenAPI document. What FastAPI works out
for each request (dependencies, where values come from, validation of the answer) is fixed
beforehand: path parameters are text, one parameter is the body, and one is the holder of the key.
The edge (``edge.py``) compares them with the address of a request before FastAPI sees it.
"""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from pydantic_core import to_json
from starlette.types import Receive, Scope, Send

from counsel.service.api.errors import handler_of
from counsel.service.api.request_bodies import parameters_of, parse_body, read_body

Endpoint = Callable[..., Awaitable[Response]]


class FastJson(Response):
    """An answer in JSON, without what Starlette prepares for headers that it does not have."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.body = to_json(content)
        self.status_code, self.background = 200, None
        size = b"%d" % len(self.body)
        self.raw_headers = [(b"content-length", size), (b"content-type", b"application/json")]


class FastRoute(APIRoute):
    """A route that takes text from its path, a body and the holder of the key.

    Nothing is opened for a request that would have to be closed after it, so a request passes none
    of FastAPI's wrappers.
    """

    def __init__(self, path: str, endpoint: Endpoint, **options: Any) -> None:  # noqa: ANN401
        super().__init__(path, endpoint, **options)
        handle = self.handle_request = self.get_route_handler()

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            response = await handle(Request(scope, receive, send))
            await response(scope, receive, send)

        self.app = answer

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return a function that handles a request."""
        endpoint: Endpoint = self.endpoint
        body, model, holder, check_key = parameters_of(endpoint)
        if check_key is None or model is None:
            raise TypeError("a fast route must declare an auth dependency and a body")

        async def handle(request: Request) -> Response:
            key_holder = await check_key(request)
            content = await parse_body(request, model, await read_body(request) or b"{}")
            return await endpoint(**request.path_params, **{body: content, holder: key_holder})

        return handle


class FastRoutes:
    """The fast routes of an app, answered without the app's layers; its handlers answer errors."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app
        self._routes = [route for route in app.routes if isinstance(route, FastRoute)]

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Answer a request if it is for a fast route; return whether it is."""
        if scope["method"] != "POST" or scope.get("root_path"):
            return False
        for route in self._routes:
            match = route.path_regex.match(scope["path"])
            if match is not None:
                scope["app"], scope["route"] = self.app, route
                scope["path_params"] = match.groupdict()
                response = await self._respond(route, Request(scope, receive, send))
                await response(scope, receive, send)
                return True
        return False

    async def _respond(self, route: FastRoute, request: Request) -> Response:
        try:
            return await route.handle_request(request)
        except Exception as fault:
            handle = handler_of(self.app, fault)
            if handle is None:
                raise
            return await handle(request, fault)


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
