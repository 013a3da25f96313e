"""The answers of the playground."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from counsel.service.api.record_schemas import LiftEstimate
from counsel.service.api.schemas import RESTED, Number

Place = Annotated[list[int], Field(min_length=2, max_length=2)]
"""A row, counted from the top, and a column."""


class MapOut(BaseModel):
    """A map."""

    name: str = Field(description="The name that games take.")
    rows: list[str] = Field(description="The map as text, top row first.")
    start: Place = Field(description="The row and the column where games start.")


class MoveOption(BaseModel):
    """A move that a player can make."""

    label: str = Field(description="The name that moves take.")
    rows: int = Field(description="Rows by which the bird moves down; negative is up.")


class SimulatedPersonOut(BaseModel):
    """A simulated person to watch."""

    name: str = Field(description="The name that games take.")
    title: str = Field(description="The name that people read.")
    about: str = Field(description="How the person plays.")
    tires: bool = Field(default=False, description="Whether the person tires of advice.")


class PlayOptions(BaseModel):
    """What can be chosen for a game."""

    maps: list[MapOut] = Field(description="The maps.")
    moves: list[MoveOption] = Field(description="The moves.")
    people: list[SimulatedPersonOut] = Field(description="Simulated people.")


class PastMove(BaseModel):
    """A move that was made."""

    step: int = Field(description="The number of the move, counted from 0.")
    at: Place = Field(description="Where the bird was: row and column.")
    advice: str | None = Field(description="The advice; null is silence.")
    action: str = Field(description="The move.")
    followed: bool | None = Field(description="Whether it matches the advice; null in silence.")
    reward: float = Field(description="Stars that the move earned.")


class AdviceLine(BaseModel):
    """The advice for the next move, or the reason for silence."""

    advice: str | None = Field(description="The advice; null is silence.")
    sentence: str = Field(description="What the machine says.")
    gain: Number = Field(description="Lift times advantage.")
    lift: Number = Field(description="The share of times the player acts because of the advice.")
    advantage: Number = Field(description="What the move adds to the player's own choice.")
    criticality: Number = Field(description="The largest penalty at which advice pays here.")
    price: Number = Field(description="What a piece of advice is worth elsewhere.")
    burden: Number = Field(
        None, description="What speaking now costs of later listening; null if nobody tires."
    )


class RestLine(BaseModel):
    """How rested the adviser takes the player to be at the next move."""

    level: str = Field(description="The level of the player's memory, by its label.")
    rested: float = Field(description=RESTED)
    sentence: str = Field(description="The same in words.")


class PlayerLift(LiftEstimate):
    """The lift of one advice for the player; where the adviser takes them to tire, when rested."""

    truth: Number = Field(description="The true lift of a simulated person; null for players.")


class PlayerAverage(BaseModel):
    """The average of all games of a player on a map."""

    pieces: float = Field(description="Pieces of advice per game.")
    value: float = Field(description="Stars per game.")
    games: int = Field(description="The number of games.")


class PlayerFrontier(BaseModel):
    """The most stars per game for each number of pieces, as believed of the player."""

    pieces: list[float] = Field(description="Pieces of advice per game.")
    value: list[float] = Field(description="Stars per game for each of them.")
    you: PlayerAverage | None = Field(description="The player's average; null before a game.")


class ScoreAlone(BaseModel):
    """The expected score without advice."""

    estimate: float = Field(description="The estimate.")
    low: float = Field(description="The lower end of the 95 % interval.")
    high: float = Field(description="The upper end.")


class LearntLift(BaseModel):
    """What a game taught about one advice."""

    advice: str = Field(description="The advice, by its label.")
    before: float = Field(description="The estimated lift before the game.")
    after: float = Field(description="The estimated lift after it.")


class ResultCard(BaseModel):
    """The result of a game."""

    score: float = Field(description="Stars.")
    pieces: int = Field(description="Pieces of advice that were shown.")
    alone: ScoreAlone = Field(description="What would have been scored without advice.")
    learnt: list[LearntLift] = Field(description="What the game taught about each advice.")
    mattered: list[int] = Field(description="The moves at which matched advice gained most.")
    sentence: str = Field(description="The result in words.")


class GameOut(BaseModel):
    """The current state of a game."""

    id: str = Field(description="The id that routes take.")
    map: str = Field(description="The name of the map.")
    adviser: Literal["aware", "always", "never"] = Field(description="The adviser.")
    budget: Number = Field(description="Pieces of advice in this game, if limited.")
    penalty: Number = Field(description="The cost of a piece of advice, if any.")
    person: str | None = Field(description="The simulated person who plays, if any.")
    tires: bool = Field(
        default=False, description="Whether the adviser takes the player to tire of advice."
    )
    rest: RestLine | None = Field(
        None, description="How rested the player is taken to be; null unless they tire."
    )
    step: int = Field(description="The number of the next move, counted from 0.")
    horizon: int = Field(description="Moves in a game, at most.")
    at: Place = Field(description="Where the bird is: row and column.")
    over: bool = Field(description="Whether the game is over.")
    ending: Literal["through", "wall", "edge"] | None = Field(
        description="How it ended: in the last column, in a wall, or outside of the map."
    )
    score: float = Field(description="Stars so far.")
    path: list[PastMove] = Field(description="The moves so far.")
    advice: AdviceLine | None = Field(description="For the next move; null once it is over.")
    spent: int = Field(description="Pieces of advice shown so far.")
    listening: list[PlayerLift] = Field(description="The lift of each advice for the player.")
    games: int = Field(description="Games that the player finished on this map before.")
    critical: list[list[float]] = Field(
        description="What the best advice gains in each cell of the map, top row first."
    )
    frontier: PlayerFrontier = Field(description="Stars against pieces of advice.")
    card: ResultCard | None = Field(description="The result; null until the game is over.")
