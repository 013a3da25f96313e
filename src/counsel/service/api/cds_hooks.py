"""CDS Hooks 2.0 (HL7): advisers as services that answer with cards.

A thin adapter over the desk. An adviser is a service at each hook of ``cds_hooks``; a call is a
decision, a piece of advice is a card, silence is no card, and feedback on a card is an outcome.

The user is the person who decides. An episode is named by ``extension.counsel.episode``, else by
the encounter, else by the call itself. The state is ``extension.counsel.state``: what a state is
belongs to the model of an adviser, so no hook has a field for it. Nothing needs to be prefetched.

An outcome needs an action. For an accepted card it is the advice. For an overridden card it is
``extension.counsel.action`` or the override reason: a card offers "Did instead: …" for every other
action. Where neither is given and only one other action is possible, it is that one. Otherwise
nobody knows what was done, and a guess would be learnt from: the feedback is answered as pending
and is not recorded.
"""

import re
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from fastapi import Depends, FastAPI, Path
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from counsel.errors import CounselError
from counsel.service.api import cds_schemas as cds
from counsel.service.api.auth import ApiKeyCheck
from counsel.service.api.lanes import Lanes
from counsel.service.api.metrics import Metrics
from counsel.service.api.routes import index_of
from counsel.service.core.cards import Card, card_uuid, find_card, suggestion_uuid
from counsel.service.core.decide import Decision
from counsel.service.core.desk import Desk
from counsel.service.core.encounters import Encounter, advise
from counsel.service.core.listings import advisers_in_use
from counsel.service.core.live_adviser import LiveAdviser
from counsel.service.core.outcomes import Outcome
from counsel.service.db.api_keys import KeyHolder
from counsel.service.errors import NotFoundError

PATH = "/cds-services"
SUMMARY = 139
"""Characters of a summary, at most."""

ACTIONS = "urn:counsel:action"
"""The system of override reasons that are actions."""

OTHER_ACTIONS = 20
"""Above this many other actions a card offers none of them as override reasons."""

REASON_CODE = 100
"""Characters of a reason code in the database."""

DESCRIPTION = (
    "Advises a person who decides, with a card, or stays silent where advice does not pay."
)
REQUIREMENT = (
    "A call must have extension.counsel.state: the state, by its label in the adviser's model."
)

ServiceId = Annotated[str, Path(description="The id of a service, which is that of its adviser.")]


def add_cds_hooks(
    app: FastAPI, desk: Desk, key_check: ApiKeyCheck, metrics: Metrics, lanes: Lanes
) -> None:
    """Add the routes of CDS Hooks."""
    advising, reading = lanes.advising, lanes.reading
    Caller = Annotated[KeyHolder, Depends(key_check("advise"))]
    hooks = _values(desk.settings.cds_hooks)

    @app.get(PATH)
    @reading
    def discover_services(holder: Caller) -> cds.CdsServices:
        """List the advisers as services of CDS Hooks, one per hook."""
        return cds.CdsServices(
            services=[
                cds.CdsService(
                    hook=hook,
                    title=row.name,
                    description=DESCRIPTION,
                    id=row.id,
                    usage_requirements=REQUIREMENT,
                )
                for row in advisers_in_use(desk, holder.tenant)
                for hook in hooks
            ]
        )

    @app.post(PATH + "/{adviser}", response_model_exclude_none=True)
    @advising
    def call_service(adviser: ServiceId, call: cds.CdsCall, holder: Caller) -> cds.CdsAnswer:
        """Decide what to advise: one card, or none, which is silence."""
        live = desk.live(holder.tenant, adviser)
        if call.hook not in hooks:
            known = f"one of {', '.join(hooks)}" if hooks else "none, since cds_hooks is empty"
            raise CounselError(f"hook is {call.hook[:40]!r}; it must be {known}")
        given = call.extension.counsel
        state = index_of("extension.counsel.state", given.state, live.states)
        encounter = Encounter(adviser, call.context.user_id, _name(call))
        decision = advise(desk, holder.tenant, encounter, state, given.step)
        metrics.count_decision(decision)
        episode, _, step = decision.id.rpartition("-")
        behind = cds.CdsDecision(decision=decision.id, episode=episode, step=int(step))
        return cds.CdsAnswer(
            cards=_cards(decision, live, int(step), state),
            extension=cds.CdsAnswerExtension(counsel=behind),
        )

    @app.post(PATH + "/{adviser}/feedback")
    @advising
    def give_feedback(
        adviser: ServiceId, given: cds.CdsFeedbacks, holder: Caller
    ) -> cds.CdsReceipt:
        """Record what people did with cards as outcomes; repeated or corrected, in any order."""
        live = desk.live(holder.tenant, adviser)
        outcomes, pending, unknown = list[Outcome](), list[cds.CdsPending](), list[NotFoundError]()
        for feedback in given.feedback:
            try:
                card = find_card(desk, holder.tenant, adviser, feedback.card)
            except NotFoundError as fault:  # its person may have been erased
                unknown.append(fault)
                pending.append(cds.CdsPending(card=feedback.card, detail=str(fault)))
                continue
            action = _action(feedback, card, live)
            if action is None:
                pending.append(_pending(feedback, card, live))
            else:
                outcomes.append(_outcome(feedback, card, action, live))
        if unknown and len(unknown) == len(given.feedback):
            raise unknown[0]
        receipt = desk.report(holder.tenant, outcomes)
        metrics.count_outcomes(receipt)
        return cds.CdsReceipt(taken=receipt.taken, corrected=receipt.corrected, pending=pending)


class CdsOrigins:
    """Lets pages of other origins call CDS Hooks, and nothing else (CORS)."""

    def __init__(self, app: ASGIApp, origins: str) -> None:
        self.app = self.cds = app
        if allowed := _values(origins):
            self.cds = CORSMiddleware(
                app,
                allow_origins=allowed,
                allow_methods=("GET", "POST"),
                allow_headers=("Authorization", "Content-Type"),
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"] if scope["type"] == "http" else ""
        is_cds = path == PATH or path.startswith(PATH + "/")
        await (self.cds if is_cds else self.app)(scope, receive, send)


def _values(setting: str) -> Sequence[str]:
    """Return the values of a setting that are separated by commas."""
    return [value.strip() for value in setting.split(",") if value.strip()]


def _name(call: cds.CdsCall) -> str:
    """Return the name of the episode that a call belongs to."""
    if call.extension.counsel.episode is not None:
        return f"episode {call.extension.counsel.episode}"
    if call.context.encounter_id is not None:
        return f"encounter {call.context.encounter_id}"
    return f"call {call.hook_instance}"


def _cards(decision: Decision, live: LiveAdviser, step: int, state: int) -> list[cds.CdsCard]:
    advice = decision.shown_advice
    if advice is None:
        return []
    label = live.action_names[advice]
    others = [live.action_names[a] for a in _other_actions(live, step, state, advice)]
    reasons = [
        cds.CdsCoding(code=other, system=ACTIONS, display=f"Did instead: {other}"[:200])
        for other in others
    ]
    return [
        cds.CdsCard(
            uuid=card_uuid(decision.id),
            summary=_shortened(f"Advice: {label}"),
            detail=_detail(decision),
            indicator="critical" if decision.must else "info",
            source=cds.CdsSource(label=live.name),
            suggestions=[
                cds.CdsSuggestion(
                    label=label, uuid=suggestion_uuid(decision.id), is_recommended=True
                )
            ],
            selection_behavior="at-most-one",
            override_reasons=reasons if 0 < len(reasons) <= OTHER_ACTIONS else None,
        )
    ]


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SUMMARY else line[: SUMMARY - 1] + "…"


def _detail(decision: Decision) -> str:
    """Return the reason of a decision in sentences of Markdown."""
    why, lift, gain = (decision.reason.get(name) for name in ("why", "lift", "gain"))
    sentences = [f"Why: {why}."]
    if lift is not None:
        sentences.append(
            f"Of people like this one, {100.0 * lift:.0f} % act because of this advice (its lift)."
        )
    if gain is not None:
        sentences.append(f"It gains {gain:.3g} in units of reward (lift times advantage).")
    return _escaped(" ".join(sentences))


def _escaped(text: str) -> str:
    """Return text as Markdown that shows it as it is."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&!])", r"\\\1", text)


def _other_actions(live: LiveAdviser, step: int, state: int, advice: int) -> list[int]:
    """Return the actions that a person can take instead of the advice."""
    return [a for a in np.flatnonzero(live.mdp.allowed[step, state]).tolist() if a != advice]


def _action(feedback: cds.CdsFeedback, card: Card, live: LiveAdviser) -> int | None:
    """Return what a person did, or None if that is not known."""
    reported = None if feedback.extension is None else feedback.extension.counsel.action
    action = None
    if reported is not None:
        action = index_of("extension.counsel.action", reported, live.actions)
    if feedback.outcome == "accepted":
        suggestion = suggestion_uuid(card.decision)
        accepted = [picked.id.lower() for picked in feedback.accepted_suggestions or ()]
        if accepted != [suggestion]:
            raise CounselError(
                f"acceptedSuggestions of card {feedback.card} must be the card's suggestion: "
                f'[{{"id": "{suggestion}"}}]'
            )
        if action not in (None, card.advice):
            raise CounselError(
                f"extension.counsel.action is {reported!r}, but the card was accepted, which "
                f"advised {live.action_names[card.advice]!r}; give one of them"
            )
        return card.advice
    if action is not None:
        return action
    reason = None if feedback.override_reason is None else feedback.override_reason.reason
    if reason is not None and reason.system == ACTIONS:
        return index_of("overrideReason.reason.code", reason.code, live.actions)
    others = _other_actions(live, card.step, card.state, card.advice)
    return others[0] if len(others) == 1 else None


def _pending(feedback: cds.CdsFeedback, card: Card, live: LiveAdviser) -> cds.CdsPending:
    others = [
        live.action_names[a] for a in _other_actions(live, card.step, card.state, card.advice)
    ]
    shown = ", ".join(others[:8]) + (", …" if len(others) > 8 else "")
    return cds.CdsPending(
        card=feedback.card,
        detail="what the person did is not known; send the feedback again with "
        f"extension.counsel.action, e.g. one of {shown}",
    )


def _outcome(feedback: cds.CdsFeedback, card: Card, action: int, live: LiveAdviser) -> Outcome:
    given = cds.CdsOutcome() if feedback.extension is None else feedback.extension.counsel
    override = feedback.override_reason or cds.CdsOverrideReason()
    reason = override.reason
    code = None if reason is None or reason.system == ACTIONS else reason.code
    if code is not None and len(code) > REASON_CODE:
        raise CounselError(
            f"overrideReason.reason.code has {len(code)} characters; it may have {REASON_CODE}"
        )
    following = None
    if given.next_state is not None:
        following = index_of("extension.counsel.next_state", given.next_state, live.states)
    return Outcome(
        decision=card.decision,
        action=action,
        reward=given.reward,
        next_state=following,
        reason_code=code,
        comment=override.user_comment,
    )
