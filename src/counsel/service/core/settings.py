"""The settings of an adviser, written down once.

The requests that create and change an adviser, the answer that shows it and the JSON in the
database all derive from ``AdviserSettings``. The JSON may be of another version of Counsel, or
damaged: what can be read of it is (``read_stored``).
"""

import json
from collections.abc import Collection
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from counsel.errors import CounselError
from counsel.learning.population import Limit
from counsel.service.errors import ConflictError
from counsel.service.field_faults import sentence_of

NO_NUL = r"^[^\x00]*$"
"""PostgreSQL stores any text except text with NUL in it."""

Label = Annotated[str, Field(min_length=1, max_length=200, pattern=NO_NUL)]
Mode = Literal["off", "shadow", "live"]
Share = Annotated[float, Field(strict=True, ge=0.0, le=1.0)]
Chances = Annotated[
    dict[Label, Annotated[float, Field(strict=True, gt=0.0, le=1.0)]],
    Field(json_schema_extra={"additionalProperties": False}),
]
"""The probability of each advice, by its label."""


STRETCHES = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
"""The stretches of time that have a name, in seconds."""

LONGEST_STRETCH = 31_536_000
"""Seconds of the longest stretch: 365 days."""


def _check_stretch(per: object) -> object:
    """Refuse what is neither a name nor a number of seconds, in one sentence."""
    if isinstance(per, float) and per.is_integer():
        per = int(per)  # JSON does not tell 60.0 and 60 apart
    is_name = isinstance(per, str) and per in STRETCHES
    is_number = isinstance(per, int) and not isinstance(per, bool) and 1 <= per <= LONGEST_STRETCH
    if not is_name and not is_number:
        raise ValueError(
            f"it must be {', '.join(STRETCHES)} or a whole number of seconds from 1 to "
            f"{LONGEST_STRETCH}"
        )
    return per


StretchLength = Annotated[
    Literal["second", "minute", "hour", "day", "week"]
    | Annotated[int, Field(ge=1, le=LONGEST_STRETCH)],
    BeforeValidator(_check_stretch),
]
"""How long a stretch of time is: a name, or a number of seconds."""


class SharedLimit(BaseModel):
    """The most pieces of advice that all episodes of an adviser may use per stretch of time."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    pieces: Annotated[float, Field(strict=True, gt=0.0, le=1e9)]
    """Pieces of advice per stretch, each counted by its cost."""
    per: StretchLength
    """How long a stretch is: ``second``, ``minute``, ``hour``, ``day``, ``week``, or a number of
    seconds. Stretches follow the clock, UTC: a day starts at midnight, a week on Monday."""

    @property
    def seconds(self) -> int:
        """How long a stretch is."""
        return self.per if isinstance(self.per, int) else STRETCHES[self.per]

    def __str__(self) -> str:
        return f"{self.pieces:g} per {self.per}{' seconds' if isinstance(self.per, int) else ''}"


class EditableSettings(BaseModel):
    """Those settings of an adviser that can be changed later."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    penalty: Annotated[float, Field(strict=True, ge=0.0)] | None = None
    """The cost of each piece of advice, in units of reward."""
    budget: Annotated[float, Field(strict=True, ge=0.0)] | None = None
    """Pieces of advice per episode: on average, or at most where ``hard``."""
    hard: bool = False
    """Whether no episode may exceed the budget, which must then be a whole number."""
    shared_limit: SharedLimit | None = None
    """The most pieces that all episodes of the adviser together may use per stretch of time."""
    always: bool = False
    """Whether it advises at every step, whatever the advice is worth."""
    algorithm: Literal["ucb-ad", "thompson"] = "ucb-ad"
    """How it learns lifts: by optimism, or by draws from the posterior."""
    mode: Mode = "live"
    """``live`` shows advice, ``shadow`` records it without showing it, ``off`` is silent."""
    knows_habit: bool = False
    """Whether the source's person is taken as known; otherwise the habit is learnt."""
    holdout: Share = 0.0
    """The share of episodes kept silent, so that the worth of advice can be measured."""
    explore: Share = 0.0
    """The share of decisions that ``schedule`` makes instead of the plan, for a trial."""
    schedule: Annotated[
        dict[Label, Chances],
        Field(max_length=1000, json_schema_extra={"additionalProperties": False}),
    ] = Field(default_factory=dict)
    """By state and advice, both by label, the probability to send it; silence has the rest."""
    memory_across: Literal["episode", "person"] = "episode"
    """How long people with a memory remember: for an ``episode``, or over all episodes of a
    ``person``, each of which then starts on the level on which the last one ended."""
    must_say: Annotated[
        dict[Label, Label],
        Field(max_length=1000, json_schema_extra={"additionalProperties": False}),
    ] = Field(default_factory=dict)
    """Advice by state, both by label, that is given regardless of the budget."""


class AdviserSettings(EditableSettings):
    """How an adviser works."""

    source: Label
    """A world's name, or the id of an uploaded model."""

    @property
    def limit(self) -> Limit:
        """What advice may cost."""
        return Limit(self.penalty, self.budget, self.hard, self.always)

    def with_mode(self, mode: str) -> "AdviserSettings":
        """Return the same settings in another mode."""
        return self.changed(mode=mode)

    def changed(self, **values: Any) -> "AdviserSettings":  # noqa: ANN401 (checked here)
        """Return the same settings with some in their place, checked one by one."""
        return self.checked(**(self.model_dump() | values))

    @classmethod
    def checked(cls, **values: Any) -> "AdviserSettings":  # noqa: ANN401 (checked here)
        """Return settings, or raise a ``CounselError`` that names the first wrong value."""
        try:
            return cls(**values)
        except ValidationError as fault:
            raise CounselError(sentence_of(fault.errors()[0])) from None

    def with_what_must_be_said(
        self, states: Collection[str], actions: Collection[str]
    ) -> "AdviserSettings":
        """Return settings without plans: what must be said as far as these labels allow."""
        said = {s: a for s, a in self.must_say.items() if s in states and a in actions}
        return AdviserSettings(
            source=self.source, mode=self.mode, holdout=self.holdout, must_say=said
        )


class StoredSettings(NamedTuple):
    """Settings in the database as far as they can be read, and what cannot be, if anything."""

    settings: AdviserSettings
    fault: str | None


UNREADABLE = "unreadable"
"""The source in settings of which nothing can be read."""


def read_stored(text: str) -> StoredSettings:
    """Read settings from the database, without what this version of Counsel does not understand."""
    try:
        return StoredSettings(AdviserSettings.model_validate_json(text), None)
    except ValidationError as invalid:
        faults = invalid.errors()
    place = f"{faults[0]['loc'][0]} in " if faults[0]["loc"] else ""
    reason = (
        f"this Counsel cannot read {place}the settings of the adviser; upgrade it, or restore them "
        "from a backup"
    )
    try:
        content = json.loads(text)
        for fault in faults:
            field, *inner = fault["loc"]
            if field == "must_say" and inner:  # the others must be said all the same
                content[field].pop(inner[0], None)
            else:
                content.pop(field, None)
        settings = AdviserSettings.model_validate_json(json.dumps(content))
    except (ValueError, LookupError, AttributeError):
        settings = AdviserSettings(source=UNREADABLE, mode="off")
    return StoredSettings(settings, reason)


def switch_stored(text: str, mode: str) -> str:
    """Return settings of the database in another mode, with all else that they have."""
    settings, fault = read_stored(text)
    switched = settings.with_mode(mode).model_dump_json()
    if fault is None:
        return switched
    try:
        return json.dumps(json.loads(text) | {"mode": mode})
    except (ValueError, TypeError):
        raise ConflictError(fault) from None
