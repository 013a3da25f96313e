"""Print logs, the models fitted to them, plans on these models, and evaluations."""

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import typer

from counsel.cli.console import ROWS, finite, new_table, print_table
from counsel.cli.memory_output import memory_record, print_memory, worth_record
from counsel.logs.adherence_breakdown import (
    AdherenceBreakdown,
    ByContext,
    by_advice,
    by_state,
    overall,
)
from counsel.logs.check import Finding, LogCheck
from counsel.logs.cross_fit import CrossFit
from counsel.logs.evaluate_log import LogEvaluation
from counsel.logs.fitted_model import Fit
from counsel.logs.listening import People, Trend
from counsel.logs.memory_worth import memory_worth
from counsel.logs.plan import LogPlan
from counsel.logs.plan_table import plan_tables, ranked_entries
from counsel.logs.power import Power, Schedule
from counsel.report import findings
from counsel.report.number_format import short

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles of lift between people in JSON."""


def print_check(name: str, check: LogCheck) -> None:
    """Print the size of a log and its faults and warnings."""
    typer.echo(f"{name} holds {findings.log_size(check)}. {findings.check_verdict(check)}")
    if check.advised:
        typer.echo(findings.match_rate(*check.match_rate, check.advised))
    if check.findings:
        table = new_table(None, "", "finding", "for example", "count", left=3)
        for finding in check.findings:
            table.add_row("fault" if finding.fatal else "warning", *_finding_cells(finding))
        print_table(table)


def _finding_cells(finding: Finding) -> tuple[str, str, str]:
    count = f"{finding.count:,}" if finding.count else "–"
    return finding.what, "\n".join(finding.examples), count


def check_record(check: LogCheck) -> dict[str, Any]:
    """Return a check for JSON."""
    return asdict(check) | {"fatal": check.fatal}


def print_fit(fit: Fit) -> None:
    """Print how much people listen, and what the data cannot tell."""
    typer.echo(f"The log holds {findings.log_size(fit.check)}.")
    for sentence in findings.model_and_log(fit):
        typer.echo(sentence)
    everything = overall(fit.tally, fit.estimates)
    if everything.given[0]:
        typer.echo(f"{findings.overall_match_rate(everything)} {findings.overall_lift(everything)}")
        _print_breakdown("By advice", by_advice(fit.tally, fit.estimates))
        _print_breakdown("By state", by_state(fit.tally, fit.estimates))
    contexts = fit.by_context
    if contexts is not None:
        _print_breakdown("By context", contexts.by)
        typer.echo(f"{findings.contexts_differ(contexts)}.")
    for sentence in findings.fit_findings(fit):
        typer.echo(sentence)
    print_memory(fit)
    if fit.notes:
        table = new_table("What the data cannot tell", "", "for example", "count", left=2)
        for note in fit.notes:
            table.add_row(*_finding_cells(note))
        print_table(table)


def _print_breakdown(title: str, by: AdherenceBreakdown) -> None:
    table = new_table(title, "", "seen", "matched [95 %]", "anyway", "lift [95 %]", left=1)
    for i in by.most_given[:ROWS]:
        table.add_row(
            by.keys[i],
            f"{by.given[i]:,.0f}",
            findings.match_interval(by, i),
            findings.anyway_cell(by, i),
            findings.lift_interval(by, i),
        )
    print_table(table)


def fit_record(fit: Fit) -> dict[str, Any]:
    """Return all estimates for JSON."""
    tally = fit.tally
    return {
        "log": fit.name,
        "checked": check_record(fit.check),
        "horizon": tally.horizon,
        "states": tally.states,
        "actions": tally.actions,
        "logged": _logged_record(fit),
        "self_check": _self_check_record(fit),
        "assumptions": [asdict(test) | {"rejected": test.is_rejected} for test in fit.assumptions],
        "costs": fit.costs,
        "pairs": _pair_records(fit),
        "moves": _move_records(fit),
        "seen": dict(zip(tally.actions, _seen_shares(fit), strict=True)),
        "seen_by_state": {
            advice: dict(zip(tally.states, shares, strict=True))
            for advice, shares in zip(tally.actions, fit.estimates.seen.T.tolist(), strict=True)
        },
        "law": None if fit.law is None else asdict(fit.law),
        "contexts": None if fit.by_context is None else _contexts_record(fit.by_context),
        "people": None if fit.people is None else _people_record(fit.people),
        "over_time": None if fit.over_time is None else _trend_record(fit.over_time),
        "over_advice": None if fit.over_advice is None else _trend_record(fit.over_advice),
        "notes": [asdict(note) for note in fit.notes],
        **memory_record(fit),
    }


def _seen_shares(fit: Fit) -> list[float]:
    """Return the share of each advice that was seen."""
    seen, sent = fit.estimates.given.sum(axis=(0, 1)), fit.estimates.sent[..., :-1].sum(axis=(0, 1))
    return [float(k / n) if n else 1.0 for k, n in zip(seen, sent, strict=True)]


def _logged_record(fit: Fit) -> dict[str, float]:
    return {"value": fit.logged_value, "pieces": fit.logged_pieces, "cost": fit.logged_cost}


def _self_check_record(fit: Fit) -> dict[str, Any] | None:
    check = fit.self_check
    if check is None:
        return None
    return {
        "trusted": check.is_trusted,
        "steps": "all" if fit.tally.by_step else "endings" if fit.tally.endings_by_step else "none",
        "cause": check.cause or None,
        "comparisons": _replace_infinities(asdict(check)),
    }


def _pair_records(fit: Fit) -> list[dict[str, Any]]:
    """Return the estimates of every pair of state and action in the log."""
    tally, estimates = fit.tally, fit.estimates
    habits = [
        table.reshape(estimates.lift.shape)
        for table in (estimates.habit.policy, estimates.habit.low, estimates.habit.high)
    ]
    rewards = (estimates.reward, estimates.reward_low, estimates.reward_high)
    matched = (estimates.adherence_low, estimates.adherence_high)
    lifts = (estimates.lift, estimates.lift_low, estimates.lift_high)
    adherence = estimates.adherence
    return [
        ({"step": int(h)} if tally.by_step else {})
        | {
            "state": tally.states[s],
            "action": tally.actions[a],
            "taken": int(estimates.taken[h, s, a]),
            "habit": [float(table[h, s, a]) for table in habits],
            "reward": [finite(float(table[h, s, a])) for table in rewards],
            "given": int(estimates.given[h, s, a]),
            "matched": int(estimates.matched[h, s, a]),
            "matched_interval": [float(table[h, s, a]) for table in matched],
            "adherence": float(adherence[h, s, a]),
            "lift": [float(table[h, s, a]) for table in lifts],
        }
        for h, s, a in np.argwhere((estimates.taken > 0.0) | (estimates.given > 0.0))
    ]


def _move_records(fit: Fit) -> list[dict[str, Any]]:
    """Return the probability of every transition in the log."""
    tally, estimates = fit.tally, fit.estimates
    S, A = len(tally.states), len(tally.actions)
    moves = (estimates.move_row, estimates.move_then, estimates.move_times, *estimates.moves())
    return [
        {
            "state": tally.states[row // A % S],
            "action": tally.actions[row % A],
            "next_state": None if then == S else tally.states[then],
            "times": int(times),
            "probability": [float(end) for end in interval],
        }
        | ({"step": int(row // A // S)} if tally.by_step else {})
        for row, then, times, *interval in zip(*moves, strict=True)
    ]


def _contexts_record(contexts: ByContext) -> dict[str, Any]:
    by = contexts.by
    lifts = {
        str(name): [finite(float(x)) for x in (by.lift[i], by.low[i], by.high[i])]
        for i, name in enumerate(by.keys)
    }
    return {"p_value": contexts.p_value, "lift": lifts}


def _people_record(people: People) -> dict[str, Any]:
    """Return how much people listen, without their names."""
    lifts = people.lift_quantiles(*QUANTILES)
    return {
        "count": len(people.by.keys),
        "spread": people.spread,
        "p_value": people.p_value,
        "lift_quantiles": {f"{q:g}": lift for q, lift in zip(QUANTILES, lifts, strict=True)},
    }


def _trend_record(trend: Trend) -> dict[str, Any]:
    return {
        "slope": [trend.slope, trend.slope_low, trend.slope_high],
        "p_value": trend.p_value,
        "at": trend.at.tolist(),
        "given": trend.by.given.tolist(),
        "matched": trend.by.matched.tolist(),
        "lift": trend.by.lift.tolist(),
        "error": trend.by.error.tolist(),
    }


def print_plan(plan: LogPlan) -> None:
    """Print the advice of a plan, and what it is worth."""
    if plan.fit.context is not None:
        typer.echo(f"In the context {plan.fit.context!r}:")
    if not plan.fit.is_trusted:
        typer.echo(findings.contradiction(plan.fit))
    typer.echo(findings.plan_value(plan))
    has_episodes = plan.fit.is_trusted and plan.endless is None
    if has_episodes:
        typer.echo(findings.honest_value(plan_halves(plan)))
    worth = memory_worth(plan) if has_episodes else None
    if worth is not None:
        typer.echo(findings.memory_worth(worth))
    if plan.doubtful is not None:
        typer.echo(findings.plan_caution(plan))
    entries = ranked_entries(plan)
    if not entries:
        typer.echo(f"{findings.plan_silence(plan)}.")
        return
    costs = ("cost",) if plan.has_costs else ()
    names = ("gain", "lift", "criticality", "support")
    table = new_table(None, "in state", "advise", "at steps", *costs, *names, left=3)
    for state, advice, steps, gain, lift, critical, support, cost in entries[:ROWS]:
        costs = (short(cost),) if plan.has_costs else ()
        numbers = map(findings.number_or_unknown, (gain, lift, critical))
        table.add_row(state, advice, steps, *costs, *numbers, f"{support:,}")
    print_table(table)
    if len(entries) > ROWS:
        typer.echo(f"… and {len(entries) - ROWS:,} more; -o writes all.")
    thin = findings.thin_support(entries)
    if thin is not None:
        typer.echo(thin)


def plan_halves(plan: LogPlan) -> CrossFit:
    """Plan on each half of the log, always in the same way."""
    return CrossFit.of(plan, np.random.default_rng(0))


def plan_record(plan: LogPlan) -> dict[str, Any]:
    """Return a plan for JSON; values are None if the model contradicts its log."""
    trusted = plan.fit.is_trusted
    crossed: tuple[float | None, ...] = (None, None, None)
    endless: dict[str, Any] = {}
    if plan.endless is not None:
        average = plan.endless.average
        endless = {"discount": None if average else plan.endless.discount, "average": average}
    if trusted and plan.endless is None:
        crossed = plan_halves(plan).in_models(plan.fit.tally)
    return {
        "cross_fitted": dict(zip(("value", "alone", "logged"), crossed, strict=True)),
        "value": plan.plan.value if trusted else None,
        "advice_count": plan.plan.advice_count if trusted else None,
        "advice_cost": plan.plan.advice_cost if trusted else None,
        "price": finite(plan.plan.price) if trusted else None,
        "alone": plan.value_alone if trusted else None,
        "self_check": _self_check_record(plan.fit),
        "logged": _logged_record(plan.fit),
        "cautious": plan.doubtful is not None,
        **endless,
        **({} if endless else worth_record(plan)),
        "cells": [row for table in plan_tables(plan) for row in table.to_pylist()],
    }


def print_power(
    power: Power, schedule: Schedule, lift: float | None, difference: float | None
) -> None:
    """Print what a log can tell, and the schedule of a trial."""
    for sentence in findings.power(power, lift, difference):
        typer.echo(sentence)
    if power.by_advice:
        table = new_table("Lift of each advice", "", "lift", "error", "smallest", left=1)
        for effect in power.by_advice:
            numbers = (effect.found, effect.error, effect.smallest)
            table.add_row(effect.what, *(f"{number:.3f}" for number in numbers))
        print_table(table)
    typer.echo(findings.schedule(schedule))
    table = new_table(None, "in state", "advise", "with probability", left=2)
    for s in np.flatnonzero(schedule.advice >= 0)[:ROWS]:
        advice = schedule.actions[schedule.advice[s]]
        table.add_row(schedule.states[s], advice, f"{schedule.probability[s]:.2f}")
    print_table(table)


def power_record(
    power: Power, schedule: Schedule, lift: float | None, difference: float | None
) -> dict[str, Any]:
    """Return what a log can tell for JSON."""
    wanted = {
        name: {"size": size, "times_as_many": effect.factor(size)}
        for name, size, effect in (
            ("lift", lift, power.lift),
            ("difference", difference, power.trial),
        )
        if size is not None and effect is not None
    }
    record: dict[str, Any] = _replace_infinities(asdict(power))
    return record | {"wanted": wanted, "schedule": schedule.settings()}


def print_evaluation(evaluation: LogEvaluation) -> None:
    """Print the estimates of a policy, of silence, of the best action and of the log."""
    for warning in findings.evaluation_warnings(evaluation):
        typer.echo(warning)
    kinds = {"model": "in the model", "weighted": "weighted episodes"}
    kinds |= {"doubly_robust": "doubly robust"}
    if evaluation.disputed:  # what is to be believed comes first
        kinds = {name: kinds[name] for name in ("doubly_robust", "weighted", "model")}
    table = new_table(
        findings.evaluation_basis(evaluation),
        *("", "pieces", *(("cost",) if evaluation.has_costs else ())),
        *(*kinds.values(), "effective"),
        left=1,
    )

    def sent(pieces: float, cost: float) -> tuple[str, ...]:
        return (short(pieces), short(cost)) if evaluation.has_costs else (short(pieces),)

    for estimate in evaluation.policies:
        values = [getattr(estimate, name) for name in kinds]
        in_model = sent(estimate.pieces, estimate.cost)
        table.add_row(
            estimate.name,
            *(in_model if evaluation.model_is_trusted else ("–",) * len(in_model)),
            *map(findings.value_interval, values),
            findings.effective_sample(estimate),
        )
    logged = findings.value_interval(evaluation.logged)
    pieces = sent(evaluation.logged_pieces, evaluation.logged_cost)
    values = [logged if name == "weighted" else "" for name in kinds]
    table.add_row("as logged", *pieces, *values, f"{evaluation.whole:,}")
    print_table(table)
    given = (evaluation.policy,) if evaluation.other is None else evaluation.policies[:2]
    for estimate in given:
        typer.echo(findings.difference(estimate.name, "today", estimate.beyond_today))
        typer.echo(findings.difference(estimate.name, "silence", estimate.beyond_silence))
    if evaluation.other is not None and evaluation.beyond_other is not None:
        names = (evaluation.policy.name, evaluation.other.name)
        typer.echo(findings.difference(*names, evaluation.beyond_other))
    for effect in evaluation.effects:
        typer.echo(findings.excursion(effect))


def evaluation_record(evaluation: LogEvaluation) -> dict[str, Any]:
    """Return an evaluation for JSON."""
    record = asdict(replace(evaluation, fit=None))
    record.pop("fit")
    fit = evaluation.fit
    record["self_check"] = None if fit is None else _self_check_record(fit)
    if not evaluation.model_is_trusted:
        for name in ("policy", "other", "never", "always"):
            if record[name] is not None:
                record[name] |= {"pieces": None, "cost": None}  # what the model says of them
    record["assumptions"] = [] if fit is None else [asdict(test) for test in fit.assumptions]
    return {name: _replace_infinities(value) for name, value in record.items()}


def _replace_infinities(value: Any) -> Any:  # noqa: ANN401 (whatever a record holds)
    """Replace infinities in a record by None."""
    if isinstance(value, dict):
        return {name: _replace_infinities(item) for name, item in value.items()}
    return finite(value) if isinstance(value, float) else value
