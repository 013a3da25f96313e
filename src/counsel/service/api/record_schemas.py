"""Answers that show what is on record, and what was learnt from it."""

from typing import Literal

from pydantic import BaseModel, Field

from counsel.service.api.schemas import (
    LEVEL,
    RESTED,
    UNIT,
    Number,
    ReasonNumbers,
    Unit,
)
from counsel.service.core.settings import Mode, StretchLength


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
    listening: list[LiftEstimate] = Field(
        description="The lift of each advice; where there is a memory, of somebody rested. Empty "
        "while the adviser's model cannot be read."
    )
    level: str | None = Field(
        None,
        description="The level of the person's memory at the start of their next episode, by its "
        "label; missing unless it lasts over episodes.",
    )
    rested: Number = Field(None, description=f"{RESTED} Missing where ``level`` is.")


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


class LevelShare(MatchShare):
    """The share of matches on one level of memory."""

    level: str = Field(description="The level, by its label.")
    rested: float = Field(description=RESTED)


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


class StretchUse(BaseModel):
    """How much of a shared limit was used in one stretch of time."""

    start: float = Field(alias="from", description="When it starts, in seconds since 1970.")
    end: float = Field(alias="to", description="When it ends.")
    pieces: float = Field(description="The limit.")
    spent: float = Field(description="Pieces charged to it, each counted by its cost.")
    offered: float = Field(description="The cost of all that the plans would have said.")
    price: Number = Field(description="The mean price at which that was decided; null without any.")


class SharedUse(BaseModel):
    """How much of a shared limit is used, and what a piece of it is worth."""

    pieces: float = Field(description="The limit per stretch of time.")
    per: StretchLength = Field(description="How long a stretch is: a name, or seconds.")
    spent: float = Field(description="Pieces charged in the stretch under way, by their cost.")
    left: float = Field(description="What is left of it.")
    price: float = Field(
        description="The price now: advice is given where its criticality, less the penalty, is "
        "more."
    )
    expected: float = Field(
        description="The cost of what plans are expected to say in the rest of the stretch."
    )
    stretches: list[StretchUse] = Field(
        description="The last stretches with decisions, oldest first, and the one under way."
    )
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
    level: str | None = Field(
        None,
        description=f"{LEVEL} As the record has it now; the reason has the level as it was known "
        "when the decision was made.",
    )
    rested: Number = Field(None, description=f"{RESTED} Null without a memory.")
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
    level: str | None = Field(None, description=f"{LEVEL} After the last decision.")
    rested: Number = Field(None, description=f"{RESTED} Null without a memory.")
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
    shared_limit: SharedUse | None = Field(
        None, description="How much of the shared limit is used; missing without one."
    )
    advice_rate: Number = Field(description="The share of decisions with advice shown.")
    over_time: list[TimeBin] = Field(description="The last episodes in consecutive bins.")
    by_advice: list[CommonLift] = Field(description="The lift of each advice.")
    by_state: list[StateShare] = Field(
        description="The share of matches in states with most pieces."
    )
    by_level: list[LevelShare] | None = Field(
        None, description="The share of matches by level of memory; missing without a memory."
    )
    by_person: PeopleHistogram = Field(description="How people differ.")
    where: list[CellGain] = Field(description="Where advice pays most.")
    frontier: Frontier = Field(description="Reward against pieces of advice.")
    recent: list[RecordedDecision] = Field(description="The last decisions, newest first.")
    unknown: list[str] = Field(description="What the data does not show, in sentences.")
