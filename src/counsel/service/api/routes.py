"""The routes of the HTTP API, version 1: translate in, call the desk, translate out.

Labels of states and actions are those of the adviser's problem, or indices where it has none. The
routes called at every decision (advice, outcomes, end) wait for nothing but the disk, so one thread
serves many callers.
"""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import sqlalchemy as sa
from fastapi import Depends, FastAPI, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CollectorRegistry, Counter
from starlette.concurrency import run_in_threadpool

from counsel.errors import CounselError
from counsel.service.api import schemas
from counsel.service.api.auth import ApiKeyCheck
from counsel.service.api.fast_routes import fast_post
from counsel.service.core.decide import Decision
from counsel.service.core.desk import Desk
from counsel.service.core.episode import Episode
from counsel.service.core.export import FORMATS, export_log
from counsel.service.core.live_adviser import LiveAdviser
from counsel.service.core.outcomes import Outcome
from counsel.service.core.person_beliefs import describe_person, list_people
from counsel.service.core.problem_sources import add_model, check_model
from counsel.service.core.settings import AdviserSettings
from counsel.service.core.summary import summarise
from counsel.service.db.api_keys import KeyHolder
from counsel.service.db.engine import read
from counsel.service.db.tables import advisers

FILE_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
"""A request body that is a file, in the OpenAPI document."""

AdviserId = Annotated[str, Path(description="The id of an adviser.")]
EpisodeId = Annotated[str, Path(description="The id of an episode.")]
PersonName = Annotated[str, Path(description="The name of a person.")]
Format = Annotated[Literal["csv", "parquet"], Query(description="The format of the file.")]
ModelName = Annotated[str, Query(description="A name for the model.")]

REASON_FIELDS = tuple(schemas.Reason.model_fields)


class Counters:
    """The counters of /metrics."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        decisions = Counter("counsel_advice_total", "Answers by kind.", ["kind"], registry=registry)
        self.decisions = {kind: decisions.labels(kind) for kind in ("advice", "must", "silence")}
        self.outcomes = Counter("counsel_outcomes_total", "Outcomes taken in.", registry=registry)


def add_routes(app: FastAPI, desk: Desk, key_check: ApiKeyCheck, counters: Counters) -> None:
    """Add the routes of the API."""
    Reader = Annotated[KeyHolder, Depends(key_check("read"))]
    Caller = Annotated[KeyHolder, Depends(key_check("advise"))]
    Admin = Annotated[KeyHolder, Depends(key_check("admin"))]

    @app.post("/v1/advisers", status_code=201)
    def create_adviser(new: schemas.NewAdviser, holder: Admin) -> schemas.AdviserOut:
        """Create an adviser for a world or an uploaded model."""
        settings = AdviserSettings(**new.model_dump(exclude={"name"}))
        id_ = desk.create(holder.tenant, new.name, settings)
        return _adviser_out(desk.live(holder.tenant, id_))

    @app.get("/v1/advisers")
    def list_advisers(holder: Reader) -> list[schemas.AdviserRow]:
        """List the advisers, without their states and actions."""
        query = sa.select(advisers.c.id).where(advisers.c.tenant == holder.tenant)
        rows = read(desk.engine, query.order_by(advisers.c.created, advisers.c.id))
        listed = [desk.live(holder.tenant, row.id) for row in rows]
        return [
            schemas.AdviserRow(id=live.id, name=live.name, settings=live.settings)
            for live in listed
        ]

    @app.get("/v1/advisers/{adviser}")
    def show_adviser(adviser: AdviserId, holder: Reader) -> schemas.AdviserOut:
        """Show one adviser."""
        return _adviser_out(desk.live(holder.tenant, adviser))

    @app.patch("/v1/advisers/{adviser}")
    def change_adviser(
        adviser: AdviserId, change: schemas.ModeChange, holder: Admin
    ) -> schemas.AdviserOut:
        """Switch an adviser off, to shadow or live; other services follow within a second."""
        desk.set_mode(holder.tenant, adviser, change.mode)
        return _adviser_out(desk.live(holder.tenant, adviser))

    @app.get(
        "/v1/advisers/{adviser}/summary",
        response_model=schemas.Summary,
        response_model_exclude_unset=True,
    )
    def summary(adviser: AdviserId, holder: Reader) -> dict[str, Any]:
        """Return what an adviser did and learnt, as the dashboard shows it."""
        return summarise(desk, holder.tenant, adviser)

    files: dict[str, Any] = {"content": {kind.partition(";")[0]: {} for kind in FORMATS.values()}}

    @app.get("/v1/advisers/{adviser}/log", response_class=Response, responses={200: files})
    def export(adviser: AdviserId, holder: Reader, format: Format = "csv") -> Response:
        """Return the log of an adviser as CSV or Parquet, which `counsel fit` reads."""
        live = desk.live(holder.tenant, adviser)
        with desk.engine.connect() as connection:
            content = export_log(connection, live, format)
        return Response(content, media_type=FORMATS[format])

    @app.post("/v1/advisers/{adviser}/episodes", status_code=201)
    def start_episode(
        adviser: AdviserId, new: schemas.NewEpisode, holder: Caller
    ) -> schemas.EpisodeOut:
        """Start an episode with a person, who is added on first use."""
        return schemas.EpisodeOut(id=desk.start(holder.tenant, adviser, new.person).id)

    @fast_post(app, "/v1/episodes/{episode}/advice", response_model=schemas.AdviceOut)
    async def advise(episode: EpisodeId, at: schemas.Situation, holder: Caller) -> Response:
        """Decide what to advise at a step, or to stay silent; a step is decided only once."""
        begun = await _episode(desk, holder.tenant, episode)
        state = _index("state", at.state, begun.live.states)
        done: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        desk.submit_request(begun, at.step, state, done)
        decision = await done
        counters.decisions[_kind(decision)].inc()
        return JSONResponse(_advice_out(decision, begun.live))

    @fast_post(app, "/v1/outcomes", response_model=schemas.OutcomeReceipt)
    async def report(body: schemas.OutcomesIn, holder: Caller) -> Response:
        """Record outcomes by advice id; they may come late, repeated and out of order."""
        located = []
        for reported in body.outcomes:
            episode, step = await _locate(desk, holder.tenant, reported.advice_id)
            located.append((episode, step, _outcome(reported, episode.live)))
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        desk.submit_outcomes(located, done)
        await done
        counters.outcomes.inc(len(located))
        return JSONResponse({"taken": len(located)})

    @fast_post(app, "/v1/episodes/{episode}/end", status_code=204)
    async def end_episode(episode: EpisodeId, how: schemas.EpisodeEnd, holder: Caller) -> Response:
        """End an episode; ending it again changes nothing."""
        begun = await _episode(desk, holder.tenant, episode)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        desk.submit_end(begun, done, terminated=how.terminated)
        await done
        return Response(status_code=204)

    @app.get("/v1/people")
    def people(holder: Reader) -> list[schemas.PersonRow]:
        """List the people, ordered by name."""
        return [schemas.PersonRow(**row) for row in list_people(desk, holder.tenant)]

    @app.get("/v1/people/{person:path}")
    def show_person(person: PersonName, holder: Reader) -> schemas.PersonOut:
        """Show what each adviser of a person believes of them."""
        return schemas.PersonOut(**describe_person(desk, holder.tenant, person))

    @app.delete("/v1/people/{person:path}", status_code=204)
    def delete_person(person: PersonName, holder: Admin) -> Response:
        """Delete a person with all their data, and forget what was learnt of them."""
        desk.forget(holder.tenant, person)
        return Response(status_code=204)

    @app.post("/v1/models", status_code=201, openapi_extra=FILE_BODY)
    async def upload_model(
        request: Request, holder: Admin, name: ModelName = "model"
    ) -> schemas.ModelOut:
        """Store a fitted model: the content of a .npz file that `counsel fit` wrote."""
        if not 1 <= len(name) <= 200:
            raise CounselError("name must have 1 to 200 characters")
        content = await request.body()
        await run_in_threadpool(check_model, content)
        added = desk.committer.submit(lambda c: add_model(c, holder.tenant, name, content))
        return schemas.ModelOut(id=await asyncio.wrap_future(added), name=name)


async def _episode(desk: Desk, tenant: int, id_: str) -> Episode:
    """Look up an episode, in another thread where that takes the database."""
    if desk.is_cached(id_):
        return desk.episode(tenant, id_)
    return await run_in_threadpool(desk.episode, tenant, id_)


async def _locate(desk: Desk, tenant: int, decision: str) -> tuple[Episode, int]:
    """Look up the episode and the step of a decision, as ``_episode`` does."""
    if desk.is_cached(decision.rpartition("-")[0]):
        return desk.locate(tenant, decision)
    return await run_in_threadpool(desk.locate, tenant, decision)


def _adviser_out(live: LiveAdviser) -> schemas.AdviserOut:
    return schemas.AdviserOut(
        id=live.id,
        name=live.name,
        settings=live.settings,
        horizon=live.mdp.horizon,
        states=list(live.state_names),
        actions=list(live.action_names),
    )


def _kind(decision: Decision) -> str:
    if decision.shown_advice is None:
        return "silence"
    return "must" if decision.must else "advice"


def _advice_out(decision: Decision, live: LiveAdviser) -> dict[str, Any]:
    advice = live.action_name(decision.advice)
    reason = {name: decision.reason.get(name) for name in REASON_FIELDS}
    if reason["cost"] is None:
        del reason["cost"]
    reason["considered"] = live.action_name(reason["considered"])
    return {
        "id": decision.id,
        "advice": advice if decision.shown else None,
        "shadow": None if decision.shown else advice,
        "probability": decision.probability,
        "reason": reason,
    }


def _outcome(reported: schemas.OutcomeIn, live: LiveAdviser) -> Outcome:
    following = reported.next_state
    return Outcome(
        decision=reported.advice_id,
        action=_index("action", reported.action, live.actions),
        reward=reported.reward,
        next_state=None if following is None else _index("next_state", following, live.states),
        seen=reported.seen,
        reason_code=reported.reason_code,
        comment=reported.comment,
    )


def _index(what: str, label: str, indices: Mapping[str, int]) -> int:
    index = indices.get(label)
    if index is None:
        shown = ", ".join(list(indices)[:8]) + (", …" if len(indices) > 8 else "")
        raise CounselError(f"{what} is {label[:60]!r}; it must be one of {shown}")
    return index
