"""The routes that change advisers and models, and that list models and episodes."""

from typing import Annotated, Any

from fastapi import Depends, FastAPI, Path, Query, Response

from counsel.service.api import record_schemas, schemas
from counsel.service.api.auth import ApiKeyCheck
from counsel.service.api.lanes import Lanes
from counsel.service.api.paging import Page
from counsel.service.api.routes import AdviserId, EpisodeId, adviser_out, adviser_row
from counsel.service.core import listings, management
from counsel.service.core.desk import Desk
from counsel.service.core.episode_record import describe_episode
from counsel.service.core.live_adviser import labels_of
from counsel.service.core.problem_sources import read_model
from counsel.service.db.api_keys import KeyHolder

MODEL_FILE = "application/octet-stream"

ModelId = Annotated[str, Path(description="The id of a model.")]
OfPerson = Annotated[
    str | None, Query(min_length=1, max_length=200, description="Only episodes of this person.")
]


def add_management_routes(app: FastAPI, desk: Desk, key_check: ApiKeyCheck, lanes: Lanes) -> None:
    """Add the routes that change advisers and models, and that list models and episodes."""
    reading, changing = lanes.reading, lanes.changing
    Reader = Annotated[KeyHolder, Depends(key_check("read"))]
    Admin = Annotated[KeyHolder, Depends(key_check("admin"))]

    @app.patch("/v1/advisers/{adviser}")
    @changing
    def change_adviser(
        adviser: AdviserId, change: schemas.AdviserChange, holder: Admin
    ) -> schemas.AdviserOut:
        """Change settings of an adviser, e.g. its mode; other services follow within a second."""
        changes = change.model_dump(exclude_unset=True)
        management.edit_adviser(desk, holder, adviser, changes)
        return adviser_out(desk.live(holder.tenant, adviser))

    @app.post("/v1/advisers/{adviser}/archive")
    @changing
    def archive_adviser(adviser: AdviserId, holder: Admin) -> schemas.AdviserRow:
        """Let an adviser start no more episodes; it still answers for those under way."""
        return adviser_row(management.archive_adviser(desk, holder, adviser))

    @app.post("/v1/advisers/{adviser}/restore")
    @changing
    def restore_adviser(adviser: AdviserId, holder: Admin) -> schemas.AdviserRow:
        """Let an archived adviser start episodes again."""
        return adviser_row(management.restore_adviser(desk, holder, adviser))

    @app.delete("/v1/advisers/{adviser}")
    @changing
    def delete_adviser(
        adviser: AdviserId, confirmation: schemas.Confirmation, holder: Admin
    ) -> schemas.Erasure:
        """Delete an archived adviser with all its episodes; the body has its name."""
        name = confirmation.confirm
        return schemas.Erasure(remains=management.delete_adviser(desk, holder, adviser, name))

    @app.get("/v1/advisers/{adviser}/episodes")
    @reading
    def list_episodes(
        adviser: AdviserId, page: Page, holder: Reader, person: OfPerson = None
    ) -> list[record_schemas.EpisodeRow]:
        """List the episodes of an adviser, newest first; ``Link`` has the next page."""
        which = listings.EpisodesOf(holder.tenant, adviser, person)
        rows = listings.page_of_episodes(desk, which, page.after, page.limit)
        page.link_next([listings.cursor(row.number, row.id) for row in rows])
        return [record_schemas.EpisodeRow(**listings.episode_fields(row)) for row in rows]

    @app.get("/v1/episodes/{episode}")
    @reading
    def show_episode(episode: EpisodeId, holder: Reader) -> record_schemas.EpisodeRecord:
        """Show an episode with its decisions, and every version of their outcomes."""
        return record_schemas.EpisodeRecord(**describe_episode(desk, holder.tenant, episode))

    @app.get("/v1/models")
    @reading
    def list_models(page: Page, holder: Reader) -> list[schemas.ModelRow]:
        """List the models, oldest first; ``Link`` has the next page."""
        rows = listings.page_of_models(desk, holder.tenant, page.after, page.limit)
        page.link_next([listings.cursor(row["created"], row["id"]) for row in rows])
        return [schemas.ModelRow(**row) for row in rows]

    @app.get("/v1/models/{model}")
    @reading
    def show_model(model: ModelId, holder: Reader) -> schemas.ModelShape:
        """Show a model: its horizon, states and actions."""
        row = listings.describe_model(desk, holder.tenant, model)
        content = listings.model_content(desk, holder.tenant, model)
        problem = read_model(content)
        labels = labels_of(problem.mdp)
        levels = None if problem.memory is None else list(problem.memory.labels)
        return schemas.ModelShape(
            **row,
            horizon=problem.horizon,
            states=list(labels.state_names),
            actions=list(labels.action_names),
            levels=levels,
        )

    file: dict[str, Any] = {"content": {MODEL_FILE: {}}}

    @app.get("/v1/models/{model}/file", response_class=Response, responses={200: file})
    @reading
    def download_model(model: ModelId, holder: Reader) -> Response:
        """Return the file of a model, as it was uploaded."""
        content = listings.model_content(desk, holder.tenant, model)
        headers = {"Content-Disposition": 'attachment; filename="model.npz"'}
        return Response(content, media_type=MODEL_FILE, headers=headers)

    @app.patch("/v1/models/{model}")
    @changing
    def rename_model(
        model: ModelId, change: schemas.ModelChange, holder: Admin
    ) -> schemas.ModelRow:
        """Give a model another name."""
        management.rename_model(desk, holder, model, change.name)
        return schemas.ModelRow(**listings.describe_model(desk, holder.tenant, model))

    @app.delete("/v1/models/{model}", status_code=204)
    @changing
    def delete_model(model: ModelId, holder: Admin) -> Response:
        """Delete a model that no adviser uses."""
        management.delete_model(desk, holder, model)
        return Response(status_code=204)
