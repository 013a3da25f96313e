"""The findings of a log in words: one sentence per finding, for the terminal and the report.

Every function turns a result of ``counsel.logs`` into text. Numbers come with their unit, their
95 % interval and the count behind them.
"""

import math
from collections.abc import Callable, Iterator, Sequence

from counsel.logs.adherence_breakdown import AdherenceBreakdown, ByContext
from counsel.logs.assumptions import ASSUMPTIONS, AssumptionTest
from counsel.logs.bootstrap import ValueEstimate
from counsel.logs.check import THIN, Finding, LogCheck
from counsel.logs.cross_fit import CrossFit
from counsel.logs.evaluate_log import TRUSTED_SAMPLE, Difference, LogEvaluation, PolicyEstimate
from counsel.logs.excursion import Effect, ExcursionEffect
from counsel.logs.fit import Fit
from counsel.logs.law_test import LawTest
from counsel.logs.listening import CLEAR, People, Trend
from counsel.logs.plan import LogPlan
from counsel.logs.plan_table import PlanEntry
from counsel.logs.power import Power, Schedule
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


# The model beside its log.


def model_and_log(fit: Fit) -> Iterator[str]:
    """Say whether the model repeats its log; what it contradicts comes first."""
    check = fit.self_check
    if fit.pooled is not None and check is not None:
        what = "Everything is" if fit.tally.by_step else "The ends of episodes are"
        reason = f"with all steps pooled, {_both(fit.pooled)}"
        if fit.pooled.is_trusted:
            reason = "what follows depends on the step"
        yield f"{what} fitted step by step: {reason}."
    if not fit.is_trusted:
        yield contradiction(fit)
    elif fit.pooled is None and check is not None:
        yield f"The model repeats its log: {_both(check)}."
    for comparison in () if check is None else check.contradictions:
        if comparison.what not in ("return", "endings"):
            yield _differs(comparison)


def contradiction(fit: Fit) -> str:
    """Say why a model is not to be believed: its return, or what it takes for granted."""
    check, withheld = fit.self_check, "Values in the model are withheld."
    if check is not None and not check.is_trusted:
        cause = f" Probably {check.cause}." if check.cause else ""
        return f"The model contradicts its log: {_both(check)}.{cause} {withheld}"
    return f"{' '.join(map(_rejected, fit.rejected))} {withheld}"


REJECTED = {
    "reward": "In the same state and after the same action, rewards with advice differ from those "
    "in silence: advice acts by itself, or went to decisions that differ in what is not recorded",
    "next state": "In the same state and after the same action, what follows with advice differs "
    "from what follows in silence: advice acts by itself, or went to decisions that differ in what "
    "is not recorded",
    "direct effect": "What advice changes is not what the actions explain: people who act may "
    "differ from others in what is not recorded",
    "memory": "What follows depends on the state before, not only on the state and the action: "
    "something that matters is not in the state",
    "step": "What follows depends on the step, not only on the state and the action",
    "assignment": "Whether advice was sent depends on what happened before, not only on the state "
    "and the step",
}
"""What it means that an assumption is rejected."""


def _rejected(test: AssumptionTest) -> str:
    """Say that the log contradicts an assumption."""
    return f"{REJECTED[test.name]} ({_p_value(test.p_value)}; {decisions_tested(test)})."


def assumption_cells(test: AssumptionTest) -> tuple[str, str, str]:
    """Return an assumption, whether it holds, and the evidence, for a table."""
    verdict = "contradicted" if test.is_rejected else "not contradicted"
    return ASSUMPTIONS[test.name], verdict, f"{_p_value(test.p_value)}; {decisions_tested(test)}"


def decisions_tested(test: AssumptionTest) -> str:
    """Return the number of decisions behind a test."""
    return count_of(test.decisions, "decision")


def _p_value(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


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


def contexts_differ(contexts: ByContext) -> str:
    """Say whether people listen differently in different contexts, without a full stop."""
    count = count_of(int(contexts.by.has_lift.sum()), "context")
    if contexts.p_value < CLEAR:
        return f"People listen differently in {count} ({_p_value(contexts.p_value)})"
    return f"No difference of listening between {count} can be told ({_p_value(contexts.p_value)})"


def people_differ(people: People) -> str:
    """Say how much people differ, without a full stop."""
    if not people.differ:
        return (
            "No difference between people can be told: "
            f"{count_of(len(people.by.keys), 'person', 'people')}, each compared with their own "
            f"silence ({_p_value(people.p_value)})"
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
        f"{trend.slope:+.2g} {unit} (95 % interval {trend.slope_low:+.2g} to "
        f"{trend.slope_high:+.2g}; {_p_value(trend.p_value)}; "
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
    ends = f"{effect.low:+.2g}, {effect.high:+.2g}"
    return f"{effect.value:+.2g} [{ends}; {_p_value(effect.p_value)}]"


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
    alone = "without advice"
    if plan.keeps_states:
        alone = "if advice is sent only where nobody was ever left without any"
    return (
        f"With {pieces_per_episode(plan.plan.advice_count, cost=plan.advice_cost)} the expected "
        "reward is "
        f"{in_full(plan.plan.value)} in the model, against {in_full(plan.value_alone)} {alone}"
        f"{kept}. In the log it is {in_full(plan.fit.logged_value)} with "
        f"{pieces_per_episode(plan.fit.logged_pieces, cost=plan.logged_cost)}."
    )


def honest_value(crossed: CrossFit) -> str:
    """Say what a plan is worth when it is chosen on one half of the log, judged on the other."""
    chosen, alone, logged = crossed.in_models(crossed.plan.fit.tally)
    beyond = f"{chosen - logged:+.3g} beyond today"
    if not crossed.plan.keeps_states:
        beyond += f" and {chosen - alone:+.3g} beyond silence"
    return (
        f"Chosen on one half of the log and judged on the other, it brings {in_full(chosen)}, "
        f"{beyond}; `counsel report` gives the intervals."
    )


def plan_caution(plan: LogPlan) -> str:
    """Say what a cautious plan leaves out."""
    kept, cells = plan.kept_cells
    return (
        "The plan is cautious and gives only advice whose gain chance does not explain; it can "
        f"advise in {kept:,} of {cells:,} combinations of step and state."
    )


def where_advice_pays(entries: Sequence[PlanEntry]) -> str:
    """Say where advice pays most, without a full stop."""
    first = entries[0]
    if not first.is_known:
        return "The plan keeps what was done, since nobody was left without advice"
    return f"In the model, advice pays most in “{first.state}”: advise “{first.advice}”"


def number_or_unknown(number: float) -> str:
    """Return a number for a table; NaN is unknown."""
    return "unknown" if math.isnan(number) else short(number)


def plan_silence(plan: LogPlan) -> str:
    """Say why a plan gives no advice, without a full stop."""
    return f"The plan gives no advice: {plan.silence_reason}"


def thin_support(entries: Sequence[PlanEntry]) -> str | None:
    """Say how many entries of a plan rest on few observations; None if there are none."""
    thin = sum(entry.is_thin for entry in entries if entry.is_known)
    if not thin:
        return None
    return (
        f"{count_of(thin, 'row rests', 'rows rest')} on fewer than {THIN} observations of that "
        "advice in that state; --cautious keeps only what chance does not explain."
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


def evaluation_warnings(evaluation: LogEvaluation) -> Iterator[str]:
    """Say what is wrong with an evaluation, the worst first."""
    for policy in evaluation.disputed:
        yield dispute(policy)
    if not evaluation.model_is_trusted and evaluation.fit is not None:
        yield contradiction(evaluation.fit)
    if not evaluation.is_fair:
        yield (
            "Episodes with and without advice may differ in what is not recorded, and so may the "
            "weighted estimates: only recorded probabilities of advice (advice_probability) would "
            "tell."
        )
    if evaluation.refusal is not None:
        yield (
            f"The log cannot answer: {evaluation.refusal}. The model's answer relies on the model."
        )
    elif not evaluation.is_trusted:
        yield (
            f"The effective sample is {short(evaluation.policy.effective)} episodes; below "
            f"{TRUSTED_SAMPLE:g} the intervals of the weighted estimates may be too narrow."
        )


NO_DIFFERENCE = 1e-9
"""Smaller differences are errors of rounding."""


def difference(name: str, other: str, found: Difference) -> str:
    """Say whether one policy brings more than another, or than today."""
    best = found.best
    if best is None:
        return f"Whether {name} brings more than {other} cannot be told."
    kinds = {"in the model": found.model, "doubly robust": found.doubly_robust}
    order = sorted(kinds, key=lambda kind: kinds[kind] is not best)  # what is believed comes first
    shown = ((kind, kinds[kind]) for kind in order)
    numbers = ", ".join(f"{added_value(one)} {kind}" for kind, one in shown if one is not None)
    if max(abs(best.low), abs(best.high)) <= NO_DIFFERENCE:
        return f"{name} brings the same as {other}."
    if not best.excludes_zero:
        return f"Whether {name} brings more than {other} cannot be told: {numbers}."
    return f"{name} brings {'more' if best.value > 0.0 else 'less'} than {other}: {numbers}."


def evaluation_basis(evaluation: LogEvaluation) -> str:
    """Say what an evaluation is based on, without a full stop."""
    source = "as recorded" if evaluation.recorded else "estimated by state and step"
    whole = "" if evaluation.whole == evaluation.episodes else f" ({evaluation.whole:,} to the end)"
    return (
        f"Reward per episode [95 % interval], from {evaluation.episodes:,} episodes{whole}; "
        f"probabilities of advice {source}"
    )


def effective_sample(estimate: PolicyEstimate) -> str:
    """Return the effective sample size, for a table."""
    return f"{estimate.effective:,.0f}" if estimate.effective >= 1.0 else "< 1"


# What a log can tell.


def power(found: Power, lift: float | None, difference: float | None) -> Iterator[str]:
    """Say what a log of this size can tell, and how many people other effects take."""
    who = count_of(found.episodes, "episode")
    if found.people is not None:
        who += f" by {count_of(found.people, 'person', 'people')}"
    told = "no lift" if found.lift is None else f"a lift of {short(found.lift.smallest)}"
    yield (
        f"{who} can tell {told} from 0, and a difference of {short(found.trial.smallest)} per "
        "episode between two halves with different rules (in 80 % of such logs, at the 5 % level)."
    )
    if found.difference is not None:
        yield (
            "In the model, what a plan brings beyond today can be told from "
            f"{short(found.difference.smallest)} on."
        )
    if lift is not None and found.lift is None:
        yield (
            f"How many people a lift of {lift:g} takes cannot be told: nobody was left without "
            "advice where there was any."
        )
    for what, size, effect in (
        ("a lift", lift, found.lift),
        ("a difference", difference, found.trial),
    ):
        if size is not None and effect is not None:
            times = effect.factor(size)
            people = (
                ""
                if found.people is None
                else f"{count_of(math.ceil(times * found.people), 'person', 'people')} with "
            )
            episodes = count_of(math.ceil(times * found.episodes), "episode")
            yield f"To tell {what} of {size:g} takes {people}{episodes} like these."


def schedule(trial: Schedule) -> str:
    """Say what the schedule of a trial is."""
    return (
        "A trial that learns most sends advice at random, with these probabilities by state "
        f"({pieces_per_episode(trial.pieces)}):"
    )


# The report.


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
    kept = contents.plan.keeps_states
    if not kept:
        return f" and {amount(contents.worth.beyond_silence)} beyond silence"
    others = "" if len(kept) == 1 else f" and {count_of(len(kept) - 1, 'other state')}"
    return (
        "; what it brings beyond silence cannot be told, since nobody was left without advice in "
        f"“{kept[0]}”{others}"
    )


def _by_episodes(found: Difference) -> str:
    return "an unknown amount" if found.doubly_robust is None else added_value(found.doubly_robust)


def _in_model(found: Difference) -> str:
    return "an unknown amount" if found.model is None else added_value(found.model)


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
