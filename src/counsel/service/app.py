"""The HTTP API, version 1: translate in, call the desk, translate out.

Errors are problem details (RFC 9457) with one sentence. Every path but ``/healthz`` and
``/metrics`` wants a key as ``Authorization: Bearer …`` unless the app was made without. Labels of
states and actions are those of the adviser's problem; where it has none they are its numbers.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, generate_latest
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from counsel import __version__
from counsel.errors import CounselError
from counsel.model.problem import AdviceProblem
from counsel.service import schemas
from counsel.service.desk import Desk, EndedError, MissingError, Outcome, Said, Settings
from counsel.service.export import FORMATS, export_log
from counsel.service.keys import Holder, holder_of
from counsel.service.sources import LARGEST_MODEL, add_model
from counsel.service.tables import advisers

LARGEST = 1_000_000
"""Bytes of a request."""

REMEMBERED = 5.0
"""Seconds for which a key that was looked up is believed: a revoked one works no longer."""

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


def make_app(desk: Desk, *, tenant: int | None = None) -> FastAPI:
    """Return the service.

    Parameters
    ----------
    desk
        Where advice is decided on.
    tenant
        Whose data everybody sees; without it every request needs a key.
    """
    app = FastAPI(
        title="Counsel",
        version=__version__,
        summary="What to advise a person, when to stay silent, and what advice is worth.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        responses={
            code: {"model": schemas.Problem} for code in (400, 401, 403, 404, 409, 413, 422)
        },
    )
    counters = _Counters()
    _answer_faults(app)
    app.add_middleware(_Guard)
    allowed = _Doorman(desk, tenant)
    _add_routes(app, desk, allowed, counters)

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


class _Counters:
    """What is counted for /metrics."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.asked = Counter(
            "counsel_advice_total", "Answers by kind.", ["kind"], registry=self.registry
        )
        self.outcomes = Counter(
            "counsel_outcomes_total", "Outcomes taken in.", registry=self.registry
        )


class _Doorman:
    """Looks at keys: who holds one, and whether that is enough."""

    def __init__(self, desk: Desk, tenant: int | None) -> None:
        self.desk, self.tenant = desk, tenant
        self._known: dict[str, tuple[float, Holder | None]] = {}

    def __call__(self, role: str) -> Callable[[Request], Holder]:
        """Return what lets in who may do so much."""

        def enter(request: Request) -> Holder:
            if self.tenant is not None:
                return Holder(self.tenant, "admin")
            scheme, _, key = request.headers.get("authorization", "").partition(" ")
            holder = self._holder(key.strip()) if scheme.lower() == "bearer" else None
            if holder is None:
                raise HTTPException(401, "give a key that is valid: Authorization: Bearer KEY")
            if not holder.may(role):
                raise HTTPException(403, f"this key may {holder.role}; that takes {role}")
            return holder

        return enter

    def _holder(self, key: str) -> Holder | None:
        now = time.monotonic()
        until, holder = self._known.get(key, (0.0, None))
        if now > until:
            with self.desk.engine.connect() as connection:
                holder = holder_of(connection, key)
            if len(self._known) > 10_000:
                self._known.clear()
            if holder is not None:
                self._known[key] = (now + REMEMBERED, holder)
        return holder


def _add_routes(
    app: FastAPI, desk: Desk, allowed: Callable[[str], Any], counters: _Counters
) -> None:
    Reader = Annotated[Holder, Depends(allowed("read"))]
    Asker = Annotated[Holder, Depends(allowed("advise"))]
    Admin = Annotated[Holder, Depends(allowed("admin"))]

    @app.post("/v1/advisers", status_code=201)
    def create_adviser(new: schemas.NewAdviser, holder: Admin) -> schemas.AdviserOut:
        """Make an adviser from a world or an uploaded model."""
        told = new.model_dump()
        name = told.pop("name")
        id_ = desk.create(holder.tenant, name, Settings(**told))
        return _adviser_out(desk, holder.tenant, id_, name)

    @app.get("/v1/advisers")
    def list_advisers(holder: Reader) -> list[schemas.AdviserOut]:
        """List the advisers."""
        query = sa.select(advisers.c.id, advisers.c.name).where(advisers.c.tenant == holder.tenant)
        with desk.engine.connect() as connection:
            rows = connection.execute(query.order_by(advisers.c.created)).all()
        return [_adviser_out(desk, holder.tenant, row.id, row.name) for row in rows]

    @app.post("/v1/advisers/{adviser}/episodes", status_code=201)
    def start_episode(adviser: str, new: schemas.NewEpisode, holder: Asker) -> schemas.EpisodeOut:
        """Begin an episode with a person, who is made on first use."""
        return schemas.EpisodeOut(id=desk.start(holder.tenant, adviser, new.person))

    @app.post("/v1/episodes/{episode}/advice")
    def advise(episode: str, at: schemas.Situation, holder: Asker) -> schemas.AdviceOut:
        """Say what to advise at a step, or to stay silent; the same step gets the same answer."""
        id_ = desk.adviser_of(holder.tenant, episode)
        problem = desk.adviser(holder.tenant, id_).problem
        state = _number("state", at.state, problem.mdp.state_labels, problem.n_states)
        said = desk.advise(holder.tenant, episode, at.step, state).result()
        spoken = said.shown and said.advice is not None
        counters.asked.labels("advice" if spoken else "silence").inc()
        return _advice_out(said, problem, desk.settings(holder.tenant, id_))

    @app.post("/v1/outcomes")
    def report(told: schemas.OutcomesIn, holder: Asker) -> schemas.Taken:
        """Take in outcomes by advice id; late, repeated and out of order is fine."""
        known = desk.problems_of(holder.tenant, [one.advice_id for one in told.outcomes])
        desk.report(holder.tenant, [_outcome(one, known[one.advice_id]) for one in told.outcomes])
        counters.outcomes.inc(len(told.outcomes))
        return schemas.Taken(taken=len(told.outcomes))

    @app.get("/v1/advisers/{adviser}/log")
    def export(adviser: str, holder: Reader, format: str = "csv") -> Response:
        """Return the log of an adviser as CSV or Parquet, which `counsel fit` reads."""
        problem = desk.adviser(holder.tenant, adviser).problem
        with desk.engine.connect() as connection:
            content = export_log(connection, adviser, problem, format)
        return Response(content, media_type=FORMATS[format])

    @app.post("/v1/models", status_code=201)
    async def upload_model(
        request: Request, holder: Admin, name: str = "model"
    ) -> schemas.ModelOut:
        """Keep a fitted model: the content of a .npz file that `counsel fit` wrote."""
        if not 1 <= len(name) <= 200:
            raise CounselError("name must have 1 to 200 characters")
        content = await request.body()
        made = desk.committer.submit(lambda c: add_model(c, holder.tenant, name, content))
        return schemas.ModelOut(id=await asyncio.wrap_future(made), name=name)

    @app.post("/v1/episodes/{episode}/end", status_code=204)
    def end_episode(episode: str, how: schemas.End, holder: Asker) -> Response:
        """End an episode; to end it again changes nothing."""
        desk.end(holder.tenant, episode, terminated=how.terminated)
        return Response(status_code=204)


def _adviser_out(desk: Desk, tenant: int, id_: str, name: str) -> schemas.AdviserOut:
    problem = desk.adviser(tenant, id_).problem
    settings = desk.settings(tenant, id_)
    return schemas.AdviserOut(
        id=id_,
        name=name,
        settings={one: getattr(settings, one) for one in settings.__slots__},
        horizon=problem.horizon,
        states=list(_names(problem.mdp.state_labels, problem.n_states)),
        actions=list(_names(problem.mdp.action_labels, problem.n_actions)),
    )


def _advice_out(said: Said, problem: AdviceProblem, settings: Settings) -> schemas.AdviceOut:
    names = _names(problem.mdp.action_labels, problem.n_actions)
    advice = None if said.advice is None else names[said.advice]
    reason = dict(said.reason)
    if reason.get("considered") is not None:
        reason["considered"] = names[reason["considered"]]
    if settings.budget is not None and settings.hard and reason.get("spent") is not None:
        reason["left"] = max(int(settings.budget) - reason["spent"] - (advice is not None), 0)
    return schemas.AdviceOut(
        id=said.id,
        advice=advice if said.shown else None,
        shadow=None if said.shown else advice,
        probability=said.probability,
        reason=schemas.Reason(**reason),
    )


def _outcome(one: schemas.OutcomeIn, problem: AdviceProblem) -> Outcome:
    mdp, then = problem.mdp, one.next_state
    return Outcome(
        decision=one.advice_id,
        action=_number("action", one.action, mdp.action_labels, problem.n_actions),
        reward=one.reward,
        next_state=(
            None
            if then is None
            else _number("next_state", then, mdp.state_labels, problem.n_states)
        ),
        seen=one.seen,
        reason_code=one.reason_code,
        comment=one.comment,
    )


def _names(labels: tuple[str, ...] | None, count: int) -> tuple[str, ...]:
    return labels or tuple(str(i) for i in range(count))


def _number(what: str, label: str, labels: tuple[str, ...] | None, count: int) -> int:
    names = _names(labels, count)
    try:
        return names.index(label)
    except ValueError:
        shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        raise CounselError(f"{what} is {label[:60]!r}; it must be one of {shown}") from None


def _answer_faults(app: FastAPI) -> None:
    """Answer what goes wrong with problem details."""

    def problem(status: int, detail: str) -> JSONResponse:
        told = schemas.Problem(title=HTTPStatus(status).phrase, status=status, detail=detail)
        headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
        return JSONResponse(
            told.model_dump(), status, headers=headers, media_type="application/problem+json"
        )

    @app.exception_handler(CounselError)
    async def refused(_: Request, fault: CounselError) -> JSONResponse:
        kinds = {MissingError: 404, EndedError: 409}
        return problem(kinds.get(type(fault), 400), str(fault))

    @app.exception_handler(HTTPException)
    async def failed(_: Request, fault: HTTPException) -> JSONResponse:
        return problem(fault.status_code, str(fault.detail))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, fault: RequestValidationError) -> JSONResponse:
        first = fault.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return problem(422, f"{where}: {first['msg']}"[:500])


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
                message["headers"] = [
                    *message.get("headers", []),
                    *((name.lower().encode(), text.encode()) for name, text in HEADERS.items()),
                ]
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
