"""The findings of a log in words: one sentence per finding, for the terminal and the report.

Every function turns a result of ``counsel.logs`` into text. Numbers come with their unit, their
95 % interval and the count behind them.
"""

import math
from collections.abc import Iterator, Sequence

from counsel.logs.adherence_breakdown import AdherenceBreakdown, People
from counsel.logs.adherence_trends import Trend
from counsel.logs.bootstrap import ValueEstimate
from counsel.logs.check import THIN, Finding, LogCheck
from counsel.logs.evaluate_log import TRUSTED_SAMPLE, LogEvaluation, PolicyEstimate
from counsel.logs.fit import Fit
from counsel.logs.law_test import LawTest
from counsel.logs.plan import LogPlan
from counsel.logs.plan_table import PlanEntry
from counsel.logs.report_contents import ReportContents
from counsel.logs.self_check import CAUSES, Comparison, SelfCheck
from counsel.logs.sensitivity import SensitivityRange
from counsel.report.number_format import count_of, in_full, percent, pieces_per_episode, short

# The log and how much people listen.


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
    return percent(share), (
        f"of the advice that people see is matched [{_percent_range(low, high)}]; {unasked} would "
        f"have been matched anyway; {count_of(float(overall.given[0]), 'piece')}"
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
    return f"“{by_advice.keys[strongest]}” moves people most: {_moved(by_advice, strongest)}"


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
    return (
        f"{percent(min(by.lift[i], 1.0))} of the people who would have done otherwise (95 % "
        f"interval {_percent_range(low, min(high, 1.0))}; {count_of(float(by.given[i]), 'piece')})"
    )


def _percent_range(low: float, high: float, digits: int = 0) -> str:
    return f"{100 * low:.{digits}f} to {percent(high, digits)}"


# The model beside its log.


def model_and_log(fit: Fit) -> Iterator[str]:
    """Say whether the model repeats its log; what it contradicts comes first."""
    check = fit.self_check
    if check is None:
        return
    if fit.pooled is not None:
        what = "Everything is" if fit.tally.by_step else "The ends of episodes are"
        yield f"{what} fitted step by step: with all steps pooled, {_both(fit.pooled)}."
    if not check.is_trusted:
        yield contradiction(check)
    elif fit.pooled is None:
        yield f"The model repeats its log: {_both(check)}."
    for comparison in check.contradictions:
        if comparison.what not in ("return", "endings"):
            yield _differs(comparison)


def contradiction(check: SelfCheck) -> str:
    """Say that a model contradicts its log, with both numbers and the likely cause."""
    cause = f" Probably {check.cause}." if check.cause else ""
    return (
        f"The model contradicts its log: {_both(check)}.{cause} Values in the model are withheld."
    )


def _both(check: SelfCheck) -> str:
    """Return the return, or else the share of episodes that last, in the model and in the log."""
    if check.endings.contradicts and not check.value.contradicts:
        return (
            f"{percent(check.endings.model)} of episodes last to {check.endings.where} in the "
            f"model and {percent(check.endings.logged)} in the log"
        )
    return (
        f"the advice of the log brings {in_full(check.value.model)} per episode in the model and "
        f"{in_full(check.value.logged)} ± {short(1.96 * check.value.error)} in the log"
    )


def _differs(comparison: Comparison) -> str:
    """Say how a number at some step differs between model and log."""
    of = {
        "reward": "The mean reward at {}",
        "states": "The share of {}",
        "actions": "The share of {}",
        "matches": "The share of advice that is matched at {}",
    }[comparison.what].format(comparison.where)
    show = short if comparison.what == "reward" else percent
    return (
        f"{of} is {show(comparison.model)} in the model and {show(comparison.logged)} in the log: "
        f"{CAUSES[comparison.what]}."
    )


# The law, people and trends.


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


def people_differ(people: People) -> str:
    """Say how much people differ, without a full stop."""
    low, high = people.lift_quantiles(0.1, 0.9)
    return (
        f"People differ: the middle 80 % of {count_of(len(people.by.keys), 'person', 'people')} "
        f"have a lift between {low:.2f} and {high:.2f}"
    )


def time_trend(trend: Trend) -> str:
    """Say how listening changes over time, without a full stop."""
    return _trend(trend, "over time", "from the first to the last timestamp")


def advice_trend(trend: Trend) -> str:
    """Say how listening changes as advice accumulates, without a full stop."""
    return _trend(trend, "as advice accumulates within an episode", "per piece already given")


def _trend(trend: Trend, when: str, unit: str) -> str:
    change = (
        f"{trend.slope:+.2g} {unit} (95 % interval {trend.slope_low:+.2g} to "
        f"{trend.slope_high:+.2g}; {count_of(float(trend.by.given.sum()), 'piece')})"
    )
    if not trend.is_clear:
        return f"Lift does not measurably change {when}: {change}"
    return f"People listen {'more' if trend.slope > 0.0 else 'less'} {when}: lift {change}"


def limitation(finding: Finding) -> str:
    """Return a finding with its count and examples, as one line."""
    count = f"{finding.count:,}" if finding.count else ""
    details = "; ".join((count, *finding.examples)).removeprefix("; ")
    return f"{finding.what[:1].upper()}{finding.what[1:]}{f' ({details})' if details else ''}"


# Plans.


def plan_limit(plan: LogPlan) -> str:
    """Return the limit of a plan."""
    if plan.budget is None:
        penalty = plan.plan.penalty
        unit = "unit of cost" if plan.has_costs else "piece"
        return f"a penalty of {penalty:g} per {unit}" if penalty else "no limit"
    pieces = f"{plan.budget:g} piece{'' if plan.budget == 1 else 's'} of advice per episode"
    if plan.has_costs:
        pieces = f"a cost of {plan.budget:g} per episode"
    return f"at most {pieces}" if plan.plan.hard else f"{pieces} on average"


def plan_value(plan: LogPlan) -> str:
    """Say what a plan is worth in the model, beside silence and the log."""
    if not plan.fit.is_trusted:
        return (
            "What the plan is worth is withheld. The log brings "
            f"{in_full(plan.fit.logged_value)} per episode with "
            f"{pieces_per_episode(plan.fit.logged_pieces, cost=plan.logged_cost)}."
        )
    share = plan.share_of_unlimited
    kept = "" if share is None else f", {percent(share)} of what unlimited advice is worth"
    return (
        f"With {pieces_per_episode(plan.plan.advice_count, cost=plan.advice_cost)} the expected "
        "reward is "
        f"{in_full(plan.plan.value)} in the model, against {in_full(plan.value_alone)} without "
        f"advice{kept}. In the log it is {in_full(plan.fit.logged_value)} with "
        f"{pieces_per_episode(plan.fit.logged_pieces, cost=plan.logged_cost)}."
    )


def plan_caution(plan: LogPlan) -> str:
    """Say what a cautious plan leaves out."""
    kept, cells = plan.kept_cells
    return (
        "The plan is cautious and gives only advice that helps in 95 % of resampled logs; it can "
        f"advise in {kept:,} of {cells:,} combinations of step and state."
    )


def plan_silence(plan: LogPlan) -> str:
    """Say why a plan gives no advice, without a full stop."""
    return f"The plan gives no advice: {plan.silence_reason}"


def thin_support(entries: Sequence[PlanEntry]) -> str | None:
    """Say how many entries of a plan rest on few observations; None if there are none."""
    thin = sum(entry.is_thin for entry in entries)
    if not thin:
        return None
    return (
        f"{count_of(thin, 'row rests', 'rows rest')} on fewer than {THIN} observations of that "
        " advice in that state; --cautious keeps only what resampled logs confirm."
    )


# The value of policies.


def value_interval(estimate: ValueEstimate | None) -> str:
    """Return an estimate with its interval, for a table or a sentence."""
    if estimate is None:
        return "–"
    return f"{estimate.value:.4g} [{_ends(estimate, '.4g')}]"


def added_value(estimate: ValueEstimate) -> str:
    """Return a difference of values with its interval."""
    return f"{estimate.value:+.3g} [{_ends(estimate, '+.3g')}]"


def _ends(estimate: ValueEstimate, digits: str) -> str:
    if not math.isfinite(estimate.low):
        return "too few episodes"
    return f"{estimate.low:{digits}}, {estimate.high:{digits}}"


DISPUTE = "The model and the episodes of the log disagree"
"""The headline where the log does not confirm what the model says of a plan."""


def dispute(estimate: PolicyEstimate) -> str:
    """Say how the model and the episodes of the log disagree about a policy."""
    return (
        f"{DISPUTE} about “{estimate.name}”: {value_interval(estimate.doubly_robust)} doubly "
        f"robust, {value_interval(estimate.model)} in the model. Believe the first: the model "
        "takes for granted that states hold all that matters, and that advice works only through "
        "the action."
    )


def evaluation_warning(evaluation: LogEvaluation) -> str | None:
    """Say what is wrong with an evaluation; None if nothing is."""
    if not evaluation.model_is_trusted and evaluation.self_check is not None:
        return contradiction(evaluation.self_check)
    if evaluation.refusal is not None:
        return (
            f"The log cannot answer: {evaluation.refusal}. The model's answer relies on the model."
        )
    if evaluation.is_trusted:
        return None
    return (
        f"The effective sample is {short(evaluation.policy.effective)} episodes; below "
        f"{TRUSTED_SAMPLE:g} the intervals of the weighted estimates may be too narrow."
    )


def evaluation_basis(evaluation: LogEvaluation) -> str:
    """Say what an evaluation is based on, without a full stop."""
    source = "as recorded" if evaluation.recorded else "estimated by state and step"
    return (
        f"Reward per episode [95 % interval], from {evaluation.whole:,} complete episodes of "
        f"{evaluation.episodes:,}; probabilities of advice {source}"
    )


def effective_sample(estimate: PolicyEstimate) -> str:
    """Return the effective sample size, for a table."""
    return f"{estimate.effective:,.0f}" if estimate.effective >= 1.0 else "< 1"


def confirmation(estimate: PolicyEstimate, refusal: str | None) -> str:
    """Say whether the episodes of a log confirm the value of its plan without the model."""
    if refusal is not None or estimate.weighted is None or estimate.doubly_robust is None:
        return (
            "The value of the plan relies on the fitted model. The log alone cannot confirm it: "
            f"{refusal}."
        )
    return (
        "The value of the plan is computed in the fitted model. Without the model, by weighting "
        "the episodes that went as the plan would have advised (effective sample "
        f"{count_of(estimate.effective, 'episode')}), it is {value_interval(estimate.weighted)}; "
        "the doubly robust estimate, which combines both, is "
        f"{value_interval(estimate.doubly_robust)}."
    )


# The report.


def headline(contents: ReportContents) -> str:
    """State the main finding of a report, without a full stop."""
    if not contents.fit.estimates.given.any():
        return "No advice was seen: this log cannot show how much people listen"
    if contents.share is None or contents.added.value <= 0.0:
        return "Nothing in this log shows that advice would help"
    plan = contents.plan
    pieces = pieces_per_episode(plan.plan.advice_count, "keep", cost=plan.advice_cost)
    return f"{pieces} {percent(contents.share)} of what unlimited advice is worth"


def today(contents: ReportContents) -> str:
    """Compare the log, silence and the plan."""
    sent = pieces_per_episode(contents.fit.logged_pieces, cost=contents.plan.logged_cost)
    return (
        f"Today {sent} are sent and the reward per episode is {value_interval(contents.logged)}. "
        f"Without advice it would be {value_interval(contents.alone)}, with the plan "
        f"{value_interval(contents.chosen)}. These numbers come from "
        f"{log_size(contents.fit.check)}. Square brackets are 95 % intervals over resampled "
        "people or episodes."
    )


def frontier_finding(contents: ReportContents) -> str:
    """Say what the plan adds, without a full stop."""
    kept = "" if contents.share is None else f", {percent(contents.share)} of what is possible"
    plan = contents.plan
    pieces = pieces_per_episode(plan.plan.advice_count, "add", cost=plan.advice_cost)
    return f"{pieces} {added_value(contents.added)} to the reward{kept}"


def sensitivity_case(case: SensitivityRange) -> tuple[str, str]:
    """Return a case of the sensitivity analysis: its assumption, and what the plan then adds."""
    odds = f"odds up to {case.odds:g} times as large or small"
    return "no difference" if case.odds == 1.0 else odds, f"{case.low:+.3g} to {case.high:+.3g}"
