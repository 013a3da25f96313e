"""What requests and answers look like: the only place that knows pydantic."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from counsel.service.desk import LARGEST_REWARD

NO_NUL = r"^[^\x00]*$"
"""PostgreSQL keeps any text but one with NUL in it."""

Label = Annotated[str, Field(min_length=1, max_length=200, pattern=NO_NUL)]
Id = Annotated[str, Field(min_length=1, max_length=64, pattern=NO_NUL)]


class Strict(BaseModel):
    """A request in which every field is known."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class NewAdviser(Strict):
    """An adviser to be made; what its settings mean is told by ``desk.Settings``."""

    name: Label
    source: Annotated[Label, Field(description="A world's name, or the id of an uploaded model.")]
    algorithm: Literal["ucb-ad", "thompson"] = "ucb-ad"
    penalty: Annotated[float, Field(ge=0.0)] | None = None
    budget: Annotated[float, Field(ge=0.0)] | None = None
    hard: bool = False
    always: bool = False
    mode: Literal["off", "shadow", "live"] = "live"
    knows_habit: bool = False
    holdout: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    must_say: Annotated[dict[Label, Label], Field(max_length=1000)] = Field(default_factory=dict)


class AdviserRow(BaseModel):
    """An adviser in a list."""

    id: str
    name: str
    settings: dict[str, Any]


class AdviserOut(AdviserRow):
    """An adviser."""

    horizon: int
    states: list[str]
    actions: list[str]


class ModelOut(BaseModel):
    """A model that is kept."""

    id: str
    name: str


class NewEpisode(Strict):
    """An episode to begin, and with whom."""

    person: Label


class EpisodeOut(BaseModel):
    """An episode that has begun."""

    id: str


class Situation(Strict):
    """Where somebody is: the step of the episode, and the state by its label."""

    step: Annotated[int, Field(ge=0, le=1_000_000)]
    state: Label


class Reason(BaseModel):
    """Why something is said, or not."""

    why: str
    considered: str | None = None
    lift: float | None = None
    advantage: float | None = None
    gain: float | None = None
    criticality: float | None = None
    price: float | None = None
    drawn: float | None = None
    spent: int | None = None
    left: int | None = None


class AdviceOut(BaseModel):
    """What to advise, by its label, or nothing; and what would have been said in shadow."""

    id: str
    advice: str | None
    shadow: str | None
    probability: float
    reason: Reason


class OutcomeIn(Strict):
    """What came of a piece of advice, or of silence."""

    advice_id: Id
    action: Label
    reward: Annotated[float, Field(ge=-LARGEST_REWARD, le=LARGEST_REWARD)] | None = None
    next_state: Label | None = None
    seen: bool = True
    reason_code: Annotated[str, Field(max_length=100, pattern=NO_NUL)] | None = None
    comment: Annotated[str, Field(max_length=1000, pattern=NO_NUL)] | None = None


class OutcomesIn(Strict):
    """Outcomes in any order; those that are on record already change nothing."""

    outcomes: Annotated[list[OutcomeIn], Field(max_length=1000)]


class Taken(BaseModel):
    """How many outcomes are on record now."""

    taken: int


class End(Strict):
    """How an episode ends: by itself, or cut."""

    terminated: bool = True


class Change(Strict):
    """What can be changed of an adviser."""

    mode: Literal["off", "shadow", "live"]


class PersonRow(BaseModel):
    """A person in a list."""

    name: str
    created: float
    episodes: int


class Listening(BaseModel):
    """The share of one advice that moves somebody, and the pieces behind it."""

    advice: str
    estimate: float
    low: float
    high: float
    pieces: int
    matched: int


class Met(BaseModel):
    """What one adviser believes of a person."""

    id: str
    name: str
    episodes: int
    listening: list[Listening]


class PersonOut(BaseModel):
    """A person."""

    name: str
    advisers: list[Met]


class NewGame(Strict):
    """A game to begin."""

    map: Label
    adviser: Literal["aware", "always", "never"] = "aware"
    budget: Annotated[int, Field(ge=0, le=100)] | None = None
    penalty: Annotated[float, Field(ge=0.0)] | None = None
    player: Annotated[str, Field(min_length=1, max_length=100, pattern=NO_NUL)]
    person: Label | None = None


class Played(Strict):
    """A step that is played; no action where a simulated person decides."""

    step: Annotated[int, Field(ge=0, le=1_000_000)]
    action: Label | None = None


class Problem(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
