"""The requests and answers of CDS Hooks 2.0, as far as this service reads and writes them.

Fields have the names of the specification. Requests may have other fields, which are neither read
nor stored: resources under ``prefetch``, and ``fhirAuthorization`` with its token.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from counsel.service.api.schemas import Comment, Reward, Step
from counsel.service.core.settings import Label
from counsel.service.field_faults import WHOLE

Timestamp = Annotated[
    str,
    Field(
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
        r"(Z|[+-][0-9]{2}:[0-9]{2})$"
    ),
]

STATE_IS_MISSING = (
    "extension.counsel.state is missing; give the state by its label, "
    'e.g. "extension": {"counsel": {"state": "stable"}}'
)


class CdsModel(BaseModel):
    """A part of a request or an answer."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, allow_inf_nan=False)


# Discovery


class CdsService(CdsModel):
    """An adviser as a service."""

    hook: str = Field(description="The hook at which to call the service.")
    title: str = Field(description="The adviser's name.")
    description: str = Field(description="What the service does.")
    id: str = Field(description="The adviser's id, which is part of the service's address.")
    usage_requirements: str = Field(description="What a call must have beyond the specification.")


class CdsServices(CdsModel):
    """The services: one per adviser and hook."""

    services: list[CdsService] = Field(description="The services; empty if there are none.")


# Calls


class CdsContext(CdsModel):
    """The context of a call, whichever hook it comes from."""

    user_id: Label = Field(description="Who decides, e.g. ``Practitioner/123``.")
    encounter_id: Label | None = Field(
        default=None, description="The encounter, whose calls are the steps of an episode."
    )


class CdsSituation(BaseModel):
    """What Counsel needs to know beyond the specification."""

    state: Label = Field(description="The state, by its label.")
    step: Step | None = Field(
        default=None,
        description="The step of the episode, counted from 0; if missing, the next one.",
    )
    episode: Label | None = Field(
        default=None, description="Your name for the episode; if missing, ``encounterId`` is."
    )


class CdsCallExtension(CdsModel):
    """The extensions of a call."""

    counsel: CdsSituation = Field(description="Those of Counsel.")


class CdsCall(CdsModel):
    """A call of a service."""

    hook: Label = Field(description="The hook that led to this call.")
    hook_instance: Label = Field(description="The id of this call.")
    context: CdsContext = Field(description="Who decides, and in which encounter.")
    extension: CdsCallExtension = Field(description="What the specification has no field for.")

    @model_validator(mode="before")
    @classmethod
    def _need_state(cls, content: Any) -> Any:  # noqa: ANN401 (not checked yet)
        """Say in a sentence that the state is missing, the field that other services do without."""
        part = content
        for name in ("extension", "counsel", "state"):
            if not isinstance(part, dict):
                return content  # which is refused as it is
            if part.get(name) is None:
                raise PydanticCustomError(WHOLE, STATE_IS_MISSING)
            part = part[name]
        return content


class CdsCoding(CdsModel):
    """A code with its system."""

    code: Label = Field(description="The code.")
    system: Label = Field(description="The system that the code belongs to.")
    display: Label | None = Field(default=None, description="The code in words.")


class CdsSource(CdsModel):
    """Who speaks."""

    label: str = Field(description="The adviser's name.")


class CdsSuggestion(CdsModel):
    """What a card suggests."""

    label: str = Field(description="The advice, by its label.")
    uuid: str = Field(description="The id that feedback refers to.")
    is_recommended: bool = Field(description="Always true.")


class CdsCard(CdsModel):
    """A piece of advice."""

    uuid: str = Field(description="The id that feedback refers to.")
    summary: str = Field(description="The advice, in less than 140 characters.")
    detail: str = Field(description="The reason, as Markdown.")
    indicator: Literal["info", "warning", "critical"] = Field(
        description="``critical`` for what must be said, otherwise ``info``."
    )
    source: CdsSource = Field(description="The adviser.")
    suggestions: list[CdsSuggestion] = Field(description="One suggestion: the advice.")
    selection_behavior: Literal["at-most-one", "any"] = Field(description="Always at-most-one.")
    override_reasons: list[CdsCoding] | None = Field(
        default=None,
        description="What the person may have done instead, if there are not too many.",
    )


class CdsDecision(BaseModel):
    """The decision behind an answer, whether that is a card or silence."""

    decision: str = Field(description="The ``advice_id`` of its outcome.")
    episode: str = Field(description="The id of its episode.")
    step: int = Field(description="The step that was decided.")


class CdsAnswerExtension(CdsModel):
    """The extensions of an answer."""

    counsel: CdsDecision = Field(description="Those of Counsel.")


class CdsAnswer(CdsModel):
    """The answer to a call: a card, or none, which is silence."""

    cards: list[CdsCard] = Field(description="One card or none.")
    extension: CdsAnswerExtension = Field(description="What the specification has no field for.")


# Feedback


class CdsAcceptedSuggestion(CdsModel):
    """A suggestion that was accepted."""

    id: Label = Field(description="The suggestion's ``uuid``.")


class CdsOverrideReason(CdsModel):
    """Why a card was overridden."""

    reason: CdsCoding | None = Field(
        default=None, description="One of the card's ``overrideReasons``, or a reason of yours."
    )
    user_comment: Comment | None = Field(
        default=None, description="The reason in the person's words."
    )


class CdsOutcome(BaseModel):
    """What Counsel can learn from beyond the specification."""

    action: Label | None = Field(default=None, description="What the person did, by its label.")
    reward: Reward | None = Field(default=None, description="The reward; higher is better.")
    next_state: Label | None = Field(
        default=None, description="The state afterwards, by its label."
    )


class CdsFeedbackExtension(CdsModel):
    """The extensions of feedback."""

    counsel: CdsOutcome = Field(description="Those of Counsel.")


class CdsFeedback(CdsModel):
    """What a person did with a card."""

    card: Label = Field(description="The card's ``uuid``.")
    outcome: Literal["accepted", "overridden"] = Field(
        description="Whether its suggestion was accepted."
    )
    accepted_suggestions: list[CdsAcceptedSuggestion] | None = Field(
        default=None, max_length=10, description="The suggestion of the card, if it was accepted."
    )
    override_reason: CdsOverrideReason | None = Field(
        default=None, description="Why it was overridden."
    )
    outcome_timestamp: Timestamp = Field(
        description="When; checked, but not stored: the record has the time of the feedback."
    )
    extension: CdsFeedbackExtension | None = Field(
        default=None, description="What the specification has no field for."
    )


class CdsFeedbacks(CdsModel):
    """Feedback on cards of one service."""

    feedback: list[CdsFeedback] = Field(max_length=200, description="At most two hundred.")


class CdsPending(CdsModel):
    """Feedback that was not recorded, since nobody knows what the person did."""

    card: str = Field(description="The card's ``uuid``.")
    detail: str = Field(description="What to send, in one sentence.")


class CdsReceipt(CdsModel):
    """How much feedback was recorded."""

    taken: int = Field(description="Outcomes that are on record, now or from before.")
    corrected: int = Field(description="How many of them replace an earlier one.")
    pending: list[CdsPending] = Field(description="Feedback that is not on record.")
