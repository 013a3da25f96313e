"""What is printed of logs and of what was fitted to them."""

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import typer

import counsel
from counsel.cli.console import (
    ROWS,
    counted,
    finite,
    in_full,
    new_table,
    pieces_of,
    print_table,
    short,
)
from counsel.estimate.intervals import wilson
from counsel.logs.adherence_breakdown import People, Trend, by_advice, by_state, overall
from counsel.logs.check import THIN, Checked
from counsel.logs.evaluate_log import TRUSTED, Evaluated, Worth
from counsel.logs.fit import Fit
from counsel.logs.plan import Planned, plan_tables, ranked_entries
from counsel.planning.silence import value_alone


def print_checked(name: str, found: Checked) -> None:
    """Print what a log holds and what is wrong with it."""
    faults = [finding for finding in found.findings if finding.fatal]
    verdict = "It can be learnt from"
    if faults:
        verdict = f"It cannot be learnt from until {len(faults)} kinds of faults are mended"
        if len(faults) == 1:
            verdict = "It cannot be learnt from until one kind of fault is mended"
    people = "" if found.people is None else f" by {counted(found.people, 'person', 'people')}"
    typer.echo(
        f"{name} holds {counted(found.rows, 'decision')}{people} in "
        f"{counted(found.episodes, 'episode')} of up to {counted(found.longest, 'step')}, over "
        f"{counted(found.states, 'state')}. {verdict}."
    )
    if found.advised:
        low, high = wilson(found.matched, found.advised)
        share = found.matched / found.advised
        typer.echo(
            f"Advice was seen {counted(found.advised, 'time')} and matched in {share:.1%} of them "
            f"(95 %: {low:.1%} to {high:.1%})."
        )
    if not found.findings:
        return
    table = new_table(None, "", "found", "for example", "how many", left=3)
    for finding in found.findings:
        kind = "fault" if finding.fatal else "warning"
        how_many = f"{finding.count:,}" if finding.count else "–"
        table.add_row(kind, finding.what, "\n".join(finding.examples), how_many)
    print_table(table)


def checked_record(found: Checked) -> dict[str, Any]:
    """Return what was found, for JSON."""
    return asdict(found) | {"fatal": found.fatal}


def print_fit(found: Fit) -> None:
    """Print how much people listen, and what the data cannot tell."""
    checked, estimates = found.checked, found.estimates
    by = "" if checked.people is None else f" by {counted(checked.people, 'person', 'people')}"
    typer.echo(
        f"{counted(checked.rows, 'decision')}{by} in {counted(checked.episodes, 'episode')} of up "
        f"to {counted(found.tally.horizon, 'step')}; {counted(len(found.tally.states), 'state')}, "
        f"{counted(len(found.tally.actions), 'action')}."
    )
    whole = overall(estimates)
    if whole.given[0]:
        low, high = wilson(whole.matched, whole.given)
        moved = "How many it moves cannot be told"
        if math.isfinite(whole.error[0]):
            ends = f"{_percent(whole.low[0])} to {_percent(whole.high[0])}"
            moved = f"It moves {_percent(whole.lift[0])} of those who would have done otherwise"
            moved += f" ({ends})"
        typer.echo(
            f"People match {whole.matched[0] / whole.given[0]:.0%} of the advice they see (95 %: "
            f"{low[0]:.1%} to {high[0]:.1%}, {counted(whole.given[0], 'piece')}). {moved}."
        )
        _print_listening(found)
    for sentence in _sentences(found):
        typer.echo(sentence)
    if found.notes:
        table = new_table("What the data cannot tell", "", "for example", "how many", left=2)
        for note in found.notes:
            how_many = f"{note.count:,}" if note.count else "–"
            table.add_row(note.what, "\n".join(note.examples), how_many)
        print_table(table)


def _percent(share: float) -> str:
    """Return a share of people."""
    return f"{min(share, 1.0):.0%}"


def _print_listening(found: Fit) -> None:
    """Print the table of adherence by advice, and by state."""
    for title, by in (
        ("By advice", by_advice(found.estimates)),
        ("By state", by_state(found.estimates)),
    ):
        table = new_table(title, "", "seen", "matched [95 %]", "anyway", "lift [95 %]", left=1)
        low, high = wilson(by.matched, by.given)
        order = np.argsort(-by.given, kind="stable")[:ROWS]
        for i in order:
            if not by.given[i]:
                continue
            lift = "cannot be told"
            if math.isfinite(by.error[i]):
                ends = f"[{by.low[i]:.2f}, {min(by.high[i], 1.0):.2f}]"
                lift = f"{by.lift[i]:.2f} {ends}"
            table.add_row(
                by.keys[i],
                f"{by.given[i]:,.0f}",
                f"{by.matched[i] / by.given[i]:.0%} [{low[i]:.0%}, {high[i]:.0%}]",
                f"{by.anyway_share[i]:.0%}" if by.known[i] else "–",
                lift,
            )
        print_table(table)


def _sentences(found: Fit) -> Iterator[str]:
    """Say what was found about the law, about people and about time."""
    law = found.law
    if law is not None and law.holds:
        yield (
            "Those who refuse do what they would have done anyway, as far as "
            f"{law.refusals:,} refusals can tell (p = {law.p_value:.2g})."
        )
    elif law is not None:
        yield (
            f"Those who refuse do not do what they would have done anyway (p = {law.p_value:.2g}): "
            f"refusing {law.advice} in {law.state}, {law.share:.0%} take {law.action}, where "
            f"{law.expected:.0%} were to be expected. Gains are then rough."
        )
    if found.people is not None:
        people = found.people
        low, high = np.quantile(people.lift, (0.1, 0.9))
        yield (
            f"People differ: the middle eight in ten of {len(people.by.keys):,} have a lift of "
            f"{low:.2f} to {high:.2f}."
        )
    for trend, per in (
        (found.over_time, "from the first to the last day"),
        (found.over_advice, "with every piece of advice already given in the episode"),
    ):
        if trend is not None:
            yield _trend_sentence(trend, per)


def _trend_sentence(trend: Trend, per: str) -> str:
    """Say how the lift changes."""
    ends = f"{trend.slope:+.2g} [{trend.slope_low:+.2g}, {trend.slope_high:+.2g}]"
    if trend.slope_low <= 0.0 <= trend.slope_high:
        return f"No change of lift can be told {per}: {ends}."
    way = "more" if trend.slope > 0.0 else "less"
    return f"People listen {way} {per}: lift {ends}."


def fit_record(found: Fit) -> dict[str, Any]:
    """Return everything that was estimated, for JSON."""
    tally, est = found.tally, found.estimates
    share, low, high = est.moves()
    S, A = len(tally.states), len(tally.actions)
    own, own_low, own_high = (
        table.reshape(est.lift.shape) for table in (est.habit.policy, est.habit.low, est.habit.high)
    )
    pairs, theta, rewards = [], est.adherence, (est.reward, est.reward_low, est.reward_high)
    for h, s, a in np.argwhere((est.taken > 0.0) | (est.given > 0.0)):
        at = (h, s, a)
        pairs.append(
            ({"step": int(h)} if tally.by_step else {})
            | {
                "state": tally.states[s],
                "action": tally.actions[a],
                "taken": int(est.taken[at]),
                "habit": [float(x[at]) for x in (own, own_low, own_high)],
                "reward": [finite(float(x[at])) for x in rewards],
                "given": int(est.given[at]),
                "matched": int(est.matched[at]),
                "matched_interval": [float(est.adherence_low[at]), float(est.adherence_high[at])],
                "adherence": float(theta[at]),
                "lift": [float(x[at]) for x in (est.lift, est.lift_low, est.lift_high)],
            }
        )
    moves = [
        {
            "state": tally.states[row // A % S],
            "action": tally.actions[row % A],
            "next_state": None if then == S else tally.states[then],
            "times": int(times),
            "probability": [float(p), float(p_low), float(p_high)],
        }
        | ({"step": int(row // A // S)} if tally.by_step else {})
        for row, then, times, p, p_low, p_high in zip(
            est.move_row, est.move_then, est.move_times, share, low, high, strict=True
        )
    ]
    return {
        "log": found.name,
        "checked": checked_record(found.checked),
        "horizon": tally.horizon,
        "states": tally.states,
        "actions": tally.actions,
        "logged": {"value": found.logged_value, "pieces": found.logged_pieces},
        "pairs": pairs,
        "moves": moves,
        "seen": dict(zip(tally.actions, est.seen.tolist(), strict=True)),
        "law": None if found.law is None else asdict(found.law),
        "people": None if found.people is None else _people_record(found.people),
        "over_time": None if found.over_time is None else _trend_record(found.over_time),
        "over_advice": None if found.over_advice is None else _trend_record(found.over_advice),
        "notes": [asdict(note) for note in found.notes],
    }


def _people_record(people: People) -> dict[str, Any]:
    """Return how much people listen without naming any."""
    shares = (0.05, 0.25, 0.5, 0.75, 0.95)
    lifts = np.quantile(people.lift, shares)
    return {
        "count": len(people.by.keys),
        "spread": people.spread,
        "lift_quantiles": {f"{share:g}": float(x) for share, x in zip(shares, lifts, strict=True)},
    }


def _trend_record(trend: Trend) -> dict[str, Any]:
    return {
        "slope": [trend.slope, trend.slope_low, trend.slope_high],
        "at": trend.at.tolist(),
        "given": trend.by.given.tolist(),
        "matched": trend.by.matched.tolist(),
        "lift": trend.by.lift.tolist(),
        "error": trend.by.error.tolist(),
    }


def print_planned(planned: Planned) -> None:
    """Print what a plan says where, and what it is worth."""
    problem, plan = planned.fit.problem, planned.plan
    alone, best = value_alone(problem), counsel.solve(problem, allow_reverse=False).value
    share = ""
    if best > alone + 1e-9 * (1.0 + abs(best)):
        share = f", {(plan.value - alone) / (best - alone):.0%} of what unlimited advice is worth"
    spent = pieces_of(plan.advice_count)
    typer.echo(
        f"{spent.capitalize()} an episode bring{'s' if spent.startswith('1 ') else ''} "
        f"{in_full(plan.value)} in the model, against {in_full(alone)} without advice{share}; "
        f"as logged, {pieces_of(planned.fit.logged_pieces)} brought "
        f"{in_full(planned.fit.logged_value)}."
    )
    if planned.doubtful is not None:
        kept = int((~planned.doubtful & problem.mdp.allowed).any(axis=2).sum())
        typer.echo(
            "Cautious: only advice that helps in 95 % of resampled logs; that leaves "
            f"{kept:,} of {problem.horizon * len(planned.fit.tally.states):,} steps and states."
        )
    entries = ranked_entries(planned)
    if not entries:
        typer.echo(f"Nothing is advised: {_why_silent(planned)}.")
        return
    table = new_table(
        None, "in state", "advise", "at steps", "gain", "lift", "criticality", "support", left=3
    )
    for state, advice, steps, gain, lift, critical, support in entries[:ROWS]:
        table.add_row(
            *(state, advice, steps, short(gain), short(lift), short(critical), f"{support:,}")
        )
    print_table(table)
    if len(entries) > ROWS:
        typer.echo(f"… and {len(entries) - ROWS:,} more; -o writes them all.")
    thin = sum(entry.support < THIN for entry in entries)
    if thin:
        rest = "rests" if thin == 1 else "rest"
        typer.echo(
            f"{counted(thin, 'row')} {rest} on fewer than {THIN} observations of that advice "
            "there; --cautious leaves out what they cannot bear out."
        )


def _why_silent(planned: Planned) -> str:
    """Say why a plan is silent everywhere."""
    if not planned.fit.estimates.usable.any():
        return "the data cannot tell that any advice moves anybody"
    if planned.doubtful is not None and planned.doubtful.all():
        return "no advice helps in 95 % of resampled logs"
    if counsel.solve(planned.fit.problem, allow_reverse=False).advice_count > 0.0:
        return "within this limit silence is best"
    return "silence is best everywhere"


def planned_record(planned: Planned) -> dict[str, Any]:
    """Return a plan, for JSON."""
    plan = planned.plan
    return {
        "value": plan.value,
        "advice_count": plan.advice_count,
        "price": finite(plan.price),
        "alone": value_alone(planned.fit.problem),
        "logged": {"value": planned.fit.logged_value, "pieces": planned.fit.logged_pieces},
        "cautious": planned.doubtful is not None,
        "cells": [row for table in plan_tables(planned) for row in table.to_pylist()],
    }


def print_evaluated(found: Evaluated) -> None:
    """Print what a policy would have been worth, beside what else could be done."""
    if found.refusal is not None:
        typer.echo(
            f"The log cannot answer: {found.refusal}. The model's answer rests on the model."
        )
    elif found.policy.effective < TRUSTED:
        typer.echo(
            f"The effective sample is {short(found.policy.effective)} episodes; below {TRUSTED:g} "
            "the weighted intervals may be too narrow."
        )
    how = "as recorded" if found.recorded else "estimated by state and step"
    title = (
        f"Reward of an episode [95 %], from {found.whole:,} whole episodes of {found.episodes:,}; "
        f"probabilities of advice {how}"
    )
    table = new_table(
        title,
        *("", "pieces", "in the model", "weighted episodes", "doubly robust", "effective"),
        left=1,
    )
    for judged in (found.policy, found.never, found.always):
        table.add_row(
            judged.name,
            short(judged.pieces),
            _worth(judged.model),
            _worth(judged.weighted),
            _worth(judged.doubly_robust),
            f"{judged.effective:,.0f}" if judged.effective >= 1.0 else "< 1",
        )
    table.add_row(
        "as logged", short(found.logged_pieces), "", _worth(found.logged), "", f"{found.whole:,}"
    )
    print_table(table)


def _worth(worth: Worth | None) -> str:
    if worth is None:
        return "–"
    if not math.isfinite(worth.low):
        return f"{worth.value:.4g} [too few]"
    return f"{worth.value:.4g} [{worth.low:.4g}, {worth.high:.4g}]"


def evaluated_record(found: Evaluated) -> dict[str, Any]:
    """Return what policies are worth, for JSON."""
    return {name: _known(value) for name, value in asdict(found).items()}


def _known(value: Any) -> Any:  # noqa: ANN401 (whatever a record holds)
    """Return a record in which what has no end is nothing."""
    if isinstance(value, dict):
        return {name: _known(one) for name, one in value.items()}
    return finite(value) if isinstance(value, float) else value
