"""The routes of the playground."""

from typing import Annotated, Any, Literal

import numpy as np
from fastapi import Depends, FastAPI, Path, Query, Response

from counsel.service.api import play_schemas, schemas
from counsel.service.api.auth import ApiKeyCheck
from counsel.service.api.lanes import Lanes
from counsel.service.api.routes import stream
from counsel.service.core.desk import Desk
from counsel.service.core.export import FORMATS, export_person
from counsel.service.db.api_keys import KeyHolder
from counsel.service.playground.game import GameSettings, Playground, player_name
from counsel.service.playground.rules import limit_of, playground_options

GameId = Annotated[str, Path(description="The id of a game.")]
PlayerName = Annotated[str, Path(description="The name of a player.")]
CsvFormat = Annotated[
    Literal["csv", "spreadsheet"],
    Query(description="The format of the file, as for the log of an adviser."),
]


def add_play_routes(app: FastAPI, desk: Desk, key_check: ApiKeyCheck, lanes: Lanes) -> None:
    """Add the routes of the playground."""
    advising, reading = lanes.advising, lanes.reading
    Player = Annotated[KeyHolder, Depends(key_check("advise"))]
    playground = Playground(desk, np.random.default_rng())

    @app.get("/v1/play", response_model=play_schemas.PlayOptions)
    @reading
    def list_options(holder: Player) -> dict[str, Any]:
        """Return the maps, the moves and the simulated people."""
        return playground_options()

    @app.post("/v1/play/games", status_code=201, response_model=play_schemas.GameOut)
    @advising
    def start_game(new: schemas.NewGame, holder: Player) -> dict[str, Any]:
        """Start a game, which is an episode and has the episode's id."""
        limit = limit_of(new.adviser, new.budget, new.penalty)
        settings = GameSettings(new.map, limit, new.player, new.person, new.tires)
        return playground.start(holder.tenant, settings)

    @app.get("/v1/play/games/{game}", response_model=play_schemas.GameOut)
    @advising
    def show_game(game: GameId, holder: Player) -> dict[str, Any]:
        """Return the current state of a game."""
        return playground.show(holder.tenant, game)

    @app.post("/v1/play/games/{game}/moves", response_model=play_schemas.GameOut)
    @advising
    def move(game: GameId, new: schemas.MoveIn, holder: Player) -> dict[str, Any]:
        """Make a move; the same move sent again changes nothing."""
        return playground.move(holder.tenant, game, new.step, new.action)

    table: dict[str, Any] = {"content": {"text/csv": {}}}

    @app.get("/v1/play/players/{player:text}/log", response_class=Response, responses={200: table})
    async def player_log(player: PlayerName, holder: Player, format: CsvFormat = "csv") -> Response:
        """Return the moves of a player as CSV, which `counsel fit` reads."""
        number = await reading.run(desk.person, holder.tenant, player_name(player))
        parts = await reading.run(export_person, desk, holder.tenant, number, format)
        return await stream(reading, parts, FORMATS[format])
