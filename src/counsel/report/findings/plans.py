"""Plans."""

import math
from collections.abc import Sequence

from counsel.logs.check import THIN
from counsel.logs.cross_fit import CrossFit
from counsel.logs.plan import LogPlan
from counsel.logs.plan_table import PlanEntry
from counsel.report.number_format import count_of, in_full, percent, pieces_per_episode, short


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
    if plan.endless is not None:
        per = "step" if plan.endless.average else "episode"
        return (
            f"Without end ({plan.endless.mdp.kind_of_work}): with "
            f"{pieces_per_episode(plan.plan.advice_count, cost=plan.advice_cost, per=per)} the "
            f"expected reward is {in_full(plan.plan.value)} in the model, against "
            f"{in_full(plan.value_alone)} {alone}{kept}. A log of episodes cannot check this."
        )
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
