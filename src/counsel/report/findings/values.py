"""The value of policies: in the model, and by the episodes of the log."""

import math
from collections.abc import Iterator

from counsel.logs.bootstrap import ValueEstimate
from counsel.logs.evaluate_log import TRUSTED_SAMPLE, Difference, LogEvaluation, PolicyEstimate
from counsel.report.findings.model import contradiction
from counsel.report.number_format import short


def value_interval(estimate: ValueEstimate | None) -> str:
    """Return an estimate with its interval, for a table or a sentence."""
    if estimate is None:
        return "–"
    return f"{estimate.value:.4g} [{_ends(estimate, '.4g')}]"


def added_value(estimate: ValueEstimate) -> str:
    """Return a difference of values with its interval."""
    return f"{estimate.value:+.3g} {interval(estimate)}"


def interval(estimate: ValueEstimate) -> str:
    """Return the interval of a difference of values."""
    return f"[{_ends(estimate, '+.3g')}]"


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
            f"{TRUSTED_SAMPLE:g} the intervals of the weighted estimates may be too narrow, and "
            "only the model compares policies."
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
