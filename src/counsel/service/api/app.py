"""The service as one app: routes, pages, health checks and metrics.

Every path of the API needs a key as ``Authorization: Bearer …`` unless the app was made for one
tenant; pages, ``/healthz``, ``/readyz`` and ``/metrics`` need none.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import cache
from typing import Any

from fastapi import FastAPI, Response
from fastapi.routing import APIRoute
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic_core import to_json
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from counsel import __version__
from counsel.service.api import schemas
from counsel.service.api.audit_routes import add_audit_routes
from counsel.service.api.auth import ApiKeyCheck
from counsel.service.api.cds_hooks import add_cds_hooks
from counsel.service.api.edge import Edge
from counsel.service.api.errors import PROBLEMS, add_error_handlers
from counsel.service.api.fast_routes import FastRoutes
from counsel.service.api.health import add_health
from counsel.service.api.lanes import Lanes
from counsel.service.api.management_routes import add_management_routes
from counsel.service.api.metrics import Metrics
from counsel.service.api.pages import add_pages
from counsel.service.api.play_routes import add_play_routes
from counsel.service.api.request_bodies import BodyRoute
from counsel.service.api.request_rates import RequestRates
from counsel.service.api.routes import add_routes
from counsel.service.api.warm_up_gate import DOCUMENT
from counsel.service.core.desk import Desk
from counsel.service.warm_up import WarmUp


class ServiceApp(FastAPI):
    """FastAPI behind the edge, which every request passes first."""

    edge: Edge

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or start and stop."""
        await self.edge(scope, receive, send)

    async def answer_inside(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that the edge has admitted."""
        await super().__call__(scope, receive, send)

    def build_middleware_stack(self) -> ASGIApp:
        """Return FastAPI's layers without the outermost: the edge answers what fails."""
        stack = super().build_middleware_stack()
        return stack.app if isinstance(stack, ServerErrorMiddleware) else stack


def make_app(
    desk: Desk,
    *,
    tenant: int | None = None,
    warm_up: WarmUp | None = None,
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[Mapping[str, Any]]] | None = None,
) -> "ServiceApp":
    """Return the service; ``lifespan`` is entered when it starts and left when it stops.

    What it yields is the state of the app: ``settings``, for the limits of connections. Requests
    wait for ``warm_up``, and the service is not ready before it is done.
    """
    app = ServiceApp(
        lifespan=lifespan,
        title="Counsel",
        version=__version__,
        summary="What to advise a person, when to stay silent, and what advice is worth.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # which would write the document anew for every caller
        redirect_slashes=False,
        responses=PROBLEMS,
        generate_unique_id_function=lambda route: route.name,  # names functions of clients
    )
    app.router.route_class = BodyRoute
    add_error_handlers(app)
    lanes = app.state.lanes = Lanes(desk.settings)
    metrics = app.state.metrics = Metrics(desk, lanes)
    settings = desk.settings
    rates = RequestRates(settings.requests_per_second)
    key_check = ApiKeyCheck(desk, lanes, tenant, rates, metrics.failed_logins.inc)
    app.state.key_check = key_check
    add_routes(app, desk, key_check, metrics, lanes)
    add_management_routes(app, desk, key_check, lanes)
    add_audit_routes(app, desk, key_check, lanes)
    add_play_routes(app, desk, key_check, lanes)
    add_cds_hooks(app, desk, key_check, metrics, lanes)
    add_pages(app)
    add_health(app, desk, warm_up)
    _complete_document(app, has_keys=tenant is None)

    @cache
    def document() -> bytes:
        return to_json(app.openapi())

    @app.get(DOCUMENT, include_in_schema=False)
    async def show_document() -> Response:
        return Response(document(), media_type="application/json")

    @app.get("/metrics", include_in_schema=False)
    def show_metrics() -> Response:
        return Response(metrics.render(), media_type=CONTENT_TYPE_LATEST)

    app.edge = Edge(
        app.answer_inside,
        FastRoutes(app),
        settings,
        metrics,
        local_only=tenant is not None,
        warm_up=warm_up,
    )
    return app


def _complete_document(app: FastAPI, *, has_keys: bool) -> None:
    """Add the schema of errors and the role that each route needs to the OpenAPI document."""
    plain = app.openapi
    for route in app.routes:
        if has_keys and isinstance(route, APIRoute):
            for dependency in route.dependant.dependencies:
                role = getattr(dependency.call, "role", None)
                security = {"security": [{"key": [role]}]} if role else {}
                route.openapi_extra = (route.openapi_extra or {}) | security

    def openapi() -> dict[str, Any]:
        document = plain()
        components = document["components"]
        components["schemas"]["Problem"] = schemas.Problem.model_json_schema()
        if has_keys:
            components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        return document

    app.openapi = openapi  # type: ignore[method-assign]
