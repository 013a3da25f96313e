"""The routes of the HTTP API, version 1: translate in, call the desk, translate out.

Labels of states and actions are those of the adviser's problem; where it has none they are its
numbers. What is asked on every decision (advice, outcomes, the end) waits for the disk and nothing
else, so one thread serves many.
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
from counsel.service.api.auth import Doorman
from counsel.service.api.fast_routes import lean
from counsel.service.core.decide import Said
from counsel.service.core.desk import Desk
from counsel.service.core.export import FORMATS, export_log
from counsel.service.core.live_adviser import Live, Settings
from counsel.service.core.outcomes import Outcome
from counsel.service.core.people import describe_person, list_people
from counsel.service.core.problem_sources import add_model, check_model
from counsel.service.core.summary import summarise
from counsel.service.db.api_keys import Holder
from counsel.service.db.tables import advisers

A_FILE = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
"""A body that is a file, as the OpenAPI document says it."""


AdviserId = Annotated[str, Path(description="The id of an adviser.")]
EpisodeId = Annotated[str, Path(description="The id of an episode.")]
PersonName = Annotated[str, Path(description="The name of a person.")]
Format = Annotated[Literal["csv", "parquet"], Query(description="The kind of file.")]
ModelName = Annotated[str, Query(description="What people call the model.")]


class Counters:
    """What is counted for /metrics."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        asked = Counter(
            "counsel_advice_total", "Answers by kind.", ["kind"], registry=self.registry
        )
        self.asked = {kind: asked.labels(kind) for kind in ("advice", "must", "silence")}
        self.outcomes = Counter(
            "counsel_outcomes_total", "Outcomes taken in.", registry=self.registry
        )


def add_routes(app: FastAPI, desk: Desk, doorman: Doorman, counters: Counters) -> None:
    """Add the routes of the API."""
    Reader = Annotated[Holder, Depends(doorman("read"))]
    Asker = Annotated[Holder, Depends(doorman("advise"))]
    Admin = Annotated[Holder, Depends(doorman("admin"))]

    @app.post("/v1/advisers", status_code=201)
    def create_adviser(new: schemas.NewAdviser, holder: Admin) -> schemas.AdviserOut:
        """Make an adviser from a world or an uploaded model."""
        told = new.model_dump()
        name = told.pop("name")
        id_ = desk.create(holder.tenant, name, Settings(**told))
        return _adviser_out(id_, desk.live(holder.tenant, id_))

    @app.get("/v1/advisers")
    def list_advisers(holder: Reader) -> list[schemas.AdviserRow]:
        """List the advisers, without their states and actions."""
        query = sa.select(advisers.c.id).where(advisers.c.tenant == holder.tenant)
        with desk.engine.connect() as connection:
            ids = connection.scalars(query.order_by(advisers.c.created, advisers.c.id)).all()
        lives = [(id_, desk.live(holder.tenant, id_)) for id_ in ids]
        return [
            schemas.AdviserRow(id=id_, name=live.name, settings=_settings(live))
            for id_, live in lives
        ]

    @app.get("/v1/advisers/{adviser}")
    def show_adviser(adviser: AdviserId, holder: Reader) -> schemas.AdviserOut:
        """Show one adviser."""
        return _adviser_out(adviser, desk.live(holder.tenant, adviser))

    @app.patch("/v1/advisers/{adviser}")
    def change_adviser(
        adviser: AdviserId, change: schemas.Change, holder: Admin
    ) -> schemas.AdviserOut:
        """Switch an adviser off, to shadow or live; other services follow within a second."""
        desk.set_mode(holder.tenant, adviser, change.mode)
        return _adviser_out(adviser, desk.live(holder.tenant, adviser))

    @app.get("/v1/advisers/{adviser}/summary")
    def summary(adviser: AdviserId, holder: Reader) -> dict[str, Any]:
        """Sum up what an adviser did and learnt: what the dashboard shows."""
        return summarise(desk, holder.tenant, adviser)

    files: dict[str, Any] = {"content": {kind.partition(";")[0]: {} for kind in FORMATS.values()}}

    @app.get("/v1/advisers/{adviser}/log", response_class=Response, responses={200: files})
    def export(adviser: AdviserId, holder: Reader, format: Format = "csv") -> Response:
        """Return the log of an adviser as CSV or Parquet, which `counsel fit` reads."""
        live = desk.live(holder.tenant, adviser)
        with desk.engine.connect() as connection:
            content = export_log(connection, adviser, live, format)
        return Response(content, media_type=FORMATS[format])

    @app.post("/v1/advisers/{adviser}/episodes", status_code=201)
    def start_episode(
        adviser: AdviserId, new: schemas.NewEpisode, holder: Asker
    ) -> schemas.EpisodeOut:
        """Begin an episode with a person, who is made on first use."""
        return schemas.EpisodeOut(id=desk.start(holder.tenant, adviser, new.person).id)

    @lean(app, "/v1/episodes/{episode}/advice", response_model=schemas.AdviceOut)
    async def advise(episode: EpisodeId, at: schemas.Situation, holder: Asker) -> Response:
        """Say what to advise at a step, or to stay silent; the same step gets the same answer."""
        await _known(desk, holder.tenant, episode)
        live = desk.live(holder.tenant, desk.episode(holder.tenant, episode).adviser)
        state = _number("state", at.state, live.states)
        done: asyncio.Future[Said] = asyncio.get_running_loop().create_future()
        desk.ask(holder.tenant, episode, at.step, state, done)
        said = await done
        counters.asked[_kind(said)].inc()
        return JSONResponse(_advice_out(said, live))

    @lean(app, "/v1/outcomes", response_model=schemas.Taken)
    async def report(told: schemas.OutcomesIn, holder: Asker) -> Response:
        """Take in outcomes by advice id; late, repeated and out of order is fine."""
        unknown = [one.advice_id for one in told.outcomes if not desk.knows(one.advice_id[:32])]
        for id_ in unknown:
            await run_in_threadpool(desk.cell, holder.tenant, id_)
        rows = [_outcome(desk, holder.tenant, one) for one in told.outcomes]
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        desk.tell(holder.tenant, rows, done)
        await done
        counters.outcomes.inc(len(rows))
        return JSONResponse({"taken": len(rows)})

    @lean(app, "/v1/episodes/{episode}/end", status_code=204)
    async def end_episode(episode: EpisodeId, how: schemas.End, holder: Asker) -> Response:
        """End an episode; to end it again changes nothing."""
        await _known(desk, holder.tenant, episode)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        desk.close_episode(holder.tenant, episode, done, terminated=how.terminated)
        await done
        return Response(status_code=204)

    @app.get("/v1/people")
    def people(holder: Reader) -> list[schemas.PersonRow]:
        """List the people, in the order of their names."""
        return [schemas.PersonRow(**one) for one in list_people(desk, holder.tenant)]

    @app.get("/v1/people/{person:path}")
    def show_person(person: PersonName, holder: Reader) -> schemas.PersonOut:
        """Show what is believed of a person by each adviser that met them."""
        return schemas.PersonOut(**describe_person(desk, holder.tenant, person))

    @app.delete("/v1/people/{person:path}", status_code=204)
    def delete_person(person: PersonName, holder: Admin) -> Response:
        """Delete a person with all their data; what was learnt of them is forgotten."""
        desk.forget(holder.tenant, person)
        return Response(status_code=204)

    @app.post("/v1/models", status_code=201, openapi_extra=A_FILE)
    async def upload_model(
        request: Request, holder: Admin, name: ModelName = "model"
    ) -> schemas.ModelOut:
        """Keep a fitted model: the content of a .npz file that `counsel fit` wrote."""
        if not 1 <= len(name) <= 200:
            raise CounselError("name must have 1 to 200 characters")
        content = await request.body()
        await run_in_threadpool(check_model, content)
        made = desk.committer.submit(lambda c: add_model(c, holder.tenant, name, content))
        return schemas.ModelOut(id=await asyncio.wrap_future(made), name=name)


async def _known(desk: Desk, tenant: int, episode: str) -> None:
    """Have an episode looked up where it is not known here, without keeping others waiting."""
    if not desk.knows(episode):
        await run_in_threadpool(desk.episode, tenant, episode)


def _adviser_out(id_: str, live: Live) -> schemas.AdviserOut:
    return schemas.AdviserOut(
        id=id_,
        name=live.name,
        settings=_settings(live),
        horizon=live.problem.horizon,
        states=list(live.state_names),
        actions=list(live.action_names),
    )


def _settings(live: Live) -> dict[str, Any]:
    return {one: getattr(live.settings, one) for one in live.settings.__slots__}


def _kind(said: Said) -> str:
    if said.advice is None or not said.shown:
        return "silence"
    return "must" if said.must else "advice"


def _advice_out(said: Said, live: Live) -> dict[str, Any]:
    advice = None if said.advice is None else live.action_names[said.advice]
    reason = {name: said.reason.get(name) for name in schemas.Reason.model_fields}
    if reason["considered"] is not None:
        reason["considered"] = live.action_names[reason["considered"]]
    return {
        "id": said.id,
        "advice": advice if said.shown else None,
        "shadow": None if said.shown else advice,
        "probability": said.probability,
        "reason": reason,
    }


def _outcome(desk: Desk, tenant: int, one: schemas.OutcomeIn) -> Outcome:
    episode, _ = desk.cell(tenant, one.advice_id)
    live = desk.live(tenant, episode.adviser)
    then = one.next_state
    return Outcome(
        decision=one.advice_id,
        action=_number("action", one.action, live.actions),
        reward=one.reward,
        next_state=None if then is None else _number("next_state", then, live.states),
        seen=one.seen,
        reason_code=one.reason_code,
        comment=one.comment,
    )


def _number(what: str, label: str, labels: Mapping[str, int]) -> int:
    number = labels.get(label)
    if number is None:
        shown = ", ".join(list(labels)[:8]) + (", …" if len(labels) > 8 else "")
        raise CounselError(f"{what} is {label[:60]!r}; it must be one of {shown}")
    return number
