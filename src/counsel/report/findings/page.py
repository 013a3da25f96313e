"""What a report says of its plan: the headline, and what it rests on."""

from collections.abc import Callable, Iterator

from counsel.logs.evaluate_log import Difference
from counsel.logs.report_contents import ReportContents
from counsel.logs.sensitivity import SensitivityRange
from counsel.report.findings.listening import excursion, log_size
from counsel.report.findings.values import DISPUTE, NO_DIFFERENCE, added_value, value_interval
from counsel.report.number_format import count_of, percent, pieces_per_episode

UNKNOWN = "an unknown amount"


def headline(contents: ReportContents) -> str:
    """State the main finding of a report, without a full stop."""
    gain = contents.gain
    if not contents.fit.estimates.given.any():
        return "No advice was seen: this log cannot show how much people listen"
    if contents.is_disputed:
        return DISPUTE
    if gain is None:
        return "What a plan would bring cannot be told from this log"
    if max(abs(gain.low), abs(gain.high)) <= NO_DIFFERENCE:
        return "The plan brings what is brought today"
    if not gain.excludes_zero:
        return f"Whether the plan brings more than today cannot be told: {added_value(gain)}"
    more = "more" if gain.value > 0.0 else "less"
    return f"The plan brings {more} per episode than today: {added_value(gain)}"


def lead(contents: ReportContents) -> str:
    """Say what the headline rests on: today, the plan, and how the plan was judged."""
    plan, worth = contents.plan, contents.worth
    sent = pieces_per_episode(contents.fit.logged_pieces, cost=plan.logged_cost)
    text = f"Today {sent} are sent, and an episode brings {value_interval(contents.today)}."
    if contents.is_disputed:
        text += (
            f" The plan adds {_by_episodes(worth.beyond_today)} by the episodes of the log and "
            f"{_in_model(worth.beyond_today)} in the model. Believe the first: the model takes for "
            "granted that states hold all that matters, and that advice works only through the "
            "action."
        )
    elif contents.gain is None:
        text += f" {why_unknown(contents)}"
    else:
        spent = pieces_per_episode(plan.plan.advice_count, cost=plan.advice_cost)
        text += (
            f" The plan sends {spent} and brings {value_interval(worth.value.best)}. It was chosen "
            "on one half of the log and judged on the other, so that it is not praised for luck."
        )
    return (
        f"{text} These numbers come from {log_size(contents.fit.check)}. Square brackets are 95 % "
        "intervals over resampled people or episodes."
    )


def why_unknown(contents: ReportContents) -> str:
    """Say why neither the model nor the episodes of a log can say what a plan brings."""
    reasons = [] if contents.fit.is_trusted else ["The log contradicts the model, as shown below."]
    if not contents.is_fair:
        reasons.append(
            "The episodes cannot be compared either: those with advice may differ from the others "
            "in what is not recorded."
        )
    elif contents.refusal is not None:
        reasons.append(f"Without the model the log cannot answer: {contents.refusal}.")
    return " ".join(reasons)


def without_model(contents: ReportContents) -> Iterator[str]:
    """Say what is known of the plan without a model of the world."""
    worth = contents.worth
    if not contents.is_fair:
        yield (
            "Nothing about advice: episodes with advice may differ from the others in what is not "
            "recorded, so they cannot be compared."
        )
    elif contents.refusal is not None:
        yield f"What the plan is worth cannot be told without the model: {contents.refusal}."
    elif worth.value.doubly_robust is None:
        yield why_unknown(contents)
    else:
        source = "recorded" if contents.is_recorded else "estimated by state and step"
        yield (
            f"By the episodes that went as the plan would have advised (effective sample "
            f"{count_of(worth.effective, 'episode')}; probabilities of advice {source}) it brings "
            f"{value_interval(worth.value.doubly_robust)}, {_by_episodes(worth.beyond_today)} "
            f"beyond today{_beyond_silence(contents, _by_episodes)}."
        )
    silence = worth.silence.doubly_robust
    if silence is not None and not contents.plan.keeps_states:
        yield (
            f"By the episodes without advice, silence brings {value_interval(silence)}; today "
            f"brings {_by_episodes(worth.today_beyond_silence)} beyond that."
        )
    yield from map(excursion, contents.effects)


def with_model(contents: ReportContents) -> str:
    """Say what the model adds."""
    worth = contents.worth
    if worth.value.model is None:
        return "Nothing that can be relied on: the log contradicts it."
    return (
        f"In the model the plan brings {value_interval(worth.value.model)}, "
        f"{_in_model(worth.beyond_today)} beyond today{_beyond_silence(contents, _in_model)}."
    )


def agreement(contents: ReportContents) -> str:
    """Say whether the model and the episodes of the log agree, without a full stop."""
    worth = contents.worth.beyond_today
    if contents.is_disputed:
        return DISPUTE
    if worth.model is None:
        return "The log contradicts the model"
    if worth.doubly_robust is None:
        return "The log does not contradict the model, and cannot confirm what it says of the plan"
    return "The model and the episodes of the log agree"


def _beyond_silence(contents: ReportContents, amount: Callable[[Difference], str]) -> str:
    """Say what the plan brings beyond silence, or why that cannot be told."""
    kept, found = contents.plan.keeps_states, contents.worth.beyond_silence
    if not kept and amount(found) == UNKNOWN:
        return (
            "; what it brings beyond silence cannot be told: too few episodes went without advice"
        )
    if not kept:
        return f" and {amount(found)} beyond silence"
    others = "" if len(kept) == 1 else f" and {count_of(len(kept) - 1, 'other state')}"
    return (
        "; what it brings beyond silence cannot be told, since nobody was left without advice in "
        f"“{kept[0]}”{others}"
    )


def _by_episodes(found: Difference) -> str:
    return UNKNOWN if found.doubly_robust is None else added_value(found.doubly_robust)


def _in_model(found: Difference) -> str:
    return UNKNOWN if found.model is None else added_value(found.model)


def frontier_finding(contents: ReportContents) -> str:
    """Say what share of unlimited advice the plan keeps, without a full stop."""
    plan = contents.plan
    pieces = pieces_per_episode(plan.plan.advice_count, "keep", cost=plan.advice_cost)
    if plan.keeps_all:
        return "What a budget buys cannot be told: nobody was left without advice"
    if contents.share is None:
        return "In the model no budget buys more than silence"
    return f"In the model {pieces} {percent(contents.share)} of what unlimited advice is worth"


def sensitivity_case(case: SensitivityRange) -> tuple[str, str]:
    """Return a case of the sensitivity analysis: its assumption, and what the plan then adds."""
    odds = f"odds up to {case.odds:g} times as large or small"
    return "no difference" if case.odds == 1.0 else odds, f"{case.low:+.3g} to {case.high:+.3g}"
