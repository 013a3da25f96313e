"""Whether the intervals of one report hold the truth of a simulated clinic."""

from functools import cache, partial

import numpy as np

import counsel
from counsel.logs import plan_advice
from counsel.logs.adherence_breakdown import overall
from counsel.logs.cross_fit import CrossFit
from counsel.logs.evidence import Evidence
from counsel.logs.read import read_log
from tests.support.log_scenarios import (
    BROKEN,
    NO_EFFECT,
    SILENT,
    WELL_SPECIFIED,
    Scenario,
    play,
    silence,
    truth,
)

CLINICS = {
    **WELL_SPECIFIED,
    **BROKEN,
    "no effect": NO_EFFECT,
    "no effect, twenty people": Scenario(lift=0.0, people=20, spread=0.15),
}
WHAT = ("lift", "value", "today", "silence")
EPISODES, BUDGET, DRAWS = 1200, 1.5, 60


@cache
def true_values(name):
    """The return of the log's rule and of silence, and the lift of all advice together."""
    scenario = CLINICS[name]
    visits = play(Scenario(**{**vars(scenario), "people": 0, "cut": 0.0}), 400_000,
                  np.random.default_rng(9))  # fmt: skip
    advised = visits.alive & (visits.advice != SILENT) & visits.seen
    moved = room = 0.0
    for s in range(3):
        alone = visits.alive & ~advised & (visits.state == s)
        for b in range(2):
            told = advised & (visits.state == s) & (visits.advice == b)
            if told.any() and alone.any():
                habit = (visits.action[alone] == b).mean()
                moved += (visits.action[told] == b).sum() - told.sum() * habit
                room += told.sum() * (1.0 - habit)
    lift = moved / room if room else np.nan
    return truth(scenario, None), truth(scenario, silence()), lift


def one_log(name, seed):
    """Report on one log: which intervals hold, whether it is flagged, whether its headline errs."""
    scenario = CLINICS[name]
    unit = "episode" if scenario.arms else "decision"
    log = read_log(play(scenario, EPISODES, np.random.default_rng(seed)).frame(scenario))
    fit = counsel.fit(log, unit=unit)
    budget = None if scenario.deterministic else BUDGET
    plan = plan_advice(fit, budget=budget)
    rng = np.random.default_rng(seed)
    evidence, crossed = Evidence.load(log, fit, rng), CrossFit.of(plan, rng)
    drawn = [crossed.in_models(counts, replan=True) for counts in fit.resample_counts(DRAWS, rng)]
    worth = crossed.worth(evidence, drawn)
    today, quiet, lift = true_values(name)
    chances = plan.plan.policy.probabilities()[:, :3]
    value = truth(scenario, chances, episodes=200_000)
    by = overall(fit.tally, fit.estimates)
    held = {"lift": bool(by.low[0] <= lift <= by.high[0]) if by.has_lift[0] else None}
    for what, found, true in (
        ("value", worth.value, value),
        ("today", worth.beyond_today, value - today),
        ("silence", worth.beyond_silence, value - quiet),
    ):
        best = found.best
        held[what] = None if best is None else bool(best.low <= true <= best.high)
    gain = worth.beyond_silence.best
    held["significant"] = None if gain is None else gain.excludes_zero
    is_disputed = worth.beyond_today.is_disputed
    held["flagged"] = not fit.is_trusted or is_disputed or bool(plan.keeps_states)
    held["missed"] = held["today"] is False and not held["flagged"]
    return held


def summary(name, logs, mapped=map):
    """A line of the table: shares of logs, of those with an answer."""
    rows = list(mapped(partial(one_log, name), range(1000, 1000 + logs)))

    def share(what):
        known = [row[what] for row in rows if row[what] is not None]
        return f"{np.mean(known):.3f}" if known else "–"

    parts = (*WHAT, "significant", "flagged", "missed")
    return ",".join((name, str(logs), *map(share, parts)))
