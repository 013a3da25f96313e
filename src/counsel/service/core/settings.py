"""The settings of an adviser, written down once.

The requests that create and change an adviser, the answer that shows it and the JSON in the
database all derive from ``AdviserSettings``.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from counsel._arrays import brief
from counsel.errors import CounselError
from counsel.learning.population import Limit

NO_NUL = r"^[^\x00]*$"
"""PostgreSQL stores any text except text with NUL in it."""

Label = Annotated[str, Field(min_length=1, max_length=200, pattern=NO_NUL)]
Mode = Literal["off", "shadow", "live"]
Chances = Annotated[
    dict[Label, Annotated[float, Field(gt=0.0, le=1.0)]],
    Field(json_schema_extra={"additionalProperties": False}),
]
"""The probability of each advice, by its label."""


class EditableSettings(BaseModel):
    """Those settings of an adviser that can be changed later."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    penalty: Annotated[float, Field(ge=0.0)] | None = None
    """The cost of each piece of advice, in units of reward."""
    budget: Annotated[float, Field(ge=0.0)] | None = None
    """Pieces of advice per episode: on average, or at most where ``hard``."""
    hard: bool = False
    """Whether no episode may exceed the budget, which must then be a whole number."""
    always: bool = False
    """Whether it advises at every step, whatever the advice is worth."""
    algorithm: Literal["ucb-ad", "thompson"] = "ucb-ad"
    """How it learns lifts: by optimism, or by draws from the posterior."""
    mode: Mode = "live"
    """``live`` shows advice, ``shadow`` records it without showing it, ``off`` is silent."""
    knows_habit: bool = False
    """Whether the source's person is taken as known; otherwise the habit is learnt."""
    holdout: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """The share of episodes kept silent, so that the worth of advice can be measured."""
    explore: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
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
            wrong = fault.errors()[0]
            name = ".".join(str(part) for part in wrong["loc"])
            rule = wrong["msg"].replace("Input should", "it must")
            raise CounselError(f"{name} is {brief(wrong['input'])}; {rule}") from None
