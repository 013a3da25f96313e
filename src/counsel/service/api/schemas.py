"""The requests of the HTTP API and their answers; ``record_schemas.py`` has those of the record."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from counsel.service.core.outcomes import LARGEST_REWARD
from counsel.service.core.settings import NO_NUL, AdviserSettings, EditableSettings, Label


def _whole(value: object) -> object:
    """Return 1.0 as 1, which JSON does not tell apart; true is not 1."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Id = Annotated[str, Field(min_length=1, max_length=64, pattern=NO_NUL)]
Step = Annotated[int, Field(strict=True, ge=0, le=1_000_000), BeforeValidator(_whole)]
Version = Annotated[int, Field(strict=True, ge=1, le=1_000_000), BeforeValidator(_whole)]
Reward = Annotated[float, Field(strict=True, ge=-LARGEST_REWARD, le=LARGEST_REWARD)]
Code = Annotated[str, Field(max_length=100, pattern=NO_NUL)]
Comment = Annotated[str, Field(max_length=1000, pattern=NO_NUL)]
PlayerName = Annotated[str, Field(min_length=1, max_length=100, pattern=NO_NUL)]
Pieces = Annotated[int, Field(strict=True, ge=0, le=100), BeforeValidator(_whole)]
Cost = Annotated[float, Field(strict=True, ge=0.0)]
Time = Annotated[float, Field(strict=True, ge=0.0)]
Number = float | None
Unit = Literal["pieces", "cost"]

LEVEL = "The level of the person's memory, by its label; without a memory null or missing."
RESTED = "How well advice moves the person, as a share of the level on which it moves them best."

UNIT = "``cost`` if some advice costs more or less than 1; missing otherwise."


class Request(BaseModel):
    """A request, which may have no other fields than these."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class NewAdviser(AdviserSettings):
    """An adviser to create: its name and its settings."""

    name: Label = Field(description="The name that people read.")


class AdviserRow(BaseModel):
    """An adviser in a list."""

    id: str = Field(description="The id that routes take.")
    name: str = Field(description="The name that people read.")
    settings: AdviserSettings = Field(description="Its settings.")
    archived: Number = Field(
        None, description="When it was archived, in seconds since 1970; null if it is in use."
    )
    fault: str | None = Field(
        None,
        description="Why it says only what must be said: its settings or its model cannot be read; "
        "null otherwise. Lists know of settings only.",
    )


class MemoryOut(BaseModel):
    """What people carry over from advice given: the levels of a memory."""

    name: str = Field(description="What the memory is called, e.g. ``pieces=3``.")
    levels: list[str] = Field(description="The labels of its levels.")
    start: str = Field(description="The level of somebody who was never advised.")
    rested: list[float] = Field(description=f"By level. {RESTED}")


class AdviserOut(AdviserRow):
    """An adviser."""

    horizon: int = Field(description="Steps per episode.")
    states: list[str] = Field(description="The labels of its states.")
    actions: list[str] = Field(description="The labels of its actions.")
    memory: MemoryOut | None = Field(
        None, description="The memory of its people; null if advice leaves them as they are."
    )


class ModelOut(BaseModel):
    """A stored model."""

    id: str = Field(description="The ``source`` of an adviser with this model.")
    name: str = Field(description="The name that people read.")


class ModelRow(ModelOut):
    """A stored model in a list."""

    created: float = Field(description="When it was uploaded, in seconds since 1970.")
    bytes: int = Field(description="The size of its file.")
    advisers: int = Field(description="How many advisers use it, archived ones included.")


class ModelShape(ModelRow):
    """A stored model, and what an adviser with it can be asked."""

    horizon: int = Field(description="Steps per episode.")
    states: list[str] = Field(description="The labels of its states.")
    actions: list[str] = Field(description="The labels of its actions.")
    levels: list[str] | None = Field(
        None, description="The levels of the person's memory, by label; null without a memory."
    )


class ModelChange(Request):
    """Another name of a model."""

    name: Label = Field(description="The name that people read.")


class NewEpisode(Request):
    """An episode to start."""

    person: Label = Field(description="Who decides: any name of yours, added on first use.")


class EpisodeOut(BaseModel):
    """An episode that was started."""

    id: str = Field(description="The id that routes take.")


class Situation(Request):
    """The step and the state of an episode."""

    step: Step = Field(description="The step of the episode, counted from 0.")
    state: Label = Field(description="The state, by its label.")


class ReasonNumbers(BaseModel):
    """The numbers behind a decision."""

    considered: str | None = Field(None, description="The advice given, or the best one withheld.")
    lift: Number = Field(None, description="The share of people who act because of the advice.")
    advantage: Number = Field(None, description="What the action adds to the person's own choice.")
    gain: Number = Field(
        None, description="Lift times advantage; where there is a memory, less the burden."
    )
    criticality: Number = Field(None, description="The largest penalty at which advice pays here.")
    price: Number = Field(None, description="What a piece of advice is worth elsewhere.")
    cost: Number = Field(
        None,
        description="What the considered advice costs; missing if that is 1. The price of a piece "
        "is that of its whole cost.",
    )
    burden: Number = Field(
        None,
        description="What speaking now costs of later listening; without a memory null or missing.",
    )
    level: str | None = Field(None, description=LEVEL)
    rested: Number = Field(None, description=f"{RESTED} Null or missing without a memory.")
    drawn: Number = Field(None, description="The number that was drawn, where chance decided.")
    spent: int | float | None = Field(
        None, description="Pieces spent in the episode before this decision, counted by their cost."
    )
    left: int | None = Field(None, description="What is left of a hard budget after it.")
    shared_left: int | float | None = Field(
        None, description="What is left of the shared limit after it; without one missing or null."
    )
    shared_price: Number = Field(
        None,
        description="What a piece of the shared limit is worth to others, per unit of cost: advice "
        "is given where its criticality, less the penalty, is more; missing or null without one.",
    )


class Reason(ReasonNumbers):
    """The reason for advice or silence."""

    why: str = Field(description="The reason in words.")


class AdviceOut(BaseModel):
    """A decision: advice by its label, or silence."""

    id: str = Field(description="The ``advice_id`` of its outcome.")
    advice: str | None = Field(description="What to advise; null to stay silent.")
    shadow: str | None = Field(description="Advice not shown: in shadow mode or a silent episode.")
    probability: float = Field(
        description="The probability of this answer, given everything before."
    )
    reason: Reason = Field(description="The reason.")


class OutcomeIn(Request):
    """The outcome of a decision, whether that was advice or silence."""

    advice_id: Id = Field(description="The ``id`` of the decision.")
    action: Label = Field(description="What the person did, by its label.")
    reward: Reward | None = Field(None, description="The reward; higher is better.")
    next_state: Label | None = Field(
        None, description="The state afterwards; if missing, the state of the next decision."
    )
    seen: bool = Field(default=True, description="False where shown advice was not seen.")
    reason_code: Code | None = Field(None, description="The person's reason, as a code of yours.")
    comment: Comment | None = Field(None, description="The person's reason in their own words.")
    version: Version | None = Field(
        None,
        description="1 for the first outcome of a decision, 2 for its correction, and so on, in "
        "any order: the highest counts. If missing, an outcome that differs from the last one is "
        "its correction.",
    )


class OutcomesIn(Request):
    """Outcomes in any order; of several versions of an outcome the last counts."""

    outcomes: list[OutcomeIn] = Field(max_length=1000, description="At most a thousand.")


class OutcomeReceipt(BaseModel):
    """How many outcomes were received."""

    taken: int = Field(description="The number of outcomes, including those recorded before.")
    corrected: int = Field(description="How many of them replaced a version that was on record.")


class ReportedDecision(Request):
    """A decision that was made without the service: what was shown, or silence."""

    step: Step = Field(description="The step of the episode, counted from 0.")
    state: Label = Field(description="The state, by its label.")
    advice: Label | None = Field(
        description="The advice that was shown, by its label; null for silence."
    )
    at: Time | None = Field(
        None, description="When it was shown, in seconds since 1970; never later than its report."
    )


class ReportedDecisions(Request):
    """Decisions of one episode that were made without the service."""

    decisions: list[ReportedDecision] = Field(max_length=1000, description="At most a thousand.")


class ReportedIds(BaseModel):
    """Decisions that are on record."""

    ids: list[str] = Field(description="The ``advice_id`` of each, in their order.")


class EpisodeEnd(Request):
    """How an episode ends."""

    terminated: bool = Field(
        default=True, description="Whether it ended by itself; false where only the recording ends."
    )


def _without_defaults(schema: dict[str, Any]) -> None:
    """Remove defaults from a schema: what is missing in a change stays as it is."""
    for field in schema["properties"].values():
        field.pop("default", None)


class AdviserChange(EditableSettings):
    """New settings of an adviser; those that are missing stay as they are."""

    model_config = ConfigDict(json_schema_extra=_without_defaults)


class Confirmation(Request):
    """Confirms that an adviser is to be deleted."""

    confirm: Label = Field(description="The name of the adviser.")


class PersonRow(BaseModel):
    """A person in a list."""

    name: str = Field(description="The name given in NewEpisode.")
    created: float = Field(description="When the person was added, in seconds since 1970.")
    episodes: int = Field(description="The number of their episodes.")


class NewErasure(Request):
    """A person to erase."""

    person: Label = Field(description="The name given in NewEpisode.")


class Erasure(BaseModel):
    """A person was erased."""

    remains: list[str] = Field(
        description="What may remain in the files of the database, and what to do about it; empty "
        "if nothing does. What a reader keeps there goes when it ends. Backups are yours to delete."
    )


class NewGame(Request):
    """A game to start; the ``aware`` adviser needs either a budget or a penalty."""

    map: Label = Field(description="The name of a map, as listed by ``GET /v1/play``.")
    adviser: Literal["aware", "always", "never"] = Field(
        "aware",
        description="``aware`` of what advice is worth, or speaking ``always`` or ``never``.",
    )
    budget: Pieces | None = Field(None, description="Pieces of advice in this game.")
    penalty: Cost | None = Field(None, description="The cost of a piece of advice.")
    player: PlayerName = Field(description="The player: any name, under which the service learns.")
    person: Label | None = Field(None, description="A simulated person who plays instead.")
    tires: bool | None = Field(
        None,
        description="Whether the adviser takes the player to tire of advice; if missing, it knows "
        "of a simulated person whether they do, and takes players not to.",
    )


class MoveIn(Request):
    """A move of a game."""

    step: Step = Field(description="The number of the move, counted from 0.")
    action: Label | None = Field(
        None, description="The move; null where a simulated person decides."
    )


class AuditRow(BaseModel):
    """A change: who made it, and what changed."""

    seq: int = Field(description="The number of the row; later rows have larger numbers.")
    at: float = Field(description="When it was made, in seconds since 1970.")
    key: int | None = Field(
        description="The id of the key; null where a command or the service made the change."
    )
    key_name: str | None = Field(description="The name of the key.")
    action: str = Field(description="What was done, e.g. ``adviser switched``.")
    target: str = Field(
        description="The id of the adviser, model or key, or the number of a person."
    )
    details: dict[str, JsonValue] | None = Field(description="What changed.")


class Problem(BaseModel):
    """An error (RFC 9457)."""

    type: str = Field(default="about:blank", description="Always ``about:blank``.")
    title: str = Field(description="The name of the HTTP status.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="What is wrong, where, and what to do, in one sentence.")
