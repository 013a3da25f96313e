"""The routes of the HTTP API, version 1: translate in, call the desk, translate out.

Labels of states and actions are those of the adviser's problem, or indices where it has none. The
routes called at every decision (advice, outcomes, end) wait for nothing but the disk, so one thread
serves many callers.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal

import sqlalchemy as sa
from fastapi import Depends, FastAPI, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.convertors import Convertor, register_url_convertor

from counsel.errors import CounselError
from counsel.service.api import record_schemas, schemas
from counsel.service.api.auth import ApiKeyCheck
from counsel.service.api.fast_routes import FastJson, fast_post
from counsel.service.api.lanes import Lane, Lanes
from counsel.service.api.metrics import Metrics
from counsel.service.api.paging import Page
from counsel.service.core.decide import Decision
from counsel.service.core.desk import Desk
from counsel.service.core.episode import Episode
from counsel.service.core.erasure import erase_person
from counsel.service.core.export import FORMATS, export_log
from counsel.service.core.listings import cursor, list_people, page_of_advisers
from counsel.service.core.live_adviser import LiveAdviser
from counsel.service.core.model_uploads import ModelUploads, check_upload
from counsel.service.core.outcomes import Outcome, OutcomeReceipt
from counsel.service.core.person_beliefs import describe_person
from counsel.service.core.reported import ReportedDecision, record_decisions
from counsel.service.core.settings import AdviserSettings, read_stored
from counsel.service.core.summary import summarise
from counsel.service.db.api_keys import KeyHolder

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
Format = Annotated[
    Literal["csv", "spreadsheet", "parquet"],
    Query(
        description="The format of the file. ``csv`` and ``parquet`` are exact; ``spreadsheet`` is "
        "CSV in which texts that a spreadsheet would run as a formula begin with an apostrophe."
    ),
]
ModelName = Annotated[str, Query(description="A name for the model.")]
Archived = Annotated[bool, Query(description="Whether to list archived ones, too.")]
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=200,
        description="Any text of yours: a start that is sent again with the same key returns the "
        "episode that it started, and no other.",
    ),
]


class _AnyText(Convertor[str]):
    """A part of an address that may be any text, line breaks and slashes included."""

    regex = "(?s:.+)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("text", _AnyText())

REASON_FIELDS = tuple(schemas.Reason.model_fields)
SOMETIMES = ("cost", "burden", "level", "rested", "shared_left", "shared_price")
"""Fields of a reason that are missing where there is nothing to say: all advice costs 1, people
have no memory, or there is no shared limit."""


def add_routes(
    app: FastAPI, desk: Desk, key_check: ApiKeyCheck, metrics: Metrics, lanes: Lanes
) -> None:
    """Add the routes of the API."""
    advising, reading, changing = lanes.advising, lanes.reading, lanes.changing
    uploads = ModelUploads(desk)
    Reader = Annotated[KeyHolder, Depends(key_check("read"))]
    Caller = Annotated[KeyHolder, Depends(key_check("advise"))]
    Admin = Annotated[KeyHolder, Depends(key_check("admin"))]

    @app.post("/v1/advisers", status_code=201)
    @changing
    def create_adviser(new: schemas.NewAdviser, holder: Admin) -> schemas.AdviserOut:
        """Create an adviser for a world or an uploaded model."""
        settings = AdviserSettings(**new.model_dump(exclude={"name"}))
        id_ = desk.create(holder.tenant, new.name, settings, holder=holder)
        return adviser_out(desk.live(holder.tenant, id_))

    @app.get("/v1/advisers")
    @reading
    def list_advisers(
        page: Page, holder: Reader, *, archived: Archived = False
    ) -> list[schemas.AdviserRow]:
        """List the advisers, without their states and actions; ``Link`` has the next page."""
        rows = page_of_advisers(desk, holder.tenant, page.after, page.limit, archived=archived)
        page.link_next([cursor(row.created, row.id) for row in rows])
        return [adviser_row(row) for row in rows]

    @app.get("/v1/advisers/{adviser}")
    @reading
    def show_adviser(adviser: AdviserId, holder: Reader) -> schemas.AdviserOut:
        """Show one adviser."""
        return adviser_out(desk.live(holder.tenant, adviser))

    @app.get(
        "/v1/advisers/{adviser}/summary",
        response_model=record_schemas.Summary,
        response_model_exclude_unset=True,
    )
    @reading
    def summary(adviser: AdviserId, holder: Reader) -> dict[str, Any]:
        """Return what an adviser did and learnt, as the dashboard shows it."""
        return summarise(desk, holder.tenant, adviser)

    files: dict[str, Any] = {"content": {kind.partition(";")[0]: {} for kind in FORMATS.values()}}

    @app.get("/v1/advisers/{adviser}/log", response_class=Response, responses={200: files})
    async def export(adviser: AdviserId, holder: Reader, format: Format = "csv") -> Response:
        """Return the log of an adviser as CSV or Parquet, which `counsel fit` reads."""
        live = await reading.run(desk.live, holder.tenant, adviser)
        return await stream(reading, export_log(desk, live, format), FORMATS[format])

    @app.post("/v1/advisers/{adviser}/episodes", status_code=201)
    @advising
    def start_episode(
        adviser: AdviserId,
        new: schemas.NewEpisode,
        holder: Caller,
        idempotency_key: IdempotencyKey = None,
    ) -> schemas.EpisodeOut:
        """Start an episode with a person, who is added on first use."""
        episode = desk.start(holder.tenant, adviser, new.person, request=idempotency_key)
        return schemas.EpisodeOut(id=episode.id)

    @fast_post(app, "/v1/episodes/{episode}/advice", response_model=schemas.AdviceOut)
    async def advise(episode: EpisodeId, at: schemas.Situation, holder: Caller) -> Response:
        """Decide what to advise at a step, or to stay silent; a step is decided only once."""
        begun = await _episode(desk, advising, holder.tenant, episode)
        state = index_of("state", at.state, begun.live.states)
        plan = desk.plan_of(begun)
        if plan is None and desk.must_wait(begun, state):
            with suppress(Exception):  # it is in the log
                # Others may wait for the same plan when this caller gives up.
                plan = await asyncio.shield(asyncio.wrap_future(desk.request_plan(begun)))
        done: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        desk.submit_request(begun, at.step, state, plan, done)
        decision = await done
        metrics.count_decision(decision)
        return FastJson(_advice_out(decision, begun.live))

    @fast_post(app, "/v1/outcomes", response_model=schemas.OutcomeReceipt)
    async def report(body: schemas.OutcomesIn, holder: Caller) -> Response:
        """Record outcomes by advice id; late, repeated, corrected, in any order."""
        located = []
        for reported in body.outcomes:
            episode, step = await _locate(desk, advising, holder.tenant, reported.advice_id)
            located.append((episode, step, _outcome(reported, episode.live)))
        done: asyncio.Future[OutcomeReceipt] = asyncio.get_running_loop().create_future()
        desk.submit_outcomes(located, done)
        receipt = await done
        metrics.count_outcomes(receipt)
        return FastJson({"taken": receipt.taken, "corrected": receipt.corrected})

    @fast_post(app, "/v1/episodes/{episode}/end", status_code=204)
    async def end_episode(episode: EpisodeId, how: schemas.EpisodeEnd, holder: Caller) -> Response:
        """End an episode; ending it again changes nothing."""
        begun = await _episode(desk, advising, holder.tenant, episode)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        desk.submit_end(begun, done, terminated=how.terminated)
        await done
        return Response(status_code=204)

    @app.post("/v1/episodes/{episode}/reported")
    @advising
    def report_decisions(
        episode: EpisodeId, body: schemas.ReportedDecisions, holder: Caller
    ) -> schemas.ReportedIds:
        """Record decisions that were made without the service, as what was really shown.

        For clients that say what must be said while the service is down. A step that is on record
        with another state or advice is refused with 409.
        """
        live = desk.episode(holder.tenant, episode).live
        reported = [_reported(decision, live) for decision in body.decisions]
        return schemas.ReportedIds(ids=record_decisions(desk, holder.tenant, episode, reported))

    @app.get("/v1/people")
    @reading
    def people(page: Page, holder: Reader) -> list[schemas.PersonRow]:
        """List the people, ordered by name; ``Link`` has the next page."""
        rows = list_people(desk, holder.tenant, page.after, page.limit)
        page.link_next([row["name"] for row in rows])
        return [schemas.PersonRow(**row) for row in rows]

    @app.get("/v1/people/{person:text}", response_model_exclude_unset=True)
    @reading
    def show_person(person: PersonName, holder: Reader) -> record_schemas.PersonOut:
        """Show what each adviser of a person believes of them."""
        return record_schemas.PersonOut(**describe_person(desk, holder.tenant, person))

    @app.delete("/v1/people/{person:text}")
    @changing
    def delete_person(person: PersonName, holder: Admin) -> schemas.Erasure:
        """Delete a person with all their data, and forget what was learnt of them."""
        return schemas.Erasure(remains=erase_person(desk, holder.tenant, person, holder))

    @app.post("/v1/erasures")
    @changing
    def erase(erased: schemas.NewErasure, holder: Admin) -> schemas.Erasure:
        """Delete a person as ``DELETE /v1/people/{person}`` does, the name in the body."""
        return schemas.Erasure(remains=erase_person(desk, holder.tenant, erased.person, holder))

    @app.post("/v1/models", status_code=201, openapi_extra=FILE_BODY)
    async def upload_model(
        request: Request, holder: Admin, name: ModelName = "model"
    ) -> schemas.ModelOut:
        """Store a fitted model: the content of a .npz file that `counsel fit` wrote."""
        if not 1 <= len(name) <= 200:
            raise CounselError("name must have 1 to 200 characters")
        content = await request.body()
        outline = await changing.run(check_upload, desk, holder.tenant, content)
        return schemas.ModelOut(id=await uploads.store(holder, name, content, outline), name=name)


async def stream(lane: Lane, parts: Iterator[bytes], media_type: str) -> Response:
    """Answer with a file part by part; a fault before the first part is an error as usual."""
    first = await lane.run(next, parts, b"")

    async def content() -> AsyncIterator[bytes]:
        part = first
        while part is not None:
            yield part
            part = await lane.run(next, parts, None)

    return StreamingResponse(content(), media_type=media_type)


async def _episode(desk: Desk, lane: Lane, tenant: int, id_: str) -> Episode:
    """Look up an episode, in another thread where that takes the database."""
    if desk.is_cached(id_):
        return desk.episode(tenant, id_)
    return await lane.run(desk.episode, tenant, id_)


async def _locate(desk: Desk, lane: Lane, tenant: int, decision: str) -> tuple[Episode, int]:
    """Look up the episode and the step of a decision, as ``_episode`` does."""
    if desk.is_cached(decision.rpartition("-")[0]):
        return desk.locate(tenant, decision)
    return await lane.run(desk.locate, tenant, decision)


def adviser_row(row: sa.Row[Any]) -> schemas.AdviserRow:
    """Return an adviser as the database has it."""
    settings, fault = read_stored(row.settings)
    return schemas.AdviserRow(
        id=row.id, name=row.name, settings=settings, archived=row.archived, fault=fault
    )


def adviser_out(live: LiveAdviser) -> schemas.AdviserOut:
    """Return an adviser with its states and actions."""
    return schemas.AdviserOut(
        id=live.id,
        name=live.name,
        settings=live.settings,
        archived=live.archived,
        fault=None if live.fault is None else str(live.fault),
        horizon=live.mdp.horizon,
        states=list(live.state_names),
        actions=list(live.action_names),
        memory=_memory_out(live),
    )


def _memory_out(live: LiveAdviser) -> schemas.MemoryOut | None:
    memory = live.population.memory
    if memory is None:
        return None
    return schemas.MemoryOut(
        name=memory.name,
        levels=list(memory.labels),
        start=memory.labels[memory.newcomer],
        rested=[live.rested(level) or 0.0 for level in range(memory.n_levels)],
    )


def _advice_out(decision: Decision, live: LiveAdviser) -> dict[str, Any]:
    advice = live.action_name(decision.advice)
    reason = {name: decision.reason.get(name) for name in REASON_FIELDS}
    for name in SOMETIMES:
        if reason[name] is None:
            del reason[name]
    reason["considered"] = live.action_name(reason["considered"])
    if "level" in reason:
        reason["level"] = live.level_name(reason["level"])
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
        action=index_of("action", reported.action, live.actions),
        reward=reported.reward,
        next_state=None if following is None else index_of("next_state", following, live.states),
        seen=reported.seen,
        reason_code=reported.reason_code,
        comment=reported.comment,
        version=reported.version,
    )


def _reported(decision: schemas.ReportedDecision, live: LiveAdviser) -> ReportedDecision:
    advice = decision.advice
    return ReportedDecision(
        step=decision.step,
        state=index_of("state", decision.state, live.states),
        advice=None if advice is None else index_of("advice", advice, live.actions),
        at=decision.at,
    )


def index_of(what: str, label: str, indices: Mapping[str, int]) -> int:
    """Return the index of a label; ``what`` names the field in the error."""
    index = indices.get(label)
    if index is None:
        shown = ", ".join(list(indices)[:8]) + (", …" if len(indices) > 8 else "")
        raise CounselError(f"{what} is {label[:60]!r}; it must be one of {shown}")
    return index
