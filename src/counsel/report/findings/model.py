"""The model beside its log, and what the data cannot tell."""

from collections.abc import Iterator

from counsel.logs.assumptions import ASSUMPTIONS, AssumptionTest
from counsel.logs.check import Finding
from counsel.logs.fitted_model import Fit
from counsel.logs.self_check import CAUSES, Comparison, SelfCheck
from counsel.report.number_format import count_of, in_full, p_value_text, percent, short


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
    return f"{REJECTED[test.name]} ({p_value_text(test.p_value)}; {decisions_tested(test)})."


def assumption_cells(test: AssumptionTest) -> tuple[str, str, str]:
    """Return an assumption, whether it holds, and the evidence, for a table."""
    verdict = "contradicted" if test.is_rejected else "not contradicted"
    return (
        ASSUMPTIONS[test.name],
        verdict,
        f"{p_value_text(test.p_value)}; {decisions_tested(test)}",
    )


def decisions_tested(test: AssumptionTest) -> str:
    """Return the number of decisions behind a test."""
    return count_of(test.decisions, "decision")


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


def limitation(finding: Finding) -> str:
    """Return a finding with its count and examples, as one line."""
    count = f"{finding.count:,}" if finding.count else ""
    details = "; ".join((count, *finding.examples)).removeprefix("; ")
    return f"{finding.what[:1].upper()}{finding.what[1:]}{f' ({details})' if details else ''}"
