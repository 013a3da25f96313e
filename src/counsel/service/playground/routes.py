"""The routes of the playground."""

from typing import Annotated, Any

import numpy as np
from fastapi import Depends, FastAPI, Path, Response

from counsel.errors import CounselError
from counsel.service.api import schemas
from counsel.service.api.auth import Doorman
from counsel.service.core.adviser import Limit
from counsel.service.core.desk import Desk
from counsel.service.core.export import FORMATS, export_person
from counsel.service.db.api_keys import Holder
from counsel.service.playground.game import Playground
from counsel.service.playground.maps import offered

GameId = Annotated[str, Path(description="The id of a game.")]
PlayerName = Annotated[str, Path(description="Who played.")]


def add_play_routes(app: FastAPI, desk: Desk, doorman: Doorman) -> None:
    """Add the routes of the playground."""
    Player = Annotated[Holder, Depends(doorman("advise"))]
    playground = Playground(desk, np.random.default_rng())

    @app.get("/v1/play")
    def what_to_play(holder: Player) -> dict[str, Any]:
        """Return the maps, the moves, and who can be watched."""
        return offered()

    @app.post("/v1/play/games", status_code=201)
    def start_game(new: schemas.NewGame, holder: Player) -> dict[str, Any]:
        """Begin a game; it is an episode and its id that of one."""
        limit = Limit()
        if new.adviser == "aware":
            if (new.budget is None) == (new.penalty is None):
                raise CounselError("give either a budget or a penalty")
            limit = Limit(
                new.penalty,
                None if new.budget is None else float(new.budget),
                new.budget is not None,
            )
        return playground.start(holder.tenant, new.map, new.adviser, limit, new.player, new.person)

    @app.get("/v1/play/games/{game}")
    def show_game(game: GameId, holder: Player) -> dict[str, Any]:
        """Return how a game stands."""
        return playground.show(holder.tenant, game)

    @app.post("/v1/play/games/{game}/moves")
    def move(game: GameId, told: schemas.Played, holder: Player) -> dict[str, Any]:
        """Play a step; the same step sent again changes nothing."""
        return playground.move(holder.tenant, game, told.step, told.action)

    table: dict[str, Any] = {"content": {"text/csv": {}}}

    @app.get("/v1/play/players/{player:path}/log", response_class=Response, responses={200: table})
    def player_log(player: PlayerName, holder: Player) -> Response:
        """Return the moves of a player as CSV, which `counsel fit` reads."""
        number = desk.person(holder.tenant, f"player {player}")
        content = export_person(desk, holder.tenant, number)
        return Response(content, media_type=FORMATS["csv"])
