"""The requests and answers of the HTTP API."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from counsel.service.core.outcomes import LARGEST_REWARD
from counsel.service.core.settings import NO_NUL, AdviserSettings, EditableSettings, Label, Mode


def _whole(value: object) -> object:
    """Return 1.0 as 1, which JSON does not tell apart; true is not 1."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Id = Annotated[str, Field(min_length=1, max_length=64, pattern=NO_NUL)]
Step = Annotated[int, Field(strict=True, ge=0, le=1_000_000), BeforeValidator(_whole)]
Version = Annotated[int, Field(strict=True, ge=1, le=1_000_000), BeforeValidator(_whole)]
Reward = Annotated[float, Field(ge=-LARGEST_REWARD, le=LARGEST_REWARD)]
Code = Annotated[str, Field(max_length=100, pattern=NO_NUL)]
Comment = Annotated[str, Field(max_length=1000, pattern=NO_NUL)]
PlayerName = Annotated[str, Field(min_length=1, max_length=100, pattern=NO_NUL)]
Pieces = Annotated[int, Field(ge=0, le=100)]
Cost = Annotated[float, Field(ge=0.0)]
Time = Annotated[float, Field(ge=0.0)]
Number = float | None
Unit = Literal["pieces", "cost"]

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


class AdviserOut(AdviserRow):
    """An adviser."""

    horizon: int = Field(description="Steps per episode.")
    states: list[str] = Field(description="The labels of its states.")
    actions: list[str] = Field(description="The labels of its actions.")


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
    gain: Number = Field(None, description="Lift times advantage.")
    criticality: Number = Field(None, description="The largest penalty at which advice pays here.")
    price: Number = Field(None, description="What a piece of advice is worth elsewhere.")
    cost: Number = Field(
        None,
        description="What the considered advice costs; missing if that is 1. The price of a piece "
        "is that of its whole cost.",
    )
    drawn: Number = Field(None, description="The number that was drawn, where chance decided.")
    spent: int | float | None = Field(
        None, description="Pieces spent in the episode before this decision, counted by their cost."
    )
    left: int | None = Field(None, description="What is left of a hard budget after it.")


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
        description="1 for the first outcome of a decision, 2 for its correction, and so on. If "
        "missing, an outcome that differs from the last one is its correction.",
    )


class OutcomesIn(Request):
    """Outcomes in any order; of several versions of an outcome the last counts."""

    outcomes: list[OutcomeIn] = Field(max_length=1000, description="At most a thousand.")


class OutcomeReceipt(BaseModel):
    """How many outcomes were received."""

    taken: int = Field(description="The number of outcomes, including those recorded before.")
    corrected: int = Field(description="How many of them replace an earlier version.")


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
        "if nothing does. Backups are yours to delete."
    )


class LiftInterval(BaseModel):
    """The interval of a lift, and the pieces behind it."""

    advice: str = Field(description="The advice, by its label.")
    low: float = Field(description="The lower end of the 95 % interval.")
    high: float = Field(description="The upper end.")
    pieces: int = Field(description="Pieces of this advice that were seen.")
    matched: int = Field(description="How many of them were matched.")


class LiftEstimate(LiftInterval):
    """The lift of one advice for one person."""

    estimate: float = Field(description="The estimated lift.")


class AdviserBelief(BaseModel):
    """What one adviser believes of a person."""

    id: str = Field(description="The adviser's id.")
    name: str = Field(description="The adviser's name.")
    episodes: int = Field(description="The number of the person's episodes with it.")
    listening: list[LiftEstimate] = Field(description="The lift of each advice.")


class PersonOut(BaseModel):
    """A person."""

    name: str = Field(description="The name given in NewEpisode.")
    advisers: list[AdviserBelief] = Field(description="The advisers of the person's episodes.")


class Interval(BaseModel):
    """A 95 % interval, where there is enough data."""

    low: Number = Field(description="The lower end.")
    high: Number = Field(description="The upper end.")


class AlwaysInterval(BaseModel):
    """A 95 % interval that holds at all looks at once, however often somebody looks."""

    always_low: Number = Field(None, description="The lower end; null where there is none yet.")
    always_high: Number = Field(None, description="The upper end; null where there is none yet.")


class MatchShare(Interval):
    """The share of matches among pieces of advice seen."""

    share: Number = Field(description="The share; null without pieces.")
    matched: int = Field(description="Pieces that were matched.")
    pieces: int = Field(description="Pieces that were seen.")


class ListeningShare(MatchShare, AlwaysInterval):
    """The share of matches among all advice seen."""


class StateShare(MatchShare):
    """The share of matches in one state."""

    state: str = Field(description="The state, by its label.")


class Worth(Interval, AlwaysInterval):
    """How much reward advice adds per episode; the intervals are null unless measured."""

    how: Literal["measured", "model"] = Field(
        description="``measured`` against silent episodes, or as the ``model`` expects."
    )
    estimate: float = Field(description="The reward that advice adds to an episode.")
    advised: int | None = Field(None, description="Episodes with advice in the measurement.")
    held_out: int | None = Field(None, description="Silent episodes in the measurement.")


class Spending(Interval):
    """Pieces of advice per episode, each counted by its cost; null without episodes."""

    per_episode: Number = Field(description="Pieces per episode charged to the budget.")
    budget: Number = Field(description="The budget per episode, if any.")
    hard: bool = Field(description="Whether no episode may exceed the budget.")
    must_say: Number = Field(description="Must-say pieces per episode, which are not charged.")
    episodes: int = Field(description="Episodes behind these numbers: live, and not kept silent.")
    unit: Unit = Field("pieces", description=UNIT)


class TimeBin(MatchShare):
    """Consecutive episodes."""

    start: float = Field(
        alias="from", description="When the first episode started, in seconds since 1970."
    )
    end: float = Field(alias="to", description="When the last episode started.")
    decisions: int = Field(description="Decisions.")
    shown: int = Field(description="Pieces of advice shown, must-say pieces included.")
    seen: int = Field(description="Pieces of advice seen.")
    episodes: int = Field(description="Episodes.")
    per_episode: Number = Field(description="Pieces per episode charged to the budget.")


class CommonLift(LiftInterval, AlwaysInterval):
    """The lift of one advice over all people and over the states in which it was seen.

    The interval that always holds compares with silence in the same states; it has no lower end
    without silence, and may be negative.
    """

    lift: float = Field(description="The estimated lift.")


class PeopleHistogram(BaseModel):
    """How many people match which share of the advice they see."""

    edges: list[float] = Field(description="The edges of the bins.")
    count: list[int] = Field(description="People per bin, among those with enough pieces.")


class CellGain(BaseModel):
    """A step and state in which advice pays."""

    step: int = Field(description="The step, counted from 0.")
    state: str = Field(description="The state, by its label.")
    advice: str = Field(description="The best advice there.")
    gain: float = Field(description="What a piece of this advice gains there.")
    criticality: Number = Field(
        description="The largest penalty at which advice there pays; null in large problems."
    )
    met: float = Field(description="How often an episode gets there, in expectation.")
    support: int = Field(description="Decisions on record in that state.")


class FrontierMark(BaseModel):
    """A point beside the frontier."""

    name: str = Field(
        description="``never``, ``always``, the ``chosen`` limit, or the episodes so far (``now``)."
    )
    pieces: float = Field(description="Pieces of advice per episode.")
    value: float = Field(description="Reward per episode.")
    low: Number = Field(None, description="The lower end of its 95 % interval, for ``now``.")
    high: Number = Field(None, description="The upper end.")


class Frontier(BaseModel):
    """The best expected reward per episode for each number of pieces, as believed.

    Pieces are counted by their cost.
    """

    pieces: list[float] = Field(description="Pieces per episode; empty in large problems.")
    value: list[float] = Field(description="The reward per episode for each of them.")
    marks: list[FrontierMark] = Field(description="Points to compare.")
    unit: Unit = Field("pieces", description=UNIT)


class RecordedReason(ReasonNumbers):
    """The reason of a decision on record."""

    why: str | None = Field(None, description="The reason in words.")
    silence: Number = Field(None, description="The plan's probability of silence, if kept silent.")


class RecordedDecision(BaseModel):
    """A decision on record, with its outcome."""

    at: float = Field(description="When it was made, in seconds since 1970.")
    person: str = Field(description="The person's name.")
    episode: str = Field(description="The episode's id.")
    step: int = Field(description="The step, counted from 0.")
    state: str = Field(description="The state, by its label.")
    advice: str | None = Field(description="The advice, by its label; null is silence.")
    shown: bool = Field(description="Whether the advice was shown.")
    must: bool = Field(description="Whether it was must-say advice.")
    held_out: bool = Field(description="Whether the episode is kept silent.")
    action: str | None = Field(description="What the person did; null where that is not reported.")
    reward: Number = Field(description="The reward, if reported.")
    reason: RecordedReason = Field(description="The reason.")


class RecordedOutcome(BaseModel):
    """A version of an outcome on record."""

    version: int = Field(description="1 for the first outcome, 2 for its correction, and so on.")
    at: float = Field(description="When it was reported, in seconds since 1970.")
    action: str = Field(description="What the person did, by its label.")
    reward: Number = Field(description="The reward, if reported.")
    next_state: str | None = Field(description="The state afterwards, if reported.")
    seen: bool = Field(description="False where shown advice was not seen.")
    reason_code: str | None = Field(description="The person's reason, as a code of yours.")
    comment: str | None = Field(description="The person's reason in their own words.")


class EpisodeDecision(BaseModel):
    """A decision of an episode, with all versions of its outcome."""

    id: str = Field(description="The ``advice_id`` of its outcome.")
    at: float = Field(description="When it was made, in seconds since 1970.")
    step: int = Field(description="The step, counted from 0.")
    state: str = Field(description="The state, by its label.")
    advice: str | None = Field(description="The advice, by its label; null is silence.")
    shown: bool = Field(description="Whether the advice was shown.")
    must: bool = Field(description="Whether it was must-say advice.")
    probability: float = Field(description="The probability of this answer when it was given.")
    reason: RecordedReason = Field(description="The reason.")
    outcome: RecordedOutcome | None = Field(
        description="The last version of its outcome, which counts; null if none is reported."
    )
    earlier: list[RecordedOutcome] = Field(description="The versions before, oldest first.")


class EpisodeRow(BaseModel):
    """An episode in a list."""

    id: str = Field(description="The id that routes take.")
    person: str = Field(description="The person's name.")
    started: float = Field(description="When it started, in seconds since 1970.")
    ended: Number = Field(description="When it ended; null while it is under way.")
    terminated: bool | None = Field(
        description="Whether it ended by itself; null while it is under way."
    )
    held_out: bool = Field(description="Whether it is kept silent.")
    mode: Mode = Field(description="The adviser's mode when it started.")
    spent: float = Field(description="The cost of the advice so far, shown or not.")


class EpisodeRecord(EpisodeRow):
    """An episode with its decisions."""

    adviser: str = Field(description="The adviser's id.")
    decisions: list[EpisodeDecision] = Field(description="Its decisions by step.")


class Summary(BaseModel):
    """What an adviser did and learnt: the numbers behind the dashboard."""

    episodes: int = Field(description="All episodes of the adviser.")
    people: int = Field(description="All people of these episodes.")
    decisions: int = Field(description="Decisions with an outcome.")
    impossible: int = Field(
        description="Outcomes with an action that the model rules out in its state; they are kept "
        "on record and not learnt from."
    )
    considered: int = Field(
        description="The last episodes, on which spending and changes over time are based."
    )
    listening: ListeningShare = Field(description="How often people match the advice they see.")
    worth: Worth = Field(description="What advice is worth.")
    spending: Spending = Field(description="How much of the budget is used.")
    advice_rate: Number = Field(description="The share of decisions with advice shown.")
    over_time: list[TimeBin] = Field(description="The last episodes in consecutive bins.")
    by_advice: list[CommonLift] = Field(description="The lift of each advice.")
    by_state: list[StateShare] = Field(
        description="The share of matches in states with most pieces."
    )
    by_person: PeopleHistogram = Field(description="How people differ.")
    where: list[CellGain] = Field(description="Where advice pays most.")
    frontier: Frontier = Field(description="Reward against pieces of advice.")
    recent: list[RecordedDecision] = Field(description="The last decisions, newest first.")
    unknown: list[str] = Field(description="What the data does not show, in sentences.")


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
