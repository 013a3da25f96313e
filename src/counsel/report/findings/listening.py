"""The log, and how much people listen."""

import math
from collections.abc import Iterator

from counsel.logs.adherence_breakdown import AdherenceBreakdown, ByContext
from counsel.logs.check import LogCheck
from counsel.logs.excursion import Effect, ExcursionEffect
from counsel.logs.fitted_model import Fit
from counsel.logs.law_test import LawTest
from counsel.logs.listening import CLEAR, People, Trend
from counsel.report.number_format import count_of, p_value_text, percent, short, signed


def log_size(check: LogCheck) -> str:
    """Return the size of a log, without a full stop."""
    people = "" if check.people is None else f" by {count_of(check.people, 'person', 'people')}"
    return (
        f"{count_of(check.rows, 'decision')}{people} in {count_of(check.episodes, 'episode')} of "
        f"up to {count_of(check.longest, 'decision')}, with {count_of(check.states, 'state')} and "
        f"{count_of(len(check.actions), 'action')}"
    )


def check_verdict(check: LogCheck) -> str:
    """Say whether a log can be fitted."""
    if not check.fatal:
        return "The log can be fitted."
    faults = count_of(len(check.faults), "kind of fault", "kinds of faults")
    verb = "is" if len(check.faults) == 1 else "are"
    return f"The log cannot be fitted until {faults} {verb} corrected."


def match_rate(share: float, low: float, high: float, pieces: float) -> str:
    """Say how much of the advice that people see they match."""
    return (
        f"People match {percent(share, 1)} of the advice they see (95 % interval "
        f"{_percent_range(low, high, 1)}; {count_of(pieces, 'piece')})."
    )


def overall_match_rate(overall: AdherenceBreakdown) -> str:
    """Say how much of all the advice that people see they match."""
    share, low, high = (float(numbers[0]) for numbers in overall.match_rate)
    return match_rate(share, low, high, float(overall.given[0]))


def match_rate_details(overall: AdherenceBreakdown) -> tuple[str, str]:
    """Return the share of seen advice that is matched, and what stands behind it."""
    if not overall.given[0]:
        return "–", "no advice was seen"
    share, low, high = (float(numbers[0]) for numbers in overall.match_rate)
    anyway = float(overall.anyway_share[0])
    unasked = percent(anyway) if math.isfinite(anyway) else "an unknown share"
    pieces = count_of(float(overall.given[0]), "piece")
    if overall.is_partial[0]:
        return percent(share), (
            f"of the advice that people see is matched [{_percent_range(low, high)}; {pieces}]. "
            "How much would have been matched anyway is unknown where nobody was left without "
            f"advice; elsewhere it is {unasked} of {count_of(float(overall.known[0]), 'piece')}"
        )
    return percent(share), (
        f"of the advice that people see is matched [{_percent_range(low, high)}]; {unasked} would "
        f"have been matched anyway; {pieces}"
    )


def overall_lift(overall: AdherenceBreakdown) -> str:
    """Say how many people all advice together moves."""
    if not overall.has_lift[0]:
        return "The share of people whom advice moves is unknown."
    return f"Advice moves {_moved(overall, 0)}."


def strongest_advice(by_advice: AdherenceBreakdown) -> str:
    """Say which advice moves people most, without a full stop."""
    strongest = by_advice.strongest
    if strongest is None:
        return "How much advice moves people is unknown"
    name, share = by_advice.keys[strongest], _moved(by_advice, strongest)
    if by_advice.low[strongest] <= 0.0 <= by_advice.high[strongest]:
        return f"Whether “{name}” moves people cannot be told: {share}"
    most = " people most:" if by_advice.has_lift.sum() > 1 else ""
    return f"“{name}” moves{most} {share}"


def lift_interval(by: AdherenceBreakdown, i: int) -> str:
    """Return the lift of a key with its interval, for a table."""
    if not by.has_lift[i]:
        return "unknown"
    return f"{by.lift[i]:.2f} [{by.low[i]:.2f}, {min(by.high[i], 1.0):.2f}]"


def match_interval(by: AdherenceBreakdown, i: int) -> str:
    """Return the match rate of a key with its interval, for a table."""
    share, low, high = (float(numbers[i]) for numbers in by.match_rate)
    return f"{percent(share)} [{100 * low:.0f}, {100 * high:.0f}]"


def _moved(by: AdherenceBreakdown, i: int) -> str:
    low, high = float(by.low[i]), float(by.high[i])
    where = " where silence is on record" if by.is_partial[i] else ""
    return (
        f"{percent(min(by.lift[i], 1.0))} of the people who would have done otherwise (95 % "
        f"interval {_percent_range(low, min(high, 1.0))}; {count_of(float(by.known[i]), 'piece')}"
        f"{where})"
    )


def anyway_cell(by: AdherenceBreakdown, i: int) -> str:
    """Return the share that would have been matched anyway, for a table."""
    if not by.known[i]:
        return "–"
    share = percent(float(by.anyway_share[i]))
    return f"{share} of {by.known[i]:,.0f}" if by.is_partial[i] else share


def _percent_range(low: float, high: float, digits: int = 0) -> str:
    return f"{100 * low:.{digits}f} to {percent(high, digits)}"


def fit_findings(fit: Fit) -> Iterator[str]:
    """Yield the findings about the adherence law, people and trends."""
    if fit.estimates.given.any():
        yield adherence_law(fit.law)
    if fit.people is not None:
        yield f"{people_differ(fit.people)}."
    if fit.over_time is not None:
        yield f"{time_trend(fit.over_time)}."
    if fit.over_advice is not None:
        yield f"{advice_trend(fit.over_advice)}."


def adherence_law(law: LawTest | None) -> str:
    """Say whether the adherence law holds."""
    if law is None:
        return (
            "The data cannot test whether people who refuse advice do what they would have done "
            "anyway; the test needs three actions, refusals and silence."
        )
    if law.holds:
        return (
            "People who refuse advice do what they would have done anyway, as far as "
            f"{count_of(law.refusals, 'refusal')} can show (p = {law.p_value:.2g})."
        )
    return (
        "People who refuse advice do not do what they would have done anyway (p = "
        f"{law.p_value:.2g}; {count_of(law.refusals, 'refusal')}): of the people who refuse "
        f"“{law.advice}” in “{law.state}”, {percent(law.share)} choose “{law.action}” instead of "
        f"the expected {percent(law.expected)}. Gains are therefore approximate."
    )


def contexts_differ(contexts: ByContext) -> str:
    """Say whether people listen differently in different contexts, without a full stop."""
    count = count_of(int(contexts.by.has_lift.sum()), "context")
    if contexts.p_value < CLEAR:
        return f"People listen differently in {count} ({p_value_text(contexts.p_value)})"
    return (
        f"No difference of listening between {count} can be told ({p_value_text(contexts.p_value)})"
    )


def people_differ(people: People) -> str:
    """Say how much people differ, without a full stop."""
    if not people.differ:
        return (
            "No difference between people can be told: "
            f"{count_of(len(people.by.keys), 'person', 'people')}, each compared with their own "
            f"silence ({p_value_text(people.p_value)})"
        )
    low, high = people.lift_quantiles(0.1, 0.9)
    return (
        f"People differ: the middle 80 % of {count_of(len(people.by.keys), 'person', 'people')} "
        f"have a lift between {low:.2f} and {high:.2f}"
    )


def time_trend(trend: Trend) -> str:
    """Say how listening changes over time, without a full stop."""
    if trend.is_own_clock:
        unit = "from the beginning to the end of people's time in the log"
        return _trend(trend, "the longer they are in the log", "with time in the log", unit)
    return _trend(trend, "over time", "over time", "from the first to the last timestamp")


def advice_trend(trend: Trend) -> str:
    """Say how listening changes as advice accumulates, without a full stop."""
    when = "as advice accumulates within an episode"
    return _trend(trend, when, when, "per piece already given")


def _trend(trend: Trend, clear: str, unclear: str, unit: str) -> str:
    change = (
        f"{signed(trend.slope)} {unit} (95 % interval {signed(trend.slope_low)} to "
        f"{signed(trend.slope_high)}; {p_value_text(trend.p_value)}; "
        f"{count_of(float(trend.by.given.sum()), 'piece')})"
    )
    if not trend.is_clear:
        return f"Whether people listen more or less {unclear} cannot be told: lift {change}"
    return f"People listen {'more' if trend.slope > 0.0 else 'less'} {clear}: lift {change}"


OUTCOMES = {"reward": "the reward of the decision", "match": "the share of matching actions"}
"""What an excursion effect is about."""


def excursion(effect: ExcursionEffect) -> str:
    """Say what sending advice changes at once, without a model."""
    what = OUTCOMES[effect.outcome]
    text = (
        f"Sending advice changes {what} by {_effect(effect.average)}, from {short(effect.silent)}"
    )
    if not effect.average.is_clear:
        text = (
            f"Whether sending advice changes {what} at once cannot be told: "
            f"{_effect(effect.average)}, from {short(effect.silent)}"
        )
    text += f" in silence ({count_of(effect.decisions, 'decision')})."
    if effect.at_start is not None and effect.change is not None:
        change = (
            f"it changes by {_effect(effect.change)} until the end."
            if effect.change.is_clear
            else f"whether it changes until the end cannot be told: {_effect(effect.change)}."
        )
        text += (
            f" At the beginning of people's time in the log it is {_effect(effect.at_start)}; "
            f"{change}"
        )
    return text


def _effect(effect: Effect) -> str:
    ends = f"{signed(effect.low)}, {signed(effect.high)}"
    return f"{signed(effect.value)} [{ends}; {p_value_text(effect.p_value)}]"
