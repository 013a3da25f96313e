"""The requests and answers of the HTTP API."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from counsel.service.core.outcomes import LARGEST_REWARD
from counsel.service.core.settings import NO_NUL, AdviserSettings, Label, Mode

Id = Annotated[str, Field(min_length=1, max_length=64, pattern=NO_NUL)]
Step = Annotated[int, Field(ge=0, le=1_000_000)]


class Request(BaseModel):
    """A request, which may have no other fields than these."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


class Answer(BaseModel):
    """An answer."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class NewAdviser(AdviserSettings):
    """An adviser to create: its name and its settings."""

    name: Label
    """The name that people read."""


class AdviserRow(Answer):
    """An adviser in a list."""

    id: str
    """The id that routes take."""
    name: str
    """The name that people read."""
    settings: AdviserSettings
    """Its settings."""


class AdviserOut(AdviserRow):
    """An adviser."""

    horizon: int
    """Steps per episode."""
    states: list[str]
    """The labels of its states."""
    actions: list[str]
    """The labels of its actions."""


class ModelOut(Answer):
    """A stored model."""

    id: str
    """The ``source`` of an adviser with this model."""
    name: str
    """The name that people read."""


class NewEpisode(Request):
    """An episode to start."""

    person: Label
    """The person who decides: any name or number of yours, added on first use."""


class EpisodeOut(Answer):
    """An episode that was started."""

    id: str
    """The id that routes take."""


class Situation(Request):
    """The step and the state of an episode."""

    step: Step
    """The step of the episode, counted from 0."""
    state: Label
    """The state, by its label."""


class ReasonNumbers(Answer):
    """The numbers behind a decision."""

    considered: str | None = None
    """The advice that the numbers are about: the one given, or the best one withheld."""
    lift: float | None = None
    """The share of people like this one who act because of the advice."""
    advantage: float | None = None
    """How much more the action is worth than the person's own choice."""
    gain: float | None = None
    """Lift times advantage."""
    criticality: float | None = None
    """The largest penalty at which advice here still pays."""
    price: float | None = None
    """What a piece of advice is worth elsewhere."""
    drawn: float | None = None
    """The number that was drawn, where chance decided."""
    spent: int | None = None
    """Pieces spent in the episode before this decision."""
    left: int | None = None
    """Pieces of a hard budget left after it."""


class Reason(ReasonNumbers):
    """The reason for advice or silence."""

    why: str
    """The reason in words."""


class AdviceOut(Answer):
    """A decision: advice by its label, or silence."""

    id: str
    """The ``advice_id`` of its outcome."""
    advice: str | None
    """What to advise; null to stay silent."""
    shadow: str | None
    """The advice that is not shown, in shadow mode or in a silent episode."""
    probability: float
    """The probability of this answer, given everything seen before."""
    reason: Reason
    """The reason."""


class OutcomeIn(Request):
    """The outcome of a decision, whether that was advice or silence."""

    advice_id: Id
    """The ``id`` of the decision."""
    action: Label
    """What the person did, by its label."""
    reward: Annotated[float, Field(ge=-LARGEST_REWARD, le=LARGEST_REWARD)] | None = None
    """The reward; higher is better."""
    next_state: Label | None = None
    """The state afterwards; if missing, the state of the next decision."""
    seen: bool = True
    """False where advice was shown but not seen, which is not a refusal."""
    reason_code: Annotated[str, Field(max_length=100, pattern=NO_NUL)] | None = None
    """The person's reason, as a code of yours."""
    comment: Annotated[str, Field(max_length=1000, pattern=NO_NUL)] | None = None
    """The person's reason in their own words."""


class OutcomesIn(Request):
    """Outcomes in any order; only the first outcome of a decision counts."""

    outcomes: Annotated[list[OutcomeIn], Field(max_length=1000)]
    """At most a thousand."""


class OutcomeReceipt(Answer):
    """How many outcomes were received."""

    taken: int
    """The number of outcomes in the request, including those recorded before."""


class EpisodeEnd(Request):
    """How an episode ends."""

    terminated: bool = True
    """Whether the episode ended by itself; false where only the recording ends."""


class ModeChange(Request):
    """A new mode of an adviser."""

    mode: Mode
    """``live`` shows advice, ``shadow`` records it without showing it, ``off`` is silent."""


class PersonRow(Answer):
    """A person in a list."""

    name: str
    """The name given in NewEpisode."""
    created: float
    """When the person was added, in seconds since 1970."""
    episodes: int
    """The number of their episodes."""


class LiftInterval(Answer):
    """The interval of a lift, and the pieces behind it."""

    advice: str
    """The advice, by its label."""
    low: float
    """The lower end of the 95 % interval."""
    high: float
    """The upper end."""
    pieces: int
    """Pieces of this advice that were seen."""
    matched: int
    """How many of them were matched."""


class LiftEstimate(LiftInterval):
    """The lift of one advice for one person."""

    estimate: float
    """The estimated lift."""


class AdviserBelief(Answer):
    """What one adviser believes of a person."""

    id: str
    """The adviser's id."""
    name: str
    """The adviser's name."""
    episodes: int
    """The number of the person's episodes with it."""
    listening: list[LiftEstimate]
    """The lift of each advice."""


class PersonOut(Answer):
    """A person."""

    name: str
    """The name given in NewEpisode."""
    advisers: list[AdviserBelief]
    """The advisers that the person had episodes with."""


class Interval(Answer):
    """A 95 % interval, where there is enough data."""

    low: float | None
    """The lower end."""
    high: float | None
    """The upper end."""


class MatchShare(Interval):
    """The share of matches among pieces of advice seen."""

    share: float | None
    """The share; null without pieces."""
    matched: int
    """Pieces that were matched."""
    pieces: int
    """Pieces that were seen."""


class StateShare(MatchShare):
    """The share of matches in one state."""

    state: str
    """The state, by its label."""


class Worth(Interval):
    """How much reward advice adds per episode."""

    how: Literal["measured", "model"]
    """``measured`` against silent episodes, or as the ``model`` expects."""
    estimate: float
    """The reward per episode that advice adds; its interval is null unless measured."""
    advised: int | None = None
    """Episodes with advice in the measurement."""
    held_out: int | None = None
    """Silent episodes in the measurement."""


class Spending(Interval):
    """Pieces of advice per episode."""

    per_episode: float | None
    """Pieces per episode charged to the budget; null without episodes."""
    budget: float | None
    """The budget per episode, if any."""
    hard: bool
    """Whether no episode may exceed the budget."""
    must_say: float | None
    """Must-say pieces per episode, which are not charged to the budget."""
    episodes: int
    """Episodes behind these numbers: live, and not kept silent."""


class TimeBin(MatchShare):
    """Consecutive episodes."""

    start: float = Field(alias="from")
    """When the first episode started, in seconds since 1970."""
    end: float = Field(alias="to")
    """When the last episode started."""
    decisions: int
    """Decisions."""
    shown: int
    """Pieces of advice shown, must-say pieces included."""
    seen: int
    """Pieces of advice seen."""
    episodes: int
    """Episodes."""
    per_episode: float | None
    """Pieces per episode charged to the budget."""


class CommonLift(LiftInterval):
    """The lift of one advice over all people."""

    lift: float
    """The estimated lift."""


class PeopleHistogram(Answer):
    """How many people match which share of the advice they see."""

    edges: list[float]
    """The edges of the bins."""
    count: list[int]
    """People per bin, among those with enough pieces."""


class CellGain(Answer):
    """A step and state in which advice pays."""

    step: int
    """The step, counted from 0."""
    state: str
    """The state, by its label."""
    advice: str
    """The best advice there."""
    gain: float
    """What a piece of this advice gains there."""
    criticality: float | None
    """The largest penalty at which advice there still pays; null in large problems."""
    met: float
    """How often an episode gets there, in expectation."""
    support: int
    """Decisions on record in that state."""


class FrontierMark(Answer):
    """A point beside the frontier."""

    name: str
    """``never`` and ``always`` advising, the ``chosen`` limit, or the episodes so far (``now``)."""
    pieces: float
    """Pieces of advice per episode."""
    value: float
    """Reward per episode."""
    low: float | None = None
    """The lower end of the reward's 95 % interval, for ``now``."""
    high: float | None = None
    """The upper end."""


class Frontier(Answer):
    """The best expected reward per episode for each number of pieces, as believed."""

    pieces: list[float]
    """Pieces of advice per episode; empty in large problems."""
    value: list[float]
    """The reward per episode for each of them."""
    marks: list[FrontierMark]
    """Points to compare."""


class RecordedReason(ReasonNumbers):
    """The reason of a decision on record."""

    why: str | None = None
    """The reason in words."""
    silence: float | None = None
    """The probability of silence under the plan, in an episode kept silent."""


class RecordedDecision(Answer):
    """A decision on record, with its outcome."""

    at: float
    """When it was made, in seconds since 1970."""
    person: str
    """The person's name."""
    episode: str
    """The episode's id."""
    step: int
    """The step, counted from 0."""
    state: str
    """The state, by its label."""
    advice: str | None
    """The advice, by its label; null is silence."""
    shown: bool
    """Whether the advice was shown."""
    must: bool
    """Whether it was must-say advice."""
    held_out: bool
    """Whether the episode is kept silent."""
    action: str | None
    """What the person did; null where that is not reported."""
    reward: float | None
    """The reward, if reported."""
    reason: RecordedReason
    """The reason."""


class Summary(Answer):
    """What an adviser did and learnt: the numbers behind the dashboard."""

    episodes: int
    """All episodes of the adviser."""
    people: int
    """All people of these episodes."""
    decisions: int
    """Decisions with an outcome."""
    considered: int
    """The last episodes, on which everything that takes reading single rows is based."""
    listening: MatchShare
    """How often people match the advice they see."""
    worth: Worth
    """What advice is worth."""
    spending: Spending
    """How much of the budget is used."""
    advice_rate: float | None
    """The share of decisions with advice shown."""
    over_time: list[TimeBin]
    """The last episodes in consecutive bins."""
    by_advice: list[CommonLift]
    """The lift of each advice."""
    by_state: list[StateShare]
    """The share of matches in the states with most pieces."""
    by_person: PeopleHistogram
    """How people differ."""
    where: list[CellGain]
    """Where advice pays most."""
    frontier: Frontier
    """Reward against pieces of advice."""
    recent: list[RecordedDecision]
    """The last decisions, newest first."""
    unknown: list[str]
    """What the data does not show, in sentences."""


class NewGame(Request):
    """A game to start."""

    map: Label
    """The name of a map, as listed by ``GET /v1/play``."""
    adviser: Literal["aware", "always", "never"] = "aware"
    """``aware`` weighs what advice is worth, ``always`` speaks at every step, ``never`` speaks."""
    budget: Annotated[int, Field(ge=0, le=100)] | None = None
    """Pieces of advice in this game; ``aware`` needs either a budget or a penalty."""
    penalty: Annotated[float, Field(ge=0.0)] | None = None
    """The cost of a piece; ``aware`` needs either a budget or a penalty."""
    player: Annotated[str, Field(min_length=1, max_length=100, pattern=NO_NUL)]
    """The player: any name, under which the service learns."""
    person: Label | None = None
    """The name of a simulated person who decides instead of the player."""


class MoveIn(Request):
    """A move of a game."""

    step: Step
    """The number of the move, counted from 0."""
    action: Label | None = None
    """The move, by its label; null where a simulated person decides."""


class Problem(Answer):
    """An error (RFC 9457)."""

    type: str = "about:blank"
    """Always ``about:blank``."""
    title: str
    """The name of the HTTP status."""
    status: int
    """The HTTP status."""
    detail: str
    """What is wrong, where, and what to do, in one sentence."""
