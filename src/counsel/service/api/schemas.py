"""What requests and answers look like: the only place that knows pydantic."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from counsel.service.core.outcomes import LARGEST_REWARD

NO_NUL = r"^[^\x00]*$"
"""PostgreSQL keeps any text but one with NUL in it."""

Label = Annotated[str, Field(min_length=1, max_length=200, pattern=NO_NUL)]
Id = Annotated[str, Field(min_length=1, max_length=64, pattern=NO_NUL)]


class Request(BaseModel):
    """A request in which every field is known."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


class Answer(BaseModel):
    """An answer."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class NewAdviser(Request):
    """An adviser to be made."""

    name: Label
    """What people call it."""
    source: Label
    """A world's name, or the id of an uploaded model."""
    algorithm: Literal["ucb-ad", "thompson"] = "ucb-ad"
    """How it learns: optimism about how much people listen, or draws from what is believed."""
    penalty: Annotated[float, Field(ge=0.0)] | None = None
    """What each piece of advice costs, in units of reward."""
    budget: Annotated[float, Field(ge=0.0)] | None = None
    """Pieces of advice an episode: on average, or never more where ``hard``."""
    hard: bool = False
    """Whether no episode may exceed the budget, which is then a whole number."""
    always: bool = False
    """Whether it advises at every step, whatever that is worth."""
    mode: Literal["off", "shadow", "live"] = "live"
    """``live`` shows advice, ``shadow`` only writes down what it would say, ``off`` is silent."""
    knows_habit: bool = False
    """Whether the world's person is known to act so when left alone; else that is learnt."""
    holdout: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """The share of episodes kept silent, so that the worth of advice stays measurable."""
    must_say: Annotated[
        dict[Label, Label],
        Field(max_length=1000, json_schema_extra={"additionalProperties": False}),
    ] = Field(default_factory=dict)
    """Advice by state, both by label, that is given whatever the budget."""


class AdviserRow(Answer):
    """An adviser in a list."""

    id: str
    """What routes call it."""
    name: str
    """What people call it."""
    settings: dict[str, Any]
    """Its settings, as NewAdviser has them."""


class AdviserOut(AdviserRow):
    """An adviser."""

    horizon: int
    """Steps in an episode."""
    states: list[str]
    """The labels of its states."""
    actions: list[str]
    """The labels of its actions."""


class ModelOut(Answer):
    """A model that is kept."""

    id: str
    """What an adviser names as its ``source``."""
    name: str
    """What people call it."""


class NewEpisode(Request):
    """An episode to begin, and with whom."""

    person: Label
    """Who decides: any name or number of yours; made on first use."""


class EpisodeOut(Answer):
    """An episode that has begun."""

    id: str
    """What routes call it."""


class Situation(Request):
    """Where somebody is: the step of the episode, and the state by its label."""

    step: Annotated[int, Field(ge=0, le=1_000_000)]
    """The step of the episode, counted from 0."""
    state: Label
    """The state, by its label."""


class Reason(Answer):
    """Why something is said, or not."""

    why: str
    """The reason in words."""
    considered: str | None = None
    """The advice that the numbers are of: what is advised, or the best that is not."""
    lift: float | None = None
    """The share of people like this one whom the advice moves."""
    advantage: float | None = None
    """What the action is worth more than being left alone."""
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


class AdviceOut(Answer):
    """What to advise, by its label, or nothing; and what would have been said in shadow."""

    id: str
    """What an outcome names as its ``advice_id``."""
    advice: str | None
    """What to advise; null to stay silent."""
    shadow: str | None
    """What would have been advised, had it been live and not kept silent."""
    probability: float
    """How likely this answer was, given what was seen before."""
    reason: Reason
    """Why."""


class OutcomeIn(Request):
    """What came of a piece of advice, or of silence."""

    advice_id: Id
    """Of which decision, whether it was advice or silence."""
    action: Label
    """What the person did, by its label."""
    reward: Annotated[float, Field(ge=-LARGEST_REWARD, le=LARGEST_REWARD)] | None = None
    """What came of it; higher is better."""
    next_state: Label | None = None
    """The state afterwards; else the next decision tells."""
    seen: bool = True
    """False where advice was shown but not seen: no refusal."""
    reason_code: Annotated[str, Field(max_length=100, pattern=NO_NUL)] | None = None
    """Why the person did so, as a code of yours."""
    comment: Annotated[str, Field(max_length=1000, pattern=NO_NUL)] | None = None
    """Why, in their words."""


class OutcomesIn(Request):
    """Outcomes in any order; those that are on record already change nothing."""

    outcomes: Annotated[list[OutcomeIn], Field(max_length=1000)]
    """At most a thousand."""


class Taken(Answer):
    """How many outcomes are on record now."""

    taken: int
    """How many were in the request; those on record before are counted too."""


class End(Request):
    """How an episode ends: by itself, or cut."""

    terminated: bool = True
    """Whether nothing more could happen; false where only the recording ends."""


class Change(Request):
    """What can be changed of an adviser."""

    mode: Literal["off", "shadow", "live"]
    """``live`` shows advice, ``shadow`` only writes down what it would say, ``off`` is silent."""


class PersonRow(Answer):
    """A person in a list."""

    name: str
    """As in NewEpisode."""
    created: float
    """Seconds since 1970 when they were first met."""
    episodes: int
    """How many they had."""


class Listening(Answer):
    """The share of one advice that moves somebody, and the pieces behind it."""

    advice: str
    """Which advice, by its label."""
    estimate: float
    """The lift that is believed in."""
    low: float
    """The lower end of its 95 % interval."""
    high: float
    """The upper end."""
    pieces: int
    """Pieces of it the person was given and saw."""
    matched: int
    """How many of them the person did."""


class Met(Answer):
    """What one adviser believes of a person."""

    id: str
    """Of the adviser."""
    name: str
    """Of the adviser."""
    episodes: int
    """How many the person had with it."""
    listening: list[Listening]
    """What it believes, advice by advice."""


class PersonOut(Answer):
    """A person."""

    name: str
    """As in NewEpisode."""
    advisers: list[Met]
    """Those that met the person."""


class NewGame(Request):
    """A game to begin."""

    map: Label
    """The name of a map, as ``GET /v1/play`` lists them."""
    adviser: Literal["aware", "always", "never"] = "aware"
    """Who advises: one that weighs what advice is worth, one that always speaks, nobody."""
    budget: Annotated[int, Field(ge=0, le=100)] | None = None
    """Pieces of advice in this game, for ``aware``; or a penalty."""
    penalty: Annotated[float, Field(ge=0.0)] | None = None
    """What a piece costs, for ``aware``; or a budget."""
    player: Annotated[str, Field(min_length=1, max_length=100, pattern=NO_NUL)]
    """Who plays: any name; what is learnt is kept under it."""
    person: Label | None = None
    """The simulated person who decides instead of the player, by name."""


class Played(Request):
    """A step that is played; no action where a simulated person decides."""

    step: Annotated[int, Field(ge=0, le=1_000_000)]
    """Which move of the game, counted from 0."""
    action: Label | None = None
    """The move, by its label; none where a simulated person decides."""


class Problem(Answer):
    """What went wrong (RFC 9457)."""

    type: str = "about:blank"
    """Always ``about:blank``."""
    title: str
    """The name of the status."""
    status: int
    """The status."""
    detail: str
    """What is wrong, where, and what to do, in one sentence."""
